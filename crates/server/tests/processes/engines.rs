//! Servers whose settings lead to another Temporal than the one on record.

use std::path::Path;
use std::time::Duration;

use crate::support::{DevServer, ENDLESS, Launch, Process, Temporal, TestDatabase, eventually, free_port};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_another_namespace_are_refused_and_harm_nothing_even_when_they_are_alone() {
    let database = TestDatabase::new().await;
    let (right, wrong) = (Temporal::shared().await, Temporal::shared().await);
    let workflow = database.workflow(4, ENDLESS).await;
    let launch = |temporal: &Temporal| {
        Launch::on(&database)
            .temporal(&temporal.address, &temporal.namespace)
            .with("EXECUTIONS__RECONCILE_INTERVAL", "1s")
    };
    let mut server = launch(&right).start_ready().await;
    database.enqueue(workflow, 6).await;
    database.until_count("RUNNING", 4).await;
    for _ in 0..2 {
        let mut refused = launch(&wrong).start();
        let (status, _) = refused.ended().await;
        assert_eq!(status.code(), Some(4), "{}", refused.log());
        for words in [
            &*right.namespace,
            &*wrong.namespace,
            "stationmaster engine change",
        ] {
            assert!(refused.log().contains(words), "{words}: {}", refused.log());
        }
    }
    // Without the right server too: nobody is there to contradict.
    server.kill();
    let mut refused = launch(&wrong).start();
    refused.ended().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(database.count("RUNNING").await, 4);
    assert_eq!(wrong.runs().await, [], "nothing was started there");
    let _server = launch(&right).start_ready().await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(database.count("RUNNING").await, 4);
    assert_eq!(right.open().await.len(), 4, "and nothing was ended here");
    database.assert_counters_agree().await;
}

/// A cluster at this port; with a file it is the one that was there with that file before.
async fn cluster(port: u16, file: Option<&Path>) -> DevServer {
    let file = file.map(Path::to_owned);
    let start = move || DevServer::start(port, file.as_deref());
    tokio::task::spawn_blocking(start).await.unwrap()
}

/// Waits until the server is not ready, for this reason.
async fn until_it_says(server: &Process, reason: &str) {
    eventually(&format!("it says: {reason}"), async || {
        let (status, words) = server.readiness().await;
        status == 503 && words.contains(reason)
    })
    .await;
}

/// Both clusters have a namespace of the same name. Of three servers one is sent to the other cluster; then the right one is emptied under
/// the two that are left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_three_servers_none_ends_frees_or_starts_anything_on_another_cluster_or_an_emptied_one() {
    let database = TestDatabase::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("temporal.db");
    let (port, other_port) = (free_port(), free_port());
    let right_server = cluster(port, Some(&file)).await;
    let right = Temporal::of(&right_server).await;
    let workflow = database.workflow(4, ENDLESS).await;
    let launch = |address: &str| {
        Launch::on(&database)
            .temporal(address, &right.namespace)
            .with("EXECUTIONS__RECONCILE_INTERVAL", "1s")
    };
    let mut two = [
        launch(&right.address).start_ready().await,
        launch(&right.address).start_ready().await,
    ];
    database.enqueue(workflow, 6).await;
    database.until_count("RUNNING", 4).await;
    let running = |rows: Vec<crate::support::Row>| {
        let rows = rows.into_iter().filter(|row| row.status == "RUNNING");
        let mut ids: Vec<_> = rows.map(|row| row.id).collect();
        ids.sort();
        ids
    };
    let before = running(database.rows().await);

    // Nobody is at its address when the third is started; then another cluster is.
    let third = launch(&format!("127.0.0.1:{other_port}")).start_listening().await;
    let other_server = cluster(other_port, None).await;
    let other = Temporal::named(&other_server.address, &right.namespace).await;
    until_it_says(&third, "not the engine on record").await;
    for server in &mut two {
        // Nobody is left to contradict.
        server.kill();
    }
    // Several rounds of recovery and of the reconciler.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(running(database.rows().await), before);
    assert_eq!(other.runs().await, [], "nothing was started there");
    assert_eq!(right.open().await.len(), 4, "and nothing was ended here");

    let two = [
        launch(&right.address).start_ready().await,
        launch(&right.address).start_ready().await,
    ];
    drop(right_server);
    let emptied_server = cluster(port, None).await;
    // There is something to start, and room for it.
    let more = "update stationmaster.workspaces set max_concurrent = 6 where id = $1";
    let more = sqlx::query(more).bind(workflow.0);
    more.execute(&database.pool).await.unwrap();
    // Whoever has to ask it something notices.
    eventually("it is said what was found", async || {
        let mut said = false;
        for server in &two {
            let (status, words) = server.readiness().await;
            said |= status == 503 && words.contains("another Temporal");
        }
        said
    })
    .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let emptied = Temporal::named(&emptied_server.address, &right.namespace).await;
    assert_eq!(running(database.rows().await), before);
    for temporal in [&other, &emptied] {
        assert_eq!(temporal.runs().await, [], "nothing was started there");
    }

    drop(emptied_server);
    let _right_server = cluster(port, Some(&file)).await;
    for server in &two {
        eventually("it is ready again", async || server.readiness().await.0 == 200).await;
    }
    database.until_count("RUNNING", 6).await;
    let right = Temporal::named(&right.address, &right.namespace).await;
    eventually("the others run there too", async || right.open().await.len() == 6).await;
    assert_eq!(right.runs().await.len(), 6, "one run each");
    let after = running(database.rows().await);
    assert!(
        before.iter().all(|id| after.contains(id)),
        "and those from before went on"
    );
    assert_eq!(database.attempts().await, 0);
    assert_eq!(other.runs().await, [], "nothing was started there");
    assert_eq!(third.readiness().await.0, 503);
    database.assert_counters_agree().await;
}
