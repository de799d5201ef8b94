//! What happened in each minute: counted from what is on record, once or again, and nothing while nothing happens.

use jiff::{SignedDuration, Timestamp};
use stationmaster_core::history::{self, Chart};

use crate::common::{FAIL, NOOP, Testbed, brisk, wait};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Where the minute begins that is under way.
fn this_minute() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second().div_euclid(60) * 60).unwrap()
}

/// All of the last minutes in one.
fn last(minutes: i32) -> Chart {
    let end = this_minute() + MINUTE;
    Chart {
        from: end - MINUTE * minutes,
        to: end,
        step: MINUTE * minutes,
        workspace: None,
        workflow: None,
        server: None,
    }
}

#[tokio::test]
async fn what_ran_is_counted_by_workspace_workflow_and_in_all() {
    let testbed = Testbed::new().await;
    let quick = testbed.tenant(2, NOOP).await;
    let failing = (quick.0, testbed.definition(quick.0, FAIL).await);
    let slow = testbed.tenant(1, &wait(600.0)).await;
    let began = this_minute();
    let _server = testbed.server(brisk()).await;
    testbed.enqueue_many(quick, 7).await;
    testbed.enqueue_many(failing, 2).await;
    let running = testbed.enqueue_many(slow, 3).await;
    testbed.finishes(9).await;
    testbed.reaches(running[0], "RUNNING").await;

    // The minute may have changed meanwhile, and is counted before it is over: again gives the same.
    let end = this_minute() + MINUTE;
    let moved = history::count(&testbed.database, began, end, true).await.unwrap();
    assert_eq!(moved, 12 + 10 + 9, "enqueued, started, ended");
    let rows = testbed.count("history_minutes").await;
    history::count(&testbed.database, began, end, true).await.unwrap();
    assert_eq!(testbed.count("history_minutes").await, rows);

    let told = async |workspace, workflow| {
        let chart = Chart {
            from: began,
            to: end,
            step: end.duration_since(began),
            workspace,
            workflow,
            server: None,
        };
        let chart = history::chart(&testbed.database, chart).await.unwrap();
        assert_eq!(chart.points.len(), 1);
        chart.points.into_iter().next().unwrap()
    };
    let all = told(None, None).await;
    let counts = [
        all.enqueued,
        all.started,
        all.completed,
        all.failed,
        all.cancelled,
    ];
    assert_eq!(counts, [12, 10, 7, 2, 0]);
    // One server did all of it, and has one still in hand.
    for (column, amount) in [("started", 10), ("completed", 7), ("failed", 2), ("cancelled", 0)] {
        let query =
            format!("select coalesce(sum({column}), 0)::bigint from stationmaster_internal.history_servers");
        assert_eq!(testbed.number(&query).await, amount, "{column}");
    }
    let in_hand = "select active from stationmaster_internal.history_servers order by minute desc limit 1";
    assert_eq!(testbed.number(in_hand).await, 1);
    let servers = "select count(distinct server_id) from stationmaster_internal.history_servers";
    assert_eq!(testbed.number(servers).await, 1);
    assert_eq!((all.waiting, all.active), (Some(2), Some(1)));
    let (waits, runs) = (all.wait.unwrap(), all.run.unwrap());
    assert_eq!((waits.count, runs.count), (10, 9));
    assert!(
        waits.p50 <= waits.p95 && waits.p95 <= waits.longest && waits.longest > 0.0,
        "{waits:?}"
    );

    let of_workspace = told(Some(quick.0), None).await;
    assert_eq!(
        (of_workspace.enqueued, of_workspace.failed, of_workspace.waiting),
        (9, 2, Some(0))
    );
    let of_workflow = told(None, Some(failing.1)).await;
    assert_eq!(
        (of_workflow.enqueued, of_workflow.completed, of_workflow.failed),
        (2, 0, 2)
    );
    let waiting = told(Some(slow.0), Some(slow.1)).await;
    assert_eq!(
        (waiting.waiting, waiting.active, waiting.run),
        (Some(2), Some(1), None)
    );
}

#[tokio::test]
async fn nothing_is_written_of_a_minute_in_which_nothing_happened() {
    let testbed = Testbed::new().await;
    testbed.tenant(2, NOOP).await;
    let end = this_minute();
    let moved = history::count(&testbed.database, end - MINUTE * 5, end, true)
        .await
        .unwrap();
    assert_eq!((moved, testbed.count("history_minutes").await), (0, 0));
    let told = history::chart(&testbed.database, last(5)).await.unwrap();
    assert_eq!(told.points.iter().map(|point| point.enqueued).sum::<i64>(), 0);
}

#[tokio::test]
async fn a_count_that_sees_more_replaces_one_that_saw_less_and_never_the_other_way() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(0, NOOP).await;
    let end = this_minute();
    let count = async || {
        history::count(&testbed.database, end - MINUTE * 3, end, false)
            .await
            .unwrap();
        let query = "select coalesce(sum(enqueued), 0)::bigint from stationmaster_internal.history_minutes where workspace_id = workflow_definition_id";
        testbed.number(query).await
    };
    let late = async || {
        testbed.enqueue_many(tenant, 5).await;
        let query = "update stationmaster_internal.queue_items set created_at = now() - interval '2 minutes'";
        testbed.run(query).await;
    };
    late().await;
    assert_eq!(count().await, 5);
    late().await;
    assert_eq!(count().await, 10, "committed after it was first counted");
    testbed
        .run("delete from stationmaster_internal.queue_items")
        .await;
    assert_eq!(count().await, 10, "pruned since");
}

#[tokio::test]
async fn of_very_many_workspaces_those_with_the_most_are_kept_and_all_are_counted() {
    let testbed = Testbed::new().await;
    let end = this_minute();
    let many = format!(
        "insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id, item_status,
             status, attempts, recoveries, dispatched_at, finished_at, finished_by)
         select id, id, md5(w::text)::uuid, md5(w::text)::uuid, 'DISPATCHED', 'COMPLETED', 1, 0, '{end}'::timestamptz - interval '50 s',
                '{end}'::timestamptz - interval '30 s', 'a test'
         from (select w, stationmaster.new_id() as id from generate_series(1, 150) w cross join lateral generate_series(1, case when w > 100 then 3 else 1 end)) ended"
    );
    testbed.run(&many).await;
    history::count(&testbed.database, end - MINUTE, end, false)
        .await
        .unwrap();
    assert_eq!(testbed.count("history_minutes").await, 101);
    let kept = "select count(*) from stationmaster_internal.history_minutes where completed = 3";
    assert_eq!(testbed.number(kept).await, 50, "the busy ones among them");
    let told = history::chart(&testbed.database, last(5)).await.unwrap();
    assert_eq!(told.points[0].completed, 250);
    let run = told.points[0].run.unwrap();
    assert!(
        (run.mean - 20.0).abs() < 0.01 && (10.0..=20.0).contains(&run.p95),
        "{run:?}"
    );
}

/// Counting must stay cheap when a minute holds millions: one in so many is counted, for as many as it stands for.
#[tokio::test]
async fn of_very_much_a_part_is_counted_and_stands_for_all() {
    const ENDED: i64 = 450_000;
    let testbed = Testbed::new().await;
    let end = this_minute();
    let many = format!(
        "insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id, item_status,
             status, attempts, recoveries, dispatched_at, finished_at, finished_by)
         select id, id, '{0}', '{0}', 'DISPATCHED', 'COMPLETED', 1, 0, '{end}'::timestamptz - interval '50 s',
                '{end}'::timestamptz - interval '30 s', 'a test'
         from (select gen_random_uuid() as id from generate_series(1, {ENDED})) ended",
        uuid::Uuid::from_u128(7)
    );
    testbed.run(&many).await;
    history::count(&testbed.database, end - MINUTE, end, false)
        .await
        .unwrap();
    let told = history::chart(&testbed.database, last(5)).await.unwrap();
    let completed = told.points[0].completed;
    assert!(
        (completed - ENDED).abs() < ENDED / 50 && completed % 2 == 0,
        "{completed}"
    );
    let run = told.points[0].run.unwrap();
    assert!((run.mean - 20.0).abs() < 0.01, "{run:?}");
}
