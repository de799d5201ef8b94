//! Items that come alone, by the function: each is its own hint until a claim has taken note of it.

use std::time::Duration;

use sqlx::{Connection as _, Executor as _};

use crate::common::{NOOP, Testbed, brisk, eventually, wait, within, woken_only};

const UNSEEN: &str = "select count(*) from stationmaster_internal.queue_pending where unseen";

async fn until_all_is_seen(testbed: &Testbed) {
    eventually("every item was taken note of", async || {
        testbed.number(UNSEEN).await == 0
    })
    .await;
}

/// How many transactions there are in two seconds.
async fn transactions(testbed: &Testbed) -> i64 {
    let query = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()";
    let before = testbed.number(query).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    testbed.number(query).await - before
}

#[tokio::test]
async fn what_has_to_wait_is_noted_once_and_costs_no_further_look() {
    let testbed = Testbed::new().await;
    let (full, paused, parked) = (
        testbed.tenant(1, &wait(600.0)).await,
        testbed.tenant(5, NOOP).await,
        testbed.tenant(5, NOOP).await,
    );
    let server = testbed.server(woken_only()).await;
    testbed.pause(paused.0, true).await;
    testbed.pause_definition(parked, true).await;
    let mut held = Vec::new();
    for _ in 0..5 {
        testbed.enqueue_alone(full).await;
        held.push(testbed.enqueue_alone(paused).await);
        held.push(testbed.enqueue_alone(parked).await);
    }
    until_all_is_seen(&testbed).await;
    assert_eq!(testbed.count("executions_active").await, 1);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let spent = transactions(&testbed).await;
    assert!(spent < 100, "{spent} transactions in two seconds");
    testbed.pause(paused.0, false).await;
    testbed.pause_definition(parked, false).await;
    for item in held {
        testbed.reaches(item, "COMPLETED").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn the_most_urgent_of_them_goes_first_whenever_it_came() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    for priority in [0, 0, 5, 9, 1] {
        let query = "select stationmaster.enqueue_execution($1, $2, priority => $3)";
        let query = sqlx::query(query).bind(tenant.0).bind(tenant.1).bind(priority);
        query.execute(testbed.pool()).await.unwrap();
    }
    let server = testbed.server(brisk()).await;
    testbed.finishes(5).await;
    server.stop().await;
    let order =
        "select array_agg(i.priority order by f.claimed_at) from stationmaster_internal.executions_finished f
                 join stationmaster_internal.queue_items i on i.id = f.item_id";
    let order: Vec<i32> = sqlx::query_scalar(order).fetch_one(testbed.pool()).await.unwrap();
    assert_eq!(order, [9, 5, 1, 0, 0]);
}

/// Whoever cancels one and does not commit holds what a claim would have to write on.
#[tokio::test]
async fn one_that_somebody_is_cancelling_makes_nobody_spin_and_runs_if_it_was_not_cancelled_after_all() {
    let testbed = Testbed::new().await;
    let (tenant, other) = (testbed.tenant(5, NOOP).await, testbed.tenant(5, NOOP).await);
    let undecided = testbed.enqueue_alone(tenant).await;
    let mut application = testbed.connection().await;
    let mut cancel = application.begin().await.unwrap();
    let query = sqlx::query("select stationmaster.cancel_execution($1)").bind(undecided);
    cancel.execute(query).await.unwrap();
    let server = testbed.server(woken_only()).await;
    let item = testbed.enqueue_alone(other).await;
    testbed.reaches(item, "COMPLETED").await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let spent = transactions(&testbed).await;
    assert!(spent < 200, "{spent} transactions in two seconds");
    cancel.rollback().await.unwrap();
    within(Duration::from_secs(5), "it has run", async || {
        testbed.outcome(undecided).await == "COMPLETED"
    })
    .await;
    server.stop().await;
}
