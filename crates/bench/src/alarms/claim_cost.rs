//! What a claim costs when few alarms are stored, and when a million are, of which as few are due.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde::Serialize;
use stationmaster_core::alarms::measure::Claims;
use stationmaster_core::db::Database;

use super::burst::wipe;
use crate::fixture::rest;
use crate::measure::{Percentiles, percentiles};

/// Occurrences of one timed claim.
const BATCH: usize = 100;
/// Timed claims.
const ROUNDS: usize = 50;

/// The two costs.
#[derive(Debug, Serialize)]
pub struct ClaimCost {
    /// Milliseconds a claim, with few alarms stored.
    pub few: Percentiles,
    /// Milliseconds a claim, with very many.
    pub many: Percentiles,
    /// Many over few, at the median.
    pub ratio: f64,
    /// How many are few.
    pub few_stored: usize,
    /// How many are many.
    pub many_stored: usize,
}

/// Measures claims of 100 due alarms beside `few`, then beside `many` that are not due.
pub async fn measure(
    url: &str,
    few: usize,
    many: usize,
    mut progress: impl FnMut(&str),
) -> Result<ClaimCost> {
    let database = Database::new(url, 4)?;
    progress("claims beside few alarms");
    let beside_few = timed(&database, url, few).await?;
    progress("claims beside very many");
    let beside_many = timed(&database, url, many).await?;
    Ok(ClaimCost {
        ratio: beside_many.p50 / beside_few.p50,
        few: beside_few,
        many: beside_many,
        few_stored: few,
        many_stored: many,
    })
}

async fn timed(database: &Database, url: &str, stored: usize) -> Result<Percentiles> {
    wipe(database).await?;
    let load = "insert into stationmaster_internal.alarm_definitions (workspace_id, kind, fire_at, message)
                select w.id, 'once', case when n <= $2 then now() - interval '1 second'
                                          else now() + interval '1 day' + n * interval '1 second' end, 'bench'
                from (select id from stationmaster.workspaces limit 1) w, generate_series(1, $1 + $2) n";
    sqlx::query("insert into stationmaster.workspaces default values")
        .execute(&database.pool())
        .await?;
    sqlx::query(load)
        .bind(i32::try_from(stored)?)
        .bind(i32::try_from(BATCH * ROUNDS)?)
        .execute(&database.pool())
        .await?;
    rest(database).await?;
    let claims = Claims::new(Database::new(url, 1)?)?;
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let claimed = claims.claim(BATCH).await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
        ensure!(
            claimed == BATCH,
            "a claim took {claimed} occurrences instead of {BATCH}"
        );
    }
    // The first claims pay for planning and cold caches.
    Ok(percentiles(&mut times[3..]))
}
