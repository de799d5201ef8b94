//! The life of a run on Temporal: its time, its end by force, what keeps it from going on, and what follows when it is reset.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::command as api_command;
use temporalio_common::protos::temporal::api::command::v1::ContinueAsNewWorkflowExecutionCommandAttributes;
use temporalio_common::protos::temporal::api::command::v1::command::Attributes;
use temporalio_common::protos::temporal::api::common::v1::{WorkflowExecution, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::{
    CommandType, WorkflowExecutionStatus, WorkflowTaskFailedCause,
};
use temporalio_common::protos::temporal::api::failure::v1::Failure;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    PollWorkflowTaskQueueRequest, ResetWorkflowExecutionRequest, RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskFailedRequest,
};
use uuid::Uuid;

use crate::support::{
    ENDLESS, Launch, Process, Temporal, TestDatabase, Work, Worker, command, eventually, get,
};

fn launch(database: &TestDatabase, temporal: &Temporal) -> Launch {
    Launch::on(database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("HTTP__OPEN", "true")
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s")
}

async fn shown(server: &Process, path: &str) -> Value {
    let (status, body) = get(&server.address().unwrap(), path).await.unwrap();
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// Does this metric show so many?
async fn counts(server: &Process, metric: &str, many: f64) -> bool {
    (server.metric(metric).await - many).abs() < 0.5
}

/// The runs that Temporal has had under the id of this execution.
async fn runs_of(temporal: &Temporal, execution: Uuid) -> Vec<WorkflowExecutionInfo> {
    let name = format!("execution-{execution}");
    let mut runs = temporal.runs().await;
    runs.retain(|run| run.execution.as_ref().is_some_and(|run| run.workflow_id == name));
    runs
}

async fn statuses(temporal: &Temporal, execution: Uuid) -> Vec<WorkflowExecutionStatus> {
    let runs = runs_of(temporal, execution).await;
    let mut statuses: Vec<_> = runs.iter().map(WorkflowExecutionInfo::status).collect();
    statuses.sort_by_key(WorkflowExecutionStatus::as_str_name);
    statuses
}

async fn events(database: &TestDatabase, item: Uuid) -> Vec<String> {
    let query = "select event from stationmaster.execution_history where item_id = $1 order by at";
    let query = sqlx::query_scalar(query).bind(item);
    query.fetch_all(&database.pool).await.unwrap()
}

/// As `temporal workflow reset` does. Answers the new run.
async fn reset(temporal: &Temporal, execution: Uuid, run_id: &str) -> String {
    let message = ResetWorkflowExecutionRequest {
        namespace: temporal.namespace.clone(),
        workflow_execution: Some(WorkflowExecution {
            workflow_id: format!("execution-{execution}"),
            run_id: run_id.to_owned(),
        }),
        reason: "the fix is deployed".to_owned(),
        // The first workflow task: started, scheduled, started, and what came of it.
        workflow_task_finish_event_id: 4,
        request_id: Uuid::now_v7().to_string(),
        ..ResetWorkflowExecutionRequest::default()
    };
    let mut service = temporal.service();
    let answer = service.reset_workflow_execution(message.into_request());
    answer.await.unwrap().into_inner().run_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_beyond_its_time_ends_timed_out_though_no_worker_is_there() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (workspace, definition) = database.workflow(1, ENDLESS).await;
    let changed = command(
        &database,
        &["workflows", "set", &definition.to_string(), "--run-timeout", "2s"],
    );
    assert_eq!(changed["run_timeout"], 2.0);
    let _server = launch(&database, &temporal).start_ready().await;
    database.enqueue((workspace, definition), 1).await;
    let ended = database.the_execution("TIMED_OUT").await;
    assert_eq!(
        statuses(&temporal, ended.id).await,
        [WorkflowExecutionStatus::TimedOut]
    );
    database.assert_no_slot_is_used().await;
    let changed = command(
        &database,
        &["workflows", "set", &definition.to_string(), "--no-run-timeout"],
    );
    assert_eq!(changed["run_timeout"], Value::Null);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_no_worker_serves_is_terminated_and_its_slot_goes_to_the_next() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = launch(&database, &temporal);
    let _servers = [launch.start_ready().await, launch.start_ready().await];
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    database.enqueue(workflow, 1).await;
    let id = running.id.to_string();
    let ended = command(
        &database,
        &["executions", "terminate", &id, "--note", "it hangs", "--yes"],
    );
    assert_eq!(ended["status"], "TERMINATED");
    assert_eq!(
        statuses(&temporal, running.id).await,
        [WorkflowExecutionStatus::Terminated]
    );
    database.until_count("RUNNING", 1).await;
    let shown = command(&database, &["executions", "show", &id]);
    assert_eq!(shown["reason"], "terminated_by_request");
    assert_eq!(shown["error"]["reason"], "it hangs", "{shown}");
    assert_eq!(shown["run_id"].as_str(), running.run_id.as_deref());
    let steps = events(&database, running.item).await;
    assert!(steps.contains(&"terminate_requested".to_owned()), "{steps:?}");
    let audited = "select count(*) from stationmaster.audit where action = 'execution.terminate' and detail->>'reason' = 'it hangs'";
    assert_eq!(database.number(audited).await, 1);
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn complete_ends_the_run_before_the_slot_is_free() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = launch(&database, &temporal);
    let servers = [launch.start_ready().await, launch.start_ready().await];
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    database.enqueue(workflow, 1).await;
    let id = running.id.to_string();
    let ended = command(
        &database,
        &[
            "executions",
            "complete",
            &id,
            "--output",
            r#"{"by": "hand"}"#,
            "--yes",
        ],
    );
    assert_eq!(ended["status"], "COMPLETED");
    assert_eq!(
        statuses(&temporal, running.id).await,
        [WorkflowExecutionStatus::Terminated],
        "the run had ended when the answer came"
    );
    let shown = command(&database, &["executions", "show", &id]);
    assert_eq!(
        (&shown["output"]["by"], &shown["reason"]),
        (&"hand".into(), &"completed_by_request".into())
    );
    assert!(
        shown["closed_at"].is_string(),
        "the engine told of its close: {shown}"
    );
    database.until_count("RUNNING", 1).await;
    // Several rounds of whoever watches closes: the word holds.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(database.count("COMPLETED").await, 1);
    for server in &servers {
        assert!(counts(server, "stationmaster_executions_reset_total", 0.0).await);
    }
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_complete_says_that_the_run_has_not_ended() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = launch(&database, &temporal);
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    server.signal(nix::sys::signal::Signal::SIGTERM);
    server.ended().await;
    let id = running.id.to_string();
    let asked = command(&database, &["executions", "complete", &id, "--yes"]);
    assert_eq!(asked["status"], "RUNNING", "{asked}");
    let _server = launch.start_ready().await;
    assert_eq!(database.the_execution("COMPLETED").await.id, running.id);
    assert_eq!(
        statuses(&temporal, running.id).await,
        [WorkflowExecutionStatus::Terminated]
    );
    database.assert_no_slot_is_used().await;
}

/// Takes every workflow task and fails it, as a worker does that does not know the workflow type.
fn fail_tasks(temporal: &Temporal) -> tokio::task::JoinHandle<()> {
    let (mut service, namespace) = (temporal.service(), temporal.namespace.clone());
    tokio::spawn(async move {
        loop {
            let message = PollWorkflowTaskQueueRequest {
                namespace: namespace.clone(),
                task_queue: Some(TaskQueue {
                    name: namespace.clone(),
                    ..TaskQueue::default()
                }),
                identity: "a test".to_owned(),
                ..PollWorkflowTaskQueueRequest::default()
            };
            let Ok(task) = service.poll_workflow_task_queue(message.into_request()).await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let answer = RespondWorkflowTaskFailedRequest {
                namespace: namespace.clone(),
                task_token: task.into_inner().task_token,
                cause: WorkflowTaskFailedCause::WorkflowWorkerUnhandledFailure.into(),
                failure: Some(Failure {
                    message: "no such workflow type is registered".to_owned(),
                    ..Failure::default()
                }),
                identity: "a test".to_owned(),
                ..RespondWorkflowTaskFailedRequest::default()
            };
            let _ = service.respond_workflow_task_failed(answer.into_request()).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_a_run_from_going_on_is_told_to_whoever_looks() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let server = launch(&database, &temporal).start_ready().await;
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    let execution = format!("/v1/executions/{}", running.id);
    let item = format!("/v1/queue/{}", running.item);
    let no_worker = serde_json::json!({"reason": "no_worker", "task_queue": temporal.namespace});
    eventually("the missing worker is told of", async || {
        shown(&server, &execution).await["obstacle"] == no_worker
    })
    .await;
    assert_eq!(shown(&server, &item).await["obstacle"], no_worker);
    eventually("it is measured", async || {
        counts(&server, "stationmaster_task_queues_without_workers", 1.0).await
            && counts(&server, "stationmaster_executions_without_workers", 1.0).await
    })
    .await;
    let url = format!("http://{}", server.address().unwrap());
    let words = |noun: &str, id: Uuid| {
        let mut show = Command::new(env!("CARGO_BIN_EXE_stationmaster"));
        show.args([noun, "show", &id.to_string(), "--url", &url])
            .env_clear();
        let output = show.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let told = format!("no worker polls task queue {}", temporal.namespace);
    let (of_execution, of_item) = (words("executions", running.id), words("queue", running.item));
    assert!(of_execution.contains(&told), "{of_execution}");
    assert!(of_item.contains(&told), "{of_item}");
    let doctor = |database: &TestDatabase| {
        let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
            .args(["doctor", "--json"])
            .env_clear()
            .env("STATIONMASTER_DATABASE_URL", &database.url)
            .env("STATIONMASTER_ENGINE", "temporal")
            .env("STATIONMASTER_TEMPORAL__ADDRESS", &temporal.address)
            .env("STATIONMASTER_TEMPORAL__NAMESPACE", &temporal.namespace)
            .env("STATIONMASTER_EXECUTIONS__TASK_QUEUE", &temporal.namespace)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let report = doctor(&database);
    assert!(report.contains(&told), "{report}");

    let worker = fail_tasks(&temporal);
    eventually("the failing task is told of", async || {
        let obstacle = shown(&server, &execution).await["obstacle"].clone();
        obstacle["reason"] == "task_fails"
            && obstacle["message"] == "no such workflow type is registered"
            && obstacle["attempts"].as_i64() > Some(1)
    })
    .await;
    eventually("there is a worker", async || {
        counts(&server, "stationmaster_task_queues_without_workers", 0.0).await
    })
    .await;
    assert!(!doctor(&database).contains("no worker polls"));
    worker.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_execution_that_is_reset_runs_again_beyond_the_limit_and_ends_by_its_new_run() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let server = launch(&database, &temporal).start_ready().await;
    let worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    database.enqueue(workflow, 1).await;
    let ended = database.the_execution("COMPLETED").await;
    drop(worker);
    // Another one has the slot by now.
    database.enqueue(workflow, 1).await;
    database.until_count("RUNNING", 1).await;
    let first = ended.run_id.clone().unwrap();
    let second = reset(&temporal, ended.id, &first).await;
    database.until_count("RUNNING", 2).await;
    let row = |rows: Vec<crate::support::Row>| rows.into_iter().find(|row| row.id == ended.id).unwrap();
    assert_eq!(
        row(database.rows().await).run_id.as_deref(),
        Some(second.as_str())
    );
    database.assert_counters_agree().await;
    let capacity = "select active * 10 + max_concurrent from stationmaster_internal.workspace_capacity";
    let capacity: i32 = sqlx::query_scalar(capacity)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(capacity, 21, "two of one, and shown as such");
    assert!(counts(&server, "stationmaster_executions_reset_total", 1.0).await);
    // Several rounds of the reconciler: it is left to run.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(
        statuses(&temporal, ended.id).await,
        [
            WorkflowExecutionStatus::Completed,
            WorkflowExecutionStatus::Running
        ]
    );
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    database.until_count("COMPLETED", 2).await;
    assert_eq!(
        row(database.rows().await).run_id.as_deref(),
        Some(second.as_str())
    );
    let steps = events(&database, ended.item).await;
    let ends = steps.iter().filter(|step| *step == "completed").count();
    assert_eq!(ends, 2, "the former end stays in the history: {steps:?}");
    assert!(steps.contains(&"reset".to_owned()), "{steps:?}");
    database.assert_no_slot_is_used().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_run_that_ends_before_it_is_seen_gives_the_execution_its_end() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let server = launch(&database, &temporal).start_ready().await;
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    answer_one_task(&temporal, None).await;
    command(
        &database,
        &["executions", "terminate", &running.id.to_string(), "--yes"],
    );
    database.the_execution("TERMINATED").await;
    let failures = "select count(*) from stationmaster.failures";
    assert_eq!(database.number(failures).await, 1);
    // Nothing runs now, and the reset run is over at once.
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    let second = reset(&temporal, running.id, running.run_id.as_deref().unwrap()).await;
    let ended = database.the_execution("COMPLETED").await;
    assert_eq!(ended.run_id.as_deref(), Some(second.as_str()));
    let output = command(&database, &["executions", "show", &ended.id.to_string()]);
    assert_eq!(output["output"]["trains"], 3);
    assert_eq!(
        statuses(&temporal, running.id).await,
        [
            WorkflowExecutionStatus::Completed,
            WorkflowExecutionStatus::Terminated
        ]
    );
    eventually("it is counted", async || {
        counts(&server, "stationmaster_executions_reset_total", 1.0).await
    })
    .await;
    database.assert_no_slot_is_used().await;
    assert_eq!(database.number(failures).await, 0, "it ended well after all");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_of_what_was_retried_since_is_left_alone() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let server = launch(&database, &temporal).start_ready().await;
    database.enqueue(workflow, 1).await;
    let running = database.the_execution("RUNNING").await;
    answer_one_task(&temporal, None).await;
    command(
        &database,
        &["executions", "terminate", &running.id.to_string(), "--yes"],
    );
    database.the_execution("TERMINATED").await;
    command(&database, &["queue", "retry", &running.item.to_string()]);
    database.until_count("RUNNING", 1).await;
    reset(&temporal, running.id, running.run_id.as_deref().unwrap()).await;
    eventually("it is said", async || {
        server.said("reset on the engine after it had been retried") == 1
    })
    .await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(
        statuses(&temporal, running.id).await,
        [
            WorkflowExecutionStatus::Running,
            WorkflowExecutionStatus::Terminated
        ]
    );
    assert_eq!(
        (
            database.count("RUNNING").await,
            database.count("TERMINATED").await
        ),
        (1, 1)
    );
    database.assert_counters_agree().await;
}

/// Takes one workflow task and answers it: with this, or that there is nothing to do now. Leaves no poller behind.
async fn answer_one_task(temporal: &Temporal, answer: Option<Attributes>) {
    let mut service = temporal.service();
    loop {
        let message = PollWorkflowTaskQueueRequest {
            namespace: temporal.namespace.clone(),
            task_queue: Some(TaskQueue {
                name: temporal.namespace.clone(),
                ..TaskQueue::default()
            }),
            identity: "a test".to_owned(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let Ok(task) = service.poll_workflow_task_queue(message.into_request()).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let command = answer.clone().map(|attributes| api_command::v1::Command {
            command_type: CommandType::ContinueAsNewWorkflowExecution.into(),
            attributes: Some(attributes),
            ..api_command::v1::Command::default()
        });
        let answered = RespondWorkflowTaskCompletedRequest {
            namespace: temporal.namespace.clone(),
            task_token: task.into_inner().task_token,
            identity: "a test".to_owned(),
            commands: command.into_iter().collect(),
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        let answered = service.respond_workflow_task_completed(answered.into_request());
        if answered.await.is_ok() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_run_on_record_follows_an_execution_that_continues_as_new() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let _server = launch(&database, &temporal).start_ready().await;
    database.enqueue(workflow, 1).await;
    let first = database.the_execution("RUNNING").await;
    let continued = ContinueAsNewWorkflowExecutionCommandAttributes {
        workflow_type: Some(WorkflowType {
            name: "stationmaster-workflow".to_owned(),
        }),
        task_queue: Some(TaskQueue {
            name: temporal.namespace.clone(),
            ..TaskQueue::default()
        }),
        ..ContinueAsNewWorkflowExecutionCommandAttributes::default()
    };
    let continued = Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(continued);
    answer_one_task(&temporal, Some(continued)).await;
    let mut now = None;
    eventually("the new run is on record", async || {
        now = database.the_execution("RUNNING").await.run_id;
        now != first.run_id
    })
    .await;
    let runs = runs_of(&temporal, first.id).await;
    let open = runs
        .iter()
        .find(|run| run.status() == WorkflowExecutionStatus::Running);
    assert_eq!(
        now,
        open.unwrap().execution.as_ref().map(|run| run.run_id.clone())
    );
    // And it is that run which is ended.
    let id = first.id.to_string();
    let ended = command(&database, &["executions", "terminate", &id, "--yes"]);
    assert_eq!(ended["status"], "TERMINATED");
    assert_eq!(
        statuses(&temporal, first.id).await,
        [
            WorkflowExecutionStatus::ContinuedAsNew,
            WorkflowExecutionStatus::Terminated
        ]
    );
}
