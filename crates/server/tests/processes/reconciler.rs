//! What we recorded and what the engine runs, compared from both sides.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;

use crate::support::{
    DevServer, ENDLESS, Launch, Proxy, Temporal, TestDatabase, command, eventually, free_port,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_engine_ends_nothing_until_somebody_says_that_it_is_meant() {
    let database = TestDatabase::new().await;
    let port = free_port();
    let dev_server = tokio::task::spawn_blocking(move || DevServer::start(port, None))
        .await
        .unwrap();
    let temporal = Temporal::of(&dev_server).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s");
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 1).await;
    let lost = database.the_execution("RUNNING").await;
    drop(dev_server);
    // Without a file the next one knows nothing.
    let dev_server = tokio::task::spawn_blocking(move || DevServer::start(port, None))
        .await
        .unwrap();
    database.enqueue(workflow, 1).await;
    eventually("the server says what it found", async || {
        let (status, body) = server.readiness().await;
        status == 503 && body.contains("another Temporal")
    })
    .await;
    // Several rounds of the reconciler.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(database.the_execution("RUNNING").await.id, lost.id);
    let emptied = Temporal::named(&dev_server.address, &temporal.namespace).await;
    assert_eq!(emptied.runs().await, [], "nothing was started on it");
    let engine = |arguments: &[&str]| {
        let address = format!("temporal.address={}", temporal.address);
        let namespace = format!("temporal.namespace={}", temporal.namespace);
        let settings = ["--set", "engine=temporal", "--set", &address, "--set", &namespace];
        command(&database, &[&["engine"], arguments, &settings].concat())
    };
    server.signal(Signal::SIGTERM);
    server.ended().await;
    let changed = engine(&["change", "--yes"]);
    assert_eq!(
        (&changed["changed"], &changed["executions"]),
        (&true.into(), &1.into())
    );
    let shown = engine(&["show"]);
    assert!(shown.to_string().contains(&temporal.namespace), "{shown}");
    let _server = launch.start_ready().await;
    let row = database
        .rows()
        .await
        .into_iter()
        .find(|row| row.id == lost.id)
        .unwrap();
    assert_eq!(
        (row.status.as_str(), row.reason.as_deref()),
        ("FAILED", Some("engine_lost"))
    );
    database.until_count("RUNNING", 1).await;
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_open_although_its_end_was_recorded_is_terminated_and_audited() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s");
    let _servers = [launch.start_ready().await, launch.start_ready().await];
    database.enqueue(workflow, 2).await;
    database.until_count("RUNNING", 1).await;
    let ended = database
        .rows()
        .await
        .into_iter()
        .find(|row| row.status == "RUNNING")
        .unwrap();
    command(
        &database,
        &[
            "executions",
            "complete",
            "--force",
            &ended.id.to_string(),
            "--yes",
        ],
    );
    let took = eventually("the run is terminated", async || {
        !temporal.open().await.contains(&ended.id)
    })
    .await;
    println!("terminated {took:?} after its end was recorded");
    let runs = temporal.runs().await;
    let run = |id: uuid::Uuid| {
        let name = format!("execution-{id}");
        runs.iter()
            .find(|run| run.execution.as_ref().is_some_and(|run| run.workflow_id == name))
            .unwrap()
    };
    assert_eq!(run(ended.id).status(), WorkflowExecutionStatus::Terminated);
    let query =
        "select action, subject, detail from stationmaster.audit where action = 'execution.terminate'";
    let mut audit: Vec<(String, String, Value)> = Vec::new();
    eventually("it is audited", async || {
        audit = sqlx::query_as(query).fetch_all(&database.pool).await.unwrap();
        !audit.is_empty()
    })
    .await;
    assert_eq!(audit.len(), 1, "{audit:?}");
    assert_eq!(
        (audit[0].0.as_str(), &audit[0].1),
        ("execution.terminate", &ended.id.to_string())
    );
    assert_eq!(audit[0].2["run_id"].as_str(), ended.run_id.as_deref());
    let rows = database.rows().await;
    let row = rows.iter().find(|row| row.id == ended.id).unwrap();
    assert_eq!(row.status, "COMPLETED", "our word holds");
    let next = rows.iter().find(|row| row.id != ended.id).unwrap();
    assert_eq!(
        (next.status.as_str(), run(next.id).status()),
        ("RUNNING", WorkflowExecutionStatus::Running)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_execution_completed_by_hand_while_it_starts_stays_completed_and_its_run_is_ended() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s");
    let server = launch.start_ready().await;
    proxy.hold_answers();
    database.enqueue(workflow, 1).await;
    let starting = database.the_execution("STARTING").await;
    temporal.until_started(starting.id).await;
    command(
        &database,
        &[
            "executions",
            "complete",
            "--force",
            &starting.id.to_string(),
            "--yes",
        ],
    );
    proxy.open();
    eventually("the late settlement is refused", async || {
        server.metric("stale_writes_refused_total").await > 0.0
    })
    .await;
    eventually("the run is terminated", async || temporal.open().await.is_empty()).await;
    assert_eq!(database.the_execution("COMPLETED").await.id, starting.id);
    temporal.assert_one_run_each([starting.id]).await;
    database.assert_no_slot_is_used().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_a_dead_servers_late_request_starts_after_its_cancel_is_ended() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let (workspace, definition) = database.workflow(1, ENDLESS).await;
    let mut first = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    proxy.hold_requests();
    database.enqueue((workspace, definition), 1).await;
    let starting = database.the_execution("STARTING").await;
    eventually("the request is on its way", async || {
        proxy.was_sent(&starting.id.to_string())
    })
    .await;
    first.kill();
    let pause = "update stationmaster.workspaces set paused = true where id = $1";
    sqlx::query(pause)
        .bind(workspace)
        .execute(&database.pool)
        .await
        .unwrap();
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s");
    let _second = launch.start_ready().await;
    let waiting = database.the_execution("PENDING").await;
    assert_eq!(
        command(
            &database,
            &["executions", "cancel", &waiting.id.to_string(), "--yes"]
        )["result"],
        "cancelled"
    );

    proxy.open();
    temporal.until_started(starting.id).await;
    eventually("the run is terminated", async || temporal.open().await.is_empty()).await;
    assert_eq!(database.the_execution("CANCELLED").await.id, starting.id);
    temporal.assert_one_run_each([starting.id]).await;
    database.assert_no_slot_is_used().await;
}
