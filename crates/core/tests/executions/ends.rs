//! Ends that people wish for, and the time that a run may take.

use std::time::Duration;

use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::operate::{self, Complete, Error, Wish, Wished};
use stationmaster_core::id::{DefinitionId, ExecutionId};
use stationmaster_core::presence::Presence;

use crate::common::counting::wrong_counters;
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::server::Mortal;
use crate::common::{NOOP, Server, Testbed, brisk, eventually, raw, wait};

fn terminate() -> Wish {
    Wish::Terminate {
        reason: Some("it hangs".to_owned()),
    }
}

fn complete() -> Wish {
    Wish::Complete(Complete {
        force: false,
        status: CloseStatus::Completed,
        output: Some(raw(r#"{"by": "hand"}"#)),
        error: None,
    })
}

async fn end(testbed: &Testbed, execution: uuid::Uuid, wish: Wish) -> Result<Wished, Error> {
    operate::end(&testbed.database, ExecutionId(execution), wish, "alice").await
}

async fn limit_time(testbed: &Testbed, definition: DefinitionId, time: &str) {
    let query = format!(
        "update stationmaster.workflow_definitions set run_timeout = '{time}' where id = '{definition}'"
    );
    assert_eq!(testbed.run(&query).await, 1);
}

#[tokio::test]
async fn a_run_inside_a_server_is_ended_by_force_and_its_slot_goes_to_the_next() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    // The wish must find the server that runs it, whoever is asked.
    let servers = [testbed.server(brisk()).await, testbed.server(brisk()).await];
    let items = testbed.enqueue_many(tenant, 3).await;
    testbed.reaches(items[0], "RUNNING").await;
    let execution = testbed.execution(items[0]).await.id;
    assert_eq!(
        end(&testbed, execution, terminate()).await.unwrap(),
        Wished::Requested
    );
    testbed.reaches(items[0], "TERMINATED").await;
    let ended = testbed.execution(items[0]).await;
    assert_eq!(ended.reason.as_deref(), Some("terminated_by_request"));
    assert!(ended.error.unwrap().get().contains("it hangs"));
    testbed.reaches(items[1], "RUNNING").await;
    let execution = testbed.execution(items[1]).await.id;
    assert_eq!(
        end(&testbed, execution, complete()).await.unwrap(),
        Wished::Requested
    );
    testbed.reaches(items[1], "COMPLETED").await;
    let ended = testbed.execution(items[1]).await;
    assert_eq!(ended.output.unwrap().get(), r#"{"by": "hand"}"#);
    testbed.reaches(items[2], "RUNNING").await;
    assert_eq!(testbed.count("cancel_requests").await, 0);
    assert_eq!(wrong_counters(&testbed).await, []);
    let refused: u64 = servers
        .iter()
        .map(|server| server.metric("stationmaster_stale_writes_refused_total"))
        .sum();
    assert_eq!(refused, 0, "a run that was ended says nothing more");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn what_waits_is_cancelled_and_what_is_over_is_refused() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Refuses);
    let server = Server::start_outside(&testbed.url, brisk(), engine.clone()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("it waits for another start", async || {
        testbed.item(item).await.execution_id.is_some() && testbed.status(item).await == "PENDING"
    })
    .await;
    server.stop().await;
    let execution = testbed.item(item).await.execution_id.unwrap();
    let refused = end(&testbed, execution, complete()).await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{refused:?}");
    assert_eq!(
        end(&testbed, execution, terminate()).await.unwrap(),
        Wished::Cancelled
    );
    assert_eq!(testbed.status(item).await, "CANCELLED");
    let refused = end(&testbed, execution, terminate()).await;
    assert!(matches!(refused, Err(Error::WrongState(_))), "{refused:?}");
    let nobody = end(&testbed, uuid::Uuid::now_v7(), terminate()).await;
    assert!(matches!(nobody, Err(Error::NotFound(_))), "{nobody:?}");
}

#[tokio::test]
async fn the_slot_stays_taken_until_the_engine_has_ended_the_run() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = Server::start_outside(&testbed.url, brisk(), engine.clone()).await;
    let items = testbed.enqueue_many(tenant, 2).await;
    testbed.reaches(items[0], "RUNNING").await;
    let execution = testbed.execution(items[0]).await.id;
    engine.feel(Mood::Away);
    end(&testbed, execution, complete()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(testbed.outcome(items[0]).await, "RUNNING");
    engine.feel(Mood::Willing);
    testbed.reaches(items[0], "COMPLETED").await;
    assert_eq!(engine.terminations(ExecutionId(execution)), 1);
    let ended = testbed.execution(items[0]).await;
    assert_eq!(ended.reason.as_deref(), Some("completed_by_request"));
    testbed.reaches(items[1], "RUNNING").await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

/// Its server was lost with the run, and nobody may go on with it now: whoever said how it ended was told that it will end so.
#[tokio::test]
async fn an_execution_that_went_back_to_the_queue_ends_there_as_somebody_said() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, &wait(600.0)).await;
    let item = testbed.enqueue((workspace, definition)).await;
    let presence = Presence::with_lease("mortal", Duration::from_millis(500));
    let mortal = Mortal::start(&testbed.url, brisk(), presence).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    mortal.kill();
    assert_eq!(
        end(&testbed, execution, complete()).await.unwrap(),
        Wished::Requested
    );
    let pause = format!("update stationmaster.workspaces set paused = true where id = '{workspace}'");
    assert_eq!(testbed.run(&pause).await, 1);
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    let ended = testbed.execution(item).await;
    assert_eq!(ended.id, execution);
    assert_eq!(ended.reason.as_deref(), Some("completed_by_request"));
    assert_eq!(ended.output.unwrap().get(), r#"{"by": "hand"}"#);
    assert_eq!(testbed.status(item).await, "DISPATCHED");
    let told = format!(
        "select count(*) from stationmaster_internal.queue_events where item_id = '{item}' and event in ('recovered', 'complete_requested')"
    );
    assert_eq!(
        testbed.number(&told).await,
        2,
        "it was in the queue, and the wish is on record"
    );
    assert_eq!(testbed.count("cancel_requests").await, 0);
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn a_wish_to_end_takes_the_place_of_a_cancel_that_the_run_does_not_obey() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let item = testbed.enqueue(tenant).await;
    let mortal = Mortal::start(&testbed.url, brisk(), Presence::new("mortal")).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    // Nobody carries anything out now.
    mortal.kill();
    operate::cancel(&testbed.database, execution, None, "bob")
        .await
        .unwrap();
    end(&testbed, execution, terminate()).await.unwrap();
    end(&testbed, execution, complete()).await.unwrap();
    operate::cancel(&testbed.database, execution, None, "bob")
        .await
        .unwrap();
    let kept = "select count(*) from stationmaster_internal.cancel_requests where kind = 'terminate' and actor = 'alice'";
    assert_eq!(
        testbed.number(kept).await,
        1,
        "of two that end it the first holds"
    );
}

#[tokio::test]
async fn a_run_inside_a_server_ends_when_its_time_is_over() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, &wait(600.0)).await;
    limit_time(&testbed, definition, "1 second").await;
    let server = testbed.server(brisk()).await;
    let items = testbed.enqueue_many((workspace, definition), 2).await;
    testbed.reaches(items[0], "TIMED_OUT").await;
    testbed.reaches(items[1], "TIMED_OUT").await;
    let ended = testbed.execution(items[0]).await;
    assert!(ended.error.unwrap().get().contains("exceeded the time allowed"));
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn the_time_of_a_run_goes_on_while_its_server_is_lost() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, &wait(600.0)).await;
    limit_time(&testbed, definition, "2 hours").await;
    let presence = Presence::with_lease("mortal", Duration::from_millis(500));
    let mortal = Mortal::start(&testbed.url, brisk(), presence).await;
    let item = testbed.enqueue((workspace, definition)).await;
    testbed.reaches(item, "RUNNING").await;
    mortal.kill();
    // The two hours are over by the time that somebody goes on with it.
    let passed = testbed
        .run("update stationmaster_internal.embedded_runs set deadline_at = deadline_at - interval '3 hours'")
        .await;
    assert_eq!(passed, 1);
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "TIMED_OUT").await;
    server.stop().await;
}
