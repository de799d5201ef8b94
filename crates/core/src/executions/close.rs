//! Close: the engine says which runs are over, and their slots become free.
//!
//! A shared engine is swept by one server for all; a local one tells each server of its own runs.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use super::Shared;
use super::finish::{End, finish};
use super::start::{answered, away, describe_close};
use crate::db::{self, within};
use crate::duty;
use crate::engine::Close;
use crate::retry::Backoff;
use crate::task::{Next, Pass};

const DUTY: &str = "closes";
const BUSY: Backoff = Backoff {
    base: Duration::from_millis(4),
    cap: Duration::from_millis(200),
};
/// Without an open run there is nothing to sweep for.
const IDLE: Duration = Duration::from_secs(1);

/// Sweeps a shared engine.
pub(crate) struct SharedCloses {
    pub(crate) shared: Shared,
    pub(crate) since: Option<Timestamp>,
}

impl Pass for SharedCloses {
    fn name(&self) -> &'static str {
        "closes"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let shared = &self.shared;
        let Some(held) = duty::hold(&shared.database, &shared.presence, DUTY).await? else {
            self.since = None;
            return Ok(Next::After(IDLE));
        };
        let query = "select min(claimed_at) from stationmaster.executions_active";
        let oldest: Option<jiff_sqlx::Timestamp> =
            within(sqlx::query_scalar(query).fetch_one(shared.database.pool())).await?;
        let Some(oldest) = oldest.map(jiff_sqlx::Timestamp::to_jiff) else {
            return Ok(Next::After(shared.settings.close_interval));
        };
        // A new holder goes on where the last one was; a minute covers clocks that differ.
        let since = self
            .since
            .or(held.position)
            .unwrap_or(oldest - jiff::SignedDuration::from_mins(1));
        match shared.engine.closed_since(since).await {
            Ok((closes, next)) => {
                answered(shared);
                write_closes(shared, closes).await?;
                if self.since != Some(next) {
                    duty::advance(&shared.database, DUTY, held, next).await?;
                }
                self.since = Some(next);
            }
            Err(error) => away(shared, &error.0),
        }
        Ok(Next::After(shared.settings.close_interval))
    }
}

/// Listens to a local engine.
pub(crate) struct LocalCloses {
    pub(crate) shared: Shared,
    /// Told by the engine and not yet written: a database that is away must not lose them.
    pub(crate) unwritten: Vec<Close>,
}

impl Pass for LocalCloses {
    fn name(&self) -> &'static str {
        "closes"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if self.unwritten.is_empty() {
            tokio::select! {
                told = self.shared.engine.closed_since(Timestamp::UNIX_EPOCH) => {
                    if let Ok((closes, _)) = told {
                        self.unwritten = closes;
                    }
                }
                () = self.shared.stop.cancelled() => return Ok(Next::Now),
            }
        }
        write_closes(&self.shared, self.unwritten.clone()).await?;
        self.unwritten.clear();
        Ok(Next::Now)
    }
}

async fn write_closes(shared: &Shared, closes: Vec<Close>) -> Result<(), db::Error> {
    let mut ends: Vec<End> = Vec::with_capacity(closes.len());
    for close in closes {
        tracing::debug!(execution = %close.execution_id, status = describe_close(&close), "The engine closed a run");
        ends.push(End::of(close));
    }
    let mut failures = 0;
    while !ends.is_empty() {
        let finished = finish(&shared.database, &ends, shared.engine.name(), shared.floor()).await?;
        let ended: HashSet<_> = finished.ended.iter().collect();
        for end in ends.iter().filter(|end| ended.contains(&end.execution_id)) {
            shared.metrics.finished(end.status);
        }
        if !ended.is_empty() {
            shared.bells.queue.ring();
        }
        let busy: HashSet<_> = finished.busy.into_iter().collect();
        // An end under a token that is not the row's any more is a late write; one without a token was only a repeat.
        let is_late = |end: &&End| {
            end.token.is_some() && !ended.contains(&end.execution_id) && !busy.contains(&end.execution_id)
        };
        for end in ends.iter().filter(is_late) {
            shared.metrics.stale_write("close");
            tracing::warn!(execution = %end.execution_id, "A late close was refused: the claim is not ours any more");
        }
        ends.retain(|end| busy.contains(&end.execution_id));
        if !ends.is_empty() {
            failures += 1;
            tokio::time::sleep(BUSY.wait(failures).max(BUSY.base)).await;
        }
    }
    Ok(())
}
