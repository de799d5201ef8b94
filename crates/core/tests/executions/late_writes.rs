//! I1: a write with an old token changes nothing, and is counted.

use std::sync::Arc;

use stationmaster_core::engine::Engine;
use stationmaster_core::executions::Settings;
use stationmaster_core::id::{ExecutionId, ItemId};
use stationmaster_core::retry::Backoff;
use uuid::Uuid;

use crate::common::counting::wrong_counters;
use crate::common::listener::Listener;
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually, wait};

const FINISH: &str = include_str!("../../sql/executions/finish.sql");

/// Takes a claim away from its holder, as a recovery does after the lease has run out, and keeps it for an hour.
async fn take_over(testbed: &Testbed) -> (Uuid, i64) {
    let change = "update stationmaster_internal.executions_active
                  set holder = $1, token = nextval('stationmaster_internal.claim_token'),
                      lease_until = case when state = 'STARTING' then now() + interval '1 hour' end
                  returning token";
    let thief = Uuid::now_v7();
    let query = sqlx::query_scalar(change).bind(thief);
    let token = query
        .fetch_one(testbed.pool())
        .await
        .expect("one claim is there to be taken");
    (thief, token)
}

async fn still_held_by(testbed: &Testbed, item: ItemId, (thief, token): (Uuid, i64), state: &str) {
    let query =
        "select holder, token, state from stationmaster_internal.executions_active where item_id = $1";
    let query = sqlx::query_as::<_, (Uuid, i64, String)>(query).bind(item);
    let row = query.fetch_one(testbed.pool()).await.unwrap();
    assert_eq!(row, (thief, token, state.to_owned()));
}

/// A start that is under way when the claim is taken away ends in this mood.
async fn a_late_settlement_is_refused(mood: Mood) {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(mood);
    engine.hold();
    let retry = Backoff {
        base: std::time::Duration::from_millis(1),
        cap: std::time::Duration::from_millis(1),
    };
    let settings = Settings { retry, ..brisk() };
    let server = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the start is under way", async || engine.asked_in_all() == 1).await;
    let thief = take_over(&testbed).await;
    engine.let_go();
    let refused = async || server.metric("stationmaster_stale_writes_refused_total{write=\"settle\"}") == 1;
    eventually("the late write is counted", refused).await;
    still_held_by(&testbed, item, thief, "STARTING").await;
    assert_eq!(testbed.count("executions_finished").await, 0);
    assert_eq!(testbed.count("queue_pending").await, 0);
    assert_eq!(server.metric("queue_items_dispatched_total"), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_late_start_is_not_settled() {
    a_late_settlement_is_refused(Mood::Willing).await;
}

#[tokio::test]
async fn a_late_refusal_gives_nothing_back() {
    a_late_settlement_is_refused(Mood::Refuses).await;
}

#[tokio::test]
async fn a_late_failure_ends_nothing() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    testbed.max_attempts(tenant, 1).await;
    let engine = ScriptedEngine::new(Mood::Refuses);
    engine.hold();
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the start is under way", async || engine.asked_in_all() == 1).await;
    let thief = take_over(&testbed).await;
    engine.let_go();
    let refused = async || server.metric("stationmaster_stale_writes_refused_total{write=\"settle\"}") == 1;
    eventually("the late write is counted", refused).await;
    still_held_by(&testbed, item, thief, "STARTING").await;
    assert_eq!(server.metric("queue_items_failed_total{reason=\"refused\"}"), 0);
    server.stop().await;
}

#[tokio::test]
async fn the_close_of_a_run_that_was_taken_over_ends_nothing_and_is_counted() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(0.5)).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let thief = take_over(&testbed).await;
    eventually("the run is over for the engine", async || {
        server.open_runs().await.is_empty()
    })
    .await;
    // The close of a second run, told after the first, has been dealt with: so has the first.
    let other = testbed.tenant(1, &wait(0.0)).await;
    let other = testbed.enqueue(other).await;
    testbed.reaches(other, "COMPLETED").await;
    still_held_by(&testbed, item, thief, "RUNNING").await;
    let text = server.metrics.render();
    let counted = text
        .lines()
        .any(|line| line.starts_with("stationmaster_stale_writes_refused_total{") && line.ends_with(" 1"));
    assert!(counted, "the refused close was not counted:\n{text}");
    server.stop().await;
}

/// The engine's own record is fenced as well: an old claim writes no progress, and its run stops.
#[tokio::test]
async fn a_run_that_was_taken_over_writes_no_progress_and_stops() {
    let testbed = Testbed::new().await;
    let listener = Listener::start().await;
    let node =
        |id: &str, path: &str| serde_json::json!({"id": id, "type": "http", "url": listener.url(path)});
    let graph = serde_json::json!({"nodes": [node("a", "/first"), node("b", "/held"), node("c", "/last")]});
    let tenant = testbed.tenant(1, &graph.to_string()).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the second node is called", async || listener.calls("/held") == 1).await;
    testbed.reaches(item, "RUNNING").await;
    let thief = take_over(&testbed).await;
    testbed
        .run(&format!(
            "update stationmaster_internal.embedded_runs set token = {}",
            thief.1
        ))
        .await;
    listener.let_go();
    eventually("the run has stopped", async || {
        server.open_runs().await.is_empty()
    })
    .await;
    assert_eq!(listener.calls("/last"), 0);
    assert_eq!(
        testbed
            .number("select position::bigint from stationmaster_internal.embedded_runs")
            .await,
        1
    );
    still_held_by(&testbed, item, thief, "RUNNING").await;
    server.stop().await;
}

/// An end that has to wait for its row, because this change of it is under way, and what came of it.
async fn end_behind(
    change: &'static str,
    is_workspace_known: bool,
) -> (Testbed, Server, ExecutionId, Vec<(ExecutionId, bool)>) {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, &wait(600.0)).await;
    let server = testbed.server(Settings::default()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    let token = testbed
        .number("select token from stationmaster_internal.executions_active")
        .await;

    let mut other = testbed.connection().await;
    for statement in ["begin", change] {
        sqlx::query(statement).execute(&mut other).await.unwrap();
    }
    let pool = testbed.pool().clone();
    let workspaces = is_workspace_known.then(|| vec![tenant.0]);
    let end = tokio::spawn(async move {
        let nothing = || vec![None::<String>];
        let query = sqlx::query_as::<_, (ExecutionId, bool)>(FINISH)
            .bind(vec![execution])
            .bind(vec![Some(token)])
            .bind(vec!["DISPATCHED"])
            .bind(vec!["COMPLETED"])
            .bind(nothing())
            .bind(nothing())
            .bind(nothing())
            .bind(nothing())
            .bind(vec![0])
            .bind(nothing())
            .bind("a test")
            .bind(0.0_f64)
            .bind(workspaces)
            .bind(None::<i32>)
            .bind(None::<Vec<Uuid>>)
            .bind(nothing())
            .bind(nothing());
        query.fetch_all(&pool).await.unwrap()
    });
    eventually("the end waits for the row", async || {
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock' and query like '-- Ends executions%'";
        testbed.number(waiting).await == 1
    })
    .await;
    sqlx::query("commit").execute(&mut other).await.unwrap();
    (testbed, server, ExecutionId(execution), end.await.unwrap())
}

/// Somebody adopts the execution in the moment in which its former holder ends it: the end waits for the row, and then it is not
/// the one that it had seen.
#[tokio::test]
async fn an_end_that_waited_for_an_adoption_ends_nothing() {
    let adoption = "update stationmaster_internal.executions_active set token = nextval('stationmaster_internal.claim_token')";
    for (is_workspace_known, ended) in [(false, Some(false)), (true, None)] {
        let (testbed, server, execution, answer) = end_behind(adoption, is_workspace_known).await;
        // Looked up, it is to come again and will find another token; known, it is refused at once.
        let expected: Vec<_> = ended.map(|ended| (execution, ended)).into_iter().collect();
        assert_eq!(answer, expected);
        assert_eq!(testbed.count("executions_active").await, 1);
        assert_eq!(testbed.count("executions_finished").await, 0);
        let active = "select active::bigint from stationmaster_internal.workspace_capacity";
        assert_eq!(testbed.number(active).await, 1, "its slot stays taken");
        server.stop().await;
    }
}

/// The run is over before its start is written down: the end waits for the settlement, and the changed row is still its own.
#[tokio::test]
async fn an_end_that_waited_for_a_settlement_ends_it() {
    let settlement = "update stationmaster_internal.executions_active set dispatched_at = now()";
    for is_workspace_known in [false, true] {
        let (testbed, server, execution, answer) = end_behind(settlement, is_workspace_known).await;
        assert_eq!(answer, [(execution, true)]);
        assert_eq!(testbed.count("executions_active").await, 0);
        assert_eq!(testbed.count("executions_finished").await, 1);
        assert_eq!(wrong_counters(&testbed).await, []);
        server.stop().await;
    }
}

/// After a failover that lost commits, the sequence gives a token a second time.
async fn a_token_that_was_given_twice_is_refused(mood: Mood) {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(mood);
    engine.hold();
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the start is under way", async || engine.asked_in_all() == 1).await;
    let change = "update stationmaster_internal.executions_active
                  set holder = $1, lease_until = now() + interval '1 hour' returning token";
    let other = Uuid::now_v7();
    let query = sqlx::query_scalar(change).bind(other);
    let token: i64 = query.fetch_one(testbed.pool()).await.unwrap();
    engine.let_go();
    let refused = async || server.metric("stationmaster_stale_writes_refused_total{write=\"settle\"}") == 1;
    eventually("the write is refused", refused).await;
    still_held_by(&testbed, item, (other, token), "STARTING").await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn a_start_under_a_token_that_another_holder_has_too_is_not_settled() {
    a_token_that_was_given_twice_is_refused(Mood::Willing).await;
}

#[tokio::test]
async fn a_claim_under_a_token_that_another_holder_has_too_is_not_given_back() {
    a_token_that_was_given_twice_is_refused(Mood::Refuses).await;
}

#[tokio::test]
async fn an_end_under_a_token_that_another_holder_has_too_ends_nothing() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(0.5)).await;
    let server = testbed.server(brisk()).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let other = Uuid::now_v7();
    let change = "update stationmaster_internal.executions_active set holder = $1 returning token";
    let query = sqlx::query_scalar(change).bind(other);
    let token: i64 = query.fetch_one(testbed.pool()).await.unwrap();
    let refused = async || server.metric("stationmaster_stale_writes_refused_total{write=\"close\"}") == 1;
    eventually("the end is refused", refused).await;
    still_held_by(&testbed, item, (other, token), "RUNNING").await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}
