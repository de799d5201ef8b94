//! Cancels that race with claims: each item ends one way, none is lost, and the answer given is the truth.

use std::collections::HashMap;

use stationmaster_core::executions::Settings;
use stationmaster_core::executions::operate::{self, Cancelled};
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};

use crate::common::counting::{misplaced_items, peaks, wrong_counters};
use crate::common::{NOOP, Testbed, brisk, eventually, wait};

async fn race(
    testbed: &Testbed,
    tenants: &[(WorkspaceId, DefinitionId)],
    rounds: usize,
) -> HashMap<ItemId, Cancelled> {
    let mut answers = HashMap::new();
    for round in 0..rounds {
        let tenant = tenants[round % tenants.len()];
        let items = testbed.enqueue_many(tenant, 10).await;
        // Some meet the claim, some the run, some the end.
        for item in items.into_iter().skip(round % 3) {
            let answer = operate::cancel(&testbed.database, item.0, None, "alice")
                .await
                .unwrap();
            answers.insert(item, answer);
        }
    }
    answers
}

/// An item, how it ended, how its execution ended, and how often.
type Row = (ItemId, String, Option<String>, i64);

async fn outcomes(testbed: &Testbed) -> HashMap<ItemId, (String, Option<String>, i64)> {
    let query = "select item_id, min(item_status), min(status), count(*) from stationmaster_internal.executions_finished group by 1";
    let rows: Vec<Row> = sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap();
    rows.into_iter()
        .map(|(item, queue, execution, rows)| (item, (queue, execution, rows)))
        .collect()
}

async fn every_answer_was_the_truth(graph: &str) {
    let testbed = Testbed::new().await;
    let mut tenants = Vec::new();
    for _ in 0..3 {
        tenants.push(testbed.tenant(4, graph).await);
    }
    let settings = Settings {
        batch_size: 3,
        ..brisk()
    };
    let servers = [
        testbed.server(settings.clone()).await,
        testbed.server(settings).await,
    ];
    let answers = race(&testbed, &tenants, 25).await;
    eventually("everything has ended", async || {
        testbed.count("executions_finished").await == 250
    })
    .await;

    let outcomes = outcomes(&testbed).await;
    let mut seen = [0, 0, 0];
    for (item, answer) in answers {
        let (queue, execution, rows) = &outcomes[&item];
        assert_eq!(*rows, 1, "it ended once");
        match answer {
            Cancelled::AtOnce => {
                seen[0] += 1;
                assert_eq!(
                    (queue.as_str(), execution),
                    ("CANCELLED", &None),
                    "cancelled before it ran"
                );
            }
            Cancelled::Requested => {
                seen[1] += 1;
                assert!(
                    matches!(execution.as_deref(), Some("COMPLETED" | "CANCELLED")),
                    "{execution:?}"
                );
            }
            Cancelled::EndedBefore(status) => {
                seen[2] += 1;
                assert_eq!(execution.as_deref(), Some(status.as_str()));
            }
        }
    }
    assert!(
        seen[0] > 0 && seen[1] + seen[2] > 0,
        "the race went only one way: {seen:?}"
    );
    assert_eq!(misplaced_items(&testbed).await, []);
    assert_eq!(wrong_counters(&testbed).await, []);
    assert!(peaks(&testbed).await.values().all(|peak| *peak <= 4));
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_races_with_the_claim_goes_one_way_or_the_other() {
    Box::pin(every_answer_was_the_truth(NOOP)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_races_with_the_end_goes_one_way_or_the_other() {
    Box::pin(every_answer_was_the_truth(&wait(0.02))).await;
}
