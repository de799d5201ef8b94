//! Temporal is away: from the start, or under load. No attempt is spent and nothing is lost.

use std::time::{Duration, Instant};

use crate::support::{DevServer, ENDLESS, Launch, Temporal, TestDatabase, eventually, free_port};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_temporal_items_wait_unspent_and_start_within_seconds_of_its_coming() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(5, ENDLESS).await;
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let mut server = Launch::on(&database)
        .temporal(&address, "default")
        .start_listening()
        .await;
    database.enqueue(workflow, 5).await;
    eventually("the server has asked for Temporal", async || {
        server.said("The engine is away") > 0
    })
    .await;
    let (status, body) = server.readiness().await;
    assert_eq!(status, 503);
    assert!(body.contains("the engine temporal is away"), "{body}");
    let waiting = "select count(*) from stationmaster.workflow_execution_queue where status = 'PENDING' and attempt_count = 0";
    assert_eq!(database.number(waiting).await, 5);
    assert!(database.rows().await.is_empty(), "nothing was claimed");

    let dev_server = tokio::task::spawn_blocking(move || DevServer::start(port, None))
        .await
        .unwrap();
    let _temporal = Temporal::of(&dev_server).await;
    let back = Instant::now();
    database.until_count("RUNNING", 1).await;
    let took = back.elapsed();
    println!("first start {took:?} after Temporal came up");
    assert!(took < Duration::from_secs(5), "{took:?}");
    database.until_count("RUNNING", 5).await;
    assert_eq!(database.attempts().await, 0);
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    server.assert_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporal_killed_under_load_and_started_again_spends_no_attempt_and_starts_everything_once() {
    let items = 400;
    let database = TestDatabase::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (port, file) = (free_port(), folder.path().join("temporal.db"));
    let start = move || DevServer::start(port, Some(&file));
    let again = start.clone();
    let dev_server = tokio::task::spawn_blocking(start).await.unwrap();
    let temporal = Temporal::of(&dev_server).await;
    let workflow = database.workflow(items, ENDLESS).await;
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("EXECUTIONS__START_CONCURRENCY", "8");
    let mut servers = [launch.start_ready().await, launch.start_ready().await];
    database.enqueue(workflow, items).await;
    database.until_count("RUNNING", 20).await;
    drop(dev_server);
    let before = database.count("RUNNING").await;
    assert!(
        before < i64::from(items),
        "it was killed under load, not after it"
    );
    for server in &servers {
        eventually("the server has noticed", async || {
            server.readiness().await.0 == 503
        })
        .await;
    }

    let _dev_server = tokio::task::spawn_blocking(again).await.unwrap();
    eventually("Temporal is back", async || temporal.is_there().await).await;
    let back = Instant::now();
    eventually("starts go on", async || database.count("RUNNING").await > before).await;
    println!(
        "{before} of {items} before the kill; first start {:?} after Temporal was back",
        back.elapsed()
    );
    assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
    database.until_count("RUNNING", i64::from(items)).await;
    let rows = database.rows().await;
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    assert_eq!(rows.iter().map(|row| row.attempts).sum::<i32>(), 0);
    for server in &mut servers {
        server.assert_alive();
    }
}
