//! Temporal away: at boot, and under load. Nothing is lost, and nobody gives up.

use std::time::{Duration, Instant};

use crate::line::{quick, send, story, trigger, until_routed};
use crate::support::{DevServer, Launch, Temporal, TestDatabase, eventually, free_port};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_boots_without_temporal_tries_on_and_dispatches_when_it_comes_and_again_after_it_was_gone()
 {
    let database = TestDatabase::new().await;
    trigger(&database).await;
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("temporal.db");
    let launch = quick(Launch::on(&database).temporal(&format!("127.0.0.1:{port}"), "line-0"));
    let server = launch.start_listening().await;
    send(&database, 20).await;
    eventually("readiness says that the engine is away", async || {
        let (status, body) = server.readiness().await;
        status == 503 && body.contains("the engine temporal is away")
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(
        story(&database).await,
        [""; 0],
        "nobody takes a dispatcher that it cannot run"
    );

    let started = file.clone();
    let temporal = tokio::task::spawn_blocking(move || DevServer::start(port, Some(&started)))
        .await
        .unwrap();
    let _namespace = Temporal::of(&temporal).await;
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    let began = Instant::now();
    until_routed(&database, 20).await;
    println!(
        "everything was routed {:?} after the server was ready",
        began.elapsed()
    );

    drop(temporal);
    eventually("readiness says that the engine is away", async || {
        server.readiness().await.0 == 503
    })
    .await;
    send(&database, 30).await;
    // A minute, as it takes to bring a service back.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let started = file.clone();
    let temporal = tokio::task::spawn_blocking(move || DevServer::start(port, Some(&started)))
        .await
        .unwrap();
    let began = Instant::now();
    until_routed(&database, 50).await;
    println!(
        "everything was routed {:?} after Temporal was started again",
        began.elapsed()
    );
    eventually("the server is ready again", async || {
        server.readiness().await.0 == 200
    })
    .await;
    let dead = "select count(*) from stationmaster_internal.signals_settled where status = 'DEAD'";
    assert_eq!(database.number(dead).await, 0);
    drop(temporal);
}
