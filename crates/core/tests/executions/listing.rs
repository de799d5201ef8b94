//! Lists: newest first, filtered, a page at a time, each row once.

use stationmaster_core::executions::browse::{self, Filter};
use stationmaster_core::executions::{ExecutionStatus, ItemStatus, inspect, operate};
use stationmaster_core::id::ItemId;
use stationmaster_wire::Order;
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
    let oldest = Filter {
        order: Order::Oldest,
        ..all()
    };
    let mut newest = executions(all()).await;
    newest.reverse();
    let told = |all: Vec<inspect::Execution>| all.into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(told(executions(oldest).await), told(newest));

    // As many as are listed.
    for workspaces in [&[][..], &[quick.0], &[slow.0], &[quick.0, slow.0]] {
        for definition in [None, Some(failing.1)] {
            let narrowed = Filter {
                definition,
                ..all::<ItemStatus>()
            };
            for count in browse::count_items(&testbed.database, &narrowed, workspaces)
                .await
                .unwrap()
            {
                let listed =
                    browse::items_in(&testbed.database, &narrowed, workspaces, &[count.status]).await;
                let listed = i64::try_from(listed.unwrap().rows.len()).unwrap();
                assert_eq!(
                    (count.count, count.more),
                    (listed, false),
                    "{count:?} {workspaces:?}"
                );
            }
            let narrowed = Filter {
                definition,
                ..all::<ExecutionStatus>()
            };
            for count in browse::count_executions(&testbed.database, &narrowed, workspaces)
                .await
                .unwrap()
            {
                let listed =
                    browse::executions_in(&testbed.database, &narrowed, workspaces, &[count.status]).await;
                let listed = i64::try_from(listed.unwrap().rows.len()).unwrap();
                assert_eq!(
                    (count.count, count.more),
                    (listed, false),
                    "{count:?} {workspaces:?}"
                );
            }
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_repeat_in_every_order() {
    let testbed = Testbed::new().await;
    let (tenant, beside) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, NOOP).await);
    let mut expected = testbed.enqueue_many(tenant, 35).await;
    let foreign = testbed.enqueue_many(beside, 35).await;
    let filter = |beyond, order, workspace| Filter {
        beyond,
        order,
        workspace,
        limit: 10,
        ..Filter::default()
    };
    for (order, workspace) in [
        (Order::Newest, None),
        (Order::Oldest, None),
        (Order::Newest, Some(tenant.0)),
        (Order::Oldest, Some(tenant.0)),
    ] {
        let mut expected = expected.clone();
        expected.extend(workspace.is_none().then_some(&foreign).into_iter().flatten());
        expected.sort();
        if order == Order::Newest {
            expected.reverse();
        }
        for status in [None, Some(ItemStatus::Pending)] {
            let mut seen = Vec::new();
            let mut beyond: Option<Uuid> = None;
            loop {
                let filter = Filter {
                    status,
                    ..filter(beyond, order, workspace)
                };
                let page = browse::items(&testbed.database, &filter).await.unwrap();
                assert!(page.rows.len() <= 10);
                seen.extend(ids(&page.rows));
                beyond = page.next;
                if beyond.is_none() {
                    break;
                }
            }
            assert_eq!(seen, expected, "{order} {workspace:?} {status:?}");
        }
    }

    // In line: what is wanted most goes first, then by age; what is not ready stands in no line.
    let (first, last, later) = (expected[20], expected[3], expected[7]);
    for (item, priority) in [(first, 5), (last, -5)] {
        operate::set_priority(&testbed.database, item, priority, "alice", None)
            .await
            .unwrap();
    }
    testbed
        .run(&format!(
            "update stationmaster_internal.queue_pending set stage = 'later', waits_for = 'schedule', run_at = now() + interval '1 day'
             where item_id = '{later}'"
        ))
        .await;
    expected.sort();
    expected.retain(|item| ![first, last, later].contains(item));
    expected.insert(0, first);
    expected.push(last);
    let line = async |filter: &Filter<ItemStatus>| {
        let (mut seen, mut behind) = (Vec::new(), None);
        loop {
            let page = browse::in_line(&testbed.database, tenant.0, filter, behind)
                .await
                .unwrap();
            seen.extend(ids(&page.rows));
            behind = page.next;
            if behind.is_none() {
                return seen;
            }
        }
    };
    let all = filter(None, Order::Newest, None);
    assert_eq!(line(&all).await, expected);
    let mine = Filter {
        definition: Some(tenant.1),
        ..all.clone()
    };
    assert_eq!(
        line(&mine).await,
        expected,
        "where rows are looked through as well"
    );
    let none = Filter {
        definition: Some(beside.1),
        ..all
    };
    assert_eq!(line(&none).await, []);
}

#[tokio::test]
async fn what_is_very_many_is_counted_up_to_a_bound() {
    use ExecutionStatus::{Cancelled, Completed, Failed, Terminated, TimedOut};

    let testbed = Testbed::new().await;
    let workspace = testbed.workspace(1).await;
    // Ids that are made within a millisecond are in no order, and here the oldest are meant.
    testbed
        .run(&format!(
            "insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id, item_status,
                 status, attempts, recoveries, finished_at, finished_by)
             select id, id, '{workspace}', id, 'DISPATCHED', case when n > 3 then 'COMPLETED' else 'FAILED' end, 1, 0,
                    now() - case when n > 3 then interval '2 hours' else interval '1 minute' end, 'a test'
             from (select n, ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid as id from generate_series(1, 10050) n) ended"
        ))
        .await;
    let told = async |workspaces: &[_], after| {
        let filter = Filter { after, ..all() };
        let counts = browse::count_executions(&testbed.database, &filter, workspaces).await;
        let counts = counts.unwrap().into_iter();
        let counts = counts.filter(|count| count.count > 0 || count.more);
        let mut counts: Vec<_> = counts.map(|one| (one.status, one.count, one.more)).collect();
        counts.sort();
        counts
    };
    assert_eq!(
        told(&[], None).await,
        [(Completed, 1_000, true), (Failed, 3, false)],
        "what went wrong is known by itself"
    );
    assert_eq!(
        told(&[workspace], None).await,
        [
            (Completed, 10_000, true),
            (Failed, 0, true),
            (Cancelled, 0, true),
            (Terminated, 0, true),
            (TimedOut, 0, true)
        ],
        "of a workspace the newest are looked at, whatever became of them"
    );
    let hour = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    assert_eq!(
        told(&[], Some(hour)).await,
        [(Completed, 0, true), (Failed, 3, false)]
    );
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
