//! Temporal goes, its workers are not there, and somebody starts runs of dispatchers that are over.

use std::time::Duration;

use nix::sys::signal::Signal;
use sqlx::AssertSqlSafe;
use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::common::v1::{Memo, Payload, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::WorkflowIdConflictPolicy;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::runbook::Place;
use crate::support::{
    Door, ENDLESS, Launch, Process, Proxy, Temporal, TestDatabase, Work, Worker, eventually,
};
use crate::trial::Watch;

const DISPATCHER: &str = "dispatcher-shop-default";

/// Short intervals, in the right proportions.
fn launch(database: &TestDatabase, address: &str, namespace: &str) -> Launch {
    Launch::on(database)
        .temporal(address, namespace)
        .with("HTTP__OPEN", "true")
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s")
        .with("DISPATCHERS__LEASE", "3s")
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .with("DISPATCHERS__STALE_AFTER", "4s")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s")
        .with("DISPATCHERS__SECOND_LOOK", "500ms")
        .with("DISPATCHERS__CHECK_INTERVAL", "1s")
        .with("DISPATCHERS__SLA", "15s")
}

async fn run(database: &TestDatabase, statement: &str) {
    let statement = sqlx::query(AssertSqlSafe(statement.to_owned()));
    statement.execute(&database.pool).await.unwrap();
}

/// A start of a former owner, which ends what runs.
async fn start_of_old(temporal: &Temporal) {
    let json = |text: String| Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: text.into_bytes(),
        ..Payload::default()
    };
    let memo = [
        ("epoch".to_owned(), json("0".to_owned())),
        ("serverId".to_owned(), json(format!("\"{}\"", Uuid::now_v7()))),
    ];
    let message = SignalWithStartWorkflowExecutionRequest {
        namespace: temporal.namespace.clone(),
        workflow_id: DISPATCHER.to_owned(),
        workflow_type: Some(WorkflowType {
            name: "stationmaster-dispatcher".to_owned(),
        }),
        task_queue: Some(TaskQueue {
            name: "of-the-dead".to_owned(),
            ..TaskQueue::default()
        }),
        request_id: Uuid::now_v7().to_string(),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::TerminateExisting.into(),
        signal_name: "register".to_owned(),
        memo: Some(Memo { fields: memo.into() }),
        ..SignalWithStartWorkflowExecutionRequest::default()
    };
    // Temporal may be busy; the next one comes at once.
    let _ = temporal
        .service()
        .signal_with_start_workflow_execution(message.into_request())
        .await;
}

/// Somebody who does so again and again.
fn haunt(temporal: Temporal) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            start_of_old(&temporal).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_wrong_with_temporal_is_noticed() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (_, definition) = database.workflow(1_000, ENDLESS).await;
    let trigger = "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', $1)";
    sqlx::query(trigger)
        .bind(definition)
        .execute(&database.pool)
        .await
        .unwrap();
    run(&database, "insert into stationmaster.dispatchers (id, project, task_queue) values ('dispatcher-shop-default', 'shop', 'default')").await;
    let proxy = Proxy::before(&temporal.address).await;
    let owner = launch(&database, &temporal.address, &temporal.namespace)
        .start_ready()
        .await;
    let ownership = "select count(*) from stationmaster.dispatchers where run_id is not null";
    eventually("it is owned", async || database.number(ownership).await == 1).await;
    let standby = launch(&database, &proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    let servers = [owner.address().unwrap(), standby.address().unwrap()];
    let watch = Watch::on(&[&servers[0], &servers[1]], Duration::from_secs(1)).await;
    let look = Place::at(&servers[1]);
    tokio::join!(
        no_workers(&watch, &database, &temporal, &look),
        older_runs(&watch, &temporal, &look),
    );
    stray(&watch, &database, &temporal, &look).await;
    away(&watch, &database, &proxy, owner, &look).await;
}

async fn no_workers(watch: &Watch, database: &TestDatabase, temporal: &Temporal, look: &Place) {
    let mut trial = watch.begin(&["NoWorkers"]).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let mistyped = format!(
        "update stationmaster.workflow_definitions set task_queue = 'mistyped' where id = '{}'",
        workflow.1
    );
    run(database, &mistyped).await;
    database.enqueue(workflow, 1).await;
    let look = look.knowing(&[("WORKFLOW", &workflow.1), ("POLLED", &temporal.namespace)]);
    trial.fire(&look).await;
    let _worker = Worker::start(temporal, Work::CompleteAfter(Duration::ZERO));
    trial.mend(&look).await;
    database.until_count("COMPLETED", 1).await;
    trial.clear().await;
}

/// What a failover does that loses the last commits, done by hand: the rows go, and the run goes on.
async fn stray(watch: &Watch, database: &TestDatabase, temporal: &Temporal, look: &Place) {
    let mut trial = watch.begin(&["StrayRuns"]).await;
    let workflow = database.workflow(1, ENDLESS).await;
    database.enqueue(workflow, 1).await;
    database.until_count("RUNNING", 1).await;
    let rows = database.rows().await;
    let execution = rows.iter().find(|row| row.status == "RUNNING").unwrap().id;
    let lose = format!(
        "with gone as (
             delete from stationmaster_internal.executions_active where execution_id = '{execution}'
         ), item as (
             delete from stationmaster_internal.queue_items where id = '{execution}'
         )
         update stationmaster_internal.workspace_capacity set active = active - 1 where workspace_id = '{}'",
        workflow.0
    );
    run(database, &lose).await;
    trial.fire(look).await;
    trial.mend(look).await;
    eventually("it is ended", async || {
        !temporal.open().await.contains(&execution)
    })
    .await;
    trial.clear().await;
}

async fn older_runs(watch: &Watch, temporal: &Temporal, look: &Place) {
    let other = Temporal::named(&temporal.address, &temporal.namespace).await;
    let mut trial = watch.begin(&["DispatcherDuplicate", "DispatcherStale"]).await;
    let haunt = haunt(other);
    trial.fire(look).await;
    haunt.abort();
    trial.clear().await;
}

/// The standby is the one for which Temporal goes, at the moment when the owner hands over.
async fn away(watch: &Watch, database: &TestDatabase, proxy: &Proxy, mut owner: Process, look: &Place) {
    let mut retries = watch.begin(&["TakeoverRetries"]).await;
    let mut trial = watch
        .begin(&["EngineAway", "SupervisorFails", "SignalsWait"])
        .await;
    proxy.hold_requests();
    owner.signal(Signal::SIGTERM);
    owner.ended().await;
    run(
        database,
        "insert into stationmaster.signals (project, name) values ('shop', 'paid')",
    )
    .await;
    retries.fire(look).await;
    // Who is refused knows it at once, and asks more often.
    proxy.door(Door::Refusing);
    proxy.open();
    proxy.cut();
    trial.fire(look).await;
    proxy.door(Door::Open);
    tokio::join!(retries.clear(), trial.clear());
}
