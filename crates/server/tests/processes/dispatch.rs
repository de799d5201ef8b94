//! What arrives at Temporal, and what comes back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use uuid::Uuid;

use crate::support::{Launch, Temporal, TestDatabase, Work, Worker};

const GRAPH: &str = r#"{"nodes": [{"id": "load", "type": "sql"}, {"id": "extract", "type": "sql"}, {"id": "clean", "type": "sql"}],
                       "edges": [{"from": "extract", "to": "clean"}, {"from": "clean", "to": "load"}]}"#;
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatched_execution_arrives_verbatim_and_its_output_comes_back_within_two_seconds() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (workspace, definition) = database.workflow(1, GRAPH).await;
    let _server = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .start_ready()
        .await;
    let input = r#"{"price": 1.10, "id": 12345678901234567890, "name": "Žižkov \u0001 🚂", "deep": [null, {"a": []}]}"#;
    let query = "select stationmaster.enqueue_execution($1, $2, $3::jsonb, traceparent => $4)";
    let query = sqlx::query_scalar::<_, Uuid>(query)
        .bind(workspace)
        .bind(definition)
        .bind(input)
        .bind(TRACE);
    query.fetch_one(&database.pool).await.unwrap();
    let row = database.the_execution("RUNNING").await;

    let query = "select input::text, workflow_definition_version_id from stationmaster.workflow_executions where id = $1";
    let (stored, version): (String, Uuid) = sqlx::query_as(query)
        .bind(row.id)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    let history = temporal.history(row.id).await;
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &history[0].attributes else {
        panic!("{:?}", history[0]);
    };
    let argument = &started.input.as_ref().unwrap().payloads;
    let expected = format!(
        r#"{{"executionId":"{}","workspaceId":"{workspace}","workflowDefinitionId":"{definition}","workflowVersionId":"{version}","nodeIds":["extract","clean","load"],"input":{stored}}}"#,
        row.id
    );
    assert_eq!(argument.len(), 1);
    assert_eq!(String::from_utf8_lossy(&argument[0].data), expected);
    assert!(
        stored.contains("1.10") && stored.contains("12345678901234567890"),
        "{stored}"
    );
    let header = &started.header.as_ref().unwrap().fields["traceparent"];
    assert_eq!(
        serde_json::from_slice::<Value>(&header.data).unwrap(),
        json!(TRACE)
    );

    let worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    let closed_at = loop {
        if temporal.open().await.is_empty() {
            break Instant::now();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    database.until_count("COMPLETED", 1).await;
    let took = closed_at.elapsed();
    println!("the end was in our rows {took:?} after the run had closed");
    assert!(took < Duration::from_secs(2), "{took:?}");
    let query = "select output from stationmaster.workflow_executions where id = $1";
    let output: Value = sqlx::query_scalar(query)
        .bind(row.id)
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(output, json!({"trains": 3}));
    database.assert_all_completed_once(1).await;
    drop(worker);
}
