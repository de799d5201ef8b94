//! Claim: what is due becomes occurrences that this server has leased, in one short transaction, and the series move on.
//!
//! One clock (I6): the database says what is due. One owner (I1): each claim has a fresh token, and what somebody else holds
//! is skipped until its lease has run out. The alarms are locked and read by one statement; what follows from that is
//! computed here; a second statement makes and leases. Between claims the server sleeps until the next instant is due, a
//! notification comes, or the tick is over.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::value::RawValue;
use stationmaster_schedule::DstPolicy;

use super::Shared;
use super::plan::{Late, Missed, Step};
use super::terms::{
    AlarmKind, AlarmStatus, Misfire, MisfirePolicy, Origin, Overlap, Terms, Upcoming, Written, due,
};
use crate::capacity::LowWater;
use crate::db::{self, statement, within};
use crate::id::{AlarmId, ServerId, Token, WorkspaceId};
use crate::lane::Claimed;
use crate::task::Next;

/// After work there is often more: for this long we look again and again, and nobody needs to ring.
const ATTENTION: Duration = Duration::from_secs(1);
/// Open rows whose time came longer ago than this were claimed then, and are dead; a full look finds what was not.
const LONG_AGO: f64 = 60.0;
/// How soon we look again while attentive.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An occurrence that this server has leased, and what its wake says.
pub(crate) struct Claim {
    pub(crate) alarm_id: AlarmId,
    pub(crate) scheduled_for: Timestamp,
    pub(crate) token: Token,
    pub(crate) holder: ServerId,
    /// By our own clock, counted from before the claim was made.
    pub(crate) valid_until: Instant,
    /// When it was made, by our own clock.
    pub(crate) claimed: Instant,
    /// How late it was then, by the database's clock.
    pub(crate) late: f64,
    pub(crate) attempts: u32,
    pub(crate) recoveries: u32,
    pub(crate) max_failures: u32,
    pub(crate) origin: Origin,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) target_url: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) traceparent: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Candidate {
    alarm_id: AlarmId,
    next_fire_at: Option<jiff_sqlx::Timestamp>,
    next_due_at: jiff_sqlx::Timestamp,
    free_at: Option<jiff_sqlx::Timestamp>,
    note: Option<String>,
    last_fired_at: Option<jiff_sqlx::Timestamp>,
    kind: AlarmKind,
    cron_expr: Option<String>,
    timezone: Option<String>,
    #[sqlx(try_from = "crate::columns::Dst")]
    dst: DstPolicy,
    misfire: MisfirePolicy,
    catch_up: i32,
    misfire_window: Option<f64>,
    overlap: Overlap,
    jitter: f64,
    start_at: Option<jiff_sqlx::Timestamp>,
    end_at: Option<jiff_sqlx::Timestamp>,
    anchor_at: jiff_sqlx::Timestamp,
    now: jiff_sqlx::Timestamp,
}

#[derive(sqlx::FromRow)]
struct Leased {
    alarm_id: AlarmId,
    scheduled_for: jiff_sqlx::Timestamp,
    origin: Origin,
    attempts: i32,
    recoveries: i32,
    token: Token,
    late: f64,
    workspace_id: WorkspaceId,
    target_url: Option<String>,
    user_id: Option<String>,
    conversation_id: Option<String>,
    message: Option<String>,
    payload: Option<String>,
    max_failures: Option<i32>,
    traceparent: Option<String>,
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
    modes: Vec<&'static str>,
    notes: Vec<Option<String>>,
}

#[derive(Default)]
struct Memory {
    /// When there was something to do last, and when others were told that we look again soon.
    worked_at: Option<Instant>,
    attended_at: Option<Instant>,
    next_due: Option<Instant>,
    /// By the database's clock, at the last look, in seconds since 1970.
    database_now: f64,
    /// The last claim was full: there is more, no need to look.
    more: bool,
}

/// Makes claims.
pub(crate) struct Claimer {
    shared: Shared,
    memory: Mutex<Memory>,
}

impl Claimer {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared,
            memory: Mutex::default(),
        }
    }

    /// Was the last claim full, so that there is more?
    pub(crate) fn has_backlog(&self) -> bool {
        self.memory().more
    }

    /// Claims at most about `room` occurrences.
    #[tracing::instrument(name = "step:claim_due", level = "debug", skip_all)]
    pub(crate) async fn claim(&self, room: usize) -> Result<Claimed<Claim>, db::Error> {
        let began = Instant::now();
        let nothing = |next| Claimed {
            claims: Vec::new(),
            next,
        };
        let Some(holder) = self.shared.presence.holder() else {
            return Ok(nothing(Next::After(Duration::from_millis(50))));
        };
        if !self.memory().more && !self.look().await? {
            return Ok(nothing(Next::After(self.sleep())));
        }
        let call = tokio::time::timeout(db::CALL_TIMEOUT, self.lease(holder, room)).await;
        let (leased, more) = call.unwrap_or(Err(db::Error::Timeout(db::CALL_TIMEOUT)))?;
        self.memory().more = more;
        if leased.is_empty() && !more {
            return Ok(nothing(Next::After(LOOK_AGAIN)));
        }
        let claims: Vec<Claim> = leased
            .into_iter()
            .map(|row| self.claim_of(row, holder, began))
            .collect();
        self.memory().worked_at = Some(Instant::now());
        self.attend().await?;
        self.shared.metrics.alarms.claimed(claims.len(), began.elapsed());
        tracing::debug!(occurrences = claims.len(), "Firing {} occurrences", claims.len());
        Ok(Claimed {
            claims,
            next: Next::Now,
        })
    }

    fn claim_of(&self, row: Leased, holder: ServerId, began: Instant) -> Claim {
        let settings = &self.shared.settings;
        Claim {
            alarm_id: row.alarm_id,
            scheduled_for: row.scheduled_for.to_jiff(),
            token: row.token,
            holder,
            valid_until: began + settings.lease,
            claimed: Instant::now(),
            late: row.late,
            attempts: u32::try_from(row.attempts).unwrap_or_default(),
            recoveries: u32::try_from(row.recoveries).unwrap_or_default(),
            max_failures: row
                .max_failures
                .and_then(|most| u32::try_from(most).ok())
                .unwrap_or(settings.max_failures),
            origin: row.origin,
            workspace_id: row.workspace_id,
            target_url: row.target_url,
            user_id: row.user_id,
            conversation_id: row.conversation_id,
            message: row.message,
            payload: row.payload.and_then(|text| RawValue::from_string(text).ok()),
            traceparent: row.traceparent,
        }
    }

    /// Tells others, now and then, that they need not ring.
    async fn attend(&self) -> Result<(), db::Error> {
        {
            let mut memory = self.memory();
            if memory
                .attended_at
                .is_some_and(|at| at.elapsed() < ATTENTION.mul_f64(0.4))
            {
                return Ok(());
            }
            memory.attended_at = Some(Instant::now());
        }
        let attend = sqlx::query(statement!("alarms/attend")).bind(ATTENTION.as_secs_f64());
        within(attend.execute(self.shared.database.pool())).await?;
        Ok(())
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self) -> Duration {
        let memory = self.memory();
        let attentive = memory
            .worked_at
            .is_some_and(|at| at.elapsed() < ATTENTION.mul_f64(1.3));
        let tick = if attentive {
            LOOK_AGAIN
        } else {
            self.shared.settings.tick
        };
        let due = memory
            .next_due
            .map(|due| due.saturating_duration_since(Instant::now()));
        // A moment past the due time, so that the database's clock has surely reached it.
        due.map_or(tick, |due| (due + Duration::from_millis(1)).min(tick))
    }

    /// A look that writes nothing, so that idle alarms cost one read. Is there anything to claim?
    async fn look(&self) -> Result<bool, db::Error> {
        let now = Instant::now();
        let (due_from, ready_from) = (
            lock(&self.shared.due_from).from(),
            lock(&self.shared.ready_from).from(),
        );
        let (unplanned, next_due_in, database_now): (bool, Option<f64>, f64) = within(
            sqlx::query_as(statement!("alarms/look"))
                .bind(due_from)
                .bind(ready_from)
                .fetch_one(self.shared.database.pool()),
        )
        .await?;
        if unplanned {
            self.shared.bells.planner.ring();
        }
        let mut memory = self.memory();
        memory.database_now = database_now;
        memory.next_due =
            next_due_in.map(|seconds| now + Duration::try_from_secs_f64(seconds).unwrap_or_default());
        Ok(next_due_in.is_some_and(|seconds| seconds <= 0.0))
    }

    /// The transaction. Answers what was leased, and whether there is probably more.
    async fn lease(&self, holder: ServerId, room: usize) -> Result<(Vec<Leased>, bool), db::Error> {
        let limit = i64::try_from(room).unwrap_or(i64::MAX);
        let mut transaction = self.shared.database.pool().begin().await?;
        let (due_from, looked_at) = (lock(&self.shared.due_from).from(), Instant::now());
        let candidates: Vec<Candidate> = sqlx::query_as(statement!("alarms/lock_due"))
            .bind(due_from)
            .bind(limit)
            .fetch_all(&mut *transaction)
            .await?;
        let first = candidates.first().map(|row| seconds(row.next_due_at.to_jiff()));
        lock(&self.shared.due_from).looked(due_from, looked_at.elapsed(), first);
        let full = candidates.len() >= room;
        let moves = self.moves(candidates);
        if !moves.missed.is_empty() {
            record_missed(&mut transaction, &moves.missed).await?;
        }
        if !moves.broken.is_empty() {
            fail(&mut transaction, &moves.broken).await?;
        }
        let (ready_from, looked_at) = (lock(&self.shared.ready_from).from(), Instant::now());
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
            .bind(&moves.made.modes)
            .bind(&moves.made.notes)
            .bind(holder)
            .bind(self.shared.settings.lease.as_secs_f64())
            .bind(ready_from)
            .bind(open.max(1))
            .bind(&moves.errors)
            .persistent(moves.alarms.len() <= super::FEW_ROWS)
            .fetch_all(&mut *transaction)
            .await?;
        let behind = self.memory().database_now - LONG_AGO;
        lock(&self.shared.ready_from).looked(ready_from, looked_at.elapsed(), Some(behind));
        transaction.commit().await?;
        for (alarm, missed) in &moves.missed {
            self.shared
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

    fn moves(&self, candidates: Vec<Candidate>) -> Moves {
        let mut moves = Moves::default();
        for candidate in candidates {
            let alarm = candidate.alarm_id;
            match self.step(&candidate) {
                Ok((step, terms)) => moves.add(&candidate, step, &terms),
                Err(reason) => {
                    tracing::error!(%alarm, error = reason, "Alarm cannot fire any more");
                    moves.broken.push((alarm, reason));
                }
            }
        }
        moves
    }

    fn step(&self, candidate: &Candidate) -> Result<(Step, Terms), String> {
        let settings = &self.shared.settings;
        let next = candidate.next_fire_at.unwrap_or(candidate.next_due_at).to_jiff();
        let written = Written {
            fire_at: Some(next),
            civil_at: None,
            cron_expr: candidate.cron_expr.clone(),
            timezone: candidate.timezone.clone(),
            dst: candidate.dst,
            start_at: candidate.start_at.map(jiff_sqlx::Timestamp::to_jiff),
            end_at: candidate.end_at.map(jiff_sqlx::Timestamp::to_jiff),
            anchor_at: candidate.anchor_at.to_jiff(),
        };
        let terms = Terms {
            misfire: Misfire::named(candidate.misfire, u32::try_from(candidate.catch_up).unwrap_or(1)),
            window: candidate
                .misfire_window
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .unwrap_or(settings.misfire_window),
            grace: settings.misfire_grace,
            overlap: candidate.overlap,
            jitter: Duration::try_from_secs_f64(candidate.jitter).unwrap_or_default(),
        };
        let schedule = written.read()?;
        let late = Late {
            alarm: candidate.alarm_id,
            terms,
            first: Upcoming {
                at: next,
                note: candidate.note.clone(),
            },
            free_at: candidate.free_at.map(jiff_sqlx::Timestamp::to_jiff),
            now: candidate.now.to_jiff(),
            schedule: &schedule,
        };
        Ok((late.step(), terms))
    }
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
        for (place, fire) in step.fire.into_iter().enumerate() {
            self.made.alarms.push(alarm);
            self.made.scheduled_for.push(stamp(fire.at));
            self.made.due_at.push(stamp(due(alarm, fire.at, terms.jitter)));
            self.made.modes.push(match (place, terms.overlap) {
                (0, _) => "l",
                (_, Overlap::Allow) => "r",
                _ => "w",
            });
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
    let column = |get: fn(&Missed) -> Option<jiff_sqlx::Timestamp>| {
        missed.iter().map(|(_, missed)| get(missed)).collect::<Vec<_>>()
    };
    let covers = missed
        .iter()
        .map(|(_, missed)| missed.covers.and_then(|many| i64::try_from(many).ok()));
    sqlx::query(statement!("alarms/record_missed"))
        .bind(missed.iter().map(|(alarm, _)| *alarm).collect::<Vec<_>>())
        .bind(
            missed
                .iter()
                .map(|(_, missed)| stamp(missed.from))
                .collect::<Vec<_>>(),
        )
        .bind(column(|missed| missed.until.map(jiff_sqlx::Timestamp::from)))
        .bind(covers.collect::<Vec<_>>())
        .bind(missed.iter().map(|(_, missed)| missed.status).collect::<Vec<_>>())
        .bind(
            missed
                .iter()
                .map(|(_, missed)| missed.reason.as_str())
                .collect::<Vec<_>>(),
        )
        .execute(transaction)
        .await?;
    Ok(())
}

/// Ends alarms that can never fire.
pub(super) async fn fail(
    transaction: &mut sqlx::PgConnection,
    broken: &[(AlarmId, String)],
) -> Result<(), db::Error> {
    let (alarms, reasons): (Vec<AlarmId>, Vec<&str>) = broken
        .iter()
        .map(|(alarm, reason)| (*alarm, reason.as_str()))
        .unzip();
    sqlx::query(statement!("alarms/fail"))
        .bind(alarms)
        .bind(reasons)
        .execute(transaction)
        .await?;
    Ok(())
}

fn lock(low_water: &Mutex<LowWater>) -> MutexGuard<'_, LowWater> {
    low_water.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 fit")]
fn seconds(at: Timestamp) -> f64 {
    at.as_microsecond() as f64 / 1e6
}
