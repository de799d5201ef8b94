//! The examples of the client crate, as they stand there, against a real server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "its main is for people")]
#[path = "../../../client/examples/cron_alarm.rs"]
mod cron_alarm;
#[expect(dead_code, reason = "its main is for people")]
#[path = "../../../client/examples/enqueue.rs"]
mod enqueue;
mod examples;
#[expect(dead_code, reason = "its main is for people")]
#[path = "../../../client/examples/hold_a_lock.rs"]
mod hold_a_lock;
mod locks;
#[expect(dead_code, reason = "its main is for people")]
#[path = "../../../client/examples/receive_wakes.rs"]
mod receive_wakes;
#[allow(dead_code, reason = "shared with the tests of the API, which need more of it")]
#[path = "../api/scene.rs"]
mod scene;
#[allow(
    dead_code,
    unused_imports,
    reason = "shared with the tests of processes, which need more of it"
)]
#[path = "../processes/support/mod.rs"]
mod support;
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is written to be a program of its own"
)]
#[path = "../../../client/examples/temporal_worker.rs"]
mod temporal_worker;
