//! Settle: what came of the starts is written down, in batches, each write fenced by its claim's token.
//!
//! A settlement whose token is no longer the row's changes nothing and is counted: the claim had expired and somebody
//! else has taken over.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use tracing::Instrument as _;

use super::busy::Tries;
use super::claim::Claim;
use super::finish::{End, Written, finish};
use super::{EndReason, ExecutionsContext, WaitsFor};
use crate::db::{self, Read as _, column, statement};
use crate::engine::{Close, CloseStatus};
use crate::id::{ExecutionId, ServerId, Token};
use crate::observe::trace;
use crate::task::chain;

/// Above this size a batch is one line in the log instead of a line for each item.
pub(super) const SAY_EACH: usize = 20;

/// Ends of up to so many claims are written claim by claim.
const APART: usize = 3;

/// A claim and what came of it.
pub(crate) struct Settlement {
    pub(crate) claim: Claim,
    pub(crate) verdict: Verdict,
}

/// What came of a claim.
pub(crate) enum Verdict {
    /// The engine runs it.
    Running { run_id: String },
    /// The engine ran it, and it is over.
    Ended(Close),
    /// It cannot be started: for good.
    Failed {
        reason: EndReason,
        message: String,
        attempts: i32,
    },
    /// The engine refused; another try after a while. Spends an attempt.
    Retry { wait: Duration, message: String },
    /// It was not sent, or certainly not received. Spends nothing.
    Released { message: String },
    /// Not ours any more, or in doubt for too long: left to its lease and to recovery.
    Abandoned,
}

/// Writes settlements down, as a step of the rounds that they are of. Answers what could not be written now.
pub(crate) async fn settle(context: &ExecutionsContext, settlements: Vec<Settlement>) -> Vec<Settlement> {
    let rounds = settlements.iter().map(|settlement| &settlement.claim.batch.round);
    let steps = trace::below(
        rounds,
        |round| tracing::debug_span!(parent: round, "step:mark_dispatched"),
    );
    settle_each(context, settlements).instrument(steps.first()).await
}

async fn settle_each(context: &ExecutionsContext, settlements: Vec<Settlement>) -> Vec<Settlement> {
    let mut running = Vec::new();
    let mut ended = Vec::new();
    let mut released = Vec::new();
    for settlement in settlements {
        match &settlement.verdict {
            Verdict::Running { .. } => running.push(settlement),
            Verdict::Ended(_) | Verdict::Failed { .. } => ended.push(settlement),
            Verdict::Retry { .. } | Verdict::Released { .. } => released.push(settlement),
            Verdict::Abandoned => drop(settlement),
        }
    }
    let mut again = Vec::new();
    for (kind, batch) in [
        (Kind::Running, running),
        (Kind::Ended, ended),
        (Kind::Released, released),
    ] {
        if batch.is_empty() {
            continue;
        }
        let mut turn = None;
        if context.few_workspaces.load(Ordering::Relaxed) && !matches!(kind, Kind::Running) {
            turn = Some(context.capacity_turn.lock().await);
        }
        let mut busy = write(context, kind, batch).await;
        if !busy.is_empty() && turn.is_none() {
            // Most likely our own claim has these workspaces locked: once more, in turn with it.
            turn = Some(context.capacity_turn.lock().await);
            busy = write(context, kind, busy).await;
        }
        drop(turn);
        again.extend(busy);
    }
    again
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Running,
    Ended,
    Released,
}

async fn write(context: &ExecutionsContext, kind: Kind, batch: Vec<Settlement>) -> Vec<Settlement> {
    let written = match write_once(context, kind, &batch).await {
        Ok(written) => written,
        Err(error) => {
            tracing::error!(
                error = chain(&error),
                items = batch.len(),
                "Could not settle; trying again"
            );
            return batch;
        }
    };
    let (again, over): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .partition(|settlement| written.busy.contains(&settlement.claim.execution_id));
    let refused = over
        .iter()
        .filter(|settlement| !written.done.contains(&settlement.claim.execution_id));
    for settlement in refused {
        context.metrics.stale_write("settle");
        tracing::warn!(
            execution = %settlement.claim.execution_id, token = settlement.claim.token.0,
            "A late settlement was refused: the claim is not ours any more"
        );
    }
    report(context, &over, &written);
    again
}

async fn write_once(
    context: &ExecutionsContext,
    kind: Kind,
    batch: &[Settlement],
) -> Result<Written, db::Error> {
    match kind {
        Kind::Running => write_running(context, batch).await,
        Kind::Ended => write_ended(context, batch).await,
        Kind::Released => write_released(context, batch).await,
    }
}

async fn write_running(context: &ExecutionsContext, batch: &[Settlement]) -> Result<Written, db::Error> {
    let run_ids = column(batch, |settlement| match &settlement.verdict {
        Verdict::Running { run_id } => run_id.as_str(),
        _ => "",
    });
    running(
        context,
        &executions(batch),
        &tokens(batch),
        &run_ids,
        &holders(batch),
    )
    .await
}

/// The engine runs these, each under its token.
pub(super) async fn running(
    context: &ExecutionsContext,
    executions: &[ExecutionId],
    tokens: &[Token],
    run_ids: &[&str],
    holders: &[ServerId],
) -> Result<Written, db::Error> {
    let rows: Vec<ExecutionId> = sqlx::query_scalar(statement!("executions/settle_running"))
        .bind(executions)
        .bind(tokens)
        .bind(run_ids)
        .bind(holders)
        .all(&context.database)
        .await?;
    Ok(rows.into_iter().map(|execution| (execution, true)).collect())
}

async fn write_ended(context: &ExecutionsContext, batch: &[Settlement]) -> Result<Written, db::Error> {
    let mut ends: Vec<End> = batch.iter().map(end_of).collect();
    // The ends of one claim are written faster than a mixture of as many.
    ends.sort_by_key(|end| end.token);
    let claims = ends.chunk_by(|one, other| one.token == other.token).count();
    let parts: Vec<&[End]> = if claims <= APART {
        ends.chunk_by(|one, other| one.token == other.token).collect()
    } else {
        vec![&ends]
    };
    let mut written = Written::default();
    for part in parts {
        match finish(&context.database, part, &context.actor(), context.floor()).await {
            Ok(part) => {
                if let Some(trouble) = &part.trouble {
                    tracing::error!(error = chain(trouble), "Could not settle an item; trying again");
                }
                written.extend(part);
            }
            // What was written before stays written; the rest comes again.
            Err(error) if !written.done.is_empty() => {
                tracing::error!(
                    error = chain(&error),
                    items = part.len(),
                    "Could not settle; trying again"
                );
                written.busy.extend(part.iter().map(|end| end.execution_id));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

fn end_of(settlement: &Settlement) -> End {
    let token = Some(settlement.claim.token);
    let holder = Some(settlement.claim.holder);
    let workspace_id = Some(settlement.claim.workspace_id);
    match &settlement.verdict {
        Verdict::Ended(close) => End {
            token,
            holder,
            workspace_id,
            ..End::of(close.clone())
        },
        Verdict::Failed {
            reason,
            message,
            attempts,
        } => End {
            token,
            holder,
            workspace_id,
            attempts: *attempts,
            ..End::failed(settlement.claim.execution_id, *reason, message)
        },
        // Sorted out by the caller.
        Verdict::Running { .. } | Verdict::Retry { .. } | Verdict::Released { .. } | Verdict::Abandoned => {
            unreachable!("only ends are finished")
        }
    }
}

async fn write_released(context: &ExecutionsContext, batch: &[Settlement]) -> Result<Written, db::Error> {
    let rows = column(batch, |settlement| match &settlement.verdict {
        Verdict::Retry { wait, message } => Release {
            wait: *wait,
            attempts: 1,
            recoveries: 0,
            event: WaitsFor::Backoff,
            detail: message.replace('\0', ""),
        },
        Verdict::Released { message } => Release::at_once(WaitsFor::Released, message),
        _ => unreachable!("only releases are released"),
    });
    release(
        context,
        &executions(batch),
        &tokens(batch),
        &rows,
        &holders(batch),
    )
    .await
}

/// How one claim is given back.
pub(crate) struct Release {
    pub(crate) wait: Duration,
    pub(crate) attempts: i32,
    pub(crate) recoveries: i32,
    pub(crate) event: WaitsFor,
    pub(crate) detail: String,
}

impl Release {
    /// Back to the queue as if nothing had been tried.
    pub(super) fn at_once(event: WaitsFor, detail: &str) -> Self {
        Self {
            wait: Duration::ZERO,
            attempts: 0,
            recoveries: 0,
            event,
            detail: detail.replace('\0', ""),
        }
    }
}

async fn release(
    context: &ExecutionsContext,
    executions: &[ExecutionId],
    tokens: &[Token],
    rows: &[Release],
    holders: &[ServerId],
) -> Result<Written, db::Error> {
    let answer: Vec<(ExecutionId, bool)> = sqlx::query_as(statement!("executions/release"))
        .bind(executions)
        .bind(tokens)
        .bind(column(rows, |row| row.wait.as_secs_f64()))
        .bind(column(rows, |row| row.attempts))
        .bind(column(rows, |row| row.recoveries))
        .bind(column(rows, |row| row.event))
        .bind(column(rows, |row| row.detail.as_str()))
        .bind(context.actor())
        .bind(context.floor())
        .bind(holders)
        .all(&context.database)
        .await?;
    Ok(answer.into_iter().collect())
}

/// Gives claims back that nobody works on, in at most so many tries. Answers how many were given back.
pub(super) async fn give_back(
    context: &ExecutionsContext,
    holder: ServerId,
    releases: Vec<(ExecutionId, Token, Release)>,
    tries: u32,
) -> Result<usize, db::Error> {
    let (mut executions, mut tokens, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (execution, token, row) in releases {
        executions.push(execution);
        tokens.push(token);
        rows.push(row);
    }
    let (mut done, mut tries) = (0, Tries::new(tries));
    loop {
        // What was given back before is not the claim's any more, and is not met again.
        let written = release(context, &executions, &tokens, &rows, &[holder]).await?;
        done += written.done.len();
        if written.busy.is_empty() || !tries.again().await {
            return Ok(done);
        }
    }
}

fn executions(batch: &[Settlement]) -> Vec<ExecutionId> {
    column(batch, |settlement| settlement.claim.execution_id)
}

fn holders(batch: &[Settlement]) -> Vec<ServerId> {
    column(batch, |settlement| settlement.claim.holder)
}

fn tokens(batch: &[Settlement]) -> Vec<Token> {
    column(batch, |settlement| settlement.claim.token)
}

/// How long something waited that could start from this moment on.
fn waited(ready_at: Option<Timestamp>) -> Option<Duration> {
    let waited = Timestamp::now().duration_since(ready_at?);
    Some(Duration::try_from(waited).unwrap_or_default())
}

fn report(context: &ExecutionsContext, over: &[Settlement], written: &Written) {
    let mut dispatched = 0;
    for settlement in over
        .iter()
        .filter(|settlement| written.done.contains(&settlement.claim.execution_id))
    {
        match &settlement.verdict {
            Verdict::Running { .. } | Verdict::Ended(_) => {
                dispatched += 1;
                context.metrics.tried(settlement.claim.attempts + 1);
                if let Some(waited) = waited(settlement.claim.ready_at) {
                    context.metrics.waited(waited);
                }
                if over.len() <= SAY_EACH {
                    tracing::info!(
                        item = %settlement.claim.item_id, execution = %settlement.claim.execution_id,
                        workspace = %settlement.claim.workspace_id, "Dispatched execution"
                    );
                }
                if let Verdict::Ended(close) = &settlement.verdict {
                    context.metrics.finished(close.status);
                }
            }
            Verdict::Failed { reason, attempts, .. } => {
                context.metrics.failed(*reason);
                context.metrics.finished(CloseStatus::Failed);
                let tried = u32::try_from(*attempts).unwrap_or_default();
                context.metrics.tried(settlement.claim.attempts + tried);
            }
            Verdict::Retry { .. } => context.metrics.retried(),
            Verdict::Released { .. } => context.metrics.released(),
            Verdict::Abandoned => {}
        }
    }
    if over.len() > SAY_EACH && dispatched > 0 {
        tracing::info!(executions = dispatched, "Dispatched executions");
    }
    context.metrics.dispatched(dispatched);
}
