//! What a claim costs when little waits, and when a million items wait in ten thousand full workspaces beside it.
//!
//! The claim is the product's own transaction, without a server around it, each claim timed.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;
use stationmaster_core::db::Database;
use stationmaster_core::executions::measure::Claims;
use uuid::Uuid;

use crate::fixture::{self, Load};
use crate::measure::{Percentiles, percentiles};

/// Items of one timed claim.
const BATCH: usize = 100;
/// Free workspaces that the claims serve.
const FREE: usize = 100;

/// The two costs.
#[derive(Debug, Serialize)]
pub struct ClaimCost {
    /// Milliseconds a claim, with only the served items waiting.
    pub alone: Percentiles,
    /// Milliseconds a claim, with the crowd beside.
    pub crowded: Percentiles,
    /// Crowded over alone, at the median.
    pub ratio: f64,
    /// Items that waited in full workspaces.
    pub crowd: usize,
    /// Full workspaces.
    pub full_workspaces: usize,
}

/// Measures claims of 100 items from 100 free workspaces, first alone, then beside the crowd.
pub async fn measure(
    url: &str,
    waiting: usize,
    crowd: usize,
    full_workspaces: usize,
    mut progress: impl FnMut(&str),
) -> Result<ClaimCost> {
    let database = Database::new(url, 4)?;
    let rounds = waiting / BATCH;
    ensure!(
        rounds >= 5,
        "at least {} items must wait for a measurement",
        5 * BATCH
    );
    progress("claims with little waiting");
    let alone = timed(&database, url, waiting, 0, 0).await?;
    progress("loading the crowd");
    let crowded = timed(&database, url, waiting, crowd, full_workspaces).await?;
    Ok(ClaimCost {
        ratio: crowded.p50 / alone.p50,
        alone,
        crowded,
        crowd,
        full_workspaces,
    })
}

async fn timed(
    database: &Database,
    url: &str,
    waiting: usize,
    crowd: usize,
    full: usize,
) -> Result<Percentiles> {
    fixture::wipe(database).await?;
    if full > 0 {
        let load = Load::of(vec![1; full], crowd);
        fixture::make_workspaces(database, &load).await?;
        fixture::load_items(database, &load, |_| {}).await?;
        // Full, as a claim leaves them: every slot taken, more to do.
        sqlx::query(
            "update stationmaster_internal.workspace_capacity set active = max_concurrent, ready = true",
        )
        .execute(&database.pool())
        .await?;
        sqlx::query("truncate stationmaster_internal.queue_hints")
            .execute(&database.pool())
            .await?;
    }
    let limit = i32::try_from(waiting)?;
    let load = Load::of(vec![limit; FREE], waiting);
    fixture::make_workspaces(database, &load).await?;
    let query = "select d.workspace_id, d.id from stationmaster.workflow_definitions d
                 join stationmaster.workspaces w on w.id = d.workspace_id where w.max_concurrent = $1";
    let free: Vec<(Uuid, Uuid)> = sqlx::query_as(query)
        .bind(limit)
        .fetch_all(&database.pool())
        .await?;
    let (workspaces, definitions): (Vec<Uuid>, Vec<Uuid>) =
        (0..waiting).map(|n| free[n % free.len()]).unzip();
    sqlx::query(
        "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id)
         select * from unnest($1::uuid[], $2::uuid[])",
    )
    .bind(workspaces)
    .bind(definitions)
    .execute(&database.pool())
    .await?;
    fixture::rest(database).await?;
    // One connection, so that its plans are the same all the while.
    let claims = Claims::new(Database::new(url, 1)?)?;
    let (mut times, mut left) = (Vec::new(), waiting);
    while left > 0 {
        let began = Instant::now();
        let admitted = claims.claim(BATCH).await?;
        let took = began.elapsed();
        ensure!(admitted > 0, "a claim took nothing, and {left} items wait");
        left -= admitted;
        // Near the end the workspaces that a claim has chosen may have less left than a batch.
        if admitted == BATCH {
            times.push(took.as_secs_f64() * 1000.0);
        }
    }
    // The first claims pay for planning and cold caches.
    let warm = 3;
    ensure!(times.len() > warm, "too few claims were full to be measured");
    Ok(percentiles(&mut times[warm..]))
}
