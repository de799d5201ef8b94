//! Runs of the embedded engine survive their server: another goes on from the first unfinished node.

use std::time::Duration;

use sqlx::Connection as _;
use stationmaster_core::executions::Settings;
use stationmaster_core::id::ItemId;
use stationmaster_core::presence::Presence;

use crate::common::counting::wrong_counters;
use crate::common::listener::Listener;
use crate::common::server::Mortal;
use crate::common::{Server, Testbed, brisk, eventually, wait};

fn short_lived() -> Presence {
    Presence::with_lease("mortal", Duration::from_millis(500))
}

fn three_calls(listener: &Listener) -> String {
    let node = |id: &str, path: &str| serde_json::json!({"id": id, "type": "http", "method": "POST", "url": listener.url(path), "body": {"n": 1}});
    serde_json::json!({
        "nodes": [node("last", "/last"), node("first", "/first"), node("middle", "/held")],
        "edges": [{"from": "first", "to": "middle"}, {"from": "middle", "to": "last"}],
    })
    .to_string()
}

#[tokio::test]
async fn a_run_calls_its_nodes_in_order_and_keeps_their_answers() {
    let testbed = Testbed::new().await;
    let listener = Listener::start().await;
    let tenant = testbed.tenant(1, &three_calls(&listener)).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the middle is called", async || listener.calls("/held") == 1).await;
    assert_eq!((listener.calls("/first"), listener.calls("/last")), (1, 0));
    listener.let_go();
    testbed.reaches(item, "COMPLETED").await;
    assert_eq!(listener.calls("/last"), 1);
    let output = testbed.execution(item).await.output.unwrap();
    let output: serde_json::Value = serde_json::from_str(output.get()).unwrap();
    assert_eq!(
        output,
        serde_json::json!({"first": {"status": 204}, "middle": {"status": 204}, "last": {"status": 204}})
    );
    server.stop().await;
}

#[tokio::test]
async fn after_a_crash_a_finished_node_is_not_called_again_and_the_unfinished_one_is() {
    let testbed = Testbed::new().await;
    let listener = Listener::start().await;
    let tenant = testbed.tenant(1, &three_calls(&listener)).await;
    let mortal = Mortal::start(&testbed.url, brisk(), short_lived()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the middle is called", async || listener.calls("/held") == 1).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    mortal.kill();
    listener.let_go();

    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    let ended = testbed.execution(item).await;
    assert_eq!((ended.id, ended.recoveries), (execution, 1));
    let calls = [
        listener.calls("/first"),
        listener.calls("/held"),
        listener.calls("/last"),
    ];
    assert_eq!(calls, [1, 2, 1]);
    assert!(
        ended.output.unwrap().get().contains("first"),
        "the answer of the node that had finished is kept"
    );
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

/// A long wait that had begun goes on; it does not begin again.
#[tokio::test]
async fn after_a_crash_a_long_wait_goes_on_where_it_was() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(3600.0)).await;
    let mortal = Mortal::start(&testbed.url, brisk(), short_lived()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    eventually("the wait is remembered", async || {
        testbed.count("embedded_runs").await == 1
    })
    .await;
    mortal.kill();
    // An hour goes by.
    testbed
        .run("update stationmaster_internal.embedded_runs set wake_at = wake_at - interval '1 hour'")
        .await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

async fn is_over(testbed: &Testbed, item: ItemId) {
    testbed.reaches(item, "COMPLETED").await;
    assert_eq!(testbed.count("executions_active").await, 0);
    assert_eq!(wrong_counters(testbed).await, []);
}

/// Holds a server's heartbeat back until its lease has run out, for the database and for itself: as when the process was
/// stopped, or cut off. What it has in memory is still there.
async fn lapse(testbed: &Testbed, server: &Server) {
    let mut connection = testbed.connection().await;
    let mut hold = connection.begin().await.unwrap();
    let query = "select from stationmaster_internal.servers where id = $1 for update";
    sqlx::query(query)
        .bind(server.id())
        .execute(&mut *hold)
        .await
        .unwrap();
    let presence = server.station.presence();
    eventually("it knows that its lease has run out", async || {
        presence.holder().is_none()
    })
    .await;
    // The heartbeat that is being held back was sent in time; it must be too old as well.
    let over = "select count(*) from stationmaster_internal.servers where id = $1 and lease_until < clock_timestamp() - interval '1 s'";
    let over = || {
        sqlx::query_scalar::<_, i64>(over)
            .bind(server.id())
            .fetch_one(testbed.pool())
    };
    eventually("it has been over for long", async || over().await.unwrap() == 1).await;
    hold.rollback().await.unwrap();
}

/// A server that lapsed comes back under a new id. Its old runs are nobody's: they must be taken up again.
#[tokio::test]
async fn a_server_that_lapsed_and_came_back_does_not_lose_its_runs() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(2.5)).await;
    let server = Server::start_as(&testbed.url, brisk(), short_lived()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let old = server.id();
    lapse(&testbed, &server).await;
    eventually("it has a new id", async || server.id() != old).await;
    is_over(&testbed, item).await;
    server.stop().await;
}

/// A run that another server has taken over may be in the middle of a call; it must not go on to the next one.
#[tokio::test]
async fn a_run_that_was_taken_over_makes_no_further_calls() {
    let testbed = Testbed::new().await;
    let listener = Listener::start().await;
    let tenant = testbed.tenant(1, &three_calls(&listener)).await;
    let first = Server::start_as(&testbed.url, brisk(), short_lived()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the middle is called", async || listener.calls("/held") == 1).await;
    testbed.reaches(item, "RUNNING").await;
    lapse(&testbed, &first).await;
    let second = testbed.server(brisk()).await;
    eventually("the middle is called again", async || {
        listener.calls("/held") == 2
    })
    .await;
    listener.let_go();
    is_over(&testbed, item).await;
    assert_eq!((listener.calls("/first"), listener.calls("/last")), (1, 1));
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_node_that_answers_with_an_error_fails_the_execution_and_names_itself() {
    let testbed = Testbed::new().await;
    let graph = r#"{"nodes": [{"id": "call", "type": "http", "url": "http://127.0.0.1:1/nobody-listens"}]}"#;
    let tenant = testbed.tenant(1, graph).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "FAILED").await;
    let error = testbed.execution(item).await.error.unwrap();
    let error: serde_json::Value = serde_json::from_str(error.get()).unwrap();
    assert_eq!(error["node"], "call");
    // Whom it called and why that failed come first: lists show the beginning.
    let message = error["message"].as_str().unwrap();
    let whom = "http://127.0.0.1:1/nobody-listens did not answer: ";
    assert!(
        message.starts_with(whom) && message.contains("refused"),
        "{message}"
    );
    server.stop().await;
}

/// The server lives, its record says RUNNING, and the run is no more: its task fell over, or its close was lost with a commit.
#[tokio::test]
async fn a_run_that_is_gone_from_a_server_that_lives_is_found_and_begun_again() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(3600.0)).await;
    let settings = Settings {
        reconcile_interval: Duration::from_millis(200),
        ..brisk()
    };
    let server = testbed.server(settings).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    server.engine.abandon_runs();
    assert!(server.open_runs().await.is_empty());
    eventually("it runs again", async || {
        let again = testbed.execution(item).await;
        again.recoveries == 1 && again.status.to_string() == "RUNNING"
    })
    .await;
    assert_eq!(server.open_runs().await.len(), 1);
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn a_wait_that_no_clock_can_tell_fails_and_frees_its_slot() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(1e13)).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "FAILED").await;
    let error = testbed.execution(item).await.error.unwrap();
    assert!(error.get().contains("a hundred years"), "{error}");
    server.stop().await;
}

/// An address, a name for it, and another way to write it.
#[tokio::test]
async fn a_node_does_not_call_what_has_no_public_address() {
    let testbed = Testbed::new().await;
    let listener = Listener::start().await;
    let here = listener.url("/inside");
    let port = here
        .split(':')
        .nth(2)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let server = Server::start_guarded(&testbed.url, brisk()).await;
    for url in [
        here,
        format!("http://localhost:{port}/inside"),
        format!("http://[::ffff:127.0.0.1]:{port}/inside"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let graph = serde_json::json!({"nodes": [{"id": "call", "type": "http", "url": url}]});
        let tenant = testbed.tenant(1, &graph.to_string()).await;
        let item = testbed.enqueue(tenant).await;
        testbed.reaches(item, "FAILED").await;
        let error = testbed.execution(item).await.error.unwrap();
        assert!(error.get().contains("executions.allow_targets"), "{url}: {error}");
    }
    assert_eq!(listener.calls("/inside"), 0);
    server.stop().await;
}
