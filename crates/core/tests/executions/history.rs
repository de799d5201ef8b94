//! The history of an item: what happened, who did it, in the order in which it happened.

use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::inspect::{self, Step};
use stationmaster_core::executions::operate::{self, Complete};
use stationmaster_core::id::{ExecutionId, ItemId};

use crate::common::listener::Listener;
use crate::common::{FAIL, NOOP, Testbed, UNKNOWN_TYPE, brisk, eventually, wait};

async fn steps(testbed: &Testbed, item: ItemId) -> Vec<Step> {
    let steps = inspect::history(&testbed.database, item).await.unwrap();
    assert!(
        steps.is_sorted_by_key(|step| step.at),
        "times go forward: {steps:?}"
    );
    steps
}

fn names(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.event.as_str()).collect()
}

#[tokio::test]
async fn an_ordinary_life_is_told_from_the_rows() {
    let (testbed, listener) = (Testbed::new().await, Listener::start().await);
    let graph = serde_json::json!({"nodes": [{"id": "a", "type": "http", "url": listener.url("/held")}]});
    let tenant = testbed.tenant(1, &graph.to_string()).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    assert_eq!(
        names(&steps(&testbed, item).await),
        ["enqueued", "claimed", "dispatched"]
    );
    listener.let_go();
    testbed.reaches(item, "COMPLETED").await;
    let steps = steps(&testbed, item).await;
    assert_eq!(names(&steps), ["enqueued", "claimed", "dispatched", "completed"]);
    let id = server.id().to_string();
    let actors: Vec<&str> = steps.iter().map(|step| step.actor.as_str()).collect();
    assert_eq!(actors, ["tester", &id, &id, "embedded"]);
    let execution = Some(testbed.execution(item).await.id);
    assert_eq!(steps[0].execution_id, None);
    assert!(steps[1..].iter().all(|step| step.execution_id == execution));
    server.stop().await;
}

/// An execution that is over within its start has three steps in one moment; their order must hold all the same.
#[tokio::test]
async fn the_steps_of_the_quickest_executions_are_in_order_too() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(500, NOOP).await;
    let items = testbed.enqueue_many(tenant, 2000).await;
    let server = testbed.server(brisk()).await;
    testbed.finishes(2000).await;
    server.stop().await;
    for item in items.iter().step_by(20) {
        let steps = steps(&testbed, *item).await;
        assert_eq!(names(&steps), ["enqueued", "claimed", "dispatched", "completed"]);
    }
    let tied =
        "select count(*) from stationmaster_internal.executions_finished where finished_at <= dispatched_at";
    assert_eq!(
        testbed.number(tied).await,
        0,
        "ended in the microsecond of the start, and sorted before it by name"
    );
}

#[tokio::test]
async fn a_retry_and_a_cancel_name_who_did_them() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "FAILED").await;
    server.stop().await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    operate::set_priority(&testbed.database, item, 4, "carol", None)
        .await
        .unwrap();
    operate::cancel(&testbed.database, item.0, Some("never mind"), "bob")
        .await
        .unwrap();
    let steps = steps(&testbed, item).await;
    let expected = [
        "enqueued",
        "claimed",
        "dispatched",
        "failed",
        "retried",
        "priority_changed",
        "cancelled",
    ];
    assert_eq!(names(&steps), expected);
    let by = |event: &str| steps.iter().find(|step| step.event == event).unwrap();
    assert_eq!(by("retried").actor, "alice");
    assert_eq!(by("priority_changed").actor, "carol");
    assert_eq!(by("priority_changed").detail.as_deref(), Some("priority 4"));
    assert_eq!(
        (by("cancelled").actor.as_str(), by("cancelled").detail.as_deref()),
        ("bob", Some("never mind"))
    );
}

#[tokio::test]
async fn a_cancel_by_way_of_the_engine_tells_the_wish_and_the_end() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    operate::cancel(&testbed.database, item.0, Some("too slow"), "bob")
        .await
        .unwrap();
    testbed.reaches(item, "CANCELLED").await;
    let told = async || {
        steps(&testbed, item)
            .await
            .iter()
            .any(|step| step.event == "cancel_requested")
    };
    eventually("the wish is told", told).await;
    let steps = steps(&testbed, item).await;
    let wish = steps
        .iter()
        .find(|step| step.event == "cancel_requested")
        .unwrap();
    assert_eq!(
        (wish.actor.as_str(), wish.detail.as_deref()),
        ("bob", Some("too slow"))
    );
    assert!(names(&steps).contains(&"cancelled"));
    server.stop().await;
}

#[tokio::test]
async fn an_end_told_by_a_person_names_the_person() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    let completion = Complete {
        force: false,
        status: CloseStatus::Completed,
        output: None,
        error: None,
    };
    let execution = testbed.execution(item).await.id;
    operate::complete(&testbed.database, ExecutionId(execution), completion, "alice")
        .await
        .unwrap();
    let steps = steps(&testbed, item).await;
    let last = steps.last().unwrap();
    assert_eq!((last.event.as_str(), last.actor.as_str()), ("completed", "alice"));
    server.stop().await;
}

#[tokio::test]
async fn every_refusal_is_told_with_its_reason() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, UNKNOWN_TYPE).await;
    let item = testbed.enqueue(tenant).await;
    let retry = stationmaster_core::retry::Backoff {
        base: std::time::Duration::from_millis(1),
        cap: std::time::Duration::from_millis(1),
    };
    let server = testbed
        .server(stationmaster_core::executions::Settings { retry, ..brisk() })
        .await;
    testbed.reaches(item, "FAILED").await;
    let steps = steps(&testbed, item).await;
    let refusals: Vec<&Step> = steps.iter().filter(|step| step.event == "backoff").collect();
    assert_eq!(refusals.len(), 2, "{steps:?}");
    let id = server.id().to_string();
    assert!(
        refusals
            .iter()
            .all(|step| step.actor == id && step.detail.as_deref().unwrap().contains("another-world"))
    );
    assert_eq!(steps.last().unwrap().event, "failed");
    server.stop().await;
}

#[tokio::test]
async fn what_a_server_did_before_it_handed_over_stays_in_the_history() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let item = testbed.enqueue(tenant).await;
    let first = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    let before = first.id().to_string();
    first.stop().await;
    let second = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    let steps = steps(&testbed, item).await;
    let expected = [
        "enqueued",
        "claimed",
        "dispatched",
        "handed_over",
        "claimed",
        "dispatched",
    ];
    assert_eq!(names(&steps), expected);
    let after = second.id().to_string();
    let actors: Vec<&str> = steps[1..].iter().map(|step| step.actor.as_str()).collect();
    assert_eq!(actors, [&before, &before, &before, &after, &after]);
    second.stop().await;
}
