//! What the tests stand on: a database, servers, Temporal, and a network that can be stood in the way of.

mod alarms;
pub(crate) mod authority;
mod database;
mod http;
mod limits;
mod process;
#[allow(dead_code, reason = "each test program uses its own part of this")]
pub(crate) mod prometheus;
mod proxy;
#[path = "../../../../core/tests/common/receiver.rs"]
pub(crate) mod receiver;
mod redis;
mod temporal;
mod worker;

use std::time::{Duration, Instant};

pub(crate) use alarms::{Alarms, Occurrence};
pub(crate) use database::{ENDLESS, Row, SHORT, TestDatabase};
pub(crate) use http::get;
#[allow(unused_imports, reason = "each test program uses its own part of this")]
pub(crate) use http::{get_with, post};
pub(crate) use limits::LimitWatch;
pub(crate) use process::{Launch, Process, command, with_open_files};
pub(crate) use proxy::{Direction, Door, Gate, Proxy};
pub(crate) use redis::Redis;
pub(crate) use temporal::{DevServer, Temporal, free_port};
pub(crate) use worker::{Work, Worker};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A setting of the tests, or a failure that tells where it comes from.
pub(crate) fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run these tests with `cargo xtask test`, which sets it")
    })
}

/// Asks until the answer is yes, and says how long it took.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}
