//! What the tests stand on: a dev server, an engine, requests, and a worker that does as it is told.

mod dev_server;
mod proxy;
mod puppet;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use serde_json::value::RawValue;
use stationmaster_core::engine::{Close, Engine, StartOutcome, StartRequest};
use stationmaster_core::graph::Graph;
use stationmaster_core::id::{DefinitionId, ExecutionId, Token, VersionId, WorkspaceId};
use stationmaster_temporal::{TemporalConfig, TemporalEngine};

pub(crate) use dev_server::{DevServer, free_port};
pub(crate) use proxy::{Mode, Proxy};
pub(crate) use puppet::{Puppet, queue, run};

/// Long enough for any call on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn engine(address: &str) -> TemporalEngine {
    TemporalEngine::new(&TemporalConfig::new(address)).unwrap()
}

/// An engine that gives up a call early.
pub(crate) fn impatient_engine(address: &str, rpc_timeout: Duration) -> TemporalEngine {
    TemporalEngine::new(&TemporalConfig {
        rpc_timeout,
        ..TemporalConfig::new(address)
    })
    .unwrap()
}

/// The shared server, and an engine of the test's own on it.
pub(crate) async fn server_and_engine() -> (Arc<DevServer>, TemporalEngine) {
    let server = DevServer::shared();
    let engine = engine(&server.address);
    until_ready(&engine).await;
    (server, engine)
}

pub(crate) async fn until_ready(engine: &TemporalEngine) {
    let begun = Instant::now();
    while let Err(error) = engine.check().await {
        assert!(begun.elapsed() < PATIENCE, "the server does not come up: {error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A request for a new execution, on a task queue that no other test uses.
pub(crate) fn request() -> StartRequest {
    let execution_id = ExecutionId::new();
    StartRequest {
        execution_id,
        token: Token(1),
        again: false,
        workspace_id: WorkspaceId::new(),
        definition_id: DefinitionId::new(),
        version_id: VersionId::new(),
        workflow_type: "stationmaster-workflow".to_owned(),
        task_queue: format!("queue-{execution_id}"),
        graph: Arc::new(Graph::parse(r#"{"nodes": [{"id": "a"}]}"#).unwrap()),
        input: json("{}"),
        traceparent: None,
        run_timeout: None,
    }
}

pub(crate) fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn parsed(raw: Option<&RawValue>) -> Value {
    raw.map_or(Value::Null, |raw| serde_json::from_str(raw.get()).unwrap())
}

/// Starts, and gives the run id. Anything but a running run fails the test.
pub(crate) async fn start_running(engine: &TemporalEngine, request: &StartRequest) -> String {
    match engine.start(request, PATIENCE).await {
        StartOutcome::Running { run_id } => run_id,
        other => panic!("expected a running run, got {other:?}"),
    }
}

/// Sweeps until `execution` is reported, and gives the close and how long it took.
pub(crate) async fn until_reported(
    engine: &TemporalEngine,
    mut since: jiff::Timestamp,
    execution: ExecutionId,
) -> (Close, Duration) {
    let begun = Instant::now();
    loop {
        let (closes, next) = engine.closed_since(since).await.unwrap();
        if let Some(close) = closes.into_iter().find(|close| close.execution_id == execution) {
            return (close, begun.elapsed());
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "{execution} was never reported as closed"
        );
        since = next;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
