//! Bulk operations: many small calls, each of which says where the next goes on; nothing is lost or done twice on the way.

use stationmaster_core::executions::bulk::{self, BulkCancel, BulkPriority, BulkRetry, Error};
use stationmaster_core::executions::operate;
use stationmaster_core::id::ItemId;

use crate::common::counting::{misplaced_items, wrong_counters};
use crate::common::{NOOP, Testbed, brisk, wait};

/// Calls until there is no more; answers how many were changed, and by how many calls.
async fn walked(mut call: impl AsyncFnMut(Option<String>) -> bulk::BulkAnswer) -> (u64, u32) {
    let (mut done, mut calls, mut after) = (0, 0, None);
    loop {
        let answer = call(after).await;
        (done, calls) = (done + answer.items, calls + 1);
        assert_eq!(answer.more, answer.next.is_some(), "{answer:?}");
        after = answer.next;
        if after.is_none() {
            return (done, calls);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_one_call_changes_are_cancelled_and_retried_call_by_call() {
    let testbed = Testbed::new().await;
    let (tenant, other) = (testbed.tenant(0, NOOP).await, testbed.tenant(0, NOOP).await);
    let many = bulk::MOST + 2_500;
    for _ in 0..many / 500 {
        testbed.enqueue_many(tenant, 500).await;
    }
    testbed.enqueue(other).await;
    let cancel = BulkCancel {
        workspace_id: Some(tenant.0.0),
        ..BulkCancel::default()
    };
    let look = BulkCancel {
        dry_run: true,
        ..cancel.clone()
    };
    let seen = bulk::cancel(&testbed.database, &look, "alice").await.unwrap();
    assert_eq!((seen.items, seen.more, seen.sample.len()), (many, false, 5));
    let (done, calls) = walked(async |after| {
        let request = BulkCancel {
            after,
            ..cancel.clone()
        };
        bulk::cancel(&testbed.database, &request, "alice").await.unwrap()
    })
    .await;
    assert_eq!(done, many);
    assert!(calls > 1, "one call does not do all of it");
    assert_eq!(testbed.count("queue_pending").await, 1, "the other workspace's");
    assert_eq!(
        testbed
            .number("select count(*) from stationmaster.failures")
            .await,
        0,
        "what somebody wanted is no failure"
    );

    let retry = BulkRetry {
        workspace_id: Some(tenant.0.0),
        ..BulkRetry::default()
    };
    let (done, _) = walked(async |after| {
        let request = BulkRetry {
            after,
            ..retry.clone()
        };
        bulk::retry(&testbed.database, &request, "alice").await.unwrap()
    })
    .await;
    assert_eq!(done, many);
    assert_eq!(
        u64::try_from(testbed.count("queue_pending").await).unwrap(),
        many + 1
    );
    assert_eq!(misplaced_items(&testbed).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_asked_of_its_engine_once_and_its_slot_is_free_when_it_has_closed() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, &wait(600.0)).await;
    let items = testbed.enqueue_many(tenant, 6).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[0], "RUNNING").await;
    testbed.reaches(items[1], "RUNNING").await;
    // A second execution of an item has an id of its own; it is found by its item all the same.
    operate::cancel(&testbed.database, items[0].0, None, "alice")
        .await
        .unwrap();
    testbed.reaches(items[0], "CANCELLED").await;
    operate::retry(&testbed.database, items[0], "alice")
        .await
        .unwrap();
    testbed.pause(tenant.0, true).await;
    let request = BulkCancel {
        workspace_id: Some(tenant.0.0),
        reason: Some("enough".to_owned()),
        ..BulkCancel::default()
    };
    let done = bulk::cancel(&testbed.database, &request, "alice").await.unwrap();
    assert_eq!(done.items, 6);
    for item in &items {
        let what = format!("{item} is cancelled");
        crate::common::eventually(&what, async || {
            let item = testbed.item(*item).await;
            item.status.as_str() == "CANCELLED"
                || item
                    .outcome
                    .is_some_and(|outcome| outcome.as_str() == "CANCELLED")
        })
        .await;
    }
    let again = bulk::cancel(&testbed.database, &request, "alice").await.unwrap();
    assert_eq!((again.items, again.more), (0, false));
    crate::common::eventually("every slot is free", async || {
        testbed
            .number("select active::bigint from stationmaster_internal.workspace_capacity")
            .await
            == 0
    })
    .await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn priorities_are_changed_by_filter_and_the_order_follows() {
    let testbed = Testbed::new().await;
    let workspace = testbed.workspace(1).await;
    let (slow, urgent) = (
        testbed.definition(workspace, NOOP).await,
        testbed.definition(workspace, NOOP).await,
    );
    let first = testbed.enqueue_many((workspace, slow), 3).await;
    let second = testbed.enqueue_many((workspace, urgent), 2).await;
    let request = BulkPriority {
        workflow_definition_id: Some(urgent.0),
        priority: 7,
        ..BulkPriority::default()
    };
    let done = bulk::set_priority(&testbed.database, &request, "alice")
        .await
        .unwrap();
    assert_eq!(done.items, 2);
    let again = bulk::set_priority(&testbed.database, &request, "alice")
        .await
        .unwrap();
    assert_eq!(again.items, 0, "they have it");
    let server = testbed.server(brisk()).await;
    testbed.finishes(5).await;
    let expected: Vec<ItemId> = second.into_iter().chain(first).collect();
    assert_eq!(testbed.claim_order().await, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_place_that_is_none_is_refused() {
    let testbed = Testbed::new().await;
    let request = BulkRetry {
        after: Some("the moon".to_owned()),
        ..BulkRetry::default()
    };
    let refused = bulk::retry(&testbed.database, &request, "alice").await;
    assert!(matches!(refused, Err(Error::Place)), "{refused:?}");
}

#[tokio::test]
async fn what_a_retry_put_back_after_the_look_is_neither_cancelled_nor_preferred() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(0, NOOP).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    let (early, late) = (items[0].0, items[1].0);
    for item in [early, late] {
        operate::cancel(&testbed.database, item, None, "alice")
            .await
            .unwrap();
    }
    operate::retry(&testbed.database, ItemId(early), "alice")
        .await
        .unwrap();
    let mut cancel = BulkCancel {
        workspace_id: Some(tenant.0.0),
        dry_run: true,
        ..BulkCancel::default()
    };
    let seen = bulk::cancel(&testbed.database, &cancel, "alice").await.unwrap();
    assert_eq!(seen.items, 2, "what waits");
    operate::retry(&testbed.database, ItemId(late), "alice")
        .await
        .unwrap();
    let prefer = BulkPriority {
        workspace_id: Some(tenant.0.0),
        created_before: Some(seen.as_of),
        priority: 7,
        ..BulkPriority::default()
    };
    let preferred = bulk::set_priority(&testbed.database, &prefer, "alice").await;
    assert_eq!(preferred.unwrap().items, 2);
    (cancel.dry_run, cancel.created_before) = (false, Some(seen.as_of));
    let done = bulk::cancel(&testbed.database, &cancel, "alice").await.unwrap();
    assert_eq!(done.items, 2, "what was looked at");
    assert_eq!(testbed.count("queue_pending").await, 1, "what came back later");
}
