//! Runs servers over a loaded queue until it is empty.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use stationmaster_core::db::Database;
use stationmaster_core::engine::Engine;
use stationmaster_core::engine::embedded::EmbeddedEngine;
use stationmaster_core::executions::Settings;
use stationmaster_core::observe::Metrics;
use stationmaster_core::presence::Presence;
use stationmaster_core::station::{EngineChoice, Parts, Station};

/// Where executions run in a benchmark.
pub enum Where {
    /// In each server itself.
    Embedded,
    /// On one engine that all servers share.
    Outside(Arc<dyn Engine>),
}

/// Starts servers, each with a pool of its own, as separate processes would have.
pub async fn start_servers(
    url: &str,
    servers: usize,
    settings: &Settings,
    engine: &Where,
) -> Result<Vec<Station>> {
    let mut stations = Vec::with_capacity(servers);
    for number in 1..=servers {
        let database = Database::new(url, 12)?;
        let presence = Presence::new(&format!("bench-{number}"));
        let engine = match engine {
            Where::Embedded => {
                EngineChoice::Embedded(Arc::new(EmbeddedEngine::new(database.clone(), presence.clone())?))
            }
            Where::Outside(engine) => EngineChoice::Outside(Arc::clone(engine)),
        };
        let parts = Parts {
            database,
            presence,
            engine,
            executions: Some(settings.clone()),
            dispatchers: None,
            metrics: Arc::new(Metrics::new()),
        };
        stations.push(Station::start(parts).await?);
    }
    Ok(stations)
}

/// Waits until `done` executions have reached the wanted state; tells the progress. Answers how long it took.
pub async fn wait_for(
    database: &Database,
    count: &'static str,
    done: usize,
    mut progress: impl FnMut(usize),
) -> Result<Duration> {
    let began = Instant::now();
    loop {
        let so_far: i64 = sqlx::query_scalar(count).fetch_one(database.pool()).await?;
        let so_far = usize::try_from(so_far)?;
        progress(so_far.min(done));
        if so_far >= done {
            return Ok(began.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Stops servers in order.
pub async fn stop_servers(stations: &[Station]) {
    let stops = stations
        .iter()
        .map(|station| station.shut_down(Duration::from_secs(20)));
    futures::future::join_all(stops).await;
}
