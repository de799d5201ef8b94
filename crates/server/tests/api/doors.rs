//! The doors that need no token, and what they must not show.

use reqwest::{Method, StatusCode};
use stationmaster_core::access::Role;

use crate::scene::{Scene, answer, http, launch, problem};
use crate::support::TestDatabase;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn liveness_readiness_metrics_pages_and_the_document_need_no_token() {
    let scene = Scene::new().await;
    for (path, holds) in [
        ("/livez", "alive"),
        ("/readyz", "ready"),
        ("/metrics", "# TYPE"),
        ("/", "<title>Stationmaster"),
        ("/docs", "<title>Stationmaster: HTTP API"),
        ("/v1/openapi.json", "\"openapi\":\"3.1.0\""),
    ] {
        let response = scene.ask(Method::GET, path, None).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let text = response.text().await.unwrap();
        assert!(text.contains(holds), "{path}: {text}");
        let outside = text.matches("https://").count() + text.matches("src=\"http").count();
        assert!(
            path.starts_with("/v1") || outside == 0,
            "{path} asks somebody else for something"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_its_engine_says_which_part_is_not_ready() {
    let database = TestDatabase::new().await;
    let settings = [("ENGINE", "temporal"), ("TEMPORAL__ADDRESS", "127.0.0.1:1")];
    let server = launch(&database, &settings).start_listening().await;
    let url = format!("http://{}/readyz", server.address().unwrap());
    let (status, body) = answer(http().get(url)).await;
    assert_eq!(
        (status, problem(&body)),
        (StatusCode::SERVICE_UNAVAILABLE, "not-ready")
    );
    assert!(
        body["errors"][0]["detail"]
            .as_str()
            .unwrap()
            .contains("engine temporal"),
        "{body}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_ask_for_a_token_where_they_should() {
    let scene = Scene::with(&[("HTTP__PROTECT_METRICS", "true")]).await;
    assert_eq!(
        answer(scene.ask(Method::GET, "/metrics", None)).await.0,
        StatusCode::UNAUTHORIZED
    );
    let token = scene.token(Role::Viewer, None).await;
    assert_eq!(
        answer(scene.ask(Method::GET, "/metrics", Some(&token))).await.0,
        StatusCode::OK
    );
}
