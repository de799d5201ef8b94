//! A Temporal worker that runs what Stationmaster dispatches. Copy it and fill in `run_node`.
//!
//! ```text
//! STATIONMASTER_TEMPORAL__ADDRESS=127.0.0.1:7233 cargo run -p stationmaster-client --example temporal_worker
//! ```
//!
//! | variable | default |
//! |---|---|
//! | `STATIONMASTER_TEMPORAL__ADDRESS` | `127.0.0.1:7233` |
//! | `STATIONMASTER_TEMPORAL__NAMESPACE` | `default` |
//! | `STATIONMASTER_WORKER_TASK_QUEUE` | `stationmaster` |
//! | `STATIONMASTER_WORKER_WORKFLOW_TYPE` | `stationmaster-workflow`; read when the worker is compiled |
//!
//! Ctrl-C lets the activities that run come to their end, and then the worker leaves.

#![allow(missing_docs, reason = "Temporal's macros add constants without a word")]

use std::env;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use temporalio_client::{Client, ClientOptions, Connection, ConnectionOptions, Url};
use temporalio_macros::{activities, workflow, workflow_methods};
use temporalio_sdk::activities::{ActivityContext, ActivityError};
use temporalio_sdk::runtime::RuntimeOptions;
use temporalio_sdk::{
    ActivityExecutionError, ActivityOptions, Runtime, Worker, WorkerOptions, WorkflowContext, WorkflowResult,
    WorkflowTermination,
};

/// A workflow type is part of the program: the name under which a definition asks for it.
pub const WORKFLOW_TYPE: &str = match option_env!("STATIONMASTER_WORKER_WORKFLOW_TYPE") {
    Some(name) => name,
    None => "stationmaster-workflow",
};

/// The one argument with which Stationmaster starts a workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dispatch {
    /// The run is called `execution-<this>`.
    pub execution_id: String,
    /// The tenant.
    pub workspace_id: String,
    /// What is run.
    pub workflow_definition_id: String,
    /// Which version of it.
    pub workflow_version_id: String,
    /// The nodes of the version's graph, each after those it waits for.
    pub node_ids: Vec<String>,
    /// What the caller enqueued.
    pub input: Value,
}

/// What the workflow returns; Stationmaster keeps it as the output of the execution.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The nodes that ran, in order.
    pub nodes: Vec<String>,
    /// The input again.
    pub input: Value,
}

/// The workflow: one activity for each node, one after the other.
#[workflow]
#[derive(Default)]
pub struct DispatchedWorkflow;

#[workflow_methods]
impl DispatchedWorkflow {
    /// Walks the nodes. Must be deterministic: everything that touches the world belongs into an activity.
    #[run(name = WORKFLOW_TYPE)]
    pub async fn run(ctx: &mut WorkflowContext<Self>, dispatch: Dispatch) -> WorkflowResult<Outcome> {
        let mut nodes = Vec::with_capacity(dispatch.node_ids.len());
        for node_id in dispatch.node_ids {
            let options = ActivityOptions::start_to_close_timeout(Duration::from_mins(1));
            match ctx.execute_activity(Nodes::run_node, node_id, options).await {
                Ok(node_id) => nodes.push(node_id),
                Err(ActivityExecutionError::Cancelled(_)) => return Err(WorkflowTermination::cancelled()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Outcome {
            nodes,
            input: dispatch.input,
        })
    }
}

/// The work itself.
pub struct Nodes;

#[activities]
impl Nodes {
    /// Runs one node. Temporal repeats it until it succeeds, so it must bear being repeated.
    #[activity]
    pub async fn run_node(_ctx: ActivityContext, node_id: String) -> Result<String, ActivityError> {
        // Here the node's work would be done.
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(node_id)
    }
}

/// Where the worker finds its work.
pub struct Settings {
    /// `host:port` of Temporal.
    pub address: String,
    /// The namespace.
    pub namespace: String,
    /// The task queue of the definitions that this worker serves.
    pub task_queue: String,
}

impl Settings {
    fn from_environment() -> Self {
        let read = |name, default: &str| env::var(name).unwrap_or_else(|_| default.to_owned());
        Self {
            address: read("STATIONMASTER_TEMPORAL__ADDRESS", "127.0.0.1:7233"),
            namespace: read("STATIONMASTER_TEMPORAL__NAMESPACE", "default"),
            task_queue: read("STATIONMASTER_WORKER_TASK_QUEUE", "stationmaster"),
        }
    }
}

/// Works until `stop` is ready, then finishes what it has begun.
pub async fn serve(settings: Settings, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
    let runtime = Runtime::from_current_tokio(RuntimeOptions::default())?;
    let target: Url = format!("http://{}", settings.address).parse()?;
    let connection = Connection::connect(ConnectionOptions::new(target).build()).await?;
    let client = Client::new(connection, ClientOptions::new(settings.namespace).build())?;
    let options = WorkerOptions::new(settings.task_queue)
        .register_workflow::<DispatchedWorkflow>()?
        .register_activities(Nodes)
        .build();

    let mut worker = Worker::new(&runtime, client, options)?;
    let shut_down = worker.shutdown_handle();
    let mut work = std::pin::pin!(worker.run());
    tokio::select! {
        ended = &mut work => return Ok(ended?),
        () = stop => shut_down(),
    }
    Ok(work.await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::from_environment();
    println!(
        "serving {WORKFLOW_TYPE} on the task queue {} of {}",
        settings.task_queue, settings.address
    );
    let interrupted = async {
        // Without a handler for Ctrl-C the process just ends on it, so there is nothing to do about an error.
        let _ = tokio::signal::ctrl_c().await;
    };
    serve(settings, interrupted).await
}
