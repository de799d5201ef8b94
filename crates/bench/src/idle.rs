//! How soon an item of an idle system is started: one item at a time, with nothing else to do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use stationmaster_core::db::Database;
use stationmaster_core::executions::Settings;
use stationmaster_core::observe::Metrics;

use crate::fixture::{Load, load_items, make_workspaces, wipe};
use crate::measure::{Percentiles, outcome};
use crate::run::{Where, executions, start_servers, stop_servers, wait_for};
use crate::scenario::{FINISHED, Progress};

/// Long enough for a server to have gone to sleep: it has to be woken by the notification.
const REST: Duration = Duration::from_millis(1_700);
/// Short enough for a server to be still attentive from the item before.
const BREATH: Duration = Duration::from_millis(150);

/// The waits, from enqueued to started, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Waits {
    /// Of items that woke a sleeping server.
    pub rested: Percentiles,
    /// Of items that came soon after another.
    pub attentive: Percentiles,
}

/// Enqueues `items` one by one, each after a rest, and as many again each after a breath.
pub async fn idle(
    url: &str,
    items: usize,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Waits> {
    progress.part("one item at a time, rested", items);
    let rested = one_by_one(url, items, REST, settings, progress).await?;
    progress.part("one item at a time, attentive", items);
    let attentive = one_by_one(url, items, BREATH, settings, progress).await?;
    Ok(Waits { rested, attentive })
}

async fn one_by_one(
    url: &str,
    items: usize,
    pause: Duration,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Percentiles> {
    let database = Database::new(url, 4)?;
    wipe(&database).await?;
    let load = Load::of(vec![10], 1);
    make_workspaces(&database, &load).await?;
    let metrics = Arc::new(Metrics::new());
    let stations = start_servers(url, 1, &executions(settings), &Where::Embedded, &metrics).await?;
    for done in 1..=items {
        tokio::time::sleep(pause).await;
        load_items(&database, &load, |_| {}).await?;
        wait_for(&database, FINISHED, done, |_| {}).await?;
        progress.at(done);
    }
    stop_servers(&stations).await;
    Ok(outcome(&database, &metrics).await?.wait)
}
