//! What people see of alarms: the alarms, their occurrences, their coming fires. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use stationmaster_schedule::{Cron, Fire};
use uuid::Uuid;

pub use super::history::{Event, Try, events, history, tries};
use super::terms::{Schedule, Written};
use crate::db::{self, Database, statement, within};
use crate::id::{AlarmId, WorkspaceId};

/// Which alarms; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// In this status.
    pub status: Option<String>,
    /// `once` or `cron`.
    pub kind: Option<String>,
    /// Older than this id: where the last page ended.
    pub before: Option<AlarmId>,
    /// How many.
    pub limit: i64,
}

fn optional(time: Option<jiff_sqlx::Timestamp>) -> Option<Timestamp> {
    time.map(jiff_sqlx::Timestamp::to_jiff)
}

/// An alarm.
#[derive(Debug, Clone, Serialize)]
pub struct Alarm {
    /// Its id.
    pub id: AlarmId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub label: String,
    /// `once` or `cron`.
    pub kind: String,
    /// active, paused, fired, cancelled or failed.
    pub status: String,
    /// The expression, of kind `cron`.
    pub cron_expr: Option<String>,
    /// The expression in words.
    pub description: Option<String>,
    /// The IANA zone of the expression or of the local time.
    pub timezone: Option<String>,
    /// The local time, when it was given as one.
    pub civil_at: Option<String>,
    /// The instant, of kind `once`.
    pub fire_at: Option<Timestamp>,
    /// The nominal instant of the next occurrence.
    pub next_fire_at: Option<Timestamp>,
    /// When a wake was last accepted.
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
    pub payload: Option<Box<RawValue>>,
    /// Tries before an occurrence fails; none: the server's setting.
    pub max_failures: Option<i32>,
    /// coalesce, `catch_up` or skip.
    pub misfire: String,
    /// How many are caught up with, for `catch_up`.
    pub catch_up: i32,
    /// How far back missed occurrences are made up for, in seconds; none: the server's setting.
    pub misfire_window: Option<f64>,
    /// allow, queue or skip.
    pub overlap: String,
    /// vixie, skip or both.
    pub dst: String,
    /// In seconds.
    pub jitter: f64,
    /// Not before.
    pub start_at: Option<Timestamp>,
    /// Not after.
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
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
    /// No server has worked out its next fire yet.
    pub unplanned: bool,
}

#[derive(sqlx::FromRow)]
struct AlarmRow {
    id: AlarmId,
    workspace_id: WorkspaceId,
    label: String,
    kind: String,
    cron_expr: Option<String>,
    timezone: Option<String>,
    civil_at: Option<String>,
    fire_at: Option<jiff_sqlx::Timestamp>,
    next_fire_at: Option<jiff_sqlx::Timestamp>,
    status: String,
    failure_count: i32,
    failed_in_a_row: i32,
    last_error: Option<String>,
    last_fired_at: Option<jiff_sqlx::Timestamp>,
    dst: String,
    misfire: String,
    catch_up: i32,
    misfire_window: Option<f64>,
    overlap: String,
    jitter: f64,
    start_at: Option<jiff_sqlx::Timestamp>,
    end_at: Option<jiff_sqlx::Timestamp>,
    target_url: Option<String>,
    user_id: Option<String>,
    conversation_id: Option<String>,
    message: Option<String>,
    payload: Option<String>,
    max_failures: Option<i32>,
    pause_after: Option<i32>,
    idempotency_key: Option<String>,
    traceparent: Option<String>,
    set_by: String,
    created_at: jiff_sqlx::Timestamp,
    updated_at: jiff_sqlx::Timestamp,
    unplanned: bool,
}

impl From<AlarmRow> for Alarm {
    fn from(row: AlarmRow) -> Self {
        let cron = row
            .cron_expr
            .as_deref()
            .and_then(|expression| Cron::parse(expression).ok());
        Self {
            id: row.id,
            workspace_id: row.workspace_id,
            label: row.label,
            kind: row.kind,
            status: row.status,
            description: cron.map(|cron| cron.describe()),
            cron_expr: row.cron_expr,
            timezone: row.timezone,
            civil_at: row.civil_at,
            fire_at: optional(row.fire_at),
            next_fire_at: optional(row.next_fire_at),
            last_fired_at: optional(row.last_fired_at),
            failure_count: row.failure_count,
            failed_in_a_row: row.failed_in_a_row,
            last_error: row.last_error,
            target_url: row.target_url,
            user_id: row.user_id,
            conversation_id: row.conversation_id,
            message: row.message,
            payload: row.payload.and_then(|text| RawValue::from_string(text).ok()),
            max_failures: row.max_failures,
            misfire: row.misfire,
            catch_up: row.catch_up,
            misfire_window: row.misfire_window,
            overlap: row.overlap,
            dst: row.dst,
            jitter: row.jitter,
            start_at: optional(row.start_at),
            end_at: optional(row.end_at),
            pause_after: row.pause_after,
            idempotency_key: row.idempotency_key,
            traceparent: row.traceparent,
            set_by: row.set_by,
            created_at: row.created_at.to_jiff(),
            updated_at: row.updated_at.to_jiff(),
            unplanned: row.unplanned,
        }
    }
}

impl Alarm {
    /// Its schedule as it is written down.
    pub(super) fn written(&self) -> Written {
        Written {
            fire_at: self.fire_at,
            civil_at: self.civil_at.clone(),
            cron_expr: self.cron_expr.clone(),
            timezone: self.timezone.clone(),
            dst: self.dst.clone(),
            start_at: self.start_at,
            end_at: self.end_at,
            anchor_at: self.created_at,
        }
    }

    /// Its coming fires after an instant, at most `count`, with notes where the clocks change.
    #[must_use]
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Fire> {
        if !matches!(self.status.as_str(), "active" | "paused") {
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

/// Alarms, newest first.
pub async fn alarms(database: &Database, filter: &Filter) -> Result<Vec<Alarm>, db::Error> {
    page(database, filter, None, &Among::default()).await
}

/// What a filter is narrowed by for somebody who may not see everything.
#[derive(Debug, Clone, Default)]
pub struct Among {
    /// Of these workspaces.
    pub workspaces: Option<Vec<WorkspaceId>>,
    /// With this text in the label or in the last error, in whatever case.
    pub text: Option<String>,
}

/// Alarms among these, newest first.
pub async fn alarms_among(
    database: &Database,
    filter: &Filter,
    among: &Among,
) -> Result<Vec<Alarm>, db::Error> {
    page(database, filter, None, among).await
}

/// One alarm.
pub async fn alarm(database: &Database, id: AlarmId) -> Result<Option<Alarm>, db::Error> {
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let found = page(database, &filter, Some(id), &Among::default()).await?;
    Ok(found.into_iter().next())
}

/// The same in a transaction of the caller's.
pub(super) async fn alarm_in(
    connection: &mut sqlx::PgConnection,
    id: AlarmId,
) -> Result<Option<Alarm>, db::Error> {
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let found = read(connection, &filter, Some(id), &Among::default()).await?;
    Ok(found.into_iter().next())
}

async fn page(
    database: &Database,
    filter: &Filter,
    only: Option<AlarmId>,
    among: &Among,
) -> Result<Vec<Alarm>, db::Error> {
    let mut session = database.session().await?;
    let alarms = read(&mut session, filter, only, among).await?;
    session.finish().await?;
    Ok(alarms)
}

async fn read(
    connection: &mut sqlx::PgConnection,
    filter: &Filter,
    only: Option<AlarmId>,
    among: &Among,
) -> Result<Vec<Alarm>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/get"))
        .bind(filter.workspace)
        .bind(&filter.status)
        .bind(&filter.kind)
        .bind(filter.before.map_or(Uuid::max(), |before| before.0))
        .bind(filter.limit)
        .bind(only)
        .bind(&among.workspaces)
        .bind(&among.text)
        .persistent(false);
    let rows: Vec<AlarmRow> = within(query.fetch_all(connection)).await?;
    Ok(rows.into_iter().map(Alarm::from).collect())
}

/// One nominal instant of an alarm, or a long row of missed ones.
#[derive(Debug, Clone, Serialize)]
pub struct Occurrence {
    /// Of which alarm.
    pub alarm_id: AlarmId,
    /// The nominal instant.
    pub scheduled_for: Timestamp,
    /// pending, claimed, retrying, fired, failed, skipped, coalesced or cancelled.
    pub status: String,
    /// schedule, manual or backfill.
    pub origin: String,
    /// Tries that were not confirmed.
    pub attempts: i32,
    /// Servers that were lost with it in their hands.
    pub recoveries: i32,
    /// When it was due, with its jitter.
    pub due_at: Timestamp,
    /// When it is tried again.
    pub retry_at: Option<Timestamp>,
    /// When its wake was accepted.
    pub fired_at: Option<Timestamp>,
    /// When it was settled.
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
    pub until: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct OccurrenceRow {
    alarm_id: AlarmId,
    scheduled_for: jiff_sqlx::Timestamp,
    status: String,
    origin: String,
    attempts: i32,
    recoveries: i32,
    last_error: Option<String>,
    fired_at: Option<jiff_sqlx::Timestamp>,
    reason: Option<String>,
    retry_at: Option<jiff_sqlx::Timestamp>,
    due_at: jiff_sqlx::Timestamp,
    finished_at: Option<jiff_sqlx::Timestamp>,
    answer_status: Option<i32>,
    answer: Option<String>,
    note: Option<String>,
    covers: Option<i64>,
    until: Option<jiff_sqlx::Timestamp>,
}

impl From<OccurrenceRow> for Occurrence {
    fn from(row: OccurrenceRow) -> Self {
        Self {
            alarm_id: row.alarm_id,
            scheduled_for: row.scheduled_for.to_jiff(),
            status: row.status,
            origin: row.origin,
            attempts: row.attempts,
            recoveries: row.recoveries,
            due_at: row.due_at.to_jiff(),
            retry_at: optional(row.retry_at),
            fired_at: optional(row.fired_at),
            finished_at: optional(row.finished_at),
            reason: row.reason,
            last_error: row.last_error,
            answer_status: row.answer_status,
            answer: row.answer,
            note: row.note,
            covers: row.covers,
            until: optional(row.until),
        }
    }
}

/// The occurrences of an alarm, newest first; `before` is where the last page ended.
pub async fn occurrences(
    database: &Database,
    alarm: AlarmId,
    status: Option<&str>,
    before: Option<Timestamp>,
    limit: i64,
) -> Result<Vec<Occurrence>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("alarms/occurrences"))
        .bind(alarm)
        .bind(status)
        .bind(jiff_sqlx::Timestamp::from(before.unwrap_or(Timestamp::MAX)))
        .bind(limit);
    let rows: Vec<OccurrenceRow> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(rows.into_iter().map(Occurrence::from).collect())
}
