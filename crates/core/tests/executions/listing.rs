//! Lists: newest first, filtered, a page at a time, each row once.

use stationmaster_core::executions::browse::{self, Filter};
use stationmaster_core::executions::{ExecutionStatus, ItemStatus, inspect, operate};
use stationmaster_core::id::ItemId;
use uuid::Uuid;

use crate::common::{FAIL, NOOP, Testbed, brisk, eventually, wait};

fn all<Status>() -> Filter<Status> {
    Filter {
        limit: 1000,
        ..Filter::default()
    }
}

fn ids(items: &[inspect::QueueItem]) -> Vec<ItemId> {
    items.iter().map(|item| ItemId(item.id)).collect()
}

fn status<Status>(status: Status) -> Filter<Status> {
    Filter {
        status: Some(status),
        ..all()
    }
}

#[tokio::test]
async fn items_and_executions_can_be_filtered_by_whatever_they_are() {
    let testbed = Testbed::new().await;
    let (quick, slow) = (
        testbed.tenant(5, NOOP).await,
        testbed.tenant(1, &wait(600.0)).await,
    );
    let failing = (quick.0, testbed.definition(quick.0, FAIL).await);
    let server = testbed.server(brisk()).await;
    let done = testbed.enqueue_many(quick, 3).await;
    let failed = testbed.enqueue(failing).await;
    let both = testbed.enqueue_many(slow, 3).await;
    testbed.reaches(both[0], "RUNNING").await;
    operate::cancel(&testbed.database, both[2].0, None, "alice")
        .await
        .unwrap();
    eventually("the rest has ended", async || {
        testbed.count("executions_finished").await == 5
    })
    .await;

    let items = async |filter: Filter<ItemStatus>| {
        ids(&browse::items(&testbed.database, &filter).await.unwrap().rows)
    };
    assert_eq!(items(all()).await.len(), 7);
    assert_eq!(items(status(ItemStatus::Pending)).await, [both[1]]);
    assert_eq!(items(status(ItemStatus::Cancelled)).await, [both[2]]);
    assert_eq!(
        items(status(ItemStatus::Dispatched)).await.len(),
        5,
        "what the engine ran was dispatched, also when it failed"
    );
    assert_eq!(
        items(Filter {
            workspace: Some(slow.0),
            ..all()
        })
        .await
        .len(),
        3
    );
    assert_eq!(
        items(Filter {
            definition: Some(failing.1),
            ..all()
        })
        .await,
        [failed]
    );
    assert_eq!(
        items(Filter {
            workspace: Some(slow.0),
            definition: Some(failing.1),
            ..all()
        })
        .await,
        []
    );

    let executions = async |filter: Filter<ExecutionStatus>| {
        browse::executions(&testbed.database, &filter).await.unwrap().rows
    };
    let completed = executions(status(ExecutionStatus::Completed)).await;
    assert_eq!(completed.len(), 3);
    assert!(
        completed
            .iter()
            .all(|execution| done.contains(&ItemId(execution.queue_item_id)))
    );
    assert_eq!(
        executions(status(ExecutionStatus::Running)).await[0].queue_item_id,
        both[0].0
    );
    assert_eq!(
        executions(all()).await.len(),
        5,
        "what never ran has no execution"
    );
    server.stop().await;
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_repeat() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let mut expected = testbed.enqueue_many(tenant, 95).await;
    expected.sort();
    expected.reverse();
    let mut seen = Vec::new();
    let mut below: Option<Uuid> = None;
    loop {
        let filter = Filter {
            below,
            limit: 10,
            ..Filter::default()
        };
        let page = browse::items(&testbed.database, &filter).await.unwrap();
        assert!(page.rows.len() <= 10);
        seen.extend(ids(&page.rows));
        below = page.next;
        if below.is_none() {
            break;
        }
    }
    assert_eq!(seen, expected);
}

/// Ten of them ended in each of the last sixty minutes.
#[tokio::test]
async fn a_chart_goes_back_as_far_as_it_may_count() {
    let testbed = Testbed::new().await;
    let workspace = testbed.workspace(1).await;
    testbed
        .run(&format!(
            "insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id, item_status,
                 status, attempts, recoveries, finished_at, finished_by)
             select id, id, '{workspace}', id, 'DISPATCHED', 'COMPLETED', 1, 0, now() - m * interval '1 minute', 'a test'
             from (select m, stationmaster.new_id() as id from generate_series(0, 59) m cross join generate_series(1, 10)) ended"
        ))
        .await;
    let told = async |counted| {
        let minutes = inspect::minutes(&testbed.database, 60, counted).await.unwrap();
        let completed: i64 = minutes.iter().map(|minute| minute.completed).sum();
        (minutes.len(), completed)
    };
    // A minute may end while we look.
    let (minutes, completed) = told(1000).await;
    assert!(
        minutes == 60 && (590..=600).contains(&completed),
        "{minutes} {completed}"
    );
    let (minutes, completed) = told(200).await;
    assert!(
        minutes == 15 && (140..=150).contains(&completed),
        "{minutes} {completed}"
    );
    let (minutes, completed) = told(1).await;
    assert!(minutes == 1 && completed <= 10, "{minutes} {completed}");
}
