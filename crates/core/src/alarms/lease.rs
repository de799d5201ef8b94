//! Lease: what is due becomes occurrences that this server has leased, in one short transaction, and the series move on.
//!
//! One clock (I6): the database says what is due. One owner (I1): each claim has a fresh token, and what somebody else holds
//! is skipped until its lease has run out. The alarms are locked and read by one statement; what follows from that is
//! computed here; a second statement makes and leases.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::late::{Late, Missed, Step};
use super::terms::{
    AlarmKind, AlarmStatus, Misfire, MisfirePolicy, Origin, Overlap, Terms, Upcoming, Written, due,
};
use super::{AlarmsContext, Settings};
use crate::columns::{At, MaybeAt, MaybeSpan, Span};
use crate::db::{self, column, statement};
use crate::id::{AlarmId, ServerId, Token, WorkspaceId};

#[derive(sqlx::FromRow)]
struct Candidate {
    alarm_id: AlarmId,
    #[sqlx(try_from = "MaybeAt")]
    next_fire_at: Option<Timestamp>,
    #[sqlx(try_from = "At")]
    next_due_at: Timestamp,
    #[sqlx(try_from = "MaybeAt")]
    free_at: Option<Timestamp>,
    note: Option<String>,
    #[sqlx(try_from = "MaybeAt")]
    last_fired_at: Option<Timestamp>,
    kind: AlarmKind,
    misfire: MisfirePolicy,
    catch_up: i32,
    #[sqlx(try_from = "MaybeSpan")]
    misfire_window: Option<Duration>,
    overlap: Overlap,
    #[sqlx(try_from = "Span")]
    jitter: Duration,
    #[sqlx(flatten)]
    written: Written,
    #[sqlx(try_from = "At")]
    now: Timestamp,
}

#[derive(sqlx::FromRow)]
pub(super) struct Leased {
    pub(super) alarm_id: AlarmId,
    #[sqlx(try_from = "At")]
    pub(super) scheduled_for: Timestamp,
    pub(super) origin: Origin,
    pub(super) attempts: i32,
    pub(super) recoveries: i32,
    pub(super) token: Token,
    pub(super) late: f64,
    pub(super) max_failures: Option<i32>,
    #[sqlx(flatten)]
    pub(super) content: Content,
}

/// What a wake says, where it goes, and whose it is.
#[derive(sqlx::FromRow)]
pub(crate) struct Content {
    pub(super) workspace_id: WorkspaceId,
    pub(super) target_url: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) conversation_id: Option<String>,
    pub(super) message: Option<String>,
    pub(super) payload: Option<String>,
    pub(super) traceparent: Option<String>,
}

/// How the rows of a batch of series change; the columns of the statement.
#[derive(Default)]
struct Moves {
    alarms: Vec<AlarmId>,
    next_fire_at: Vec<Option<jiff_sqlx::Timestamp>>,
    next_due_at: Vec<Option<jiff_sqlx::Timestamp>>,
    follows_at: Vec<jiff_sqlx::Timestamp>,
    held: Vec<bool>,
    notes: Vec<Option<String>>,
    statuses: Vec<AlarmStatus>,
    errors: Vec<Option<String>>,
    made: Made,
    missed: Vec<(AlarmId, Missed)>,
    broken: Vec<(AlarmId, String)>,
}

#[derive(Default)]
struct Made {
    alarms: Vec<AlarmId>,
    scheduled_for: Vec<jiff_sqlx::Timestamp>,
    due_at: Vec<jiff_sqlx::Timestamp>,
    /// For an earlier one.
    waits: Vec<bool>,
    notes: Vec<Option<String>>,
}

/// The transaction. `behind` is the instant before which open rows are dead, by the database's clock, in seconds since 1970.
/// Answers what was leased, and whether there is probably more.
pub(super) async fn lease(
    context: &AlarmsContext,
    holder: ServerId,
    room: usize,
    behind: f64,
) -> Result<(Vec<Leased>, bool), db::Error> {
    let limit = i64::try_from(room).unwrap_or(i64::MAX);
    let mut transaction = context.database.begin().await?;
    let (due_from, looked_at) = (context.due_from.lock().from(), Instant::now());
    let candidates: Vec<Candidate> = sqlx::query_as(statement!("alarms/lock_due"))
        .bind(due_from)
        .bind(limit)
        .fetch_all(&mut *transaction)
        .await?;
    let first = candidates.first().map(|row| seconds(row.next_due_at));
    context
        .due_from
        .lock()
        .looked(due_from, looked_at.elapsed(), first);
    let full = candidates.len() >= room;
    let moves = moves_of(&context.settings, candidates);
    if !moves.missed.is_empty() {
        record_missed(&mut transaction, &moves.missed).await?;
    }
    if !moves.broken.is_empty() {
        fail(&mut transaction, &moves.broken).await?;
    }
    let (ready_from, looked_at) = (context.ready_from.lock().from(), Instant::now());
    let open = limit.saturating_sub(i64::try_from(moves.made.alarms.len()).unwrap_or_default());
    let leased: Vec<Leased> = sqlx::query_as(statement!("alarms/claim"))
        .bind(&moves.alarms)
        .bind(&moves.next_fire_at)
        .bind(&moves.next_due_at)
        .bind(&moves.follows_at)
        .bind(&moves.held)
        .bind(&moves.notes)
        .bind(&moves.statuses)
        .bind(&moves.made.alarms)
        .bind(&moves.made.scheduled_for)
        .bind(&moves.made.due_at)
        .bind(&moves.made.waits)
        .bind(&moves.made.notes)
        .bind(holder)
        .bind(context.settings.lease.as_secs_f64())
        .bind(ready_from)
        .bind(open.max(1))
        .bind(&moves.errors)
        .persistent(moves.alarms.len() <= super::FEW_ROWS)
        .fetch_all(&mut *transaction)
        .await?;
    context
        .ready_from
        .lock()
        .looked(ready_from, looked_at.elapsed(), Some(behind));
    transaction.commit().await?;
    for (alarm, missed) in &moves.missed {
        context
            .metrics
            .alarms
            .missed(missed.status, missed.covers.unwrap_or(1));
        tracing::warn!(
            alarm = %alarm, scheduled_for = %missed.from, occurrences = missed.covers, reason = missed.reason,
            "Occurrence missed"
        );
    }
    let more = full || leased.len() >= room;
    Ok((leased, more))
}

fn moves_of(settings: &Settings, candidates: Vec<Candidate>) -> Moves {
    let mut moves = Moves::default();
    for candidate in candidates {
        let alarm = candidate.alarm_id;
        match step(settings, &candidate) {
            Ok((step, terms)) => moves.add(&candidate, step, &terms),
            Err(reason) => {
                tracing::error!(%alarm, error = reason, "Alarm cannot fire any more");
                moves.broken.push((alarm, reason));
            }
        }
    }
    moves
}

fn step(settings: &Settings, candidate: &Candidate) -> Result<(Step, Terms), String> {
    let next = candidate.next_fire_at.unwrap_or(candidate.next_due_at);
    let written = Written {
        fire_at: Some(next),
        ..candidate.written.clone()
    };
    let terms = Terms {
        misfire: Misfire::named(candidate.misfire, u32::try_from(candidate.catch_up).unwrap_or(1)),
        window: candidate.misfire_window.unwrap_or(settings.misfire_window),
        grace: settings.misfire_grace,
        overlap: candidate.overlap,
        jitter: candidate.jitter,
    };
    let schedule = written.read()?;
    let late = Late {
        alarm: candidate.alarm_id,
        terms,
        first: Upcoming {
            at: next,
            note: candidate.note.clone(),
        },
        free_at: candidate.free_at,
        now: candidate.now,
        schedule: &schedule,
    };
    Ok((late.step(), terms))
}

impl Moves {
    fn add(&mut self, candidate: &Candidate, step: Step, terms: &Terms) {
        let alarm = candidate.alarm_id;
        let stamp = jiff_sqlx::Timestamp::from;
        let over = step.next.is_none() && step.fire.is_empty();
        let (status, error) = match (over, candidate.last_fired_at) {
            (false, _) => (AlarmStatus::Active, None),
            (true, Some(_)) => (AlarmStatus::Fired, None),
            (true, None) => (
                AlarmStatus::Failed,
                step.missed.last().map(|missed| missed.reason.clone()),
            ),
        };
        self.alarms.push(alarm);
        self.next_fire_at
            .push(step.next.as_ref().map(|next| stamp(next.at)));
        self.next_due_at.push(
            step.next
                .as_ref()
                .map(|next| stamp(due(alarm, next.at, terms.jitter))),
        );
        self.follows_at.push(stamp(step.follows));
        self.held.push(
            terms.overlap != Overlap::Allow && !step.fire.is_empty() && candidate.kind == AlarmKind::Cron,
        );
        self.notes.push(step.next.and_then(|next| next.note));
        self.statuses.push(status);
        self.errors.push(error);
        self.missed
            .extend(step.missed.into_iter().map(|missed| (alarm, missed)));
        for fire in step.fire {
            self.made.alarms.push(alarm);
            self.made.scheduled_for.push(stamp(fire.at));
            self.made.due_at.push(stamp(due(alarm, fire.at, terms.jitter)));
            self.made.waits.push(terms.overlap != Overlap::Allow);
            self.made.notes.push(fire.note);
        }
    }
}

/// Writes down what will not fire.
pub(super) async fn record_missed(
    transaction: &mut sqlx::PgConnection,
    missed: &[(AlarmId, Missed)],
) -> Result<(), db::Error> {
    let stamp = jiff_sqlx::Timestamp::from;
    sqlx::query(statement!("alarms/record_missed"))
        .bind(column(missed, |(alarm, _)| *alarm))
        .bind(column(missed, |(_, missed)| stamp(missed.from)))
        .bind(column(missed, |(_, missed)| missed.until.map(stamp)))
        .bind(column(missed, |(_, missed)| {
            missed.covers.and_then(|many| i64::try_from(many).ok())
        }))
        .bind(column(missed, |(_, missed)| missed.status))
        .bind(column(missed, |(_, missed)| missed.reason.as_str()))
        .execute(transaction)
        .await?;
    Ok(())
}

/// Ends alarms that can never fire.
pub(super) async fn fail(
    transaction: &mut sqlx::PgConnection,
    broken: &[(AlarmId, String)],
) -> Result<(), db::Error> {
    sqlx::query(statement!("alarms/fail"))
        .bind(column(broken, |(alarm, _)| *alarm))
        .bind(column(broken, |(_, reason)| reason.as_str()))
        .execute(transaction)
        .await?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 fit")]
fn seconds(at: Timestamp) -> f64 {
    at.as_microsecond() as f64 / 1e6
}
