//! Throughput while somebody elsewhere holds an old snapshot, so that vacuum can remove nothing.

use anyhow::Result;
use serde::Serialize;
use sqlx::{Connection as _, Executor as _, PgConnection};
use stationmaster_core::executions::Settings;

use crate::fixture::Load;
use crate::scenario::{Progress, throughput};

/// The two throughputs.
#[derive(Debug, Serialize)]
pub struct Horizon {
    /// Without the old snapshot, per second; the mean of before and after.
    pub base_per_second: f64,
    /// With it, per second.
    pub held_per_second: f64,
    /// Held over base.
    pub ratio: f64,
}

/// Runs the load three times: free, under a snapshot that is held from before the load to its end, and free again.
pub async fn horizon(
    url: &str,
    load: &Load,
    servers: usize,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Horizon> {
    let before = throughput(url, load, servers, settings, progress).await?;
    let mut reader = PgConnection::connect(url).await?;
    reader
        .execute("begin isolation level repeatable read; select count(*) from stationmaster.plans")
        .await?;
    let held = throughput(url, load, servers, settings, progress).await;
    reader.execute("commit").await?;
    let after = throughput(url, load, servers, settings, progress).await?;
    let (base, held) = (f64::midpoint(before, after), held?);
    Ok(Horizon {
        base_per_second: base,
        held_per_second: held,
        ratio: held / base,
    })
}
