//! The engine against a real Temporal server, and against networks that fail.
//!
//! The tests share one dev server for as long as any of them runs; those that kill servers have their own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod closes;
mod dispatchers;
mod outages;
mod starts;
mod support;
mod tls;
mod worker;

#[path = "../../../client/examples/temporal_worker.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is written to be a program of its own"
)]
mod example;
