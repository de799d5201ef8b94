//! Each example, run.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::StatusCode;
use serde_json::json;
use sha2::Sha256;
use stationmaster_client::wire::ExecutionStatus;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::scene::{Scene, http};
use crate::support::SHORT;
use crate::{enqueue, hold_a_lock, receive_wakes};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_enqueues_and_learns_of_the_end() {
    let scene = Scene::new().await;
    let tenant = scene.tenant(1, SHORT).await;
    let client = scene.admin().await;
    let ended = enqueue::run(&client, tenant.workspace, tenant.workflow)
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
        let body = json!({ "user_id": "u", "conversation_id": null, "message": "time to go", "payload": null,
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
