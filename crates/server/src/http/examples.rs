//! Examples in the document: one for the body of each request and one for each answer. A test asks for each of them, and holds it against its schema.

use serde_json::{Value, json};
use utoipa::openapi::{Content, OpenApi, RefOr, Schema};

use super::routes::operations;

mod answers;

const ID: &str = "0190a1b2-7c3d-7000-8000-5e6f70819203";
const RUN: &str = "0190a1b2-7c3d-7f00-9000-5e6f70819203";
const TIME: &str = "2026-03-01T10:00:00Z";

/// Puts the examples where they belong.
pub(super) fn put(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            let name = operation.operation_id.clone().unwrap_or_default();
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                show(body.content.values_mut(), of_request(&name).as_ref());
            }
            for answer in operation.responses.responses.values_mut() {
                let RefOr::T(answer) = answer else { continue };
                for content in answer.content.values_mut() {
                    if let RefOr::T(content) = content {
                        content.example = content.schema.as_ref().and_then(of_schema);
                    }
                }
            }
        }
    }
}

/// An example of what a schema with a name describes.
fn of_schema(schema: &RefOr<Schema>) -> Option<Value> {
    match schema {
        RefOr::Ref(named) => answers::example(named.ref_location.rsplit('/').next()?),
        RefOr::T(_) => None,
    }
}

fn show<'a>(contents: impl Iterator<Item = &'a mut RefOr<Content>>, example: Option<&Value>) {
    for content in contents {
        if let RefOr::T(content) = content {
            content.example = example.cloned();
        }
    }
}

/// A body that the operation takes.
fn of_request(operation: &str) -> Option<Value> {
    let enqueue = json!({ "workspace_id": "shop", "workflow_definition_id": "import", "input": { "order": 17 }, "priority": 5 });
    Some(match operation {
        "enqueue_execution" => enqueue,
        "enqueue_executions" => json!({ "items": [enqueue] }),
        "complete_execution" => json!({ "status": "COMPLETED", "output": { "rows": 12 } }),
        "cancel_execution" | "cancel_queue_item" | "terminate_execution" => {
            json!({ "reason": "the order was withdrawn" })
        }
        "end_stray" => json!({ "run_id": RUN, "reason": "the order was enqueued again" }),
        "change_queue_item" => json!({ "priority": 7 }),
        "prioritise_queue" => json!({ "workspace_id": "shop", "priority": 7, "dry_run": true }),
        "retry_queue" | "cancel_queue" | "replay_signals" => {
            json!({ "workspace_id": "shop", "dry_run": true })
        }
        "retry_failures" => json!({ "group": "3f9a1c2b7d", "dry_run": true }),
        "set_failures_aside" | "cancel_failures" => {
            json!({ "group": "3f9a1c2b7d", "note": "known, and mended" })
        }
        "put_workspace" => json!({ "name": "shop", "plan": "PRO" }),
        "put_workflow" => json!({ "workspace_id": "shop", "name": "import", "max_attempts": 5 }),
        "add_workflow_version" | "check_graph" => json!({ "workflow": {
            "nodes": [{ "id": "ask", "type": "http", "url": "https://shop.example/import" }, { "id": "rest", "type": "wait", "seconds": 30 }],
            "edges": [{ "from": "ask", "to": "rest" }] } }),
        "put_plan" => json!({ "max_concurrent": 10, "weight": 2 }),
        "acquire_lock" => json!({ "at_most": 60 }),
        "extend_lock" => json!({ "token": 42, "at_most": 60 }),
        "create_token" => json!({ "name": "ci", "role": "operator", "workspaces": ["shop"] }),
        "set_alarm" => {
            json!({ "workspace_id": "shop", "name": "nightly", "cron_expr": "0 2 * * *", "timezone": "Europe/Zurich", "message": "Begin" })
        }
        "change_alarm" => json!({ "cron_expr": "30 2 * * *" }),
        "backfill_alarm" => {
            json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00Z", "dry_run": true })
        }
        "send_signal" => json!({ "project": "shop", "name": "order.paid", "payload": { "order": 17 } }),
        "send_signals" => {
            json!({ "items": [{ "project": "shop", "name": "order.paid", "payload": { "order": 17 } }] })
        }
        "keep_view" => {
            json!({ "name": "what waits in the shop", "path": "/queue?status=PENDING&workspace=shop", "shared": true })
        }
        "put_trigger" => json!({ "workflow_definition_id": "shop.import", "priority": 3 }),
        "reconcile_dispatchers" => json!({ "dry_run": true }),
        "drain_server" => json!({ "exit": false }),
        _ => return None,
    })
}

/// A refusal.
pub(super) fn problem() -> Value {
    json!({
        "type": "urn:stationmaster:problem:invalid", "title": "Some values cannot be", "status": 422,
        "detail": "/priority: a whole number is expected, not the text \"high\"", "request_id": ID,
        "errors": [{ "field": "/priority", "pointer": "/priority", "detail": "a whole number is expected, not the text \"high\"" }],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use stationmaster_client::wire;

    use super::problem;

    /// Every content of JSON of an operation, and what it is of.
    fn contents<'a>(operation: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        if let Value::Object(contents) = &operation["requestBody"]["content"] {
            found.extend(contents.values().map(|content| ("its body".to_owned(), content)));
        }
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let content = &answer["content"]["application/json"];
            if content.is_object() {
                found.push((format!("its answer {status}"), content));
            }
        }
    }

    #[test]
    fn every_body_and_every_answer_has_an_example_of_its_schema() {
        let document = serde_json::to_value(crate::http::document()).unwrap();
        let mut examples = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let mut found = Vec::new();
                contents(operation, &mut found);
                for (what, content) in found {
                    let example = &content["example"];
                    assert!(
                        example.is_object(),
                        "{method} {path}: {what} has no example: add one in http/examples"
                    );
                    let schema =
                        json!({ "allOf": [content["schema"]], "components": document["components"] });
                    let schema = jsonschema::options().build(&schema).unwrap();
                    let wrong: Vec<String> = schema
                        .iter_errors(example)
                        .map(|error| error.to_string())
                        .collect();
                    assert!(wrong.is_empty(), "{method} {path}: {what}: {wrong:?}\n{example}");
                    examples += 1;
                }
            }
        }
        assert!(examples > 100, "{examples}");
        serde_json::from_value::<wire::Problem>(problem()).unwrap();
    }
}
