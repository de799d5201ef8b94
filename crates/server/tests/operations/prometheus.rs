//! A real Prometheus that scrapes a real server: the dashboard's queries are answered, and alerts fire.

use std::process::{Child, Command, Stdio};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;

use crate::scene::{Scene, repository_file, repository_path, request};
use crate::support::{eventually, free_port, setting};

/// Ends with the value.
struct Prometheus {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Scrapes this server every second, with our alerts.
    async fn scraping(server: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let shipped = repository_file("ops/prometheus/prometheus.yml");
        let config = shipped
            .replace("15s", "1s")
            .replace(
                "- alerts.yml",
                &format!("- {}", repository_path("ops/prometheus/alerts.yml")),
            )
            .replace("stationmaster:7373", server);
        assert!(config.contains(server) && !config.contains("15s"), "{config}");
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let child = Command::new(setting("STATIONMASTER_TEST_PROMETHEUS"))
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus runs");
        let prometheus = Self {
            child,
            address,
            _folder: folder,
        };
        eventually("Prometheus listens", async || {
            tokio::net::TcpStream::connect(&prometheus.address).await.is_ok()
        })
        .await;
        eventually("it has scraped the server", async || {
            prometheus
                .ask("count_over_time(up[1m]) > 3 and up == 1")
                .await
                .is_ok_and(|found| found > 0)
        })
        .await;
        prometheus
    }

    /// How many samples answer a query; what is wrong with it otherwise.
    async fn ask(&self, query: &str) -> Result<usize, String> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let path = format!("/api/v1/query?query={query}");
        let (_, _, body) = request(&self.address, "GET", &path, "", &[]).await;
        let answer: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
        match answer["data"]["result"].as_array() {
            Some(samples) => Ok(samples.len()),
            None => Err(body),
        }
    }
}

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
    let prometheus = Prometheus::scraping(&scene.address).await;
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
        let firing = format!("ALERTS{{alertname=\"Stationmaster{alert}\", alertstate=\"firing\"}}");
        eventually(&format!("{alert} fires"), async || {
            prometheus.ask(&firing).await.unwrap() > 0
        })
        .await;
    }
    for alert in [
        "LimitOvershoot",
        "NotReady",
        "Down",
        "DispatchStalled",
        "EngineAway",
    ] {
        let firing = format!("ALERTS{{alertname=\"Stationmaster{alert}\", alertstate=\"firing\"}}");
        assert_eq!(prometheus.ask(&firing).await, Ok(0), "{alert}");
    }
}
