//! An item that kills servers.

use crate::support::{ENDLESS, Launch, Proxy, Temporal, TestDatabase, eventually};

const MARK: &str = "the-poisoned-one";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_item_that_is_lost_with_its_server_every_time_is_put_aside_and_the_others_run() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::with_poison(&temporal.address, Some(MARK)).await;
    let (workspace, definition) = database.workflow(10, ENDLESS).await;
    let launch = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .with("EXECUTIONS__MAX_RECOVERIES", "2");
    let input = format!(r#"{{"mark": "{MARK}"}}"#);
    let mut server = launch.start_ready().await;
    database.enqueue_with(workspace, definition, 1, &input).await;
    for bites in 1..=2 {
        eventually("the poison is sent", async || proxy.bites() >= bites).await;
        server.kill();
        server = launch.start_ready().await;
    }
    database.enqueue((workspace, definition), 3).await;

    database.until_count("FAILED", 1).await;
    database.until_count("RUNNING", 3).await;
    let rows = database.rows().await;
    let failed = rows.iter().find(|row| row.status == "FAILED").unwrap();
    assert_eq!(failed.reason.as_deref(), Some("quarantined"));
    assert_eq!((failed.attempts, proxy.bites()), (0, 2), "{failed:?}");
    temporal
        .assert_one_run_each(
            rows.iter()
                .filter(|row| row.status == "RUNNING")
                .map(|row| row.id),
        )
        .await;
    database.assert_counters_agree().await;
}
