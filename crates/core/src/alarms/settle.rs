//! Settle: what came of the wakes is written down, in batches, each write fenced by its claim's token.
//!
//! A settlement whose token is no longer the row's changes nothing and is counted: the claim had expired and somebody
//! else has taken over. An alarm that somebody holds locked is written at the next turn, and so is a settlement that the database
//! refuses: those beside it are written without it.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use tracing::Instrument as _;

use super::AlarmsContext;
use super::claim::Claim;
use crate::db::{self, ABOUT_A_ROW, Read as _, column, statement};
use crate::id::AlarmId;
use crate::observe::trace;
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

words! {
    /// What came of a claim, and what that does to its row.
    pub(crate) enum Fate {
        /// The target confirmed it.
        Fired = "fired",
        /// It failed and will be tried again.
        Retry = "retry",
        /// It failed for good.
        Failed = "failed",
        /// It was not sent, and spends nothing.
        Released = "released",
        /// Not ours any more: left to its lease and to recovery, and not written.
        Abandoned = "abandoned",
    }
}

/// What came of a claim, as the statement takes it.
pub(crate) struct Verdict {
    pub(crate) fate: Fate,
    /// Until it is tried again.
    pub(crate) wait: Duration,
    pub(crate) class: Option<Class>,
    pub(crate) message: Option<String>,
    /// What the target said.
    pub(crate) reply: Option<(u16, String)>,
    /// Why its target was not asked, when that is the reason.
    pub(crate) held_back: Option<&'static str>,
}

impl Verdict {
    /// A fate, and nothing to say of it.
    pub(crate) fn of(fate: Fate) -> Self {
        Self {
            fate,
            wait: Duration::ZERO,
            class: None,
            message: None,
            reply: None,
            held_back: None,
        }
    }

    /// Not sent, for this reason, and to be tried again after this time.
    pub(crate) fn released(wait: Duration, message: String) -> Self {
        Self {
            wait,
            message: Some(message),
            ..Self::of(Fate::Released)
        }
    }

    fn status(&self) -> Option<i32> {
        self.reply.as_ref().map(|(status, _)| i32::from(*status))
    }

    fn said(&self) -> Option<&str> {
        self.reply.as_ref().map(|(_, body)| body.as_str())
    }
}

type Key = (AlarmId, Timestamp);

/// What a batch changed.
#[derive(Default)]
struct Written {
    done: HashSet<Key>,
    paused: Vec<AlarmId>,
    /// Ours, and to be tried again: somebody held a row that it needs, or the database refused it.
    busy: HashSet<Key>,
}

impl Written {
    fn extend(&mut self, other: Self) {
        self.done.extend(other.done);
        self.paused.extend(other.paused);
        self.busy.extend(other.busy);
    }
}

/// Writes settlements down, as a step of the rounds that they are of. Answers what could not be written now.
pub(crate) async fn settle(context: &AlarmsContext, settlements: Vec<Settlement>) -> Vec<Settlement> {
    let rounds = settlements.iter().map(|settlement| &settlement.claim.round);
    let steps = trace::below(
        rounds,
        |round| tracing::debug_span!(parent: round, "step:settle_alarms"),
    );
    settle_all(context, settlements).instrument(steps.first()).await
}

async fn settle_all(context: &AlarmsContext, settlements: Vec<Settlement>) -> Vec<Settlement> {
    let batch: Vec<Settlement> = settlements
        .into_iter()
        .filter(|settlement| settlement.verdict.fate != Fate::Abandoned)
        .collect();
    if batch.is_empty() {
        return batch;
    }
    let written = match write_or_halve(context, &batch).await {
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
    report(context, &over, &written);
    again
}

fn key(settlement: &Settlement) -> Key {
    (settlement.claim.alarm_id, settlement.claim.scheduled_for)
}

/// What the database will not take (whatever a constraint or a trigger forbids) must not keep the others of its batch from being settled:
/// halve until it stands alone. It is tried again with the next batch.
async fn write_or_halve(context: &AlarmsContext, batch: &[Settlement]) -> Result<Written, db::Error> {
    match (write(context, batch).await, batch) {
        (Err(error), [settlement]) if error.is_of(&ABOUT_A_ROW) => {
            let (alarm, scheduled_for) = key(settlement);
            tracing::error!(%alarm, %scheduled_for, error = chain(&error), "The database refuses to settle an alarm; trying again");
            Ok(Written {
                busy: HashSet::from([key(settlement)]),
                ..Written::default()
            })
        }
        (Err(error), _) if error.is_of(&ABOUT_A_ROW) => {
            let (left, right) = batch.split_at(batch.len() / 2);
            let mut written = Box::pin(write_or_halve(context, left)).await?;
            written.extend(Box::pin(write_or_halve(context, right)).await?);
            Ok(written)
        }
        (other, _) => other,
    }
}

async fn write(context: &AlarmsContext, batch: &[Settlement]) -> Result<Written, db::Error> {
    let mut written = Written::default();
    for (alarm, scheduled_for, paused) in write_once(context, batch).await? {
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
        written.busy = held(context, &left).await?;
    }
    Ok(written)
}

/// Those of the claims that are still ours.
async fn held(context: &AlarmsContext, claims: &[&Claim]) -> Result<HashSet<Key>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/held"))
        .bind(column(claims.iter().copied(), |claim| claim.alarm_id))
        .bind(column(claims.iter().copied(), Claim::scheduled_for))
        .bind(column(claims.iter().copied(), |claim| claim.token));
    let rows: Vec<(AlarmId, jiff_sqlx::Timestamp)> = query.all(&context.database).await?;
    Ok(rows
        .into_iter()
        .map(|(alarm, at)| (alarm, at.to_jiff()))
        .collect())
}

/// A line of the statement's answer: an occurrence that was settled, or an alarm that was paused by it.
type Line = (AlarmId, Option<jiff_sqlx::Timestamp>, bool);

async fn write_once(context: &AlarmsContext, batch: &[Settlement]) -> Result<Vec<Line>, db::Error> {
    let claims = || batch.iter().map(|settlement| &settlement.claim);
    let verdicts = || batch.iter().map(|settlement| &settlement.verdict);
    sqlx::query_as(statement!("alarms/settle"))
        .bind(column(claims(), |claim| claim.alarm_id))
        .bind(column(claims(), Claim::scheduled_for))
        .bind(column(claims(), |claim| claim.token))
        .bind(column(verdicts(), |verdict| verdict.fate))
        .bind(column(verdicts(), |verdict| verdict.wait.as_secs_f64()))
        .bind(column(verdicts(), |verdict| verdict.message.as_deref()))
        .bind(column(verdicts(), Verdict::status))
        .bind(column(verdicts(), Verdict::said))
        .bind(column(verdicts(), |verdict| verdict.class))
        .bind(column(verdicts(), |verdict| verdict.class == Some(Class::Gone)))
        .persistent(batch.len() <= super::FEW_ROWS)
        .all(&context.database)
        .await
}

fn report(context: &AlarmsContext, over: &[Settlement], written: &Written) {
    let metrics = &context.metrics.alarms;
    let mut fired = 0;
    for settlement in over {
        let claim = &settlement.claim;
        let (alarm, scheduled_for) = (claim.alarm_id, claim.scheduled_for);
        if !written.done.contains(&key(settlement)) {
            context.metrics.stale_write("alarm");
            tracing::warn!(
                %alarm, %scheduled_for, token = claim.token.0,
                "A late settlement was refused: the claim is not ours any more"
            );
            continue;
        }
        let verdict = &settlement.verdict;
        let (attempt, error) = (claim.attempts + 1, verdict.message.as_deref());
        match verdict.fate {
            Fate::Fired => {
                fired += 1;
                if over.len() <= SAY_EACH {
                    tracing::info!(%alarm, %scheduled_for, attempt, "Alarm fired");
                }
            }
            Fate::Retry => {
                metrics.retried();
                let retry_in = verdict.wait.as_secs();
                tracing::warn!(%alarm, %scheduled_for, attempt, error, retry_in, "Alarm not accepted; it will be tried again");
            }
            Fate::Failed => {
                verdict.class.into_iter().for_each(|class| metrics.failed(class));
                tracing::error!(%alarm, %scheduled_for, attempt, error, "Alarm failed");
            }
            Fate::Released => metrics.released(verdict.held_back.unwrap_or("stopped")),
            Fate::Abandoned => {}
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
