//! A real Prometheus that scrapes a real server: the dashboard's queries are answered, and alerts fire.

use std::time::Duration;

use serde_json::Value;

use crate::scene::{Scene, repository_file};
use crate::support::eventually;
use crate::support::prometheus::{Prometheus, Scrapes};

/// The queries of the dashboard, with what Grafana puts in.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&repository_file("ops/grafana/stationmaster.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "1m"));
    queries.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_dashboard_is_answered_and_a_fault_makes_its_alert_fire() {
    let scene = Scene::new().await;
    let prometheus = Prometheus::start(&Scrapes {
        servers: &[&scene.address],
        every: Duration::from_secs(1),
        rules: &repository_file("ops/prometheus/alerts.yml"),
        tls: false,
    })
    .await;
    // After the first scrapes, so that what happens is seen to happen.
    scene.run_executions().await;
    scene.fire_alarms().await;
    scene.send_signals().await;
    scene.use_locks().await;
    let queries = queries();
    assert!(queries.len() > 80, "{}", queries.len());
    for query in queries {
        eventually(&format!("there is data for {query}"), async || {
            prometheus
                .ask(&query)
                .await
                .unwrap_or_else(|error| panic!("{query}: {error}"))
                > 0
        })
        .await;
    }
    for alert in ["DeadLetters", "ItemsFailed", "AlarmsExhausted"] {
        eventually(&format!("{alert} fires"), async || {
            prometheus.firing().await.contains(alert)
        })
        .await;
    }
    let firing = prometheus.firing().await;
    for alert in [
        "LimitOvershoot",
        "NotReady",
        "Down",
        "DispatchStalled",
        "EngineAway",
    ] {
        assert!(!firing.contains(alert), "{alert}");
    }
}
