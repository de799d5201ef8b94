//! Named locks and the exclusive mode against a real PostgreSQL: each file is named after what it proves.
//!
//! Run by `cargo xtask test`, which brings the database. A test has a database of its own. What ShedLock does is told in its
//! own statements here (`shedlock`); its own library meets our binary in `cargo xtask interop shedlock`.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

#[path = "../common/mod.rs"]
mod common;

mod contention;
mod exclusive;
mod keep_alive;
mod release;
mod semantics;
mod shedlock;
mod support;
mod table;
mod tokens;
mod waits;
