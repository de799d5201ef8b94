//! Servers whose settings lead to another Temporal than the one on record.

use std::time::Duration;

use crate::support::{ENDLESS, Launch, Temporal, TestDatabase};

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
