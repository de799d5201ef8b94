//! The doors that need no token, and what they must not show.

use reqwest::{Method, StatusCode};
use stationmaster_core::access::Role;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;

use crate::scene::{Scene, answer, http, launch, problem};
use crate::support::{TestDatabase, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn liveness_readiness_metrics_pages_and_the_document_need_no_token() {
    let scene = Scene::new().await;
    for (path, holds) in [
        ("/livez", "alive"),
        ("/readyz", "ready"),
        ("/healthz", "ready"),
        ("/metrics", "# TYPE"),
        ("/sign-in", "<title>Sign in · Stationmaster"),
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_its_answers_loses_its_connection() {
    let scene = Scene::new().await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(scene.address.parse().unwrap()).await.unwrap();
    let request = format!("GET /v1/openapi.json HTTP/1.1\r\nhost: {}\r\n\r\n", scene.address);
    // More than any buffer on the way takes.
    let requests = request.repeat(500);
    let size = scene
        .ask(Method::GET, "/v1/openapi.json", None)
        .send()
        .await
        .unwrap();
    assert!(size.bytes().await.unwrap().len() * 500 > 20_000_000);
    let _ = tokio::time::timeout(
        std::time::Duration::from_secs(1),
        stream.write_all(requests.as_bytes()),
    )
    .await;
    // A connection that is there takes a byte more, or makes us wait; one that is gone refuses it.
    eventually("the connection is gone", async || {
        let write = tokio::time::timeout(std::time::Duration::from_millis(100), stream.write_all(b"x"));
        write.await.is_ok_and(|written| written.is_err())
    })
    .await;
    assert_eq!(
        answer(scene.ask(Method::GET, "/livez", None)).await.0,
        StatusCode::OK
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_not_ready_on_older_tables_and_stays_ready_when_newer_ones_come() {
    let scene = Scene::new().await;
    let run = async |statement: &'static str| {
        sqlx::raw_sql(statement)
            .execute(&scene.database.pool)
            .await
            .unwrap();
    };
    run(
        "create table public.put_aside as select * from stationmaster_internal._sqlx_migrations;
         delete from stationmaster_internal._sqlx_migrations where version > 1",
    )
    .await;
    eventually("it says that the tables are too old", async || {
        let (status, body) = scene.server.readiness().await;
        status == 503 && body.contains("stationmaster migrate")
    })
    .await;
    run("truncate stationmaster_internal._sqlx_migrations;
         insert into stationmaster_internal._sqlx_migrations select * from public.put_aside;
         insert into stationmaster_internal._sqlx_migrations (version, description, success, checksum, execution_time)
         values (9000, 'to come', true, 'x', 1);
         update stationmaster_internal.schema_parts set checksum = sha256('to come')")
        .await;
    eventually("it is ready on newer tables", async || {
        scene.server.readiness().await.0 == 200
    })
    .await;
}
