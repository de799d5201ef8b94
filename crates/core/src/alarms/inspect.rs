//! What people see of alarms: the alarms, their occurrences, their coming fires. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use stationmaster_schedule::{Cron, DstPolicy, Fire};
use uuid::Uuid;

pub use super::history::{Event, Try, history, tries};
use super::terms::{
    AlarmKind, AlarmStatus, MisfirePolicy, OccurrenceStatus, Origin, Overlap, Schedule, Written,
};
use crate::columns::{At, Dst, MaybeAt, MaybeJson};
use crate::db::{self, Database, statement, within};
use crate::id::{AlarmId, WorkspaceId};

/// Which alarms; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// In this status.
    pub status: Option<AlarmStatus>,
    /// Of this kind.
    pub kind: Option<AlarmKind>,
    /// With this text in the label or in the last error, in whatever case.
    pub text: Option<String>,
    /// Older than this id: where the last page ended.
    pub before: Option<AlarmId>,
    /// How many.
    pub limit: i64,
}

/// An alarm.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Alarm {
    /// Its id.
    pub id: AlarmId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub label: String,
    /// Once, or again and again.
    pub kind: AlarmKind,
    /// How it stands.
    pub status: AlarmStatus,
    /// The expression, of kind `cron`.
    pub cron_expr: Option<String>,
    /// The expression in words.
    #[sqlx(skip)]
    pub description: Option<String>,
    /// The IANA zone of the expression or of the local time.
    pub timezone: Option<String>,
    /// The local time, when it was given as one.
    pub civil_at: Option<String>,
    /// The instant, of kind `once`.
    #[sqlx(try_from = "MaybeAt")]
    pub fire_at: Option<Timestamp>,
    /// The nominal instant of the next occurrence.
    #[sqlx(try_from = "MaybeAt")]
    pub next_fire_at: Option<Timestamp>,
    /// When a wake was last accepted.
    #[sqlx(try_from = "MaybeAt")]
    pub last_fired_at: Option<Timestamp>,
    /// Tries that failed since then.
    pub failure_count: i32,
    /// Occurrences that failed since then.
    pub failed_in_a_row: i32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Where the wake goes; none: to the router.
    pub target_url: Option<String>,
    /// In the wake.
    pub user_id: Option<String>,
    /// In the wake.
    pub conversation_id: Option<String>,
    /// In the wake.
    pub message: Option<String>,
    /// In the wake.
    #[sqlx(try_from = "MaybeJson")]
    pub payload: Option<Box<RawValue>>,
    /// Tries before an occurrence fails; none: the server's setting.
    pub max_failures: Option<i32>,
    /// What happens to missed occurrences.
    pub misfire: MisfirePolicy,
    /// How many are caught up with, for `catch_up`.
    pub catch_up: i32,
    /// How far back missed occurrences are made up for, in seconds; none: the server's setting.
    pub misfire_window: Option<f64>,
    /// What happens while an earlier occurrence is not settled.
    pub overlap: Overlap,
    /// What happens to local times that do not exist or come twice.
    #[sqlx(try_from = "Dst")]
    pub dst: DstPolicy,
    /// In seconds.
    pub jitter: f64,
    /// Not before.
    #[sqlx(try_from = "MaybeAt")]
    pub start_at: Option<Timestamp>,
    /// Not after.
    #[sqlx(try_from = "MaybeAt")]
    pub end_at: Option<Timestamp>,
    /// Failed occurrences in a row after which it is paused.
    pub pause_after: Option<i32>,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// The caller's trace context.
    pub traceparent: Option<String>,
    /// Who set it.
    pub set_by: String,
    /// When it was set.
    #[sqlx(try_from = "At")]
    pub created_at: Timestamp,
    /// When it was changed last.
    #[sqlx(try_from = "At")]
    pub updated_at: Timestamp,
    /// No server has worked out its next fire yet.
    pub unplanned: bool,
}

impl Alarm {
    /// Its schedule as it is written down.
    pub(super) fn written(&self) -> Written {
        Written {
            fire_at: self.fire_at,
            civil_at: self.civil_at.clone(),
            cron_expr: self.cron_expr.clone(),
            timezone: self.timezone.clone(),
            dst: self.dst,
            start_at: self.start_at,
            end_at: self.end_at,
            anchor_at: self.created_at,
        }
    }

    /// Its coming fires after an instant, at most `count`, with notes where the clocks change.
    #[must_use]
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Fire> {
        if !matches!(self.status, AlarmStatus::Active | AlarmStatus::Paused) {
            return Vec::new();
        }
        match self.written().read() {
            Ok(Schedule::Cron(series)) => {
                // What is due and not yet made comes first.
                let from = self.next_fire_at.map_or(after, |next| {
                    after.min(
                        next.checked_sub(jiff::SignedDuration::from_nanos(1))
                            .unwrap_or(next),
                    )
                });
                series.fires(from).take(count).collect()
            }
            Ok(Schedule::Civil(fire)) => vec![*fire],
            Ok(Schedule::At(_)) | Err(_) => Vec::new(),
        }
    }
}

/// Alarms in scope, newest first.
pub async fn alarms(database: &Database, filter: &Filter) -> Result<Vec<Alarm>, db::Error> {
    let mut session = database.session().await?;
    let alarms = read(database, &mut session, filter, None).await?;
    session.finish().await?;
    Ok(alarms)
}

/// One alarm, when it is in scope.
pub async fn alarm(database: &Database, id: AlarmId) -> Result<Option<Alarm>, db::Error> {
    let mut session = database.session().await?;
    let found = alarm_in(database, &mut session, id).await?;
    session.finish().await?;
    Ok(found)
}

/// The same in a transaction of the caller's.
pub(super) async fn alarm_in(
    database: &Database,
    connection: &mut sqlx::PgConnection,
    id: AlarmId,
) -> Result<Option<Alarm>, db::Error> {
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let found = read(database, connection, &filter, Some(id)).await?;
    Ok(found.into_iter().next())
}

async fn read(
    database: &Database,
    connection: &mut sqlx::PgConnection,
    filter: &Filter,
    only: Option<AlarmId>,
) -> Result<Vec<Alarm>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/get"))
        .bind(filter.workspace)
        .bind(filter.status)
        .bind(filter.kind)
        .bind(filter.before.map_or(Uuid::max(), |before| before.0))
        .bind(filter.limit)
        .bind(only)
        .bind(database.among(None))
        .bind(&filter.text)
        .persistent(false);
    let mut alarms: Vec<Alarm> = within(query.fetch_all(connection)).await?;
    for alarm in &mut alarms {
        let cron = alarm.cron_expr.as_deref().map(Cron::parse);
        alarm.description = cron.and_then(Result::ok).map(|cron| cron.describe());
    }
    Ok(alarms)
}

/// One nominal instant of an alarm, or a long row of missed ones.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Occurrence {
    /// Of which alarm.
    pub alarm_id: AlarmId,
    /// The nominal instant.
    #[sqlx(try_from = "At")]
    pub scheduled_for: Timestamp,
    /// How it stands.
    pub status: OccurrenceStatus,
    /// Where it comes from.
    pub origin: Origin,
    /// Tries that were not confirmed.
    pub attempts: i32,
    /// Servers that were lost with it in their hands.
    pub recoveries: i32,
    /// When it was due, with its jitter.
    #[sqlx(try_from = "At")]
    pub due_at: Timestamp,
    /// When it is tried again.
    #[sqlx(try_from = "MaybeAt")]
    pub retry_at: Option<Timestamp>,
    /// When its wake was accepted.
    #[sqlx(try_from = "MaybeAt")]
    pub fired_at: Option<Timestamp>,
    /// When it was settled.
    #[sqlx(try_from = "MaybeAt")]
    pub finished_at: Option<Timestamp>,
    /// Why it did not fire.
    pub reason: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The HTTP status of the last answer.
    pub answer_status: Option<i32>,
    /// The beginning of the last answer.
    pub answer: Option<String>,
    /// What a change of the clocks did to it.
    pub note: Option<String>,
    /// How many occurrences this speaks for; none: very many.
    pub covers: Option<i64>,
    /// Of a long row: the first instant that is no part of it.
    #[sqlx(try_from = "MaybeAt")]
    pub until: Option<Timestamp>,
}

/// The occurrences of an alarm, newest first; `before` is where the last page ended.
pub async fn occurrences(
    database: &Database,
    alarm: AlarmId,
    status: Option<OccurrenceStatus>,
    before: Option<Timestamp>,
    limit: i64,
) -> Result<Vec<Occurrence>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("alarms/occurrences"))
        .bind(alarm)
        .bind(status)
        .bind(jiff_sqlx::Timestamp::from(before.unwrap_or(Timestamp::MAX)))
        .bind(limit);
    let occurrences = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(occurrences)
}
