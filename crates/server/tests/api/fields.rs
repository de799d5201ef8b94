//! Fields that cannot be: all of them are told, by pointers and in words for people.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_core::access::Role;

use crate::scene::{ENDLESS, Scene, answer};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_is_wrong_with_a_request_is_told_at_once() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let token = scene.token(Role::Admin, None).await;
    let long = "x".repeat(1001);
    let workflow = format!("/v1/workflows/{}", tenant.workflow);
    let versions = format!("{workflow}/versions");
    let set = json!({ "workspace_id": tenant.workspace, "cron_expr": "@daily" });
    let (_, set) = answer(scene.ask(Method::POST, "/v1/alarms", Some(&token)).json(&set)).await;
    let alarm = format!("/v1/alarms/{}", set["alarm"]["id"].as_str().unwrap());
    let cases = [
        (
            Method::PUT,
            "/v1/workspaces/lab",
            json!({ "name": " ", "plan": "", "max_concurrent": -1 }),
            vec!["/name", "/plan", "/max_concurrent"],
        ),
        (
            Method::PUT,
            workflow.as_str(),
            json!({ "workspace_id": tenant.workspace, "name": "", "task_queue": "", "run_timeout": 0, "max_attempts": 0, "published_version": 0 }),
            vec![
                "/run_timeout",
                "/max_attempts",
                "/published_version",
                "/name",
                "/task_queue",
            ],
        ),
        (
            Method::PUT,
            "/v1/plans/gold plan",
            json!({ "max_concurrent": -1, "weight": 0 }),
            vec!["name", "/max_concurrent", "/weight"],
        ),
        (
            Method::POST,
            "/v1/alarms",
            json!({ "workspace_id": tenant.workspace, "name": "a b\u{7}", "label": "\u{7}", "cron_expr": "61 * * * *", "target_url": "ftp://x", "jitter": -1 }),
            vec!["/label", "/name", "/target_url", "/jitter", "/cron_expr"],
        ),
        (
            Method::POST,
            "/v1/alarms",
            json!({ "workspace_id": tenant.workspace, "cron_expr": "@nightly", "timezone": "Mars", "traceparent": "junk", "idempotency_key": "",
                    "max_failures": 0, "pause_after": 0, "end_at": "2020-01-01T00:00:00Z", "start_at": "2030-01-01T00:00:00Z" }),
            vec![
                "/traceparent",
                "/idempotency_key",
                "/max_failures",
                "/pause_after",
                "/end_at",
                "/cron_expr",
                "/timezone",
            ],
        ),
        (
            Method::PATCH,
            alarm.as_str(),
            json!({ "name": "a b\u{7}", "label": "\u{7}", "target_url": "ftp://x", "misfire_window": -1, "jitter": 100_000, "max_failures": 0,
                    "catch_up": 5, "cron_expr": "61 * * * *", "timezone": "Mars" }),
            vec![
                "/name",
                "/label",
                "/target_url",
                "/misfire_window",
                "/max_failures",
                "/jitter",
                "/cron_expr",
                "/timezone",
                "/catch_up",
            ],
        ),
        (
            Method::POST,
            "/v1/executions",
            json!({ "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow, "traceparent": "junk", "correlation_id": "" }),
            vec!["/traceparent", "/correlation_id"],
        ),
        (
            Method::POST,
            "/v1/signals",
            json!({ "project": "", "name": "", "traceparent": "junk" }),
            vec!["/traceparent", "/project", "/name"],
        ),
        (
            Method::POST,
            "/v1/views",
            json!({ "name": "", "path": "elsewhere" }),
            vec!["/name", "/path"],
        ),
        (
            Method::POST,
            "/v1/failures/cancel",
            json!({ "note": long }),
            vec!["/group", "/note", "/all"],
        ),
        (
            Method::POST,
            "/v1/locks/nightly",
            json!({ "owner": "", "at_most": -1, "at_least": -1 }),
            vec!["/owner", "/at_most", "/at_least"],
        ),
        (
            Method::POST,
            "/v1/queue/retry",
            json!({ "end_reason": "bogus" }),
            vec!["/end_reason"],
        ),
        (
            Method::POST,
            "/v1/failures/set-aside",
            json!({ "note": long }),
            vec!["/note", "/all"],
        ),
        (
            Method::POST,
            "/v1/executions/bulk",
            json!({ "items": [
                { "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow, "idempotency_key": "", "correlation_id": "" },
                { "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow, "correlation_id": long },
            ] }),
            vec![
                "/items/0/idempotency_key",
                "/items/0/correlation_id",
                "/items/1/correlation_id",
            ],
        ),
        (
            Method::POST,
            "/v1/signals/bulk",
            json!({ "items": [{ "project": "", "name": "" }, { "project": "shop", "name": "go", "id": "" }] }),
            vec!["/items/0/project", "/items/0/name", "/items/1/id"],
        ),
        (
            Method::POST,
            versions.as_str(),
            json!({ "workflow": { "nodes": [{ "id": 1 }, { "type": "wait" }, 7], "edges": [{ "from": "a" }] } }),
            vec![
                "/workflow/nodes/0/id",
                "/workflow/nodes/1/id",
                "/workflow/nodes/2",
                "/workflow/edges/0/to",
            ],
        ),
        (
            Method::POST,
            versions.as_str(),
            json!({ "workflow": { "nodes": [{ "id": "a" }, { "id": "a" }], "edges": [{ "from": "a", "to": "x" }] } }),
            vec!["/workflow/nodes/1/id", "/workflow/edges/0/to"],
        ),
    ];
    for (method, path, body, expected) in cases {
        let (status, told) = answer(scene.ask(method, path, Some(&token)).json(&body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {told}");
        let errors = told["errors"].as_array().unwrap();
        let fields: Vec<&str> = errors
            .iter()
            .map(|error| error["field"].as_str().unwrap())
            .collect();
        assert_eq!(fields, expected, "{path}: {told}");
        // No parser speaks to people.
        let words = told.to_string();
        for foreign in ["invalid type", "expected a", "at line", "missing field"] {
            assert!(!words.contains(foreign), "{path}: {words}");
        }
    }
}
