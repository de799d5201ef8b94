//! Examples in the document: one for the body of each request, and for answers that people meet first. A test asks for each of them.

use serde_json::{Value, json};
use utoipa::openapi::{Content, OpenApi, RefOr};

use super::routes::operations;

const ID: &str = "0190a1b2-7c3d-7000-8000-5e6f70819203";
const TIME: &str = "2026-03-01T10:00:00Z";

/// Puts the examples where they belong.
pub(super) fn put(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            let name = operation.operation_id.clone().unwrap_or_default();
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                show(body.content.values_mut(), of_request(&name).as_ref());
            }
            let Some((status, example)) = of_answer(&name) else {
                continue;
            };
            if let Some(RefOr::T(answer)) = operation.responses.responses.get_mut(status) {
                show(answer.content.values_mut(), Some(&example));
            }
        }
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
        "add_workflow_version" => json!({ "workflow": {
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
        "put_trigger" => json!({ "workflow_definition_id": "shop.import", "priority": 3 }),
        "reconcile_dispatchers" => json!({ "dry_run": true }),
        "drain_server" => json!({ "exit": false }),
        _ => return None,
    })
}

/// What people are answered first, and with which status.
fn of_answer(operation: &str) -> Option<(&'static str, Value)> {
    let item = json!({
        "id": ID, "workspace_id": ID, "workspace": "shop", "workflow_definition_id": ID, "workflow": "import", "execution_id": null,
        "status": "PENDING", "priority": 5, "run_at": null, "attempt_count": 0, "recovery_count": 0, "created_at": TIME,
        "claimed_at": null, "dispatched_at": null, "last_error": null, "outcome": null, "waits_for": "limit", "idempotency_key": null,
        "correlation_id": null, "enqueued_by": "ci", "input": { "order": 17 },
    });
    Some(match operation {
        "enqueue_execution" => ("202", json!({ "id": ID, "duplicate": false })),
        "list_queue" => ("200", json!({ "items": [item], "next_cursor": null })),
        "show_queue_item" => {
            let limit = json!({ "reason": "limit", "limit": 1, "active": 1, "holders": [ID], "position": 1 });
            let holder = json!({ "execution_id": ID, "queue_item_id": ID, "workflow_definition_id": ID, "workflow": "import",
                                 "server_id": ID, "server": "one", "since": TIME });
            let expected = json!({ "at": TIME, "how": "0 before it, 1 slots, and 12.0 s for each: the mean of the last 50 executions of the workspace" });
            (
                "200",
                json!({ "item": item, "waiting": limit, "reasons": [limit], "position": 1, "holders": [holder], "expected": expected }),
            )
        }
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
    use serde_json::Value;
    use stationmaster_client::wire;

    use super::*;

    #[test]
    fn every_request_that_has_a_body_has_an_example_and_answers_are_of_their_shape() {
        let document = serde_json::to_value(crate::http::document()).unwrap();
        let mut bodies = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let Value::Object(contents) = &operation["requestBody"]["content"] else {
                    continue;
                };
                bodies += 1;
                let shown = contents.values().all(|content| content["example"].is_object());
                assert!(
                    shown,
                    "{method} {path} has no example: add one in http/examples.rs"
                );
            }
        }
        assert!(bodies > 20, "{bodies}");
        let of = |operation| of_answer(operation).unwrap().1;
        serde_json::from_value::<wire::Enqueued>(of("enqueue_execution")).unwrap();
        serde_json::from_value::<wire::Page<wire::QueueItem>>(of("list_queue")).unwrap();
        serde_json::from_value::<wire::QueueItemDetails>(of("show_queue_item")).unwrap();
        serde_json::from_value::<wire::Problem>(problem()).unwrap();
    }
}
