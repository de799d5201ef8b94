//! What tenants share of a server: however many tokens one makes, and whatever it asks for, others are let in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use stationmaster_client::wire::EventQuery;
use stationmaster_core::access::Role;

use crate::scene::{ENDLESS, Scene, answer, problem};
use crate::support::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_with_many_tokens_leaves_streams_and_requests_to_others() {
    let scene = Scene::with(&[("HTTP__MAX_STREAMS", "4"), ("HTTP__MAX_IN_FLIGHT", "8")]).await;
    let (greedy, modest) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    let mut streams = Vec::new();
    let mut refused = 0;
    for _ in 0..4 {
        let token = scene.token(Role::Viewer, Some(greedy.workspace)).await;
        match scene.client(&token).events(&EventQuery::default(), None).await {
            Ok(stream) => streams.push(stream),
            Err(error) => {
                assert_eq!(error.problem().unwrap().name(), "overloaded");
                refused += 1;
            }
        }
    }
    assert_eq!((streams.len(), refused), (2, 2), "alone it has half of them");
    let token = scene.token(Role::Viewer, Some(modest.workspace)).await;
    let other = scene.client(&token).events(&EventQuery::default(), None).await;
    assert!(other.is_ok(), "{:?}", other.err());

    // Requests that wait for a row that somebody holds.
    let hold = scene
        .database
        .lock("update stationmaster.workspaces set name = name")
        .await;
    let path = format!("/v1/workspaces/{}/pause", greedy.workspace);
    let token = scene.token(Role::Admin, Some(greedy.workspace)).await;
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        waiting.spawn(answer(scene.ask(Method::POST, &path, Some(&token))));
    }
    let mut refused = 0;
    while refused < 4 {
        let (status, body) = waiting.join_next().await.unwrap().unwrap();
        assert_eq!(
            (status, problem(&body)),
            (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            "{body}"
        );
        refused += 1;
    }
    let token = scene.token(Role::Viewer, Some(modest.workspace)).await;
    let own = scene.ask(Method::GET, "/v1/tokens/self", Some(&token));
    assert_eq!(answer(own).await.0, StatusCode::OK);
    hold.rollback().await.unwrap();
    while let Some(done) = waiting.join_next().await {
        let (status, body) = done.unwrap();
        assert_eq!(status, StatusCode::OK, "{body}");
    }
}

/// With the connections that requests have by default, one of them is for lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_for_one_list_does_not_wait_for_all_those_of_another_tenant() {
    let scene = Scene::new().await;
    let (greedy, modest) = (scene.tenant(1, ENDLESS).await, scene.tenant(1, ENDLESS).await);
    let token = scene.token(Role::Admin, Some(greedy.workspace)).await;
    let another = scene.token(Role::Admin, Some(greedy.workspace)).await;
    let third = scene.token(Role::Admin, Some(modest.workspace)).await;
    let hold = scene
        .database
        .lock("lock table stationmaster.audit in access exclusive mode")
        .await;
    let served = Arc::new(AtomicUsize::new(0));
    let refused = Arc::new(AtomicUsize::new(0));
    let mut lists = tokio::task::JoinSet::new();
    for number in 0..80 {
        let token = if number % 2 == 0 { &token } else { &another };
        let request = scene.ask(Method::GET, "/v1/audit", Some(token));
        let (served, refused) = (Arc::clone(&served), Arc::clone(&refused));
        lists.spawn(async move {
            let (status, _) = answer(request).await;
            let count = if status.is_success() { &served } else { &refused };
            count.fetch_add(1, Ordering::SeqCst);
        });
    }
    // Of 64 who may wait in line it has half.
    eventually("no more are taken", async || refused.load(Ordering::SeqCst) == 48).await;
    let one = tokio::spawn(answer(scene.ask(Method::GET, "/v1/audit", Some(&third))));
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(!one.is_finished(), "it waits in line");
    hold.rollback().await.unwrap();
    assert_eq!(one.await.unwrap().0, StatusCode::OK);
    let before = served.load(Ordering::SeqCst);
    assert!(before < 16, "{before} of 32 lists of another came first");
    lists.join_all().await;
    assert_eq!(
        (served.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)),
        (32, 48)
    );
}
