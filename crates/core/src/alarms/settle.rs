//! Settle: what came of the wakes is written down, in batches, each write fenced by its claim's token.
//!
//! A settlement whose token is no longer the row's changes nothing and is counted: the claim had expired and somebody
//! else has taken over. An alarm that somebody holds locked is written at the next turn.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use super::AlarmsContext;
use super::claim::Claim;
use crate::db::{self, statement, within};
use crate::id::AlarmId;
use crate::task::chain;
use crate::wake::answer::Class;
use crate::words;

/// Above this size a batch is one line in the log instead of a line for each alarm.
const SAY_EACH: usize = 20;

/// A claim and what came of it.
pub(crate) struct Settlement {
    pub(crate) claim: Claim,
    pub(crate) verdict: Verdict,
}

/// What the target said.
type Answer = (u16, String);

/// What came of a claim.
pub(crate) enum Verdict {
    /// The target confirmed it.
    Fired { answer: Answer },
    /// It failed and will be tried again.
    Retry {
        wait: Duration,
        class: Class,
        message: String,
        answer: Option<Answer>,
    },
    /// It failed for good.
    Failed {
        class: Class,
        message: String,
        answer: Option<Answer>,
    },
    /// It was not sent, and spends nothing.
    Released {
        wait: Duration,
        /// Why its target was not asked, when that is the reason.
        held_back: Option<&'static str>,
        message: Option<String>,
    },
    /// Not ours any more: left to its lease and to recovery.
    Abandoned,
}

type Key = (AlarmId, Timestamp);

/// What a batch changed.
#[derive(Default)]
struct Written {
    done: HashSet<Key>,
    paused: Vec<AlarmId>,
    /// Ours, and to be tried again: somebody held a row that it needs.
    busy: HashSet<Key>,
}

/// Writes settlements down. Answers what could not be written now.
#[tracing::instrument(name = "step:settle_alarms", level = "debug", skip_all)]
pub(crate) async fn settle(shared: &AlarmsContext, settlements: Vec<Settlement>) -> Vec<Settlement> {
    let batch: Vec<Settlement> = settlements
        .into_iter()
        .filter(|settlement| !matches!(settlement.verdict, Verdict::Abandoned))
        .collect();
    if batch.is_empty() {
        return batch;
    }
    let written = match write(shared, &batch).await {
        Ok(written) => written,
        Err(error) => {
            tracing::error!(
                error = chain(&error),
                occurrences = batch.len(),
                "Could not settle alarms; trying again"
            );
            return batch;
        }
    };
    let (again, over): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .partition(|settlement| written.busy.contains(&key(settlement)));
    report(shared, &over, &written);
    again
}

fn key(settlement: &Settlement) -> Key {
    (settlement.claim.alarm_id, settlement.claim.scheduled_for)
}

async fn write(shared: &AlarmsContext, batch: &[Settlement]) -> Result<Written, db::Error> {
    let mut written = Written::default();
    for (alarm, scheduled_for, paused) in write_once(shared, batch).await? {
        match scheduled_for {
            Some(scheduled_for) => drop(written.done.insert((alarm, scheduled_for.to_jiff()))),
            None if paused => written.paused.push(alarm),
            None => {}
        }
    }
    let left: Vec<&Claim> = batch
        .iter()
        .filter(|settlement| !written.done.contains(&key(settlement)))
        .map(|settlement| &settlement.claim)
        .collect();
    if !left.is_empty() {
        written.busy = held(shared, &left).await?;
    }
    Ok(written)
}

/// Those of the claims that are still ours.
async fn held(shared: &AlarmsContext, claims: &[&Claim]) -> Result<HashSet<Key>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/held"))
        .bind(claims.iter().map(|claim| claim.alarm_id).collect::<Vec<_>>())
        .bind(
            claims
                .iter()
                .map(|claim| jiff_sqlx::Timestamp::from(claim.scheduled_for))
                .collect::<Vec<_>>(),
        )
        .bind(claims.iter().map(|claim| claim.token).collect::<Vec<_>>());
    let rows: Vec<(AlarmId, jiff_sqlx::Timestamp)> = within(query.fetch_all(shared.database.pool())).await?;
    Ok(rows
        .into_iter()
        .map(|(alarm, at)| (alarm, at.to_jiff()))
        .collect())
}

/// A line of the statement's answer: an occurrence that was settled, or an alarm that was paused by it.
type Line = (AlarmId, Option<jiff_sqlx::Timestamp>, bool);

async fn write_once(shared: &AlarmsContext, batch: &[Settlement]) -> Result<Vec<Line>, db::Error> {
    let rows: Vec<Row<'_>> = batch
        .iter()
        .map(|settlement| Row::of(&settlement.verdict))
        .collect();
    let claims = || batch.iter().map(|settlement| &settlement.claim);
    within(
        sqlx::query_as(statement!("alarms/settle"))
            .bind(claims().map(|claim| claim.alarm_id).collect::<Vec<_>>())
            .bind(
                claims()
                    .map(|claim| jiff_sqlx::Timestamp::from(claim.scheduled_for))
                    .collect::<Vec<_>>(),
            )
            .bind(claims().map(|claim| claim.token).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.outcome).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.wait.as_secs_f64()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.error).collect::<Vec<_>>())
            .bind(
                rows.iter()
                    .map(|row| row.answer.map(|(status, _)| i32::from(*status)))
                    .collect::<Vec<_>>(),
            )
            .bind(
                rows.iter()
                    .map(|row| row.answer.map(|(_, body)| body.as_str()))
                    .collect::<Vec<_>>(),
            )
            .bind(rows.iter().map(|row| row.class).collect::<Vec<_>>())
            .bind(
                rows.iter()
                    .map(|row| row.class == Some(Class::Gone))
                    .collect::<Vec<_>>(),
            )
            .persistent(batch.len() <= super::FEW_ROWS)
            .fetch_all(shared.database.pool()),
    )
    .await
}

words! {
    /// What a verdict does to the row.
    enum Outcome {
        /// [`Verdict::Fired`].
        Fired = "fired",
        /// [`Verdict::Retry`].
        Retry = "retry",
        /// [`Verdict::Failed`].
        Failed = "failed",
        /// [`Verdict::Released`].
        Released = "released",
    }
}

/// A verdict as the statement takes it.
struct Row<'a> {
    outcome: Outcome,
    wait: Duration,
    error: Option<&'a str>,
    answer: Option<&'a Answer>,
    class: Option<Class>,
}

impl<'a> Row<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let row = |outcome| Self {
            outcome,
            wait: Duration::ZERO,
            error: None,
            answer: None,
            class: None,
        };
        match verdict {
            Verdict::Fired { answer } => Self {
                answer: Some(answer),
                class: Some(Class::Accepted),
                ..row(Outcome::Fired)
            },
            Verdict::Retry {
                wait,
                class,
                message,
                answer,
            } => Self {
                wait: *wait,
                error: Some(message),
                answer: answer.as_ref(),
                class: Some(*class),
                ..row(Outcome::Retry)
            },
            Verdict::Failed {
                class,
                message,
                answer,
            } => Self {
                error: Some(message),
                answer: answer.as_ref(),
                class: Some(*class),
                ..row(Outcome::Failed)
            },
            Verdict::Released { wait, message, .. } => Self {
                wait: *wait,
                error: message.as_deref(),
                ..row(Outcome::Released)
            },
            Verdict::Abandoned => row(Outcome::Released),
        }
    }
}

fn report(shared: &AlarmsContext, over: &[Settlement], written: &Written) {
    let metrics = &shared.metrics.alarms;
    let mut fired = 0;
    for settlement in over {
        let claim = &settlement.claim;
        let (alarm, scheduled_for) = (claim.alarm_id, claim.scheduled_for);
        if !written.done.contains(&key(settlement)) {
            shared.metrics.stale_write("alarm");
            tracing::warn!(
                %alarm, %scheduled_for, token = claim.token.0,
                "A late settlement was refused: the claim is not ours any more"
            );
            continue;
        }
        match &settlement.verdict {
            Verdict::Fired { .. } => {
                fired += 1;
                if over.len() <= SAY_EACH {
                    tracing::info!(%alarm, %scheduled_for, attempt = claim.attempts + 1, "Alarm fired");
                }
            }
            Verdict::Retry { wait, message, .. } => {
                metrics.retried();
                tracing::warn!(
                    %alarm, %scheduled_for, attempt = claim.attempts + 1, error = message,
                    retry_in = wait.as_secs(), "Alarm not accepted; it will be tried again"
                );
            }
            Verdict::Failed { class, message, .. } => {
                metrics.failed(*class);
                tracing::error!(
                    %alarm, %scheduled_for, attempt = claim.attempts + 1, error = message, "Alarm failed"
                );
            }
            Verdict::Released { held_back, .. } => metrics.released(held_back.unwrap_or("stopped")),
            Verdict::Abandoned => {}
        }
    }
    for alarm in &written.paused {
        metrics.auto_paused();
        tracing::error!(%alarm, "Alarm paused: its occurrences keep failing, or its target is gone");
    }
    if over.len() > SAY_EACH && fired > 0 {
        tracing::info!(occurrences = fired, "Alarms fired");
    }
    metrics.fired(fired);
}
