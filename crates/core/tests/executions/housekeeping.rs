//! Housekeeping: what is old goes, what is young stays, and what is wrong is mended.

use std::time::Duration;

use stationmaster_core::executions::{Settings, operate};
use stationmaster_core::id::ItemId;

use crate::common::counting::wrong_counters;
use crate::common::{FAIL, NOOP, Testbed, brisk, eventually, wait};

fn keeping_an_hour() -> Settings {
    Settings {
        retention: Duration::from_hours(1),
        ..brisk()
    }
}

async fn age(testbed: &Testbed, item: ItemId, by: &str) {
    let query = "update stationmaster_internal.executions_finished set finished_at = finished_at - $2::interval where item_id = $1";
    sqlx::query(query)
        .bind(item)
        .bind(by)
        .execute(testbed.pool())
        .await
        .unwrap();
}

async fn traces(testbed: &Testbed, item: ItemId) -> i64 {
    let query = "select (select count(*) from stationmaster_internal.executions_finished where item_id = $1)
                      + (select count(*) from stationmaster_internal.queue_items where id = $1)
                      + (select count(*) from stationmaster_internal.queue_events where item_id = $1)";
    sqlx::query_scalar(query)
        .bind(item)
        .fetch_one(testbed.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn what_ended_longer_ago_than_the_retention_goes_with_its_item_and_history() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, FAIL).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    let server = testbed.server(keeping_an_hour()).await;
    testbed.finishes(3).await;
    let [old, young, retried] = items[..] else {
        panic!("three items")
    };
    for item in [old, retried] {
        operate::retry(&testbed.database, item, "alice").await.unwrap();
    }
    testbed.finishes(5).await;
    // The old one is old altogether, of the retried one only the former execution is.
    age(&testbed, old, "2 hours").await;
    let former =
        "update stationmaster_internal.executions_finished set finished_at = finished_at - interval '2 hours'
                  where item_id = $1 and superseded_at is not null";
    sqlx::query(former)
        .bind(retried)
        .execute(testbed.pool())
        .await
        .unwrap();
    age(&testbed, young, "30 min").await;

    eventually("nothing is left of the old one", async || {
        traces(&testbed, old).await == 0
    })
    .await;
    let left = async || testbed.count("executions_finished").await == 2;
    eventually("the former execution of the retried one is gone", left).await;
    assert_eq!(testbed.outcome(young).await, "FAILED");
    assert_eq!(testbed.outcome(retried).await, "FAILED");
    assert_eq!(traces(&testbed, young).await, 2);
    assert_eq!(
        traces(&testbed, retried).await,
        3,
        "the execution, the item, and the line of its retry"
    );
    server.stop().await;
}

#[tokio::test]
async fn the_item_of_an_old_execution_stays_while_it_waits_or_runs_again() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(keeping_an_hour()).await;
    testbed.finishes(1).await;
    testbed.pause(tenant.0, true).await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    age(&testbed, item, "2 hours").await;
    eventually("the old execution is gone", async || {
        testbed.count("executions_finished").await == 0
    })
    .await;
    assert_eq!(testbed.status(item).await, "PENDING");
    testbed.pause(tenant.0, false).await;
    testbed.reaches(item, "FAILED").await;
    server.stop().await;
}

#[tokio::test]
async fn a_counter_that_is_wrong_is_mended_and_reported() {
    let testbed = Testbed::new().await;
    let (high, low, right) = (
        testbed.tenant(2, &wait(600.0)).await,
        testbed.tenant(2, NOOP).await,
        testbed.tenant(2, NOOP).await,
    );
    // Full by mistake, and with a slot too many: the first would wait for ever, the second would exceed its limit.
    let wrong = format!(
        "update stationmaster_internal.workspace_capacity set active = 2 where workspace_id = '{}'",
        low.0
    );
    testbed.run(&wrong).await;
    let before = testbed.server(brisk()).await;
    eventually("it is mended and counted", async || {
        before.metric("stationmaster_capacity_counters_mended_total") == 1
    })
    .await;
    assert_eq!(wrong_counters(&testbed).await, []);
    let item = testbed.enqueue(low).await;
    testbed.reaches(item, "COMPLETED").await;

    let items = testbed.enqueue_many(high, 3).await;
    testbed.reaches(items[1], "RUNNING").await;
    before.stop().await;
    let dead = "update stationmaster_internal.workspace_capacity set active = 1 where workspace_id = $1";
    sqlx::query(dead)
        .bind(right.0)
        .execute(testbed.pool())
        .await
        .unwrap();
    let after = testbed.server(brisk()).await;
    eventually("it is mended and counted", async || {
        after.metric("stationmaster_capacity_counters_mended_total") == 1
    })
    .await;
    assert_eq!(wrong_counters(&testbed).await, []);
    after.stop().await;
}

#[tokio::test]
async fn a_ready_item_that_no_hint_speaks_for_is_found() {
    let testbed = Testbed::new().await;
    let tenants = [
        testbed.tenant(1, NOOP).await,
        testbed.tenant(1, NOOP).await,
        testbed.tenant(1, NOOP).await,
    ];
    let mut items = Vec::new();
    for tenant in tenants {
        items.push(testbed.enqueue(tenant).await);
        items.push(testbed.enqueue_alone(tenant).await);
    }
    testbed
        .run("update stationmaster_internal.queue_pending set unseen = false; delete from stationmaster_internal.queue_hints")
        .await;
    let server = testbed.server(brisk()).await;
    for item in items {
        testbed.reaches(item, "COMPLETED").await;
    }
    server.stop().await;
}

/// The position from which a workspace is read must never lie behind an item that waits.
#[tokio::test]
async fn a_ready_item_before_the_remembered_head_is_found() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    testbed
        .run("delete from stationmaster_internal.queue_hints")
        .await;
    let skip = "update stationmaster_internal.workspace_capacity set ready = true, head_rank = 0,
                head_seq = (select max(seq) from stationmaster_internal.queue_pending)";
    testbed.run(skip).await;
    // Paused, so that no claim has the workspace locked when it is swept.
    testbed.pause(tenant.0, true).await;
    let server = testbed.server(brisk()).await;
    let mended = "select count(*) from stationmaster_internal.workspace_capacity
                  where head_seq = (select min(seq) from stationmaster_internal.queue_pending)";
    eventually("the position is mended", async || {
        testbed.number(mended).await == 1
    })
    .await;
    testbed.pause(tenant.0, false).await;
    for item in items {
        testbed.reaches(item, "COMPLETED").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn what_the_embedded_engine_remembers_goes_with_the_execution() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(3600.0)).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    eventually("the wait is remembered", async || {
        testbed.count("embedded_runs").await == 1
    })
    .await;
    operate::cancel(&testbed.database, item.0, None, "alice")
        .await
        .unwrap();
    testbed.reaches(item, "CANCELLED").await;
    server.stop().await;
    // The next server's first round finds it.
    let server = testbed.server(brisk()).await;
    eventually("nothing is remembered", async || {
        testbed.count("embedded_runs").await == 0
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn the_gauges_tell_how_much_waits_and_for_how_long() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, &wait(600.0)).await;
    testbed.enqueue_many(tenant, 7).await;
    testbed
        .run("update stationmaster_internal.queue_items set created_at = created_at - interval '100 s'")
        .await;
    let server = testbed.server(brisk()).await;
    eventually("the gauges are right", async || {
        server.station.measure().await;
        server.metric("stationmaster_queue_depth") == 5
            && server.metric("stationmaster_executions_active") == 2
    })
    .await;
    let age = server.metric("stationmaster_queue_oldest_age_seconds");
    assert!((100..130).contains(&age), "{age}");
    server.stop().await;
}

/// The statement, stopped where a test wants it: it has looked at the table, and locks nothing before the key is free.
const PRUNE: &str = include_str!("../../sql/housekeeping/prune.sql");
const KEY: i64 = 4_711;

#[tokio::test]
async fn what_is_retried_in_the_moment_in_which_it_would_be_pruned_keeps_its_item() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.finishes(1).await;
    server.stop().await;
    age(&testbed, item, "2 hours").await;

    let mut key = testbed.connection().await;
    let take = sqlx::query("select pg_advisory_lock($1)").bind(KEY);
    take.execute(&mut key).await.unwrap();
    let stopped = PRUNE.replacen(
        "where finished_at",
        &format!("where (select pg_advisory_lock_shared({KEY}) is not null) and finished_at"),
        1,
    );
    let pool = testbed.pool().clone();
    let pruning = tokio::spawn(async move {
        let query = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(stopped));
        query
            .bind(3600.0_f64)
            .bind(100_i64)
            .fetch_one(&pool)
            .await
            .unwrap()
    });
    eventually("it has looked and not locked", async || {
        let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted
                       and database = (select oid from pg_database where datname = current_database())";
        testbed.number(waiting).await == 1
    })
    .await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    let give = sqlx::query("select pg_advisory_unlock($1)").bind(KEY);
    give.execute(&mut key).await.unwrap();
    assert_eq!(pruning.await.unwrap(), 0, "nothing was pruned");
    let whole = "select count(*) from stationmaster_internal.queue_pending p join stationmaster_internal.queue_items i on i.id = p.item_id";
    assert_eq!(testbed.number(whole).await, 1);
}
