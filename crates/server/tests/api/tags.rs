//! Tags: a change can be made to depend on what its caller saw.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, answer, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_with_an_old_tag_changes_nothing() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let item = scene.item(tenant).await;
    let put = |path: &str, tag: &str, body: serde_json::Value| {
        let method = if path.contains("queue") {
            Method::PATCH
        } else {
            Method::PUT
        };
        scene
            .ask(method, path, Some(&token))
            .header("if-match", tag)
            .json(&body)
    };
    for (path, body) in [
        (
            format!("/v1/workspaces/{}", tenant.workspace),
            json!({ "name": "south" }),
        ),
        (
            format!("/v1/workflows/{}", tenant.workflow),
            json!({ "workspace_id": tenant.workspace, "name": "daily" }),
        ),
        (format!("/v1/queue/{item}"), json!({ "priority": 5 })),
    ] {
        let seen = scene.ask(Method::GET, &path, Some(&token)).send().await.unwrap();
        let tag = seen.headers()["etag"].to_str().unwrap().to_owned();
        let changed = put(&path, &tag, body.clone()).send().await.unwrap();
        assert_eq!(changed.status(), StatusCode::OK, "{path}");
        let fresh = changed.headers()["etag"].to_str().unwrap().to_owned();
        assert_ne!(fresh, tag, "{path}");
        let (status, refused) = answer(put(&path, &tag, body.clone())).await;
        assert_eq!(
            (status, problem(&refused)),
            (StatusCode::PRECONDITION_FAILED, "precondition-failed"),
            "{path}"
        );
        assert_eq!(
            answer(put(&path, &format!("\"x\", {fresh}"), body.clone()))
                .await
                .0,
            StatusCode::OK,
            "{path}"
        );
        assert_eq!(answer(put(&path, "*", body)).await.0, StatusCode::OK, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thing_is_made_once_by_those_who_expect_none() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let path = format!("/v1/workspaces/{}", Uuid::now_v7());
    let make = |name: String| {
        let request = scene
            .ask(Method::PUT, &path, Some(&token))
            .header("if-none-match", "*");
        answer(request.json(&json!({ "name": name })))
    };
    let answers = futures::future::join_all((0..8).map(|number| make(number.to_string()))).await;
    let successes = answers
        .iter()
        .filter(|(status, _)| *status == StatusCode::OK)
        .count();
    assert_eq!(successes, 1, "{answers:?}");
    let missing = format!("/v1/workspaces/{}", Uuid::now_v7());
    let request = scene
        .ask(Method::PUT, &missing, Some(&token))
        .header("if-match", "*")
        .json(&json!({}));
    assert_eq!(answer(request).await.0, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_expectations_are_required_a_change_without_one_is_refused() {
    let scene = Scene::with(&[("HTTP__REQUIRE_IF_MATCH", "true")]).await;
    let token = scene.token(Role::Admin, None).await;
    let path = format!("/v1/workspaces/{}", Uuid::now_v7());
    let put = || {
        scene
            .ask(Method::PUT, &path, Some(&token))
            .json(&json!({ "name": "north" }))
    };
    let (status, body) = answer(put()).await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::PRECONDITION_REQUIRED, "precondition-required")
    );
    assert_eq!(answer(put().header("if-none-match", "*")).await.0, StatusCode::OK);
}
