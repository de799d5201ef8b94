//! What an item needs was deleted meanwhile: it fails at once, with the reason, and its slot is free.

use sqlx::Executor as _;
use stationmaster_core::catalogue;
use stationmaster_core::executions::operate;
use stationmaster_core::id::ItemId;

use crate::common::counting::wrong_counters;
use crate::common::{FAIL, NOOP, Testbed, brisk, eventually, wait};

async fn failed_because(testbed: &Testbed, item: ItemId, reason: &str) {
    let what = format!("item {item} is FAILED");
    eventually(&what, async || testbed.status(item).await == "FAILED").await;
    let query = "select reason from stationmaster_internal.executions_finished where item_id = $1 and superseded_at is null";
    let found: Option<String> = sqlx::query_scalar(query)
        .bind(item)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(found.as_deref(), Some(reason));
    assert!(
        testbed
            .item(item)
            .await
            .last_error
            .unwrap()
            .contains("was deleted")
    );
    assert_eq!(testbed.item(item).await.attempt_count, 0, "nobody refused it");
}

#[tokio::test]
async fn items_of_a_deleted_definition_fail_and_free_their_slot() {
    let testbed = Testbed::new().await;
    let deleted = testbed.tenant(1, NOOP).await;
    let kept = (deleted.0, testbed.definition(deleted.0, NOOP).await);
    let items = testbed.enqueue_many(deleted, 3).await;
    let other = testbed.enqueue(kept).await;
    catalogue::delete_definition(&testbed.database, deleted.1, None)
        .await
        .unwrap();
    let server = testbed.server(brisk()).await;
    for item in items {
        failed_because(&testbed, item, "definition_gone").await;
        assert_eq!(testbed.execution(item).await.status.as_str(), "FAILED");
    }
    testbed.reaches(other, "COMPLETED").await;
    assert_eq!(
        server.metric("queue_items_failed_total{reason=\"definition_gone\"}"),
        3
    );
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn items_whose_version_is_gone_fail_with_that_reason() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    catalogue::add_version(&testbed.database, tenant.1, NOOP)
        .await
        .unwrap();
    testbed
        .run("delete from stationmaster.workflow_definition_versions where version = 1")
        .await;
    let next = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    failed_because(&testbed, item, "version_gone").await;
    testbed.reaches(next, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn waiting_items_of_a_deleted_workspace_fail_and_running_ones_run_to_their_end() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(1.0)).await;
    let server = testbed.server(brisk()).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    testbed.reaches(items[0], "RUNNING").await;
    catalogue::delete_workspace(&testbed.database, tenant.0, None)
        .await
        .unwrap();
    failed_because(&testbed, items[1], "workspace_gone").await;
    failed_because(&testbed, items[2], "workspace_gone").await;
    testbed.reaches(items[0], "COMPLETED").await;
    let active = "select coalesce(sum(active), 0) from stationmaster_internal.workspace_capacity";
    assert_eq!(testbed.number(active).await, 0);
    server.stop().await;
}

/// The claim had committed, the workspace was deleted before the start.
#[tokio::test]
async fn a_workspace_deleted_in_the_middle_of_the_work_leaves_nothing_waiting() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(3, &wait(0.01)).await;
    let server = testbed.server(brisk()).await;
    testbed.enqueue_many(tenant, 100).await;
    eventually("some are done", async || {
        testbed.count("executions_finished").await >= 5
    })
    .await;
    catalogue::delete_workspace(&testbed.database, tenant.0, None)
        .await
        .unwrap();
    eventually("all have ended", async || {
        testbed.count("executions_finished").await == 100
    })
    .await;
    let strange = "select count(*) from stationmaster_internal.executions_finished
                   where not (status is not distinct from 'COMPLETED' or reason in ('workspace_gone', 'definition_gone'))";
    assert_eq!(testbed.number(strange).await, 0);
    server.stop().await;
}

/// Deleted and made again under the same id: what still runs holds its slot.
#[tokio::test]
async fn a_workspace_that_is_made_again_still_counts_what_runs() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let server = testbed.server(brisk()).await;
    let former = testbed.enqueue(tenant).await;
    testbed.reaches(former, "RUNNING").await;
    catalogue::delete_workspace(&testbed.database, tenant.0, None)
        .await
        .unwrap();
    testbed.limit(tenant.0, 1).await;
    let definition = testbed.definition(tenant.0, NOOP).await;
    let next = testbed.enqueue((tenant.0, definition)).await;
    let elsewhere = testbed.tenant(1, NOOP).await;
    let elsewhere = testbed.enqueue(elsewhere).await;
    testbed.reaches(elsewhere, "COMPLETED").await;
    assert_eq!(testbed.status(next).await, "PENDING", "the slot is taken");
    operate::cancel(&testbed.database, former.0, None, "alice")
        .await
        .unwrap();
    testbed.reaches(next, "COMPLETED").await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

/// The enqueue saw the workspace; it commits after the workspace and every trace of it have gone.
#[tokio::test]
async fn an_item_committed_after_its_workspace_was_deleted_fails_too() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let mut open = testbed.connection().await;
    open.execute("begin").await.unwrap();
    let query = "select stationmaster.enqueue_execution($1, $2)";
    let query = sqlx::query_scalar(query).bind(workspace).bind(definition);
    let item: ItemId = query.fetch_one(&mut open).await.unwrap();
    let database = testbed.database.clone();
    let delete = tokio::spawn(async move { catalogue::delete_workspace(&database, workspace, None).await });
    // Either the delete waits for the enqueue, or it goes through and the broom follows it.
    let gone_or_waits = "
        select (select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
             + (select 1 - count(*) from stationmaster.workspaces)";
    eventually("the delete is done or waits", async || {
        testbed.number(gone_or_waits).await >= 1
    })
    .await;
    let server = testbed.server(brisk()).await;
    let swept = "select (select count(*) from stationmaster_internal.duties where name = 'housekeeping')";
    eventually("the server keeps house", async || {
        testbed.number(swept).await == 1
    })
    .await;
    let marker = testbed.tenant(1, NOOP).await;
    let marker = testbed.enqueue(marker).await;
    testbed.reaches(marker, "COMPLETED").await;
    open.execute("commit").await.unwrap();
    delete.await.unwrap().unwrap();
    failed_because(&testbed, item, "workspace_gone").await;
    server.stop().await;
}

/// A retry of an item whose workspace is gone must not wait for ever.
#[tokio::test]
async fn a_retry_in_a_deleted_workspace_fails_again_with_the_reason() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "FAILED").await;
    catalogue::delete_workspace(&testbed.database, tenant.0, None)
        .await
        .unwrap();
    server.stop().await;
    // The next server's first round of housekeeping removes what is left of the workspace.
    let server = testbed.server(brisk()).await;
    eventually("the capacity row is gone", async || {
        testbed.count("workspace_capacity").await == 0
    })
    .await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    let what = "the retried item has ended again";
    eventually(what, async || testbed.count("queue_pending").await == 0).await;
    failed_because(&testbed, item, "workspace_gone").await;
    server.stop().await;
}
