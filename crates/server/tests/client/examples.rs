//! Each example, run.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::StatusCode;
use serde_json::json;
use sha2::Sha256;
use stationmaster_client::wire::ExecutionStatus;
use stationmaster_core::alarms::keys;
use stationmaster_core::wake::signature::Secret;
use stationmaster_core::wake::targets::Recipient;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::scene::{Scene, http};
use crate::support::{SHORT, Temporal, eventually};
use crate::temporal_worker::{Settings, serve};
use crate::{cron_alarm, enqueue, hold_a_lock, receive_wakes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_enqueues_and_learns_of_the_end() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(1, SHORT).await;
    let client = scene.admin().await;
    let ended = enqueue::run(&client, tenant.workspace.into(), tenant.workflow.into())
        .await
        .unwrap();
    assert_eq!(ended.status, ExecutionStatus::Completed);
    assert_eq!(ended.input.unwrap().get(), r#"{"night": 1}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_works_only_while_it_holds_the_lock() {
    let scene = Scene::new().await;
    let client = scene.admin().await;
    let mut tokens = Vec::new();
    let first = hold_a_lock::run(&client, "night", async |token| {
        tokens.push(token);
        let second = hold_a_lock::run(&client, "night", async |_| panic!("two at once")).await;
        assert!(!second.unwrap(), "somebody has it");
    })
    .await;
    assert!(first.unwrap());
    let third = hold_a_lock::run(&client, "night", async |token| tokens.push(token)).await;
    assert!(third.unwrap());
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_sets_one_cron_alarm_and_its_wakes_are_believed_by_the_receiver() {
    let master = Secret::random();
    let secret = keys::first(&master, &Recipient::router()).reveal();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let router = {
        let taken = Arc::clone(&taken);
        receive_wakes::router(&secret, move |wake| taken.lock().unwrap().push(wake.clone())).unwrap()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let settings = [
        ("ALARMS__ROUTER_URL", url.as_str()),
        ("ALARMS__SIGNING_SECRET", &master.reveal()),
    ];
    let scene = Scene::with(&settings).await;
    let tenant = scene.tenant(1, SHORT).await;
    let client = scene.admin().await;

    let spring = cron_alarm::preview(&client, "30 2 * * *", "Europe/Zurich")
        .await
        .unwrap();
    assert_eq!(spring.len(), 10);
    let alarm = cron_alarm::set(&client, tenant.workspace, "* * * * * *", "UTC")
        .await
        .unwrap();
    let again = cron_alarm::set(&client, tenant.workspace, "* * * * * *", "UTC")
        .await
        .unwrap();
    assert_eq!(alarm.id, again.id, "the same request makes no second one");
    let first = cron_alarm::first_fire(&client, alarm.id).await.unwrap();
    assert_eq!(first.answer_status, Some(204));
    client.cancel_alarm(alarm.id).await.unwrap();
    let wakes = taken.lock().unwrap().clone();
    let wake = wakes
        .iter()
        .find(|wake| wake.scheduled_for == first.scheduled_for);
    let wake = wake.unwrap_or_else(|| panic!("{first:?}: {wakes:?}"));
    assert_eq!((wake.workspace_id, wake.alarm_id), (tenant.workspace, alarm.id));
    assert_eq!(wake.message.as_deref(), Some("Time for the stand-up"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_worker_runs_what_a_client_enqueues_on_temporal() {
    let temporal = Temporal::shared().await;
    let settings = [
        ("ENGINE", "temporal"),
        ("TEMPORAL__ADDRESS", temporal.address.as_str()),
        ("TEMPORAL__NAMESPACE", &temporal.namespace),
        ("EXECUTIONS__TASK_QUEUE", &temporal.namespace),
    ];
    let scene = Scene::with(&settings).await;
    let graph = r#"{"nodes": [{"id": "b", "type": "sql"}, {"id": "a", "type": "sql"}], "edges": [{"from": "a", "to": "b"}]}"#;
    let tenant = scene.tenant(1, graph).await;
    let worker = Settings {
        address: temporal.address.clone(),
        namespace: temporal.namespace.clone(),
        task_queue: temporal.namespace.clone(),
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    // The worker's future cannot move between threads, so it has one of its own.
    let working = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(serve(worker, async {
            let _ = stopped.await;
        }))
    });
    let client = scene.admin().await;
    let ended = enqueue::run(&client, tenant.workspace.into(), tenant.workflow.into())
        .await
        .unwrap();
    assert_eq!(ended.status, ExecutionStatus::Completed, "{:?}", ended.error);
    let output: serde_json::Value = serde_json::from_str(ended.output.unwrap().get()).unwrap();
    assert_eq!(output, json!({ "nodes": ["a", "b"], "input": { "night": 1 } }));
    stop.send(()).unwrap();
    eventually("the worker leaves", async || working.is_finished()).await;
    working.join().unwrap().unwrap();
}

#[tokio::test]
async fn the_example_takes_each_wake_once_and_believes_no_stranger() {
    let key = rand::random::<[u8; 32]>();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let router = {
        let taken = Arc::clone(&taken);
        let secret = format!("whsec_{}", STANDARD.encode(key));
        receive_wakes::router(&secret, move |wake| taken.lock().unwrap().push(wake.attempt)).unwrap()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/internal/wake", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let send = async |key: &[u8], id: &str, attempt: u32| {
        let body = json!({ "workspace_id": Uuid::now_v7(), "user_id": "u", "conversation_id": null, "message": "time to go", "payload": null,
            "alarm_id": Uuid::now_v7(), "scheduled_for": "2026-03-01T12:00:00Z", "attempt": attempt, "origin": "schedule" })
        .to_string();
        let sent = jiff::Timestamp::now().as_second().to_string();
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(format!("{id}.{sent}.{body}").as_bytes());
        let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        let request = http().post(&url).body(body).header("webhook-id", id);
        let request = request
            .header("webhook-timestamp", sent)
            .header("webhook-signature", signature);
        request.send().await.unwrap().status()
    };
    assert_eq!(send(&key, "a:1", 1).await, StatusCode::NO_CONTENT);
    assert_eq!(
        send(&key, "a:1", 2).await,
        StatusCode::NO_CONTENT,
        "the same wake again"
    );
    assert_eq!(send(&key, "a:2", 3).await, StatusCode::NO_CONTENT);
    assert_eq!(send(b"another secret", "a:3", 4).await, StatusCode::UNAUTHORIZED);
    assert_eq!(*taken.lock().unwrap(), [1, 3]);
}
