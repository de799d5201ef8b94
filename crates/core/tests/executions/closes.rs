//! Whatever an engine tells of the ends of runs, one that is told twice or cannot be written holds nobody else up.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::{CloseStatus, Engine};
use stationmaster_core::executions::Settings;
use stationmaster_core::id::{ExecutionId, ItemId};

use crate::common::counting::wrong_counters;
use crate::common::scripted::{CLOSED_AT, Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk};

/// Two items that run on an engine, and their executions.
async fn two_running(
    testbed: &Testbed,
    engine: &Arc<ScriptedEngine>,
) -> (Server, [(ItemId, ExecutionId); 2]) {
    let tenant = testbed.tenant(2, NOOP).await;
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(engine) as Arc<dyn Engine>).await;
    let mut running = Vec::new();
    for item in testbed.enqueue_many(tenant, 2).await {
        testbed.reaches(item, "RUNNING").await;
        running.push((item, ExecutionId(testbed.execution(item).await.id)));
    }
    (server, running.try_into().unwrap())
}

/// An execution has two runs when somebody resets it, and two ends when its server was cut off and claimed it again.
#[tokio::test]
async fn an_execution_whose_end_is_told_twice_at_once_ends_once() {
    let testbed = Testbed::new().await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let (server, running) = two_running(&testbed, &engine).await;
    engine.repeat_closes();
    for (_, execution) in running {
        engine.close(execution, CloseStatus::Completed);
    }
    for (item, _) in running {
        testbed.reaches(item, "COMPLETED").await;
    }
    assert_eq!(testbed.count("executions_finished").await, 2);
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn an_end_that_the_database_refuses_keeps_no_other_from_being_written() {
    let testbed = Testbed::new().await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let (server, [(refused, first), (other, second)]) = two_running(&testbed, &engine).await;
    let forbid = "alter table stationmaster_internal.executions_finished add constraint forbidden check (status <> 'TIMED_OUT')";
    testbed.run(forbid).await;
    engine.close(first, CloseStatus::TimedOut);
    engine.close(second, CloseStatus::Completed);
    testbed.reaches(other, "COMPLETED").await;
    testbed.reaches(refused, "RUNNING").await;
    testbed
        .run("alter table stationmaster_internal.executions_finished drop constraint forbidden")
        .await;
    testbed.reaches(refused, "TIMED_OUT").await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn an_engine_that_asks_for_fewer_lists_is_not_taken_to_be_away() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(9, NOOP).await;
    let engine = ScriptedEngine::new(Mood::ThrottlesLists);
    let settings = Settings {
        close_interval: Duration::from_millis(20),
        reconcile_interval: Duration::from_millis(100),
        ..brisk()
    };
    let server = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let first = testbed.enqueue(tenant).await;
    testbed.reaches(first, "RUNNING").await;
    // Long enough for many lists in a row to be turned away. An engine taken to be away is asked and found again in a moment, so
    // readiness is looked at all the while.
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(server.station.readiness().problems, Vec::<String>::new());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let second = testbed.enqueue(tenant).await;
    testbed.reaches(second, "RUNNING").await;
    engine.feel(Mood::Willing);
    engine.close(
        ExecutionId(testbed.execution(first).await.id),
        CloseStatus::Completed,
    );
    testbed.reaches(first, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn an_end_keeps_the_last_run_and_when_it_closed_by_the_engines_clock() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let running = testbed.execution(item).await;
    assert_eq!(running.closed_at, None);
    engine.close(ExecutionId(running.id), CloseStatus::Completed);
    testbed.reaches(item, "COMPLETED").await;
    let ended = testbed.execution(item).await;
    assert_eq!(ended.closed_at, Some(CLOSED_AT));
    assert!(ended.completed_at.unwrap() > CLOSED_AT);
    assert_eq!(ended.run_id, Some(format!("last-{}", running.run_id.unwrap())));
    server.stop().await;
}
