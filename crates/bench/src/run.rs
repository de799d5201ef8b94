//! Runs servers over a loaded queue until it is empty.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use stationmaster_core::alarms;
use stationmaster_core::db::Database;
use stationmaster_core::engine::Engine;
use stationmaster_core::engine::embedded::EmbeddedEngine;
use stationmaster_core::executions::Settings;
use stationmaster_core::observe::Metrics;
use stationmaster_core::presence::Presence;
use stationmaster_core::station::{Parts, Station};

/// Where executions run in a benchmark.
pub enum Where {
    /// In each server itself.
    Embedded,
    /// On one engine that all servers share.
    Outside(Arc<dyn Engine>),
}

/// Which lanes a server runs, and how.
pub struct Lanes {
    /// Executions.
    pub executions: Option<Settings>,
    /// Alarms.
    pub alarms: Option<alarms::Settings>,
}

/// Executions and nothing else.
#[must_use]
pub fn executions(settings: &Settings) -> Lanes {
    Lanes {
        executions: Some(settings.clone()),
        alarms: None,
    }
}

/// Starts servers, each with a pool of its own, as separate processes would have; what they count goes into one.
pub async fn start_servers(
    url: &str,
    servers: usize,
    lanes: &Lanes,
    engine: &Where,
    metrics: &Arc<Metrics>,
) -> Result<Vec<Station>> {
    let mut stations = Vec::with_capacity(servers);
    for number in 1..=servers {
        let database = Database::new(url, 12)?;
        let presence = Presence::new(&format!("bench-{number}"));
        let engine: Arc<dyn Engine> = match engine {
            Where::Embedded => Arc::new(EmbeddedEngine::new(database.clone(), presence.clone())?),
            Where::Outside(engine) => Arc::clone(engine),
        };
        let parts = Parts {
            database,
            presence,
            engine,
            executions: lanes.executions.clone(),
            alarms: lanes.alarms.clone().map(alarms::Setup::new).transpose()?,
            dispatchers: None,
            metrics: Arc::clone(metrics),
        };
        stations.push(Station::start(parts).await?);
    }
    Ok(stations)
}

/// A question takes work away from what is measured: at most one part in this many of the time goes into asking. The figures
/// come from the rows, so it does not matter when the end is noticed.
const ASKING: u32 = 50;
/// Nobody asks more often than this.
const SOONEST: Duration = Duration::from_millis(20);
const COUNT_SOONEST: Duration = Duration::from_millis(500);

/// Waits until `done` executions have reached the wanted state; tells the progress. Answers how long it took.
///
/// Counting a table that grows by tens of thousands of rows a second would cost as much as part of the work itself, and so
/// would looking for a live row among the dead: both are done as rarely as they are dear.
pub async fn wait_for(
    database: &Database,
    question: Question,
    done: usize,
    mut progress: impl FnMut(usize),
) -> Result<Duration> {
    let began = Instant::now();
    let mut count_at = began;
    loop {
        let asked_at = Instant::now();
        let is_over = !sqlx::query_scalar::<_, bool>(question.is_anything_left)
            .fetch_one(&database.pool())
            .await?;
        let pause = (asked_at.elapsed() * ASKING).max(SOONEST);
        let took = began.elapsed();
        if is_over || Instant::now() >= count_at {
            let counted_at = Instant::now();
            let so_far: i64 = sqlx::query_scalar(question.how_many)
                .fetch_one(&database.pool())
                .await?;
            let so_far = usize::try_from(so_far)?;
            count_at = Instant::now() + (counted_at.elapsed() * ASKING).max(COUNT_SOONEST);
            progress(so_far.min(done));
            if so_far >= done {
                return Ok(took);
            }
        }
        tokio::time::sleep(pause.min(COUNT_SOONEST)).await;
    }
}

/// What to ask while waiting.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// How many have reached the wanted state.
    pub how_many: &'static str,
    /// Whether any has not: cheaper, and asked more often.
    pub is_anything_left: &'static str,
}

/// Stops servers in order.
pub async fn stop_servers(stations: &[Station]) {
    let stops = stations
        .iter()
        .map(|station| station.shut_down(Duration::from_secs(20)));
    futures::future::join_all(stops).await;
}
