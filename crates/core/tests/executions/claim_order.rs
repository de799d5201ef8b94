//! Inside a workspace: priority first, then age.

use stationmaster_core::executions::Settings;
use stationmaster_core::executions::enqueue::Enqueue;
use stationmaster_core::executions::operate::{self, Error};
use stationmaster_core::id::ItemId;

use crate::common::{NOOP, Testbed, brisk, eventually, wait};

fn one_at_a_time() -> Settings {
    Settings {
        batch_size: 1,
        ..brisk()
    }
}

#[tokio::test]
async fn higher_priority_goes_first_and_then_the_older() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let mut asked = Vec::new();
    for priority in [0, 5, -3, 5, 0, 7, -3] {
        let request = Enqueue {
            priority,
            ..Enqueue::new(workspace.0, definition.0)
        };
        asked.push((
            std::cmp::Reverse(priority),
            asked.len(),
            testbed.ask(request).await,
        ));
    }
    let server = testbed.server(one_at_a_time()).await;
    testbed.finishes(7).await;
    asked.sort_by_key(|(priority, age, _)| (*priority, *age));
    let expected: Vec<ItemId> = asked.into_iter().map(|(.., item)| item).collect();
    assert_eq!(testbed.claim_order().await, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_change_of_priority_takes_effect() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let items = testbed.enqueue_many(tenant, 4).await;
    operate::set_priority(&testbed.database, items[3], 10, "alice", None)
        .await
        .unwrap();
    operate::set_priority(&testbed.database, items[0], -10, "alice", None)
        .await
        .unwrap();
    assert_eq!(testbed.item(items[3]).await.priority, 10);
    let server = testbed.server(one_at_a_time()).await;
    testbed.finishes(4).await;
    assert_eq!(
        testbed.claim_order().await,
        [items[3], items[1], items[2], items[0]]
    );
    assert_eq!(
        testbed.item(items[3]).await.priority,
        10,
        "it is remembered after the end"
    );
    server.stop().await;
}

/// While the workspace is full the claim has its place in the queue in mind; a raised item lies before it.
#[tokio::test]
async fn an_item_raised_while_the_workspace_is_full_is_the_next() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(0.3)).await;
    let items = testbed.enqueue_many(tenant, 4).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[0], "RUNNING").await;
    operate::set_priority(&testbed.database, items[3], 1, "alice", None)
        .await
        .unwrap();
    testbed.finishes(4).await;
    assert_eq!(
        testbed.claim_order().await,
        [items[0], items[3], items[1], items[2]]
    );
    server.stop().await;
}

#[tokio::test]
async fn a_newcomer_of_higher_priority_overtakes_a_long_backlog() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(0.05)).await;
    testbed.enqueue_many(tenant, 1000).await;
    let server = testbed.server(brisk()).await;
    eventually("the backlog is being worked on", async || {
        testbed.count("executions_finished").await >= 2
    })
    .await;
    let urgent = testbed
        .ask(Enqueue {
            priority: 1,
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .await;
    testbed.reaches(urgent, "COMPLETED").await;
    let behind = testbed.count("executions_finished").await;
    assert!(behind < 30, "{behind} of the backlog went before it");
    server.stop().await;
}

#[tokio::test]
async fn the_priority_of_what_does_not_wait_cannot_change() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    for item in [item, ItemId::new()] {
        let answer = operate::set_priority(&testbed.database, item, 1, "alice", None).await;
        assert!(matches!(answer, Err(Error::WrongState(_))), "{answer:?}");
    }
    server.stop().await;
}
