//! Temporal answers late, or too late.

use std::collections::HashMap;
use std::time::Duration;

use crate::support::{
    ENDLESS, Gate, Launch, LimitWatch, Proxy, Temporal, TestDatabase, Work, Worker, eventually,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_answers_a_second_late_limits_hold_and_everything_completes() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    proxy.answers.send_replace(Gate::Late(Duration::from_secs(1)));
    let (narrow, wide) = (
        database.workflow(1, ENDLESS).await,
        database.workflow(4, ENDLESS).await,
    );
    let limits = LimitWatch::on(&database.pool);
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let _servers = [launch.start_ready().await, launch.start_ready().await];
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    database.enqueue(narrow, 2).await;
    database.enqueue(wide, 10).await;
    let took = database.until_count("COMPLETED", 12).await;
    println!("12 executions completed in {took:?}");
    limits.assert_kept(&HashMap::from([(narrow.0, 1), (wide.0, 4)]));
    database.assert_all_completed_once(12).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
    assert_eq!(database.attempts().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_after_the_server_gave_up_leaves_one_run_and_a_running_execution() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(3, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let server = launch
        .with("EXECUTIONS__START_TIMEOUT", "2s")
        .with("EXECUTIONS__CLAIM_LEASE", "7s");
    let server = server.start_ready().await;
    proxy.hold_answers();
    database.enqueue(workflow, 3).await;
    eventually("the server gives up", async || {
        server.said("A start is in doubt") == 3
    })
    .await;
    assert_eq!(
        database.count("STARTING").await,
        3,
        "in doubt they keep their slots"
    );
    proxy.open();
    let took = database.until_count("RUNNING", 3).await;
    println!("RUNNING {took:?} after the answers came");
    let rows = database.rows().await;
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    assert!(
        rows.iter().all(|row| row.attempts == 0 && row.recoveries == 0),
        "{rows:?}"
    );
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_never_arrived_is_in_doubt_and_then_made_once() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let server = launch
        .with("EXECUTIONS__START_TIMEOUT", "1s")
        .with("EXECUTIONS__CLAIM_LEASE", "6s");
    let server = server.start_ready().await;
    proxy.hold_requests();
    database.enqueue(workflow, 1).await;
    eventually("the server gives up", async || {
        server.said("A start is in doubt") == 1
    })
    .await;
    proxy.open();
    let row = database.the_execution("RUNNING").await;
    temporal.assert_one_run_each([row.id]).await;
    assert_eq!(row.attempts, 0, "{row:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_before_its_start_is_settled_completes_once() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(2, ENDLESS).await;
    let slow = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    proxy.hold_answers();
    database.enqueue(workflow, 2).await;
    database.until_count("STARTING", 2).await;
    for row in database.rows().await {
        temporal.until_started(row.id).await;
    }
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    eventually("the runs have ended", async || temporal.open().await.is_empty()).await;
    proxy.open();
    database.until_count("COMPLETED", 2).await;
    database.assert_all_completed_once(2).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
    let outputs = "select count(*) from stationmaster.workflow_executions where output = '{\"trains\": 3}'";
    assert_eq!(database.number(outputs).await, 2);
    drop(slow);
}
