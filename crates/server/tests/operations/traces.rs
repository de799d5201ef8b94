//! The header `traceparent`: what is asked for in a request belongs to the caller's trace.

use serde_json::json;

use crate::scene::{Scene, request};

const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const BODY: &str = "00-11111111111111111111111111111111-2222222222222222-01";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_header_of_a_request_names_the_trace_unless_its_body_does() {
    let scene = Scene::new().await;
    let (workspace, workflow) = scene.database().workflow(1, crate::support::ENDLESS).await;
    let ask = json!({ "workspace_id": workspace, "workflow_definition_id": workflow });
    let mut named = ask.clone();
    named["traceparent"] = json!(BODY);
    let signal = json!({ "project": "shop", "name": "paid", "payload": {} });
    let alarm = json!({ "workspace_id": workspace, "label": "a", "delay": 3600.0 });
    for (path, body, header) in [
        ("/v1/executions", ask.clone(), HEADER),
        ("/v1/executions", named, HEADER),
        ("/v1/executions", ask.clone(), "no trace at all"),
        ("/v1/executions/bulk", json!({ "items": [ask] }), HEADER),
        ("/v1/signals", signal, HEADER),
        ("/v1/alarms", alarm, HEADER),
    ] {
        let headers = [("traceparent", header)];
        let (status, _, answer) = request(&scene.address, "POST", path, &body.to_string(), &headers).await;
        assert!((200..300).contains(&status), "{path}: {answer}");
    }
    let query = "select traceparent::text from stationmaster_internal.queue_items where workflow_definition_id = $1 order by id";
    let items: Vec<Option<String>> = sqlx::query_scalar(query)
        .bind(workflow)
        .fetch_all(&scene.database().pool)
        .await
        .unwrap();
    let items: Vec<Option<&str>> = items.iter().map(Option::as_deref).collect();
    assert_eq!(items, [Some(HEADER), Some(BODY), None, Some(HEADER)]);
    for table in ["signals_inbox", "alarm_definitions"] {
        let query = format!("select traceparent::text from stationmaster_internal.{table}");
        let traces: Vec<Option<String>> = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .fetch_all(&scene.database().pool)
            .await
            .unwrap();
        assert_eq!(traces, [Some(HEADER.to_owned())], "{table}");
    }
}
