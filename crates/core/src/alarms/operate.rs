//! What people do to alarms: cancel, pause, resume, fire now. Each leaves a line in the alarm's events, with its actor.
//!
//! Whoever changes an alarm locks its standing first; claims and settlements pass it by until that is over.

use std::time::Duration;

use jiff::Timestamp;
use stationmaster_wire::Alarm;

use super::inspect;
use super::late::row;
use super::lease::record_missed;
use super::planner::{NextFire, write_next_fires};
use super::terms::{AlarmStatus, OccurrenceStatus, Schedule};
use crate::catalogue::Expectation;
use crate::columns::{At, MaybeAt};
use crate::db::{self, Database, statement, within};
use crate::id::AlarmId;
use crate::session::Session;

/// Why an operation was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing with this id.
    #[error("there is no alarm {0}")]
    NotFound(AlarmId),
    /// It is in a state in which this cannot be done.
    #[error("{0}")]
    WrongState(String),
    /// Something of the request cannot be.
    #[error("{0}")]
    Invalid(String),
    /// It is not what the caller expected.
    #[error("the alarm was changed: look again")]
    Unexpected,
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// How an alarm stands while it is locked.
#[derive(sqlx::FromRow)]
pub(super) struct Locked {
    pub(super) status: AlarmStatus,
    #[sqlx(try_from = "MaybeAt")]
    next_fire_at: Option<Timestamp>,
    #[sqlx(try_from = "At")]
    pub(super) now: Timestamp,
    /// An occurrence of the schedule is open.
    pub(super) under_way: bool,
}

/// An alarm of which something is to be changed: locked, in a transaction of its own.
pub(super) struct Opened {
    pub(super) transaction: Session,
    pub(super) locked: Locked,
    pub(super) alarm: Alarm,
}

impl Opened {
    /// Notes what was done, and makes it last. Answers how the alarm is now.
    pub(super) async fn close(
        mut self,
        database: &Database,
        event: &str,
        by: &str,
        detail: Option<&str>,
    ) -> Result<Alarm, Error> {
        let id = AlarmId(self.alarm.id);
        note(&mut self.transaction, id, event, by, detail).await?;
        let now = get(database, &mut self.transaction, id).await?;
        self.transaction.finish().await?;
        Ok(now)
    }
}

/// Locks an alarm that is in scope.
pub(super) async fn open(database: &Database, id: AlarmId) -> Result<Opened, Error> {
    let mut transaction = database.transaction().await?;
    let query = sqlx::query_as(statement!("alarms/lock")).bind(id);
    let locked: Option<Locked> = within(query.fetch_optional(&mut *transaction)).await?;
    let locked = locked.ok_or(Error::NotFound(id))?;
    let alarm = get(database, &mut transaction, id).await?;
    Ok(Opened {
        transaction,
        locked,
        alarm,
    })
}

/// Notes what was done.
pub(super) async fn note(
    transaction: &mut sqlx::PgConnection,
    id: AlarmId,
    event: &str,
    by: &str,
    detail: Option<&str>,
) -> Result<(), Error> {
    let query = sqlx::query(statement!("alarms/event"))
        .bind(id)
        .bind(event)
        .bind(by)
        .bind(detail);
    within(query.execute(transaction)).await?;
    Ok(())
}

/// Gives turns anew, after whatever may have changed whose turn it is. The alarms are locked.
pub(super) async fn give_turns(
    transaction: &mut sqlx::PgConnection,
    alarms: &[AlarmId],
) -> Result<(), db::Error> {
    let query = sqlx::query(statement!("alarms/turns")).bind(alarms);
    within(query.execute(transaction)).await?;
    Ok(())
}

/// Somebody should look: what was changed may be due.
pub(super) async fn ring(transaction: &mut sqlx::PgConnection) -> Result<(), Error> {
    within(sqlx::query("select pg_notify('stationmaster', 'alarms')").execute(transaction)).await?;
    Ok(())
}

/// The alarm, which must be there and in scope.
pub(super) async fn get(
    database: &Database,
    transaction: &mut sqlx::PgConnection,
    id: AlarmId,
) -> Result<Alarm, Error> {
    let alarm = inspect::alarm_in(database, transaction, id).await?;
    alarm.ok_or(Error::NotFound(id))
}

/// Cancels an alarm for good, if it is as expected. Answers the status that it has now: cancelled, or the one in which it had
/// ended before.
pub async fn cancel(
    database: &Database,
    id: AlarmId,
    by: &str,
    expected: Expectation<'_, Alarm>,
) -> Result<AlarmStatus, Error> {
    let mut opened = open(database, id).await?;
    if expected.is_some_and(|expected| !expected(Some(&opened.alarm))) {
        return Err(Error::Unexpected);
    }
    let query = sqlx::query_scalar("select stationmaster.cancel_alarm($1, $2)");
    let status = within(query.bind(id).bind(by).fetch_one(&mut *opened.transaction)).await?;
    opened.transaction.finish().await?;
    Ok(status)
}

/// Pauses an active alarm, and answers how it is now. What is paused stays so.
pub async fn pause(database: &Database, id: AlarmId, by: &str) -> Result<Alarm, Error> {
    let mut opened = open(database, id).await?;
    match opened.locked.status {
        AlarmStatus::Paused => return Ok(opened.alarm),
        AlarmStatus::Active => {}
        status => {
            return Err(Error::WrongState(format!(
                "alarm {id} is {status}: there is nothing to pause"
            )));
        }
    }
    let query = sqlx::query(statement!("alarms/pause")).bind(id);
    within(query.execute(&mut *opened.transaction)).await?;
    give_turns(&mut opened.transaction, &[id]).await?;
    opened.close(database, "paused", by, None).await
}

/// Resumes a paused alarm, and answers how it is now. A series goes on with its next instant from now; what it missed
/// meanwhile is on record.
pub async fn resume(database: &Database, id: AlarmId, by: &str) -> Result<Alarm, Error> {
    let mut opened = open(database, id).await?;
    match opened.locked.status {
        AlarmStatus::Active => return Ok(opened.alarm),
        AlarmStatus::Paused => {}
        status => {
            return Err(Error::WrongState(format!(
                "alarm {id} is {status}: there is nothing to resume"
            )));
        }
    }
    let query = sqlx::query(statement!("alarms/resume")).bind(id);
    within(query.execute(&mut *opened.transaction)).await?;
    give_turns(&mut opened.transaction, &[id]).await?;
    go_on(&mut opened.transaction, &opened.alarm, &opened.locked).await?;
    ring(&mut opened.transaction).await?;
    opened.close(database, "resumed", by, None).await
}

async fn go_on(transaction: &mut sqlx::PgConnection, alarm: &Alarm, locked: &Locked) -> Result<(), Error> {
    let Some(next) = locked.next_fire_at else {
        return Ok(());
    };
    let now = locked.now;
    let schedule = inspect::written(alarm).read();
    let schedule = schedule.map_err(|wrong| Error::WrongState(wrong.words))?;
    let (upcoming, follows) = match &schedule {
        Schedule::Cron(series) => {
            if next <= now {
                let missed = row(
                    series,
                    next,
                    now,
                    OccurrenceStatus::Skipped,
                    "the alarm was paused",
                );
                let missed: Vec<_> = missed
                    .into_iter()
                    .map(|missed| (AlarmId(alarm.id), missed))
                    .collect();
                record_missed(transaction, &missed).await?;
            }
            (schedule.first_after(now), now)
        }
        // For once: it fires late rather than never.
        Schedule::At(_) | Schedule::Civil(_) => (schedule.first_after(now), next),
    };
    let Some(upcoming) = upcoming else {
        let message = format!("alarm {} has no fire left: cancel it", alarm.id);
        return Err(Error::WrongState(message));
    };
    let next_fire = NextFire {
        alarm: AlarmId(alarm.id),
        next: upcoming,
        jitter: Duration::try_from_secs_f64(alarm.jitter).unwrap_or_default(),
        follows,
    };
    write_next_fires(transaction, &[next_fire]).await?;
    Ok(())
}

/// Fires an alarm now, beside its schedule. Answers the nominal instant of the occurrence.
pub async fn fire(database: &Database, id: AlarmId, by: &str) -> Result<Timestamp, Error> {
    let mut opened = open(database, id).await?;
    if opened.locked.status == AlarmStatus::Cancelled {
        return Err(Error::WrongState(format!("alarm {id} is cancelled")));
    }
    let query = sqlx::query_scalar(statement!("alarms/fire")).bind(id);
    let at: jiff_sqlx::Timestamp = within(query.fetch_one(&mut *opened.transaction)).await?;
    let at = at.to_jiff();
    opened
        .close(database, "fired by hand", by, Some(&at.to_string()))
        .await?;
    Ok(at)
}
