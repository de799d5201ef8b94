//! A real Prometheus as a child process, with the configuration and the rules that we ship.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{eventually, free_port, setting};

/// Ends with the value.
pub(crate) struct Prometheus {
    child: Child,
    address: String,
    _folder: TempDir,
}

/// What differs from the configuration that we ship.
pub(crate) struct Scrapes<'a> {
    pub(crate) servers: &'a [&'a str],
    pub(crate) every: Duration,
    /// The rules, as text.
    pub(crate) rules: &'a str,
    /// Whether the servers speak TLS. Their authority is not asked: this is about when their certificates end.
    pub(crate) tls: bool,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Scrapes these servers, and has done so a few times.
    pub(crate) async fn start(scrapes: &Scrapes<'_>) -> Self {
        let folder = TempDir::new().unwrap();
        let (rules, file) = (
            folder.path().join("alerts.yml"),
            folder.path().join("prometheus.yml"),
        );
        std::fs::write(&rules, scrapes.rules).unwrap();
        std::fs::write(&file, configuration(scrapes)).unwrap();
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
            TcpStream::connect(&prometheus.address).await.is_ok()
        })
        .await;
        eventually("it has scraped the servers", async || {
            prometheus
                .ask("count_over_time(up[1m]) > 2 and up == 1")
                .await
                .is_ok_and(|found| found == scrapes.servers.len())
        })
        .await;
        prometheus
    }

    /// How many samples answer a query; what is wrong with it otherwise.
    pub(crate) async fn ask(&self, query: &str) -> Result<usize, String> {
        self.samples(query).await.map(|samples| samples.len())
    }

    async fn samples(&self, query: &str) -> Result<Vec<Value>, String> {
        let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
        let mut stream = TcpStream::connect(&self.address)
            .await
            .map_err(|error| error.to_string())?;
        // By the older version nobody answers in chunks.
        let request = format!(
            "GET /api/v1/query?query={query} HTTP/1.0\r\nhost: {}\r\n\r\n",
            self.address
        );
        stream
            .write_all(request.as_bytes())
            .await
            .map_err(|error| error.to_string())?;
        let mut answer = String::new();
        stream
            .read_to_string(&mut answer)
            .await
            .map_err(|error| error.to_string())?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let mut answer: Value = serde_json::from_str(body).map_err(|error| format!("{error}: {body}"))?;
        match answer["data"]["result"].take() {
            Value::Array(samples) => Ok(samples),
            _ => Err(body.to_owned()),
        }
    }

    /// The alerts that fire now, without the name that all of them begin with.
    pub(crate) async fn firing(&self) -> BTreeSet<String> {
        let samples = self.samples("ALERTS{alertstate=\"firing\"}").await.unwrap();
        let names = samples
            .iter()
            .filter_map(|sample| sample["metric"]["alertname"].as_str());
        names
            .filter_map(|name| name.strip_prefix("Stationmaster"))
            .map(str::to_owned)
            .collect()
    }
}

/// The configuration that we ship, with these servers.
fn configuration(scrapes: &Scrapes<'_>) -> String {
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/prometheus/prometheus.yml");
    let shipped = std::fs::read_to_string(shipped).unwrap();
    let servers = scrapes.servers.join("', '");
    let mut config = shipped
        .replace("15s", &format!("{}s", scrapes.every.as_secs()))
        .replace("stationmaster:7373", &servers);
    if scrapes.tls {
        config = config.replace(
            "    static_configs:",
            "    scheme: https\n    tls_config: { insecure_skip_verify: true }\n    static_configs:",
        );
    }
    assert!(
        config.contains(&servers) && !config.contains("15s") && config.contains("- alerts.yml"),
        "{config}"
    );
    config
}
