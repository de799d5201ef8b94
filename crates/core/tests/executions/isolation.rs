//! I4: what is full, locked or broken delays only itself.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};
use stationmaster_core::engine::Engine;
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use uuid::Uuid;

use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually, wait, within, woken_only};

async fn places_of_pending(testbed: &Testbed, workspace: WorkspaceId) -> Vec<(Uuid, String, String)> {
    let query = "select item_id, ctid::text, xmin::text from stationmaster_internal.queue_pending
                 where workspace_id = $1 order by item_id";
    sqlx::query_as(query)
        .bind(workspace)
        .fetch_all(testbed.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_full_workspace_with_ten_thousand_items_does_not_delay_another_and_is_not_rewritten() {
    let testbed = Testbed::new().await;
    let full = testbed.tenant(1, &wait(600.0)).await;
    testbed.enqueue_many(full, 10_000).await;
    let server = testbed.server(woken_only()).await;
    eventually("the first is running", async || {
        testbed.count("executions_active").await == 1
    })
    .await;
    let before = places_of_pending(&testbed, full.0).await;
    assert_eq!(before.len(), 9_999);

    let other = testbed.tenant(1, NOOP).await;
    for _ in 0..10 {
        let item = testbed.enqueue(other).await;
        let what = "the other's item is done although a full workspace has a backlog";
        within(Duration::from_secs(1), what, async || {
            testbed.outcome(item).await == "COMPLETED"
        })
        .await;
    }
    // More for the full one: it is hinted at, and still nothing of it is touched.
    testbed.enqueue(full).await;
    let item = testbed.enqueue(other).await;
    testbed.reaches(item, "COMPLETED").await;
    let after = places_of_pending(&testbed, full.0).await;
    assert_eq!(after.len(), 10_000);
    assert!(
        before.iter().all(|row| after.contains(row)),
        "a pending row was rewritten"
    );
    server.stop().await;
}

/// Locks the capacity of a workspace as an administrator does who changes it in a transaction and goes to lunch.
async fn lock_out(testbed: &Testbed, workspace: WorkspaceId) -> PgConnection {
    let mut lunch = testbed.connection().await;
    lunch.execute("begin").await.unwrap();
    let change = "update stationmaster.workspaces set max_concurrent = max_concurrent where id = $1";
    sqlx::query(change)
        .bind(workspace)
        .execute(&mut lunch)
        .await
        .unwrap();
    lunch
}

#[tokio::test]
async fn a_workspace_that_somebody_keeps_locked_delays_no_other() {
    let testbed = Testbed::new().await;
    let (locked, other) = (testbed.tenant(10, NOOP).await, testbed.tenant(10, NOOP).await);
    let server = testbed.server(brisk()).await;
    let lunch = lock_out(&testbed, locked.0).await;
    let held = testbed.enqueue(locked).await;
    for _ in 0..10 {
        let item = testbed.enqueue(other).await;
        let what = "the other's item is done although one workspace is locked";
        within(Duration::from_secs(1), what, async || {
            testbed.outcome(item).await == "COMPLETED"
        })
        .await;
    }
    assert_eq!(testbed.status(held).await, "PENDING");
    drop(lunch);
    testbed.reaches(held, "COMPLETED").await;
    server.stop().await;
}

/// The end of a run needs its workspace's capacity; while that is locked the ends of others must be written.
#[tokio::test]
async fn an_end_that_cannot_be_written_keeps_no_other_from_ending() {
    let testbed = Testbed::new().await;
    let (locked, other) = (
        testbed.tenant(10, &wait(0.5)).await,
        testbed.tenant(2, &wait(0.05)).await,
    );
    let server = testbed.server(brisk()).await;
    let stuck = testbed.enqueue(locked).await;
    testbed.reaches(stuck, "RUNNING").await;
    let lunch = lock_out(&testbed, locked.0).await;
    eventually("the engine has ended the run", async || {
        server.open_runs().await.is_empty()
    })
    .await;
    let mut items = testbed.enqueue_many(other, 6).await;
    let last = items.pop().unwrap();
    let what = "the other workspace's runs end although one workspace is locked";
    within(Duration::from_secs(5), what, async || {
        testbed.outcome(last).await == "COMPLETED"
    })
    .await;
    assert_eq!(testbed.outcome(stuck).await, "RUNNING");
    drop(lunch);
    testbed.reaches(stuck, "COMPLETED").await;
    server.stop().await;
}

/// The same for what the start itself brings: here a refusal, which gives the slot back.
#[tokio::test]
async fn a_settlement_that_cannot_be_written_keeps_no_other_waiting() {
    let testbed = Testbed::new().await;
    let (locked, other) = (testbed.tenant(1, NOOP).await, testbed.tenant(100, NOOP).await);
    let engine = ScriptedEngine::new(Mood::Refuses);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    engine.hold();
    let stuck = testbed.enqueue(locked).await;
    eventually("the start has been asked for", async || {
        engine.asked_in_all() == 1
    })
    .await;
    let lunch = lock_out(&testbed, locked.0).await;
    engine.let_go();
    let refused = async || server.metric("stationmaster_engine_start_duration_seconds_count") == 1;
    eventually("the start has been refused", refused).await;
    engine.feel(Mood::Willing);
    for _ in 0..10 {
        let item = testbed.enqueue(other).await;
        let what = "the other's item is settled although a settlement waits";
        within(Duration::from_secs(1), what, async || {
            testbed.outcome(item).await == "RUNNING"
        })
        .await;
    }
    assert_eq!(testbed.status(stuck).await, "CLAIMED");
    drop(lunch);
    testbed.reaches(stuck, "RUNNING").await;
    server.stop().await;
}

async fn enqueue_singly(testbed: &Testbed, (workspace, definition): (WorkspaceId, DefinitionId), times: i32) {
    // Each call of the function is an insert of its own and leaves a hint of its own.
    let query = "select count(stationmaster.enqueue_execution($1, $2)) from generate_series(1, $3)";
    sqlx::query(query)
        .bind(workspace)
        .bind(definition)
        .bind(times)
        .execute(testbed.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn many_requests_for_a_locked_workspace_do_not_hide_those_for_others() {
    let testbed = Testbed::new().await;
    let (locked, other) = (testbed.tenant(10, NOOP).await, testbed.tenant(10, NOOP).await);
    let lunch = lock_out(&testbed, locked.0).await;
    enqueue_singly(&testbed, locked, 2_500).await;
    let item = testbed.enqueue(other).await;
    let server = testbed.server(brisk()).await;
    let what = "the other's item is done although thousands wait for a locked workspace";
    within(Duration::from_secs(3), what, async || {
        testbed.outcome(item).await == "COMPLETED"
    })
    .await;
    drop(lunch);
    server.stop().await;
}

/// While a workspace is locked there is nothing to do for it: asking hundreds of times a second helps nobody.
#[tokio::test]
async fn a_locked_workspace_does_not_make_the_servers_spin() {
    let testbed = Testbed::new().await;
    let locked = testbed.tenant(10, NOOP).await;
    let server = testbed.server(brisk()).await;
    let lunch = lock_out(&testbed, locked.0).await;
    let held = testbed.enqueue(locked).await;
    let transactions =
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    let before = testbed.number(transactions).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let spent = testbed.number(transactions).await - before;
    assert!(spent < 200, "{spent} transactions in two seconds");
    drop(lunch);
    testbed.reaches(held, "COMPLETED").await;
    server.stop().await;
}

/// An item that some open transaction holds (a cancel that is not committed yet) is passed over.
#[tokio::test]
async fn a_locked_item_does_not_hold_up_those_behind_it() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    let mut connection = testbed.connection().await;
    let mut open = connection.begin().await.unwrap();
    let cancel = "select stationmaster.cancel_execution($1)";
    sqlx::query(cancel)
        .bind(items[0])
        .execute(&mut *open)
        .await
        .unwrap();
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[1], "COMPLETED").await;
    testbed.reaches(items[2], "COMPLETED").await;
    open.commit().await.unwrap();
    assert_eq!(testbed.status(items[0]).await, "CANCELLED");
    server.stop().await;
}

/// Starts that are refused again and again use up nobody's time but their own.
#[tokio::test]
async fn items_that_are_refused_do_not_hold_up_other_workspaces() {
    let testbed = Testbed::new().await;
    let broken = testbed.tenant(20, crate::common::UNKNOWN_TYPE).await;
    let sound = testbed.tenant(2, NOOP).await;
    testbed.enqueue_many(broken, 200).await;
    let server = testbed.server(brisk()).await;
    for _ in 0..5 {
        let item = testbed.enqueue(sound).await;
        let what = "the sound item is done";
        within(Duration::from_secs(2), what, async || {
            testbed.outcome(item).await == "COMPLETED"
        })
        .await;
    }
    server.stop().await;
}
