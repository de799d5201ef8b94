//! What people see of alarms: the alarms, their occurrences, their coming fires. Reads only.

use jiff::Timestamp;
use stationmaster_schedule::{Cron, Fire};
pub use stationmaster_wire::{Alarm, AlarmEvent, AlarmQuery, Occurrence};
use uuid::Uuid;

pub use super::history::{Try, history, tries};
use super::terms::{AlarmStatus, OccurrenceStatus, Schedule, Written};
use crate::db::{self, Database, Read as _, statement, within};
use crate::id::AlarmId;

/// The schedule of an alarm as it is written down.
pub(super) fn written(alarm: &Alarm) -> Written {
    Written {
        fire_at: alarm.fire_at,
        civil_at: alarm.civil_at.clone(),
        cron_expr: alarm.cron_expr.clone(),
        timezone: alarm.timezone.clone(),
        dst: alarm.dst.into(),
        start_at: alarm.start_at,
        end_at: alarm.end_at,
        anchor_at: alarm.created_at,
    }
}

/// The coming fires of an alarm after an instant, at most `count`, with notes where the clocks change.
#[must_use]
pub fn upcoming(alarm: &Alarm, after: Timestamp, count: usize) -> Vec<Fire> {
    if !matches!(alarm.status, AlarmStatus::Active | AlarmStatus::Paused) {
        return Vec::new();
    }
    match written(alarm).read() {
        Ok(Schedule::Cron(series)) => {
            // What is due and not yet made comes first.
            let from = alarm.next_fire_at.map_or(after, |next| {
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

/// Alarms in scope that match, newest first, older than an id.
pub async fn alarms(
    database: &Database,
    query: &AlarmQuery,
    before: Option<AlarmId>,
    limit: i64,
) -> Result<Vec<Alarm>, db::Error> {
    let mut session = database.session().await?;
    let alarms = read(database, &mut session, query, before, limit, None).await?;
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
    let found = read(database, connection, &AlarmQuery::default(), None, 1, Some(id)).await?;
    Ok(found.into_iter().next())
}

async fn read(
    database: &Database,
    connection: &mut sqlx::PgConnection,
    query: &AlarmQuery,
    before: Option<AlarmId>,
    limit: i64,
    only: Option<AlarmId>,
) -> Result<Vec<Alarm>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/get"))
        .bind(query.workspace_id)
        .bind(query.status)
        .bind(query.kind)
        .bind(before.map_or(Uuid::max(), |before| before.0))
        .bind(limit)
        .bind(only)
        .bind(database.among(None))
        .bind(&query.search)
        .persistent(false);
    let mut alarms: Vec<Alarm> = within(query.fetch_all(connection)).await?;
    for alarm in &mut alarms {
        let cron = alarm.cron_expr.as_deref().map(Cron::parse);
        alarm.description = cron.and_then(Result::ok).map(|cron| cron.describe());
    }
    Ok(alarms)
}

/// The occurrences of an alarm, newest first; `before` is where the last page ended.
pub async fn occurrences(
    database: &Database,
    alarm: AlarmId,
    status: Option<OccurrenceStatus>,
    before: Option<Timestamp>,
    limit: i64,
) -> Result<Vec<Occurrence>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/occurrences"))
        .bind(alarm)
        .bind(status)
        .bind(jiff_sqlx::Timestamp::from(before.unwrap_or(Timestamp::MAX)))
        .bind(limit);
    query.all(database).await
}
