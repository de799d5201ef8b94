//! A claim takes at most a batch, and says how many it took.

use stationmaster_core::executions::Settings;
use stationmaster_core::executions::measure::Claims;

use crate::common::{NOOP, Server, Testbed, brisk, eventually};

/// How many claims took at most so many items.
fn claims_up_to(server: &Server, items: &str) -> u64 {
    server.metric(&format!("queue_processing_batch_size_bucket{{le=\"{items}\"}}"))
}

#[tokio::test]
async fn fifteen_items_with_batches_of_ten_go_as_ten_and_five() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(100, NOOP).await;
    testbed.enqueue_many(tenant, 15).await;
    let server = testbed
        .server(Settings {
            batch_size: 10,
            ..brisk()
        })
        .await;
    testbed.finishes(15).await;
    let all = || server.metric("queue_processing_batch_size_count");
    eventually("both claims are counted", async || all() == 2).await;
    assert_eq!(server.metric("queue_processing_batch_size_sum"), 15);
    // Five lies between four and eight, ten between eight and sixteen.
    assert_eq!(claims_up_to(&server, "4.0"), 0);
    assert_eq!(claims_up_to(&server, "8.0"), 1);
    assert_eq!(claims_up_to(&server, "16.0"), 2);
    let first = "select count(*) from stationmaster_internal.executions_finished
                 where claimed_at = (select min(claimed_at) from stationmaster_internal.executions_finished)";
    assert_eq!(testbed.number(first).await, 10, "the ten went before the five");
    server.stop().await;
}

#[tokio::test]
async fn a_claim_that_finds_nothing_is_no_batch() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "COMPLETED").await;
    // The hint is taken up and found empty before the server falls asleep again.
    let ready = "select count(*) from stationmaster_internal.workspace_capacity where ready";
    eventually("nobody is ready any more", async || {
        testbed.number(ready).await == 0
    })
    .await;
    assert_eq!(server.metric("queue_processing_batch_size_count"), 1);
    eventually("the dispatch is counted", async || {
        server.metric("queue_items_dispatched_total") == 1
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_claim_that_takes_the_last_slots_and_leaves_nothing_is_not_counted_as_at_capacity() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, &crate::common::wait(600.0)).await;
    testbed.enqueue_many(tenant, 2).await;
    let server = testbed.server(brisk()).await;
    eventually("both are dispatched", async || {
        server.metric("queue_items_dispatched_total") == 2
    })
    .await;
    assert_eq!(server.metric("queue_items_at_capacity_total"), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_claim_that_leaves_a_full_workspace_with_more_to_do_is_counted() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, &crate::common::wait(600.0)).await;
    testbed.enqueue_many(tenant, 5).await;
    let server = testbed.server(brisk()).await;
    let active = async || testbed.count("executions_active").await == 2;
    eventually("two are active", active).await;
    eventually("it is counted", async || {
        server.metric("queue_items_at_capacity_total") == 1
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_claim_that_leaves_slots_free_counts_no_workspace_as_full() {
    let testbed = Testbed::new().await;
    let roomy = testbed.tenant(5, &crate::common::wait(600.0)).await;
    testbed.enqueue_many(roomy, 2).await;
    let server = testbed.server(brisk()).await;
    let active = async || testbed.count("executions_active").await == 2;
    eventually("two are active", active).await;
    // A full one is told of by a later claim, so what was to be told of the first would have been.
    let full = testbed.tenant(1, &crate::common::wait(600.0)).await;
    testbed.enqueue_many(full, 3).await;
    eventually("the full one is counted", async || {
        server.metric("queue_items_at_capacity_total") > 0
    })
    .await;
    assert_eq!(server.metric("queue_items_at_capacity_total"), 1);
    server.stop().await;
}

/// What benchmarks time is the claim of a server, within the limits, and nobody starts what it takes.
#[tokio::test]
async fn a_claim_by_itself_takes_a_batch_and_no_more_than_the_slots() {
    let testbed = Testbed::new().await;
    for limit in [2, 50] {
        let tenant = testbed.tenant(limit, NOOP).await;
        testbed.enqueue_many(tenant, 30).await;
    }
    let claims = Claims::new(testbed.database.clone()).unwrap();
    assert_eq!(claims.claim(12).await.unwrap(), 12);
    assert_eq!(
        claims.claim(100).await.unwrap(),
        20,
        "2 of the one, 30 of the other, less 12"
    );
    assert_eq!(claims.claim(100).await.unwrap(), 0);
    assert_eq!(testbed.count("executions_active").await, 32);
}
