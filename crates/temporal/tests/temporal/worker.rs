//! The example worker runs what the engine dispatches.

use std::sync::Arc;
use std::thread;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stationmaster_core::engine::{CloseStatus, StartRequest};
use stationmaster_core::graph::Graph;
use tokio::sync::oneshot;

use crate::example::{Settings, WORKFLOW_TYPE, serve};
use crate::support::{self, parsed, request, server_and_engine, start_running, until_reported};

#[tokio::test]
async fn the_example_worker_completes_a_dispatched_execution_and_leaves_when_asked() {
    let (server, engine) = server_and_engine().await;
    let graph = r#"{"nodes": [{"id": "b"}, {"id": "a"}], "edges": [{"from": "a", "to": "b"}]}"#;
    let request = StartRequest {
        workflow_type: WORKFLOW_TYPE.to_owned(),
        graph: Arc::new(Graph::parse(graph).unwrap()),
        input: support::json(r#"{"price": 1.10, "id": 12345678901234567890}"#),
        ..request()
    };
    let settings = Settings {
        address: server.address.clone(),
        namespace: "default".to_owned(),
        task_queue: request.task_queue.clone(),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    // The worker's future cannot move between threads, so it has one of its own.
    let worker = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(serve(settings, async {
            let _ = stopped.await;
        }))
    });

    let since = Timestamp::now() - SignedDuration::from_secs(1);
    start_running(&engine, &request).await;
    let (close, _) = until_reported(&engine, since, request.execution_id).await;
    assert_eq!(close.status, CloseStatus::Completed, "{:?}", close.error);
    let input = json!({"price": 1.1, "id": 12_345_678_901_234_567_890_u64});
    assert_eq!(
        parsed(close.output.as_deref()),
        json!({"nodes": ["a", "b"], "input": input})
    );

    stop.send(()).unwrap();
    tokio::task::spawn_blocking(|| worker.join().unwrap())
        .await
        .unwrap()
        .unwrap();
}
