//! Clocks and the data of time zones.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::runbook::Place;
use crate::support::{Launch, TestDatabase, setting};
use crate::trial::Watch;

/// Stands between a server and Prometheus, and makes the server's zone data as old as it is told.
struct Front {
    address: String,
    lies: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Front {
    async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let lies = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn({
            let lies = Arc::clone(&lies);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let (server, lies) = (server.clone(), lies.load(Ordering::Relaxed));
                    // Whoever goes away in the middle has its answer another time.
                    tokio::spawn(async move { answer(client, &server, lies).await.ok() });
                }
            }
        });
        Self { address, lies, task }
    }

    fn lie(&self, lies: bool) {
        self.lies.store(lies, Ordering::Relaxed);
    }
}

async fn answer(mut client: TcpStream, server: &str, lies: bool) -> std::io::Result<()> {
    let mut head = [0; 4096];
    let _ = client.read(&mut head).await?;
    let mut stream = TcpStream::connect(server).await?;
    stream
        .write_all(b"GET /metrics HTTP/1.0\r\nhost: a\r\n\r\n")
        .await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let told = body.lines().map(|line| match line.split_once("zone_data=\"") {
        Some((start, rest)) if lies => {
            format!("{start}zone_data=\"2020a{}", &rest[rest.find('"').unwrap()..])
        }
        None if lies && line.starts_with("stationmaster_zone_data_year ") => {
            "stationmaster_zone_data_year 2020".to_owned()
        }
        _ => line.to_owned(),
    });
    let body: String = told.map(|line| line + "\n").collect();
    let head = "HTTP/1.0 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\n\r\n";
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await
}

/// Sets a clock off by a file that all its readers look at each time.
fn set_clock(file: &Path, seconds: i32) {
    let next = file.with_extension("next");
    std::fs::write(&next, format!("{seconds:+}\n")).unwrap();
    std::fs::rename(&next, file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_off_and_zone_data_that_is_old_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let clock = folder.path().join("clock");
    set_clock(&clock, 0);
    let database = TestDatabase::new().await;
    let launch = Launch::on(&database).with("HTTP__OPEN", "true");
    let right = launch.start_ready().await;
    let bent = launch
        .clone()
        .beside("LD_PRELOAD", &setting("STATIONMASTER_TEST_FAKETIME"))
        .beside("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap())
        .beside("FAKETIME_NO_CACHE", "1")
        .beside("DONT_FAKE_MONOTONIC", "1");
    let bent = bent.start_ready().await;
    let front = Front::before(right.address().unwrap()).await;
    let servers = [front.address.as_str(), &bent.address().unwrap()];
    let watch = Watch::on(&servers, Duration::from_secs(1)).await;

    let mut trial = watch
        .begin(&["ClockSkew", "ZoneDataOld", "ZoneDataDiffers"])
        .await;
    set_clock(&clock, 10);
    front.lie(true);
    let place = Place::at(servers[1]);
    trial.fire(&place).await;
    set_clock(&clock, 0);
    front.lie(false);
    trial.clear().await;
}
