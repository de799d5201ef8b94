//! Close: the engine says which runs are over, and their slots become free.
//!
//! A shared engine is swept by one server for all; a local one tells each server of its own runs.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::end::leave_out_spoken_for;
use super::finish::{End, Written, finish};
use super::settle::{Release, give_back};
use super::{EndReason, ExecutionsContext, WaitsFor};
use crate::db::{self, Read as _, column, statement};
use crate::duty;
use crate::engine::{Close, EngineUnavailable, LOCAL, Reach, RunState};
use crate::id::{ExecutionId, Token};
use crate::retry::Backoff;
use crate::task::{Next, Pass, Silence};

const DUTY: &str = "closes";
const BUSY: Backoff = Backoff {
    base: Duration::from_millis(4),
    cap: Duration::from_millis(200),
};
/// A sweep asks the engine's own store of runs, and a busy engine answers slowly. Sweeps that find nothing may take one part
/// in this many of the time, so that asking what has ended does not keep the engine from starting.
const SWEEP_SHARE: u32 = 20;
const SWEEP_AT_LEAST_EVERY: Duration = Duration::from_secs(2);
/// An engine that asks for fewer lists is asked less and less often.
const THROTTLED: Backoff = Backoff {
    base: Duration::from_millis(500),
    cap: Duration::from_secs(15),
};
/// How soon to ask again for the duty when another server has it.
const STANDING_BY: Duration = Duration::from_secs(1);
/// Without an open run there is nothing to sweep for; the bell tells when there is.
const IDLE: Duration = Duration::from_secs(5);
/// Closes that are remembered as dealt with.
const REMEMBERED: usize = 50_000;

/// Sweeps a shared engine.
pub(super) struct SharedCloses {
    context: ExecutionsContext,
    since: Option<Timestamp>,
    /// The bell rings while anything runs; a sweep comes no sooner for that.
    not_before: Option<Instant>,
    /// How often in a row the engine asked for fewer lists.
    throttled: u32,
    /// When it was last swept.
    swept_at: Option<Instant>,
    /// Closes that have been dealt with and may be told again.
    dealt_with: HashSet<(ExecutionId, String)>,
}

impl SharedCloses {
    pub(super) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            since: None,
            not_before: None,
            throttled: 0,
            swept_at: None,
            dealt_with: HashSet::new(),
        }
    }
}

impl SharedCloses {
    /// No bell is heard for `pause`; after that one is, and while nothing is open there is nothing to look for without it.
    fn rest(&mut self, pause: Duration, open: bool) -> Next {
        self.not_before = Some(Instant::now() + pause);
        Next::After(if open { pause } else { pause.max(IDLE) })
    }
}

impl Pass for SharedCloses {
    fn name(&self) -> &'static str {
        "closes"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if let Some(left) = self
            .not_before
            .and_then(|at| at.checked_duration_since(Instant::now()))
        {
            return Ok(Next::After(left));
        }
        let context = &self.context;
        let Some(engine) = context.contact.engine_id() else {
            return Ok(Next::After(IDLE));
        };
        let query =
            "select min(claimed_at) from stationmaster_internal.executions_active where engine_id = $1";
        let query = sqlx::query_scalar(query).bind(engine);
        let oldest: Option<jiff_sqlx::Timestamp> = query.one(&context.database).await?;
        let oldest = oldest.map(jiff_sqlx::Timestamp::to_jiff);
        // Without an open run only resets of what has ended are left to learn of.
        let interval = context.settings.reconcile_interval;
        if oldest.is_none() && self.swept_at.is_some_and(|at| at.elapsed() < interval) {
            return Ok(Next::After(IDLE));
        }
        let Some(held) = duty::hold(&context.database, &context.presence, DUTY).await? else {
            self.since = None;
            self.swept_at = Some(Instant::now());
            return Ok(self.rest(STANDING_BY, oldest.is_some()));
        };
        // A new holder goes on where the last one was; a minute covers clocks that differ.
        let beginning = oldest.unwrap_or_else(Timestamp::now) - jiff::SignedDuration::from_mins(1);
        let asked_at = Instant::now();
        self.swept_at = Some(asked_at);
        let since = self.since.or(held.position).unwrap_or(beginning);
        let swept = context.engine.closed_since(since).await;
        context.contact.heard(&swept);
        let mut pause = context.settings.close_interval;
        let (closes, next) = match swept {
            Ok(swept) => swept,
            Err(EngineUnavailable::Throttled(reason)) => {
                self.throttled += 1;
                let pause = pause.max(THROTTLED.wait(self.throttled));
                tracing::warn!(
                    reason,
                    ?pause,
                    "The engine asks for fewer lists; closes are learnt of later"
                );
                return Ok(self.rest(pause, oldest.is_some()));
            }
            Err(EngineUnavailable::Away(_)) => return Ok(self.rest(pause, oldest.is_some())),
        };
        self.throttled = 0;
        if closes.is_empty() {
            let share = asked_at.elapsed() * (SWEEP_SHARE - 1);
            pause = pause.max(share.min(SWEEP_AT_LEAST_EVERY));
        }
        // What could not be written is told again when the sweep starts from the same place.
        let (unwritten, over_before) = write_closes(context, &closes).await?;
        if let Some(trouble) = unwritten.trouble {
            return Err(trouble);
        }
        self.amend(&closes, &over_before).await?;
        let context = &self.context;
        if unwritten.busy.is_empty() && self.since != Some(next) {
            duty::advance(&context.database, DUTY, held, next).await?;
            self.since = Some(next);
        }
        Ok(self.rest(pause, oldest.is_some()))
    }
}

impl SharedCloses {
    /// What closed is over by our record: mostly a repeat. Or the execution was reset on the engine after its end, and has ended anew
    /// before anybody saw it run.
    async fn amend(&mut self, closes: &[Close], over_before: &HashSet<ExecutionId>) -> Result<(), db::Error> {
        if self.dealt_with.len() > REMEMBERED {
            self.dealt_with.clear();
        }
        let mut ends = Vec::new();
        for close in closes {
            let (Some(run_id), Some(_)) = (&close.run_id, close.closed_at) else {
                continue;
            };
            let is_new = self.dealt_with.insert((close.execution_id, run_id.clone()));
            if is_new && over_before.contains(&close.execution_id) {
                ends.push(End::of(close.clone()));
            }
        }
        if ends.is_empty() {
            return Ok(());
        }
        let context = &self.context;
        let query = sqlx::query_scalar(statement!("reconcile/amend"))
            .bind(column(&ends, |end| end.execution_id))
            .bind(column(&ends, |end| end.run_id.as_deref()))
            .bind(column(&ends, |end| end.status))
            .bind(column(&ends, |end| end.error.as_deref()))
            .bind(column(&ends, |end| end.output.as_deref()))
            .bind(column(&ends, |end| end.closed_at.map(jiff_sqlx::Timestamp::from)))
            .bind(context.engine.name())
            .bind(EndReason::Reset)
            .bind(column(&ends, End::omitted));
        let amended: Vec<ExecutionId> = query.all(&context.database).await?;
        for execution in amended {
            context.metrics.reset();
            tracing::warn!(%execution, "An execution that had ended was reset on the engine and has ended anew");
        }
        Ok(())
    }
}

/// Listens to a local engine.
pub(super) struct LocalCloses {
    context: ExecutionsContext,
    /// Told by the engine and not yet written: a database that is away must not lose them.
    unwritten: Vec<Close>,
    failures: u32,
    /// When to look again for runs that are gone.
    look_at: Instant,
    /// Ours by the record, unknown to the engine at the last look, and not told as ended.
    missing: HashSet<(ExecutionId, Token)>,
}

impl LocalCloses {
    pub(super) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            unwritten: Vec::new(),
            failures: 0,
            look_at: Instant::now(),
            missing: HashSet::new(),
        }
    }

    /// A run of ours that is gone without a word (its task fell over, its claim was adopted while it ended, its close was lost with a
    /// commit) would hold its slot for as long as this server lives. Unknown at two looks in a row, and none of those whose end waits
    /// to be written: back to the queue.
    async fn look_for_lost(&mut self) -> Result<(), db::Error> {
        let context = &self.context;
        self.look_at = Instant::now() + context.settings.reconcile_interval;
        let Some(me) = context.presence.holder() else {
            return Ok(());
        };
        let query = sqlx::query_as(statement!("executions/running_here"))
            .bind(me)
            .bind(LOCAL)
            .bind(context.settings.reconcile_interval.as_secs_f64());
        let rows: Vec<(ExecutionId, Token)> = query.all(&context.database).await?;
        let ids: Vec<ExecutionId> = rows.iter().map(|(id, _)| *id).collect();
        let Ok(states) = context.engine.describe(&ids).await else {
            return Ok(());
        };
        let told: HashSet<ExecutionId> = self.unwritten.iter().map(|close| close.execution_id).collect();
        let missing: HashSet<(ExecutionId, Token)> = rows
            .into_iter()
            .zip(states)
            .filter(|((id, _), state)| matches!(state, RunState::NotFound) && !told.contains(id))
            .map(|(row, _)| row)
            .collect();
        let lost: Vec<_> = missing.intersection(&self.missing).copied().collect();
        self.missing = missing;
        if lost.is_empty() {
            return Ok(());
        }
        let release = || Release {
            recoveries: 1,
            ..Release::at_once(
                WaitsFor::Recovered,
                "its run was gone from the server that holds it",
            )
        };
        let releases = lost.into_iter().map(|(id, token)| (id, token, release()));
        let recovered = give_back(context, me, releases.collect(), 1).await?;
        tracing::error!(
            executions = recovered,
            "Runs of this server were gone; they are back in the queue"
        );
        context.metrics.recovered(recovered);
        context.bells.queue.ring();
        Ok(())
    }
}

impl Pass for LocalCloses {
    fn name(&self) -> &'static str {
        "closes"
    }

    /// It sleeps until a run ends.
    fn silence(&self) -> Silence {
        Silence::MeansNothing
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        tokio::select! {
            told = self.context.engine.closed_since(Timestamp::UNIX_EPOCH) => {
                if let Ok((closes, _)) = told {
                    self.unwritten.extend(closes);
                }
            }
            () = tokio::time::sleep(BUSY.wait(self.failures)), if !self.unwritten.is_empty() => {}
            () = tokio::time::sleep_until(self.look_at.into()) => self.look_for_lost().await?,
            () = self.context.stop.cancelled() => return Ok(Next::Now),
        }
        if self.unwritten.is_empty() {
            return Ok(Next::Now);
        }
        let (Written { busy, trouble, .. }, _) = write_closes(&self.context, &self.unwritten).await?;
        self.failures = if busy.is_empty() { 0 } else { self.failures + 1 };
        self.unwritten.retain(|close| busy.contains(&close.execution_id));
        trouble.map_or(Ok(Next::Now), Err)
    }
}

/// Ends what the engine says is over. Answers those that could not be written now, mostly because their workspace was in other
/// hands: they keep nobody else waiting; and those that were over before.
async fn write_closes(
    context: &ExecutionsContext,
    closes: &[Close],
) -> Result<(Written, HashSet<ExecutionId>), db::Error> {
    let told_by = context.contact.engine_id();
    if told_by.is_none() {
        // Whoever told it turned out to be another engine.
        return Ok((Written::default(), HashSet::new()));
    }
    let mut ends: Vec<End> = closes
        .iter()
        .cloned()
        .map(|close| End {
            told_by,
            ..End::of(close)
        })
        .collect();
    if context.engine.reach() == Reach::Shared {
        leave_out_spoken_for(context, &mut ends).await?;
    }
    let mut written = finish(&context.database, &ends, context.engine.name(), context.floor()).await?;
    if !written.done.is_empty() {
        context.bells.queue.ring();
    }
    let is_over =
        |end: &&End| !written.done.contains(&end.execution_id) && !written.busy.contains(&end.execution_id);
    let over_before = ends.iter().filter(is_over).map(|end| end.execution_id).collect();
    for end in &ends {
        // Whatever was told of an execution, it has ended once.
        if written.done.remove(&end.execution_id) {
            tracing::debug!(execution = %end.execution_id, status = %end.status, "The engine closed a run");
            context.metrics.finished(end.status);
        } else if end.token.is_some() && !written.busy.contains(&end.execution_id) {
            // Under a token that is not the row's any more; without a token it would only be a repeat.
            context.metrics.stale_write("close");
            tracing::warn!(execution = %end.execution_id, "A late close was refused: the claim is not ours any more");
        }
    }
    Ok((written, over_before))
}
