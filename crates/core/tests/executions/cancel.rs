//! Cancel: at once while it waits, by way of the engine once it holds a slot, and never half.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection as _;
use stationmaster_core::engine::{CloseStatus, Engine};
use stationmaster_core::executions::Settings;
use stationmaster_core::executions::operate::{self, Cancelled, Error};
use stationmaster_core::id::{ExecutionId, ItemId};
use stationmaster_core::presence::Presence;
use stationmaster_core::retry::Backoff;
use uuid::Uuid;

use crate::common::counting::wrong_counters;
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::server::Mortal;
use crate::common::{FAIL, NOOP, Server, Testbed, brisk, eventually, wait, within};

async fn cancel(testbed: &Testbed, id: Uuid) -> Cancelled {
    operate::cancel(&testbed.database, id, Some("not needed"), "alice")
        .await
        .unwrap()
}

#[tokio::test]
async fn a_waiting_item_is_cancelled_at_once_and_never_runs() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let items = testbed.enqueue_many(tenant, 2).await;
    assert_eq!(cancel(&testbed, items[0].0).await, Cancelled::AtOnce);
    assert_eq!(testbed.status(items[0]).await, "CANCELLED");
    assert_eq!(testbed.item(items[0]).await.execution_id, None);
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[1], "COMPLETED").await;
    assert_eq!(testbed.status(items[0]).await, "CANCELLED");
    assert_eq!(testbed.count("executions_finished").await, 2);
    server.stop().await;
}

#[tokio::test]
async fn a_running_execution_is_cancelled_by_the_engine_and_its_slot_is_used_by_the_next() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    // The cancel must find the server that runs it, whoever is asked.
    let servers = [testbed.server(brisk()).await, testbed.server(brisk()).await];
    let items = testbed.enqueue_many(tenant, 3).await;
    testbed.reaches(items[0], "RUNNING").await;
    let execution = testbed.execution(items[0]).await.id;
    assert_eq!(cancel(&testbed, items[0].0).await, Cancelled::Requested);
    testbed.reaches(items[0], "CANCELLED").await;
    assert_eq!(testbed.execution(items[0]).await.id, execution);
    testbed.reaches(items[1], "RUNNING").await;

    let execution = testbed.execution(items[1]).await.id;
    assert_eq!(
        cancel(&testbed, execution).await,
        Cancelled::Requested,
        "by the id of the execution"
    );
    testbed.reaches(items[1], "CANCELLED").await;
    testbed.reaches(items[2], "RUNNING").await;
    assert_eq!(testbed.count("cancel_requests").await, 0);
    assert_eq!(wrong_counters(&testbed).await, []);
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn a_cancel_by_sql_is_part_of_the_callers_transaction() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    let mut connection = testbed.connection().await;
    let query = "select stationmaster.cancel_execution($1, 'no reason', 'bob')";

    let mut transaction = connection.begin().await.unwrap();
    let answer: String = sqlx::query_scalar(query)
        .bind(item)
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(answer, "CANCELLED");
    transaction.rollback().await.unwrap();
    assert_eq!(testbed.status(item).await, "PENDING");

    let answer: String = sqlx::query_scalar(query)
        .bind(item)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(answer, "CANCELLED");
    assert_eq!(testbed.status(item).await, "CANCELLED");
    let unknown = sqlx::query(query)
        .bind(Uuid::now_v7())
        .execute(&mut connection)
        .await
        .unwrap_err();
    assert_eq!(
        unknown.as_database_error().unwrap().code().as_deref(),
        Some("P0002")
    );
}

#[tokio::test]
async fn what_has_ended_stays_as_it_ended_and_what_is_unknown_is_not_found() {
    let testbed = Testbed::new().await;
    let (sound, failing) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, FAIL).await);
    let (done, failed) = (testbed.enqueue(sound).await, testbed.enqueue(failing).await);
    let server = testbed.server(brisk()).await;
    testbed.reaches(done, "COMPLETED").await;
    testbed.reaches(failed, "FAILED").await;
    assert_eq!(
        cancel(&testbed, done.0).await,
        Cancelled::EndedBefore(CloseStatus::Completed)
    );
    assert_eq!(
        cancel(&testbed, failed.0).await,
        Cancelled::EndedBefore(CloseStatus::Failed)
    );
    let execution = testbed.execution(done).await.id;
    assert_eq!(
        cancel(&testbed, execution).await,
        Cancelled::EndedBefore(CloseStatus::Completed)
    );
    let nothing = operate::cancel(&testbed.database, Uuid::now_v7(), None, "alice").await;
    assert!(matches!(nothing, Err(Error::NotFound(_))), "{nothing:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_second_cancel_is_told_that_it_was_cancelled_before() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    assert_eq!(cancel(&testbed, item.0).await, Cancelled::AtOnce);
    assert_eq!(
        cancel(&testbed, item.0).await,
        Cancelled::EndedBefore(CloseStatus::Cancelled)
    );
}

/// The second execution of a retried item has ended; to cancel it is not to cancel the third. The first has the id of the
/// item, and that means the item.
#[tokio::test]
async fn to_cancel_a_former_execution_of_a_retried_item_does_nothing() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "FAILED").await;
    let first = testbed.execution(item).await.id;
    assert_eq!(first, item.0);
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    testbed.reaches(item, "FAILED").await;
    let second = testbed.execution(item).await.id;
    assert_ne!(second, first);
    server.stop().await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    assert_eq!(
        cancel(&testbed, second).await,
        Cancelled::EndedBefore(CloseStatus::Failed)
    );
    assert_eq!(testbed.status(item).await, "PENDING");
    assert_eq!(cancel(&testbed, item.0).await, Cancelled::AtOnce);
}

#[tokio::test]
async fn a_cancel_of_a_start_that_is_under_way_follows_the_start() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the start is under way", async || engine.asked_in_all() == 1).await;
    let execution = testbed.execution(item).await.id;
    assert_eq!(cancel(&testbed, item.0).await, Cancelled::Requested);
    engine.let_go();
    testbed.reaches(item, "CANCELLED").await;
    assert_eq!(
        (
            engine.begun(ExecutionId(execution)),
            engine.cancels(ExecutionId(execution))
        ),
        (1, 1)
    );
    server.stop().await;
}

/// The caller was told that it is being cancelled. The start is refused and another try would follow: it must not.
#[tokio::test]
async fn a_cancel_of_a_start_that_is_then_refused_is_not_forgotten() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Refuses);
    engine.hold();
    let retry = Backoff {
        base: Duration::from_secs(3),
        cap: Duration::from_secs(3),
    };
    let settings = Settings {
        retry,
        max_attempts: 100,
        ..brisk()
    };
    let server = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the start is under way", async || engine.asked_in_all() == 1).await;
    assert_eq!(cancel(&testbed, item.0).await, Cancelled::Requested);
    engine.let_go();
    let dealt_with = async || testbed.count("cancel_requests").await == 0;
    eventually("the wish has been dealt with", dealt_with).await;
    within(Duration::from_secs(10), "the item is cancelled", async || {
        testbed.status(item).await == "CANCELLED"
    })
    .await;
    server.stop().await;
}

/// The server that runs it dies before it has heard of the wish; whoever takes over must honour it.
#[tokio::test]
async fn a_cancel_survives_the_server_that_should_have_carried_it_out() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let presence = Presence::with_lease("mortal", Duration::from_millis(500));
    let mortal = Mortal::start(&testbed.url, brisk(), presence).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    mortal.kill();
    // Paused, so that it waits a while in the queue after it has been recovered.
    testbed.pause(tenant.0, true).await;
    assert_eq!(cancel(&testbed, item.0).await, Cancelled::Requested);
    let server = testbed.server(brisk()).await;
    eventually("it has left the dead server's hands", async || {
        testbed.count("executions_active").await == 0
    })
    .await;
    eventually("the wish has been dealt with", async || {
        testbed.count("cancel_requests").await == 0
    })
    .await;
    testbed.pause(tenant.0, false).await;
    within(Duration::from_secs(5), "the item is cancelled", async || {
        testbed.outcome(item).await == "CANCELLED"
    })
    .await;
    server.stop().await;
}

/// A cancel that is rolled back held the item while a claim passed by. The safety net finds it.
#[tokio::test]
async fn a_rolled_back_cancel_does_not_lose_the_item() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let items: Vec<ItemId> = testbed.enqueue_many(tenant, 2).await;
    let mut connection = testbed.connection().await;
    let mut open = connection.begin().await.unwrap();
    let query = "select stationmaster.cancel_execution($1)";
    sqlx::query(query)
        .bind(items[0])
        .execute(&mut *open)
        .await
        .unwrap();
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[1], "COMPLETED").await;
    let ready = "select count(*) from stationmaster_internal.workspace_capacity where ready";
    eventually("the claim has passed by", async || {
        testbed.number(ready).await == 0
    })
    .await;
    open.rollback().await.unwrap();
    testbed.reaches(items[0], "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn a_cancel_that_was_passed_on_is_not_forgotten_when_the_server_dies_before_the_close() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(3600.0)).await;
    let presence = Presence::with_lease("mortal", Duration::from_millis(500));
    let mortal = Mortal::start(&testbed.url, brisk(), presence).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    // The close cannot be written while somebody has the workspace.
    let mut connection = testbed.connection().await;
    let mut hold = connection.begin().await.unwrap();
    sqlx::query("select from stationmaster_internal.workspace_capacity for update")
        .execute(&mut *hold)
        .await
        .unwrap();
    assert_eq!(cancel(&testbed, item.0).await, Cancelled::Requested);
    eventually("it is passed on", async || {
        testbed.count("cancel_requests").await == 0
    })
    .await;
    mortal.kill();
    hold.rollback().await.unwrap();
    let server = testbed.server(brisk()).await;
    eventually("it is cancelled", async || {
        testbed.status(item).await == "CANCELLED" || testbed.outcome(item).await == "CANCELLED"
    })
    .await;
    assert_eq!(testbed.count("executions_active").await, 0);
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}
