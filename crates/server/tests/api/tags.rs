//! Tags: a change can be made to depend on what its caller saw.

use reqwest::{Method, StatusCode};
use serde_json::json;
use stationmaster_client::{Error, wire};
use stationmaster_core::access::Role;
use uuid::Uuid;

use crate::scene::{ENDLESS, Scene, Tenant, answer, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_with_an_old_tag_changes_nothing() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let item = scene.item(tenant).await;
    let (alarm, trigger) = alarm_and_trigger(&scene, tenant).await;
    let put = |path: &str, tag: &str, body: serde_json::Value| {
        let method = if path.contains("queue") || path.contains("alarms") {
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
        (alarm, json!({ "label": "later" })),
        (
            trigger,
            json!({ "workflow_definition_id": tenant.workflow, "priority": 5 }),
        ),
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

/// The addresses of an alarm and of a trigger.
async fn alarm_and_trigger(scene: &Scene, tenant: Tenant) -> (String, String) {
    let admin = scene.admin().await;
    let request = wire::NewAlarm {
        workspace_id: tenant.workspace,
        cron_expr: Some("@yearly".to_owned()),
        ..wire::NewAlarm::default()
    };
    let alarm = admin.set_alarm(&request).await.unwrap().alarm.id;
    let trigger = wire::TriggerChange {
        workflow_definition_id: tenant.workflow,
        payload_schema: None,
        priority: Some(0),
    };
    let place = wire::TriggerPlace::default();
    admin.put_trigger("shop", "paid", &place, &trigger).await.unwrap();
    (format!("/v1/alarms/{alarm}"), "/v1/triggers/shop/paid".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_changes_at_once_that_saw_the_same_one_is_made() {
    let scene = Scene::new().await;
    let token = scene.token(Role::Admin, None).await;
    let tenant = scene.tenant(0, ENDLESS).await;
    let (alarm, trigger) = alarm_and_trigger(&scene, tenant).await;
    for path in [&alarm, &trigger] {
        let seen = scene.ask(Method::GET, path, Some(&token)).send().await.unwrap();
        let tag = seen.headers()["etag"].to_str().unwrap().to_owned();
        let change = |number: usize| {
            let (method, body) = if *path == alarm {
                (Method::PATCH, json!({ "label": number.to_string() }))
            } else {
                let body = json!({ "workflow_definition_id": tenant.workflow, "priority": number });
                (Method::PUT, body)
            };
            let request = scene.ask(method, path, Some(&token)).header("if-match", &tag);
            answer(request.json(&body))
        };
        let answers = futures::future::join_all((1..=8).map(change)).await;
        let made = answers
            .iter()
            .filter(|(status, _)| *status == StatusCode::OK)
            .count();
        assert_eq!(made, 1, "{path}: {answers:?}");
        let delete = |tag: &str| {
            scene
                .ask(Method::DELETE, path, Some(&token))
                .header("if-match", tag)
        };
        assert_eq!(
            answer(delete(&tag)).await.0,
            StatusCode::PRECONDITION_FAILED,
            "{path}"
        );
        assert_eq!(answer(delete("*")).await.0, StatusCode::NO_CONTENT, "{path}");
    }
    for path in [
        format!("/v1/workflows/{}", tenant.workflow),
        format!("/v1/workspaces/{}", tenant.workspace),
    ] {
        let delete = |tag: &str| {
            scene
                .ask(Method::DELETE, &path, Some(&token))
                .header("if-match", tag)
        };
        assert_eq!(
            answer(delete("\"x\"")).await.0,
            StatusCode::PRECONDITION_FAILED,
            "{path}"
        );
        assert_eq!(answer(delete("*")).await.0, StatusCode::NO_CONTENT, "{path}");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_changes_and_deletes_only_what_it_has_seen() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(0, ENDLESS).await;
    alarm_and_trigger(&scene, tenant).await;
    let (client, place) = (scene.admin().await, wire::TriggerPlace::default());
    let look = || client.with_tag(async |client| client.trigger("shop", "paid", &place).await);
    let change = |priority| wire::TriggerChange {
        workflow_definition_id: tenant.workflow,
        payload_schema: None,
        priority: Some(priority),
    };
    let (_, tag) = look().await.unwrap();
    let first = client.only_if(&tag.unwrap()).unwrap();

    let changed = first
        .put_trigger("shop", "paid", &place, &change(1))
        .await
        .unwrap();
    assert_eq!(changed.priority, 1);
    let late = first.put_trigger("shop", "paid", &place, &change(2)).await;
    assert!(matches!(late, Err(Error::Precondition(_))), "{late:?}");
    let late = first.delete_trigger("shop", "paid", &place).await;
    assert!(matches!(late, Err(Error::Precondition(_))), "{late:?}");

    let (seen, tag) = look().await.unwrap();
    assert_eq!(seen.priority, 1);
    let second = client.only_if(&tag.unwrap()).unwrap();
    second.delete_trigger("shop", "paid", &place).await.unwrap();
    assert!(client.only_if("no\ntag").is_err());
}
