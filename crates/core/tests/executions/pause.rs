//! Pause and resume, of a workspace and of a definition.

use sqlx::{Connection as _, Executor as _};
use stationmaster_core::catalogue;
use stationmaster_core::executions::inspect::{self, Waiting};

use crate::common::{NOOP, Testbed, brisk, eventually, wait, woken_only};

#[tokio::test]
async fn a_paused_workspace_starts_nothing_and_goes_on_when_resumed() {
    let testbed = Testbed::new().await;
    let (paused, other) = (testbed.tenant(5, NOOP).await, testbed.tenant(5, NOOP).await);
    let server = testbed.server(woken_only()).await;
    let before = testbed.enqueue(paused).await;
    testbed.reaches(before, "COMPLETED").await;
    testbed.pause(paused.0, true).await;
    let held = testbed.enqueue_many(paused, 3).await;
    let free = testbed.enqueue(other).await;
    testbed.reaches(free, "COMPLETED").await;
    for item in &held {
        assert_eq!(testbed.status(*item).await, "PENDING");
    }
    testbed.pause(paused.0, false).await;
    for item in held {
        testbed.reaches(item, "COMPLETED").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn what_runs_when_a_workspace_is_paused_runs_to_its_end() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(0.2)).await;
    let server = testbed.server(brisk()).await;
    let items = testbed.enqueue_many(tenant, 2).await;
    testbed.reaches(items[0], "RUNNING").await;
    testbed.pause(tenant.0, true).await;
    testbed.reaches(items[0], "COMPLETED").await;
    assert_eq!(testbed.status(items[1]).await, "PENDING");
    server.stop().await;
}

#[tokio::test]
async fn items_of_a_paused_definition_are_parked_and_others_of_the_workspace_go_on() {
    let testbed = Testbed::new().await;
    let paused = testbed.tenant(2, NOOP).await;
    let other = (paused.0, testbed.definition(paused.0, NOOP).await);
    testbed.pause_definition(paused, true).await;
    let held = testbed.enqueue_many(paused, 50).await;
    let free = testbed.enqueue_many(other, 5).await;
    let server = testbed.server(woken_only()).await;
    for item in free {
        testbed.reaches(item, "COMPLETED").await;
    }
    assert_eq!(testbed.count("queue_pending").await, 50);
    let wait = inspect::waiting(&testbed.database, held[0]).await.unwrap();
    let waiting = wait.and_then(|wait| wait.reasons.into_iter().next());
    assert_eq!(waiting, Some(Waiting::DefinitionPaused));
    testbed.pause_definition(paused, false).await;
    testbed.finishes(55).await;
    server.stop().await;
}

#[tokio::test]
async fn items_of_a_paused_definition_keep_their_order() {
    let testbed = Testbed::new().await;
    let paused = testbed.tenant(1, NOOP).await;
    testbed.pause_definition(paused, true).await;
    let items = testbed.enqueue_many(paused, 20).await;
    let server = testbed.server(brisk()).await;
    let parked = "select count(*) from stationmaster_internal.queue_pending where stage = 'parked'";
    eventually("all are parked", async || testbed.number(parked).await == 20).await;
    // A claim that is under way at the moment of the resume may take the item that it was about to park.
    let ready = "select count(*) from stationmaster_internal.workspace_capacity where ready";
    eventually("no claim is under way", async || testbed.number(ready).await == 0).await;
    testbed.pause_definition(paused, false).await;
    testbed.finishes(20).await;
    assert_eq!(testbed.claim_order().await, items);
    server.stop().await;
}

#[tokio::test]
async fn items_of_a_definition_that_is_deleted_while_paused_fail_with_the_reason() {
    let testbed = Testbed::new().await;
    let paused = testbed.tenant(1, NOOP).await;
    testbed.pause_definition(paused, true).await;
    let item = testbed.enqueue(paused).await;
    let server = testbed.server(brisk()).await;
    let parked = "select count(*) from stationmaster_internal.queue_pending where stage = 'parked'";
    eventually("it is parked", async || testbed.number(parked).await == 1).await;
    catalogue::delete_definition(&testbed.database, paused.1, None)
        .await
        .unwrap();
    testbed.reaches(item, "FAILED").await;
    assert_eq!(
        testbed.execution(item).await.reason.as_deref(),
        Some("definition_gone")
    );
    server.stop().await;
}

/// A claim reads that the definition is paused; before it commits, the definition is resumed. The resume does not see
/// what the claim is about to park.
#[tokio::test]
async fn a_resume_while_a_claim_parks_does_not_leave_the_item_parked() {
    let testbed = Testbed::new().await;
    let paused = testbed.tenant(1, NOOP).await;
    testbed.pause_definition(paused, true).await;
    let item = testbed.enqueue(paused).await;
    let mut claimer = testbed.connection().await;
    let mut claim = claimer.begin().await.unwrap();
    claim
        .execute("select from stationmaster_internal.workspace_capacity for update")
        .await
        .unwrap();
    let admit = include_str!("../../sql/executions/admit.sql");
    sqlx::query(admit)
        .bind(vec![paused.0])
        .bind(vec![1])
        .bind(uuid::Uuid::now_v7())
        .bind(30.0)
        .bind(1_i64)
        .bind("embedded")
        .bind(1_i32)
        .execute(&mut *claim)
        .await
        .unwrap();
    // A resume that waits for the claim is as good as one that does not.
    let (database, (workspace, definition)) = (testbed.database.clone(), paused);
    let resume = tokio::spawn(async move {
        let change = catalogue::WorkflowChange {
            paused: Some(false),
            ..catalogue::WorkflowChange::of(workspace.0)
        };
        catalogue::put_definition(&database, definition, change, None).await
    });
    let resumed_or_waits = "
        select (select count(*) from stationmaster.workflow_definitions where not paused)
             + (select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')";
    eventually("the resume is done or waits", async || {
        testbed.number(resumed_or_waits).await >= 1
    })
    .await;
    claim.commit().await.unwrap();
    resume.await.unwrap().unwrap();

    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}
