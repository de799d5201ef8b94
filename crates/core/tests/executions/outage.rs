//! The engine is away: nothing is spent on it, nothing is lost, and work goes on as soon as it is back.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::Engine;

use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually, within};

#[tokio::test]
async fn an_outage_spends_no_attempts_and_work_goes_on_when_it_ends() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    let first = testbed.enqueue(tenant).await;
    testbed.reaches(first, "RUNNING").await;

    engine.feel(Mood::Away);
    let items = testbed.enqueue_many(tenant, 15).await;
    eventually("the breaker is open", async || {
        server.metric("stationmaster_engine_breaker_open") == 1
    })
    .await;
    eventually("nothing is in the servers' hands", async || {
        testbed
            .number("select count(*) from stationmaster_internal.executions_active where state = 'STARTING'")
            .await
            == 0
    })
    .await;
    assert!(server.metric("stationmaster_queue_items_released_total") > 0);
    for item in &items {
        let waiting = testbed.item(*item).await;
        assert_eq!(
            (
                waiting.status.as_str(),
                waiting.attempt_count,
                waiting.recovery_count
            ),
            ("PENDING", 0, 0)
        );
    }
    assert!(
        !server.station.readiness().problems.is_empty(),
        "a server without its engine is not ready"
    );

    engine.feel(Mood::Willing);
    let running = "select count(*) from stationmaster_internal.executions_active where state = 'RUNNING'";
    let back = async || testbed.number(running).await == 16;
    within(Duration::from_secs(5), "everything runs after the outage", back).await;
    let spent = "select coalesce(max(attempts) + max(recoveries), 0)::bigint from stationmaster_internal.executions_active";
    assert_eq!(testbed.number(spent).await, 0);
    assert_eq!(server.metric("stationmaster_engine_breaker_open"), 0);
    assert!(server.station.readiness().problems.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn while_the_engine_is_away_nothing_is_claimed() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Away);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    eventually("the breaker is open", async || {
        server.metric("stationmaster_engine_breaker_open") == 1
    })
    .await;
    let items = testbed.enqueue_many(tenant, 5).await;
    let token = "select last_value from stationmaster_internal.claim_token";
    let before = testbed.number(token).await;
    // Several polls long.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(testbed.number(token).await, before, "no claim was made");
    assert_eq!(engine.asked_in_all(), 0);
    engine.feel(Mood::Willing);
    for item in items {
        testbed.reaches(item, "RUNNING").await;
    }
    server.stop().await;
}
