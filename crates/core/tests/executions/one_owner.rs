//! I1: any number of servers over one queue; an item is claimed by one of them, once.

use std::collections::HashSet;

use stationmaster_core::executions::Settings;
use uuid::Uuid;

use crate::common::counting::{misplaced_items, wrong_counters};
use crate::common::{NOOP, Server, Testbed, brisk, eventually, wait};

async fn everybody_takes_part(testbed: &Testbed, servers: &[Server]) {
    let query = "select distinct holder from stationmaster_internal.executions_finished";
    let holders: HashSet<Uuid> = sqlx::query_scalar::<_, Uuid>(query)
        .fetch_all(testbed.pool())
        .await
        .unwrap()
        .into_iter()
        .collect();
    let expected: HashSet<Uuid> = servers.iter().map(Server::id).collect();
    assert_eq!(
        holders, expected,
        "every server has claimed something, and nobody else has"
    );
}

async fn each_item_ran_once(testbed: &Testbed, items: i64) {
    let once = "select count(*) from (
                    select item_id from stationmaster_internal.executions_finished
                    group by item_id having count(*) = 1 and min(status) = 'COMPLETED') once";
    assert_eq!(testbed.number(once).await, items);
    let ids = "select count(distinct execution_id) from stationmaster_internal.executions_finished";
    assert_eq!(testbed.number(ids).await, items);
    assert_eq!(testbed.count("executions_active").await, 0);
    assert_eq!(testbed.count("queue_pending").await, 0);
    assert_eq!(misplaced_items(testbed).await, []);
    assert_eq!(wrong_counters(testbed).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_never_claim_the_same_item() {
    let testbed = Testbed::new().await;
    // One workspace, so that both want the same rows at the same time.
    let tenant = testbed.tenant(1000, NOOP).await;
    let settings = Settings {
        batch_size: 7,
        ..brisk()
    };
    let servers = [
        testbed.server(settings.clone()).await,
        testbed.server(settings).await,
    ];
    testbed.enqueue_many(tenant, 1200).await;
    testbed.finishes(1200).await;
    each_item_ran_once(&testbed, 1200).await;
    everybody_takes_part(&testbed, &servers).await;
    let dispatched: u64 = servers
        .iter()
        .map(|server| server.metric("queue_items_dispatched_total"))
        .sum();
    assert_eq!(dispatched, 1200, "the servers counted each item once");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_servers_over_many_workspaces_run_each_item_once() {
    let testbed = Testbed::new().await;
    let mut servers = Vec::new();
    for _ in 0..6 {
        servers.push(
            testbed
                .server(Settings {
                    batch_size: 5,
                    ..brisk()
                })
                .await,
        );
    }
    for _ in 0..20 {
        let tenant = testbed.tenant(3, &wait(0.002)).await;
        testbed.enqueue_many(tenant, 25).await;
    }
    testbed.finishes(500).await;
    each_item_ran_once(&testbed, 500).await;
    everybody_takes_part(&testbed, &servers).await;
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_enqueued_while_servers_compete_are_all_run_once() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(50, NOOP).await;
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(testbed.server(brisk()).await);
    }
    let singles = async {
        for _ in 0..100 {
            testbed.enqueue(tenant).await;
        }
    };
    let bulks = async {
        for _ in 0..10 {
            testbed.enqueue_many(tenant, 20).await;
        }
    };
    tokio::join!(singles, bulks);
    eventually("all 300 are done", async || {
        testbed.count("executions_finished").await == 300
    })
    .await;
    each_item_ran_once(&testbed, 300).await;
    for server in servers {
        server.stop().await;
    }
}
