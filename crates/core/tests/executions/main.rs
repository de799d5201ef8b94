//! The executions lane against a real PostgreSQL: each file is named after what it proves.
//!
//! Run by `cargo xtask test`, which brings the database. A test has a database of its own.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

#[path = "../common/mod.rs"]
mod common;

mod alone;
mod batches;
mod bulk;
mod cancel;
mod cancel_races;
mod catalogue;
mod claim_order;
mod closes;
mod complete;
mod connections;
mod doubt;
mod embedded_runs;
mod ends;
mod engines;
mod enqueue;
mod enqueue_by_sql;
mod fairness;
mod gather;
mod gone;
mod graphs;
mod history;
mod hostile_input;
mod housekeeping;
mod idempotency;
mod isolation;
mod late_writes;
mod limits;
mod listing;
mod minutes;
mod names;
mod one_owner;
mod outage;
mod pause;
mod plans;
mod reconcile;
mod recovery;
mod refusals;
mod retry;
mod scheduled;
mod shutdown;
mod waiting;
mod wake_up;
