//! I2: a start in doubt is asked about and never made twice; a start that falls over is a refusal.

use stationmaster_core::id::ExecutionId;
use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::{CloseStatus, Engine};
use stationmaster_core::executions::Settings;
use stationmaster_core::retry::Backoff;

use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually};

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_found_running() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::LosesTheAnswer);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await;
    assert_eq!(
        (
            engine.asked(ExecutionId(execution.id)),
            engine.begun(ExecutionId(execution.id))
        ),
        (1, 1)
    );
    assert_eq!((execution.attempts, execution.recoveries), (0, 0));
    engine.close(ExecutionId(execution.id), CloseStatus::Completed);
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn a_start_whose_request_was_lost_is_made_again_under_the_same_id() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::LosesTheRequest);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("it was asked for again", async || engine.asked_in_all() >= 2).await;
    assert_eq!(
        testbed.outcome(item).await,
        "STARTING",
        "it keeps its slot and its id"
    );
    engine.feel(Mood::Willing);
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await;
    assert_eq!(
        engine.asked_in_all(),
        engine.asked(ExecutionId(execution.id)),
        "one id in every try"
    );
    assert_eq!(
        (engine.begun(ExecutionId(execution.id)), execution.attempts),
        (1, 0)
    );
    server.stop().await;
}

#[tokio::test]
async fn a_start_that_panics_counts_as_refused_and_harms_nobody() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Panics);
    let retry = Backoff {
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
    };
    let settings = Settings { retry, ..brisk() };
    let server = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "FAILED").await;
    let ended = testbed.execution(item).await;
    assert_eq!(ended.attempts, 3);
    assert!(ended.error.unwrap().get().contains("as told"));
    engine.feel(Mood::Willing);
    let next = testbed.enqueue(tenant).await;
    testbed.reaches(next, "RUNNING").await;
    server.stop().await;
}
