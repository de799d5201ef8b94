//! The engine refuses for good: attempts are counted, tries are apart, and it ends after exactly as many as allowed.

use stationmaster_core::id::ExecutionId;
use std::time::Duration;

use stationmaster_core::executions::Settings;
use stationmaster_core::executions::inspect::{self, Waiting};
use stationmaster_core::retry::Backoff;

use crate::common::counting::wrong_counters;
use crate::common::{NOOP, Server, Testbed, UNKNOWN_TYPE, brisk, eventually};

fn retrying_after(millis: u64) -> Settings {
    let step = Duration::from_millis(millis);
    Settings {
        retry: Backoff {
            base: step,
            cap: step,
        },
        ..brisk()
    }
}

/// How many starts the engine was asked for.
fn starts(server: &Server) -> u64 {
    server.metric("engine_start_duration_seconds_count")
}

#[tokio::test]
async fn an_item_fails_after_exactly_as_many_starts_as_allowed_under_one_execution_id() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, UNKNOWN_TYPE).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(retrying_after(2_000)).await;

    // The waits are cut short by chance, but not both to nothing; each look is one snapshot.
    let look = "select q.execution_id, c.active from stationmaster.workflow_execution_queue q
                join stationmaster_internal.workspace_capacity c using (workspace_id)
                where q.status = 'PENDING' and q.attempt_count > 0";
    let mut between: Option<(ExecutionId, i32)> = None;
    eventually("it waits between two tries", async || {
        between = sqlx::query_as(look).fetch_optional(testbed.pool()).await.unwrap();
        between.is_some()
    })
    .await;
    let (first, active) = between.unwrap();
    assert_eq!(active, 0, "the slot is given back between two tries");

    testbed.reaches(item, "FAILED").await;
    let ended = testbed.execution(item).await;
    assert_eq!(ended.id, first.0);
    assert_eq!(ended.attempts, 3);
    assert_eq!(ended.reason.as_deref(), Some("refused"));
    assert!(ended.error.unwrap().get().contains("from-another-world"));
    let asked = testbed.item(item).await;
    assert_eq!((asked.status.as_str(), asked.attempt_count), ("FAILED", 3));
    assert!(asked.last_error.unwrap().contains("from-another-world"));
    assert_eq!(starts(&server), 3);
    assert_eq!(server.metric("queue_items_retried_total"), 2);
    assert_eq!(server.metric("queue_items_failed_total{reason=\"refused\"}"), 1);
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn between_two_tries_the_item_waits_and_others_use_its_slot() {
    let testbed = Testbed::new().await;
    let broken = testbed.tenant(1, UNKNOWN_TYPE).await;
    let sound = (broken.0, testbed.definition(broken.0, NOOP).await);
    let item = testbed.enqueue(broken).await;
    // So long that the second try never comes while the test lasts.
    let server = testbed.server(retrying_after(1_000_000_000)).await;
    testbed.reaches(item, "PENDING").await;
    let wait = inspect::waiting(&testbed.database, item).await.unwrap();
    let waiting = wait.and_then(|wait| wait.reasons.into_iter().next());
    assert!(
        matches!(&waiting, Some(Waiting::BackingOff { until: Some(_), error: Some(error) }) if error.contains("from-another-world")),
        "{waiting:?}"
    );
    let other = testbed.enqueue(sound).await;
    testbed.reaches(other, "COMPLETED").await;
    assert_eq!(testbed.status(item).await, "PENDING");
    server.stop().await;
}

#[tokio::test]
async fn the_definitions_own_number_of_attempts_wins() {
    let testbed = Testbed::new().await;
    let (few, many) = (
        testbed.tenant(1, UNKNOWN_TYPE).await,
        testbed.tenant(1, UNKNOWN_TYPE).await,
    );
    testbed.max_attempts(few, 1).await;
    testbed.max_attempts(many, 5).await;
    let (once, often) = (testbed.enqueue(few).await, testbed.enqueue(many).await);
    let server = testbed.server(retrying_after(1)).await;
    testbed.reaches(once, "FAILED").await;
    testbed.reaches(often, "FAILED").await;
    assert_eq!(testbed.execution(once).await.attempts, 1);
    assert_eq!(testbed.execution(often).await.attempts, 5);
    assert_eq!(starts(&server), 6);
    server.stop().await;
}

#[tokio::test]
async fn an_item_cancelled_between_two_tries_is_over() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, UNKNOWN_TYPE).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(retrying_after(1_000_000_000)).await;
    testbed.reaches(item, "PENDING").await;
    let execution = testbed.execution(item).await.id;
    let cancel = stationmaster_core::executions::operate::cancel;
    cancel(&testbed.database, execution, None, "alice").await.unwrap();
    let ended = testbed.execution_by_id(ExecutionId(execution)).await;
    assert_eq!((ended.status.as_str(), ended.attempts), ("CANCELLED", 1));
    assert_eq!(testbed.status(item).await, "CANCELLED");
    assert_eq!(starts(&server), 1);
    server.stop().await;
}

/// A `fail` node is no refusal: the engine ran it, and it failed. Nobody tries again by itself.
#[tokio::test]
async fn an_execution_that_ran_and_failed_is_not_tried_again() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, crate::common::FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(retrying_after(1)).await;
    testbed.reaches(item, "FAILED").await;
    let asked = testbed.item(item).await;
    assert_eq!((asked.status.as_str(), asked.attempt_count), ("DISPATCHED", 0));
    assert_eq!(starts(&server), 1);
    server.stop().await;
}
