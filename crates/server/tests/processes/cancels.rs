//! Cancels, with Temporal.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::support::{ENDLESS, Launch, Proxy, Temporal, TestDatabase, Work, Worker, command, eventually};

fn cancel(database: &TestDatabase, execution: Uuid) -> Value {
    command(
        database,
        &["executions", "cancel", &execution.to_string(), "--yes"],
    )["result"]
        .clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_execution_is_cancelled_when_its_run_has_closed_and_its_slot_is_used_again() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let _servers = [(), ()].map(|()| {
        Launch::on(&database)
            .temporal(&temporal.address, &temporal.namespace)
            .start()
    });
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    database.enqueue(workflow, 1).await;
    assert_eq!(cancel(&database, running.id), "requested");
    // Nobody has agreed yet: the run is open, and the slot is in use.
    assert_eq!(database.the_execution("RUNNING").await.id, running.id);
    let _worker = Worker::start(&temporal, Work::UntilCancelled);
    let took = database.until_count("CANCELLED", 1).await;
    println!("cancelled {took:?} after the worker came");
    assert!(took < Duration::from_secs(15), "{took:?}");
    database.until_count("RUNNING", 1).await;
    let rows = database.rows().await;
    assert_eq!(
        rows.iter().find(|row| row.status == "CANCELLED").unwrap().id,
        running.id
    );
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_overtakes_the_start_reaches_the_run_once_it_is_known() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let _server = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    let _worker = Worker::start(&temporal, Work::UntilCancelled);
    proxy.hold_requests();
    database.enqueue(workflow, 1).await;
    let starting = database.the_execution("STARTING").await;
    assert_eq!(cancel(&database, starting.id), "requested");
    proxy.open();
    let ended = database.the_execution("CANCELLED").await;
    assert_eq!(ended.id, starting.id);
    temporal.assert_one_run_each([ended.id]).await;
    database.assert_no_slot_is_used().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancels_that_race_with_starts_leave_no_run_and_no_slot() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(10, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&temporal.address, &temporal.namespace);
    let _servers = [launch.start_ready().await, launch.start_ready().await];
    let _worker = Worker::start(&temporal, Work::UntilCancelled);
    // Each is cancelled as soon as it is enqueued, while servers claim and start.
    for _ in 0..80 {
        let query = "select stationmaster.enqueue_execution($1, $2)";
        let query = sqlx::query_scalar::<_, Uuid>(query)
            .bind(workflow.0)
            .bind(workflow.1);
        let item = query.fetch_one(&database.pool).await.unwrap();
        let query = sqlx::query("select stationmaster.cancel_execution($1)").bind(item);
        query.execute(&database.pool).await.unwrap();
    }
    let cancelled = "select count(*) from stationmaster.workflow_execution_queue q
                     left join stationmaster.workflow_executions e on e.id = q.execution_id
                     where coalesce(e.status, q.status) = 'CANCELLED'";
    eventually("all are cancelled", async || {
        database.number(cancelled).await == 80
    })
    .await;
    let started = temporal.runs_by_id().await;
    println!("{} of 80 had been started", started.len());
    assert!(started.values().all(|runs| *runs == 1), "{started:?}");
    assert!(temporal.open().await.is_empty(), "no run is left");
    database.assert_no_slot_is_used().await;
}
