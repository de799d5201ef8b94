//! What people do to alarms: cancel, pause, resume, fire now. Each leaves a line in the alarm's events, with its actor.
//!
//! Whoever changes an alarm locks its standing first; claims and settlements pass it by until that is over.

use std::time::Duration;

use jiff::Timestamp;

use super::inspect::{self, Alarm};
use super::lease::record_missed;
use super::plan::row;
use super::planner::{Plan, write_plans};
use super::terms::Schedule;
use crate::db::{self, Database, statement, within};
use crate::id::AlarmId;

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
    pub(super) status: String,
    next_fire_at: Option<jiff_sqlx::Timestamp>,
    now: jiff_sqlx::Timestamp,
    /// An occurrence of the schedule is open.
    pub(super) under_way: bool,
}

impl Locked {
    pub(super) fn now(&self) -> Timestamp {
        self.now.to_jiff()
    }
}

/// Locks an alarm.
pub(super) async fn lock(transaction: &mut sqlx::PgConnection, id: AlarmId) -> Result<Locked, Error> {
    let query = sqlx::query_as(statement!("alarms/lock")).bind(id);
    within(query.fetch_optional(transaction))
        .await?
        .ok_or(Error::NotFound(id))
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

/// Somebody should look: what was changed may be due.
pub(super) async fn ring(transaction: &mut sqlx::PgConnection) -> Result<(), Error> {
    within(sqlx::query("select pg_notify('stationmaster', 'alarms')").execute(transaction)).await?;
    Ok(())
}

/// The alarm, which must be there.
pub(super) async fn get(transaction: &mut sqlx::PgConnection, id: AlarmId) -> Result<Alarm, Error> {
    inspect::alarm_in(transaction, id)
        .await?
        .ok_or(Error::NotFound(id))
}

/// What a caller expects of an alarm before it is changed; asked under its lock.
pub type Expectation<'a> = &'a (dyn Fn(&Alarm) -> bool + Send + Sync);

/// Cancels an alarm for good. Answers the status that it has now: `cancelled`, or the one in which it had ended before.
pub async fn cancel(database: &Database, id: AlarmId, by: &str) -> Result<String, Error> {
    cancel_if(database, id, by, None).await
}

/// The same, if it is as expected.
pub async fn cancel_if(
    database: &Database,
    id: AlarmId,
    by: &str,
    expected: Option<Expectation<'_>>,
) -> Result<String, Error> {
    let mut transaction = database.transaction().await?;
    if let Some(expected) = expected {
        lock(&mut transaction, id).await?;
        if !expected(&get(&mut transaction, id).await?) {
            return Err(Error::Unexpected);
        }
    }
    let query = "select stationmaster.cancel_alarm($1, $2)";
    let query = sqlx::query_scalar(query).bind(id).bind(by);
    match within(query.fetch_one(&mut *transaction)).await {
        Ok(status) => {
            transaction.finish().await?;
            Ok(status)
        }
        Err(error) if error.code().as_deref() == Some("P0002") => Err(Error::NotFound(id)),
        Err(error) => Err(error.into()),
    }
}

/// Pauses an active alarm. What is paused stays so.
pub async fn pause(database: &Database, id: AlarmId, by: &str) -> Result<(), Error> {
    let mut transaction = database.transaction().await?;
    let locked = lock(&mut transaction, id).await?;
    match locked.status.as_str() {
        "paused" => return Ok(()),
        "active" => {}
        status => {
            return Err(Error::WrongState(format!(
                "alarm {id} is {status}: there is nothing to pause"
            )));
        }
    }
    within(
        sqlx::query(statement!("alarms/pause"))
            .bind(id)
            .execute(&mut *transaction),
    )
    .await?;
    note(&mut transaction, id, "paused", by, None).await?;
    transaction.finish().await?;
    Ok(())
}

/// Resumes a paused alarm. A series goes on with its next instant from now; what it missed meanwhile is on record.
pub async fn resume(database: &Database, id: AlarmId, by: &str) -> Result<(), Error> {
    let mut transaction = database.transaction().await?;
    let locked = lock(&mut transaction, id).await?;
    let alarm = get(&mut transaction, id).await?;
    match locked.status.as_str() {
        "active" => return Ok(()),
        "paused" => {}
        status => {
            return Err(Error::WrongState(format!(
                "alarm {id} is {status}: there is nothing to resume"
            )));
        }
    }
    within(
        sqlx::query(statement!("alarms/resume"))
            .bind(id)
            .execute(&mut *transaction),
    )
    .await?;
    go_on(&mut transaction, &alarm, &locked).await?;
    note(&mut transaction, id, "resumed", by, None).await?;
    ring(&mut transaction).await?;
    transaction.finish().await?;
    Ok(())
}

async fn go_on(transaction: &mut sqlx::PgConnection, alarm: &Alarm, locked: &Locked) -> Result<(), Error> {
    let Some(next) = locked.next_fire_at.map(jiff_sqlx::Timestamp::to_jiff) else {
        return Ok(());
    };
    let now = locked.now();
    let schedule = alarm.written().read().map_err(Error::WrongState)?;
    let (upcoming, follows) = match &schedule {
        Schedule::Cron(series) => {
            if next <= now {
                let missed = row(series, next, now, "skipped", "the alarm was paused");
                let missed: Vec<_> = missed.into_iter().map(|missed| (alarm.id, missed)).collect();
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
    let plan = Plan {
        alarm: alarm.id,
        next: upcoming,
        jitter: Duration::try_from_secs_f64(alarm.jitter).unwrap_or_default(),
        follows,
    };
    write_plans(transaction, &[plan]).await?;
    Ok(())
}

/// Fires an alarm now, beside its schedule. Answers the nominal instant of the occurrence.
pub async fn fire(database: &Database, id: AlarmId, by: &str) -> Result<Timestamp, Error> {
    let mut transaction = database.transaction().await?;
    let locked = lock(&mut transaction, id).await?;
    if locked.status == "cancelled" {
        return Err(Error::WrongState(format!("alarm {id} is cancelled")));
    }
    let query = sqlx::query_scalar(statement!("alarms/fire")).bind(id);
    let at: jiff_sqlx::Timestamp = within(query.fetch_one(&mut *transaction)).await?;
    let at = at.to_jiff();
    note(&mut transaction, id, "fired by hand", by, Some(&at.to_string())).await?;
    transaction.finish().await?;
    Ok(at)
}
