//! I8: an orderly end. Nothing is left in the hands of a server that has gone.

use stationmaster_core::id::ExecutionId;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stationmaster_core::engine::Engine;
use stationmaster_core::executions::Settings;
use stationmaster_core::presence::Presence;

use crate::common::counting::{misplaced_items, wrong_counters};
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually, wait};

#[tokio::test]
async fn a_heartbeat_after_the_end_does_not_bring_a_server_back() {
    let testbed = Testbed::new().await;
    let presence = Presence::new("leaving");
    let beat = || presence.beat(&testbed.database, "embedded", true);
    beat().await.unwrap();
    assert_eq!(testbed.count("servers").await, 1);

    let (left, late, later) = tokio::join!(presence.leave(&testbed.database), beat(), beat());
    left.and(late).and(later).unwrap();
    beat().await.unwrap();

    assert_eq!(testbed.count("servers").await, 0);
}

#[tokio::test]
async fn a_server_that_stops_gives_its_runs_back_in_time_and_another_goes_on_with_them() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, &wait(600.0)).await;
    let items = testbed.enqueue_many(tenant, 7).await;
    let first = testbed.server(brisk()).await;
    for item in &items[..5] {
        testbed.reaches(*item, "RUNNING").await;
    }
    let executions: Vec<_> =
        futures::future::join_all(items[..5].iter().map(|item| testbed.execution(*item))).await;

    let began = Instant::now();
    first.station.shut_down(Duration::from_secs(5)).await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "took {:?}",
        began.elapsed()
    );
    assert_eq!(testbed.count("executions_active").await, 0);
    assert_eq!(testbed.count("queue_pending").await, 7);
    assert_eq!(testbed.count("servers").await, 0);
    assert_eq!(wrong_counters(&testbed).await, []);

    // The waits are over meanwhile.
    testbed
        .run("update stationmaster_internal.embedded_runs set wake_at = now()")
        .await;
    let second = testbed.server(brisk()).await;
    for (item, execution) in items[..5].iter().zip(&executions) {
        testbed.reaches(*item, "COMPLETED").await;
        let ended = testbed.execution(*item).await;
        assert_eq!(
            (ended.id, ended.recoveries, ended.attempts),
            (execution.id, 0, 0),
            "handed over, not lost"
        );
    }
    testbed.reaches(items[6], "RUNNING").await;
    second.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_in_the_middle_of_much_work_loses_nothing() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, &wait(0.02)).await;
    let quick = testbed.tenant(50, NOOP).await;
    testbed.enqueue_many(tenant, 300).await;
    testbed.enqueue_many(quick, 1000).await;
    for _ in 0..4 {
        let server = testbed
            .server(Settings {
                batch_size: 10,
                ..brisk()
            })
            .await;
        let before = testbed.count("executions_finished").await;
        let moving = async || testbed.count("executions_finished").await > before + 50;
        eventually("some are done", moving).await;
        server.stop().await;
        assert_eq!(testbed.count("executions_active").await, 0);
        assert_eq!(misplaced_items(&testbed).await, []);
        assert_eq!(wrong_counters(&testbed).await, []);
        assert_eq!(testbed.count("servers").await, 0);
    }
    let server = testbed.server(brisk()).await;
    testbed.finishes(1300).await;
    let lost = "select count(*) from stationmaster_internal.executions_finished
                where recoveries > 0 or attempts > 0 or status is distinct from 'COMPLETED'";
    assert_eq!(testbed.number(lost).await, 0);
    server.stop().await;
}

/// Runs on an engine of its own go on without the server; they are not given back.
#[tokio::test]
async fn runs_on_a_shared_engine_go_on_when_a_server_stops() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let shared = || Arc::clone(&engine) as Arc<dyn Engine>;
    let first = Server::start_outside(&testbed.url, brisk(), shared()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    first.stop().await;
    assert_eq!(testbed.outcome(item).await, "RUNNING");
    assert_eq!(testbed.count("servers").await, 0);

    engine.close(
        ExecutionId(execution),
        stationmaster_core::engine::CloseStatus::Completed,
    );
    let second = Server::start_outside(&testbed.url, brisk(), shared()).await;
    testbed.reaches(item, "COMPLETED").await;
    assert_eq!(
        (
            engine.begun(ExecutionId(execution)),
            engine.asked(ExecutionId(execution))
        ),
        (1, 1)
    );
    second.stop().await;
}

/// Whatever a stop interrupts, it is no loss: servers that come and go in good order must not bring an item nearer to
/// being put aside.
#[tokio::test]
async fn servers_that_come_and_go_in_order_count_as_no_loss() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2000, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    testbed.enqueue_many(tenant, 300).await;
    let running = "select count(*) from stationmaster_internal.executions_active where state = 'RUNNING'";
    let mut before = 0;
    while before < 300 {
        let settings = Settings {
            batch_size: 5,
            start_concurrency: 5,
            ..brisk()
        };
        let server =
            Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
        let moving = async || testbed.number(running).await >= (before + 40).min(300);
        eventually("some are running", moving).await;
        server.stop().await;
        before = testbed.number(running).await;
        let starting =
            "select count(*) from stationmaster_internal.executions_active where state = 'STARTING'";
        assert_eq!(
            testbed.number(starting).await,
            0,
            "left in the hands of a server that has gone"
        );
        assert_eq!(testbed.count("servers").await, 0);
    }
    let lost =
        "select count(*) from stationmaster_internal.executions_active where recoveries > 0 or attempts > 0";
    assert_eq!(testbed.number(lost).await, 0);
    assert_eq!(engine.asked_in_all(), 300, "each start was asked for once");
}

/// A start that hangs is not waited for beyond the deadline, and is not lost either.
#[tokio::test]
async fn a_start_that_hangs_does_not_hold_up_the_end() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let shared = || Arc::clone(&engine) as Arc<dyn Engine>;
    let first = Server::start_outside(&testbed.url, brisk(), shared()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the start hangs", async || engine.asked_in_all() == 1).await;
    let began = Instant::now();
    first.station.shut_down(Duration::from_secs(2)).await;
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "took {:?}",
        began.elapsed()
    );
    engine.let_go();
    let second = Server::start_outside(&testbed.url, brisk(), shared()).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    assert_eq!(engine.begun(ExecutionId(execution)), 1, "at most one run, ever");
    second.stop().await;
}

#[tokio::test]
async fn a_server_with_nothing_to_do_stops_at_once_and_leaves_no_trace() {
    let testbed = Testbed::new().await;
    let server = testbed.server(brisk()).await;
    assert_eq!(testbed.count("servers").await, 1);
    let began = Instant::now();
    server.stop().await;
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "took {:?}",
        began.elapsed()
    );
    assert_eq!(testbed.count("servers").await, 0);
    // A duty that was asked for in the last moment may have been given after it left: free all the same, because nobody is there.
    let held = "select count(*) from stationmaster_internal.duties d
                where lease_until > now() and exists (select from stationmaster_internal.servers s where s.id = d.holder)";
    assert_eq!(testbed.number(held).await, 0, "its duties can be taken at once");
}
