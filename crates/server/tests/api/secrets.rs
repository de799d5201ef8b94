//! Planted secrets: whatever is asked and however it fails, the log does not tell them.

use reqwest::Method;
use serde_json::json;
use stationmaster_core::access::Role;

use crate::scene::{ENDLESS, Scene};

const PLANTED: &str = "planted-secret-0451";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_tokens_nor_payloads_are_in_the_log_at_its_loudest() {
    let scene = Scene::with(&[("LOG__LEVEL", "trace,hyper=debug,sqlx=debug")]).await;
    let tenant = scene.tenant(1, ENDLESS).await;
    let token = scene.token(Role::Admin, None).await;
    let wrong = format!("smt_{PLANTED}");
    let body = json!({ "workspace_id": tenant.workspace, "workflow_definition_id": tenant.workflow,
                       "input": { "password": PLANTED }, "idempotency_key": format!("key-{PLANTED}") });
    let ask = |method: Method, path: &str, token: &str| scene.ask(method, path, Some(token));
    let requests = [
        ask(Method::POST, "/v1/executions", &token).json(&body),
        ask(Method::POST, "/v1/executions", &wrong).json(&body),
        ask(Method::POST, "/v1/executions", &token).json(&json!({ "input": PLANTED })),
        ask(Method::POST, "/v1/executions", &token)
            .header("content-type", "application/json")
            .body(format!("{{{PLANTED}")),
        ask(Method::GET, &format!("/v1/queue?search={PLANTED}"), &token),
        ask(Method::GET, &format!("/v1/queue?cursor={PLANTED}"), &token),
        ask(Method::POST, "/v1/queue/retry", &token)
            .header("idempotency-key", PLANTED)
            .json(&json!({ "reason": PLANTED })),
        ask(Method::GET, "/v1/executions", &token).header("x-request-id", format!("{PLANTED} {PLANTED}")),
        ask(Method::POST, "/v1/tokens", &token).json(&json!({ "name": "made here", "role": "viewer" })),
    ];
    let mut secrets = vec![PLANTED.to_owned(), token[4..60].to_owned()];
    for request in requests {
        let text = request.send().await.unwrap().text().await.unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        secrets.extend(value["secret"].as_str().map(|secret| secret[4..60].to_owned()));
    }
    assert_eq!(secrets.len(), 3, "a token was made");
    let log = scene.server.log();
    assert!(log.contains("Answered a request"), "the log is loud");
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(&secret));
        assert!(line.is_none(), "{line:?}");
    }
}
