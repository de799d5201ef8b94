//! What people see of alarms: the alarms, their occurrences, their coming fires. Reads only.

use jiff::Timestamp;
use stationmaster_schedule::Cron;
pub use stationmaster_wire::{
    Alarm, AlarmDetails, AlarmEvent, AlarmQuery, Occurrence, OpenBreaker, Upcoming,
};
use uuid::Uuid;

pub use super::history::{Try, history, tries};
use super::terms::{AlarmStatus, OccurrenceStatus, Schedule, Written};
use crate::db::{self, Database, Read as _, statement, within};
use crate::id::{AlarmId, WorkspaceId};
use crate::pages::{Page, Window};

/// Fires to come that are told with an alarm.
const TOLD: usize = 10;

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
pub fn upcoming(alarm: &Alarm, after: Timestamp, count: usize) -> Vec<Upcoming> {
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
            series.fires(from).take(count).map(Upcoming::from).collect()
        }
        Ok(Schedule::Civil(fire)) => vec![(*fire).into()],
        Ok(Schedule::At(_)) | Err(_) => Vec::new(),
    }
}

/// An alarm with its coming fires.
#[must_use]
pub fn details(alarm: Alarm) -> AlarmDetails {
    let mut upcoming = upcoming(&alarm, Timestamp::now(), TOLD);
    if let (true, Some(at)) = (upcoming.is_empty(), alarm.next_fire_at) {
        upcoming.push(Upcoming {
            at,
            local: at.to_string(),
            note: None,
        });
    }
    AlarmDetails { alarm, upcoming }
}

/// Alarms in scope, or of the workspace that the query names, that match; newest first, older than an id.
pub async fn alarms(
    database: &Database,
    query: &AlarmQuery,
    workspace: Option<WorkspaceId>,
    before: Option<AlarmId>,
    limit: usize,
) -> Result<Page<Alarm>, db::Error> {
    let among = database.among(workspace);
    let few = query
        .status
        .filter(|status| matches!(status, AlarmStatus::Paused | AlarmStatus::Failed));
    // Those that few have are found by their status alone, of whichever workspace.
    let status_tells = match few {
        Some(_) => among.is_none(),
        None => query.status.is_none(),
    };
    let window = Window::new(
        limit,
        status_tells && query.kind.is_none() && query.search.is_none(),
    );
    let mut session = database.session().await?;
    let candidates = sqlx::query_scalar(statement!("alarms/candidates"))
        .bind(&among)
        .bind(few)
        .bind(before.map_or(Uuid::max(), |before| before.0))
        .bind(window.candidates())
        .persistent(false);
    let candidates: Vec<Uuid> = within(candidates.fetch_all(&mut *session)).await?;
    let rows = read(&mut session, &candidates, query, among, window.rows()).await?;
    session.finish().await?;
    Ok(window.page(rows, |alarm| alarm.id, &candidates))
}

/// Which alarms somebody should know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notable {
    /// Those that are due next, the late ones first.
    Coming,
    /// Those whose last occurrences failed.
    Failing,
}

/// Alarms in scope that somebody should know of, however many there are.
pub async fn notable(database: &Database, which: Notable, limit: i64) -> Result<Vec<Alarm>, db::Error> {
    let among = database.among(None);
    let mut session = database.session().await?;
    let query = sqlx::query_scalar(statement!("alarms/next"))
        .bind(&among)
        .bind(limit)
        .bind(which == Notable::Failing)
        .persistent(false);
    let ids: Vec<Uuid> = within(query.fetch_all(&mut *session)).await?;
    let mut found = read(&mut session, &ids, &AlarmQuery::default(), among, limit).await?;
    session.finish().await?;
    found.sort_by_key(|alarm| ids.iter().position(|id| *id == alarm.id));
    Ok(found)
}

/// Targets of wakes that do not answer a server, and since when. Which alarms aim at them is compared within the statement: servers write such
/// rows for everybody.
pub async fn silent_targets(database: &Database, limit: i64) -> Result<Vec<OpenBreaker>, db::Error> {
    sqlx::query_as(statement!("breakers/list"))
        .bind(database.among(None))
        .bind(limit)
        .persistent(false)
        .all(&database.own())
        .await
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
    let found = read(
        connection,
        &[id.0],
        &AlarmQuery::default(),
        database.among(None),
        1,
    )
    .await?;
    Ok(found.into_iter().next())
}

async fn read(
    connection: &mut sqlx::PgConnection,
    candidates: &[Uuid],
    query: &AlarmQuery,
    among: Option<Vec<WorkspaceId>>,
    limit: i64,
) -> Result<Vec<Alarm>, db::Error> {
    let query = sqlx::query_as(statement!("alarms/get"))
        .bind(candidates)
        .bind(query.status)
        .bind(query.kind)
        .bind(among)
        .bind(&query.search)
        .bind(limit)
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
    limit: usize,
) -> Result<Page<Occurrence, Timestamp>, db::Error> {
    let window = Window::new(limit, status.is_none());
    let mut session = database.session().await?;
    let candidates = sqlx::query_scalar(statement!("alarms/occurrence_candidates"))
        .bind(alarm)
        .bind(jiff_sqlx::Timestamp::from(before.unwrap_or(Timestamp::MAX)))
        .bind(window.candidates());
    let candidates: Vec<jiff_sqlx::Timestamp> = within(candidates.fetch_all(&mut *session)).await?;
    let rows = sqlx::query_as(statement!("alarms/occurrences"))
        .bind(alarm)
        .bind(status)
        .bind(&candidates)
        .bind(window.rows());
    let rows = within(rows.fetch_all(&mut *session)).await?;
    session.finish().await?;
    let candidates: Vec<Timestamp> = candidates.into_iter().map(Into::into).collect();
    Ok(window.page(rows, |row: &Occurrence| row.scheduled_for, &candidates))
}
