//! The alarms lane against a real PostgreSQL and real receivers of wakes: each file is named after what it proves.
//!
//! Run by `cargo xtask test`, which brings the database. A test has a database of its own.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod backfill;
mod bed;
mod cancel;
mod chronos;
mod failures;
mod fire;
mod hostile_targets;
mod housekeeping;
mod isolation;
mod misfire;
mod operate;
mod overlap;
mod owners;
mod plans;
mod set;
mod set_by_sql;
mod signatures;
mod turns;
mod zones;
