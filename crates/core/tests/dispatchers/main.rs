//! Signals and dispatchers against a real PostgreSQL, on the embedded engine: each file is named after what it proves.
//!
//! Run by `cargo xtask test`, which brings the database. A test has a database of its own.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

#[path = "../common/mod.rs"]
mod common;

mod dead_letters;
mod fences;
mod ids;
mod inbox;
mod ownership;
mod plans;
mod redis;
mod removal;
mod rest;
mod routing;
mod supervisor;
mod support;
mod tasks;
mod webhook;
