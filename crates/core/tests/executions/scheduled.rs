//! Items with an earliest start: never before it, and promptly after it.

use jiff::{SignedDuration, Timestamp};
use stationmaster_core::executions::enqueue::Enqueue;

use crate::common::{NOOP, Testbed, woken_only};

async fn lateness(testbed: &Testbed, item: stationmaster_core::id::ItemId) -> f64 {
    let query = "select extract(epoch from f.claimed_at - i.run_at)::double precision
                 from stationmaster_internal.executions_finished f join stationmaster_internal.queue_items i on i.id = f.item_id
                 where i.id = $1";
    sqlx::query_scalar(query)
        .bind(item)
        .fetch_one(testbed.pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn an_item_starts_at_its_time_and_promptly() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(woken_only()).await;
    let run_at = |millis| Some(Timestamp::now() + SignedDuration::from_millis(millis));
    // The nearer one is asked for later, when the server already waits for the farther one.
    let far = testbed
        .ask(Enqueue {
            run_at: run_at(1500),
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .await;
    let near = testbed
        .ask(Enqueue {
            run_at: run_at(700),
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .await;
    let now = testbed.enqueue(tenant).await;
    testbed.reaches(now, "COMPLETED").await;
    assert_eq!(testbed.status(near).await, "PENDING");
    testbed.reaches(near, "COMPLETED").await;
    assert_eq!(testbed.status(far).await, "PENDING");
    testbed.reaches(far, "COMPLETED").await;
    for item in [near, far] {
        let late = lateness(&testbed, item).await;
        assert!(late >= 0.0, "started {late} s after its time");
        assert!(late < 0.5, "started {late} s after its time");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_time_that_has_passed_is_now() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(woken_only()).await;
    let run_at = Some(Timestamp::now() - SignedDuration::from_hours(24));
    let item = testbed
        .ask(Enqueue {
            run_at,
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .await;
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

/// A priority changed while the item waits for its time holds when the time has come.
#[tokio::test]
async fn a_later_item_takes_its_place_by_priority_when_it_is_due() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &crate::common::wait(0.3)).await;
    let server = testbed.server(woken_only()).await;
    let items = testbed.enqueue_many(tenant, 4).await;
    let run_at = Some(Timestamp::now() + SignedDuration::from_millis(150));
    let later = testbed
        .ask(Enqueue {
            run_at,
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .await;
    stationmaster_core::executions::operate::set_priority(&testbed.database, later, 1, "alice", None)
        .await
        .unwrap();
    testbed.finishes(5).await;
    assert_eq!(
        testbed.claim_order().await,
        [items[0], later, items[1], items[2], items[3]]
    );
    server.stop().await;
}
