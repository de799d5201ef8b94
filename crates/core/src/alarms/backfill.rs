//! Backfill: fires occurrences of the past, after a preview of what it would do. What was accepted before is never fired again.

use jiff::Timestamp;
use serde::Serialize;

use super::inspect::Alarm;
use super::operate::{Error, get, lock, note};
use super::terms::{Schedule, Upcoming};
use crate::db::{Database, statement, within};
use crate::id::AlarmId;
use std::collections::HashMap;

/// The most that one backfill makes.
pub const MOST: usize = 1_000;

/// One occurrence of the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// Its nominal instant.
    pub scheduled_for: Timestamp,
    /// What a change of the clocks does to it.
    pub note: Option<String>,
    /// How it stands: `none` when it is not on record.
    pub status: String,
    /// Will it be fired?
    pub fires: bool,
}

/// What a backfill of the instants after `from`, up to and with `to`, would do.
pub async fn preview(
    database: &Database,
    id: AlarmId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Planned>, Error> {
    let mut session = database.session().await?;
    let alarm = get(&mut session, id).await?;
    let fires = fires(&alarm, from, to)?;
    let instants: Vec<jiff_sqlx::Timestamp> = fires.iter().map(|fire| fire.at.into()).collect();
    let query = sqlx::query_as(statement!("alarms/on_record"))
        .bind(id)
        .bind(instants);
    let rows: Vec<(jiff_sqlx::Timestamp, String)> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    let known: HashMap<Timestamp, String> = rows
        .into_iter()
        .map(|(at, status)| (at.to_jiff(), status))
        .collect();
    let planned = fires.into_iter().map(|fire| {
        let status = known.get(&fire.at).map_or("none", String::as_str);
        Planned {
            scheduled_for: fire.at,
            note: fire.note,
            fires: !matches!(status, "fired" | "pending" | "claimed" | "retrying"),
            status: status.to_owned(),
        }
    });
    Ok(planned.collect())
}

/// Fires what [`preview`] says. Answers the nominal instants of the occurrences that were made.
pub async fn backfill(
    database: &Database,
    id: AlarmId,
    from: Timestamp,
    to: Timestamp,
    by: &str,
) -> Result<Vec<Timestamp>, Error> {
    let mut transaction = database.transaction().await?;
    let locked = lock(&mut transaction, id).await?;
    let alarm = get(&mut transaction, id).await?;
    let fires = fires(&alarm, from, to)?;
    if locked.status == "cancelled" {
        return Err(Error::WrongState(format!("alarm {id} is cancelled")));
    }
    let instants: Vec<jiff_sqlx::Timestamp> = fires.iter().map(|fire| fire.at.into()).collect();
    let notes: Vec<Option<&str>> = fires.iter().map(|fire| fire.note.as_deref()).collect();
    let query = sqlx::query_scalar(statement!("alarms/backfill"))
        .bind(id)
        .bind(instants)
        .bind(notes);
    let made: Vec<jiff_sqlx::Timestamp> = within(query.fetch_all(&mut *transaction)).await?;
    let detail = format!("{} occurrences after {from} up to {to}", made.len());
    note(&mut transaction, id, "backfilled", by, Some(&detail)).await?;
    transaction.finish().await?;
    Ok(made.into_iter().map(jiff_sqlx::Timestamp::to_jiff).collect())
}

fn fires(alarm: &Alarm, from: Timestamp, to: Timestamp) -> Result<Vec<Upcoming>, Error> {
    if to > Timestamp::now() {
        return Err(Error::Invalid(
            "the range reaches into the future: that will fire by itself".to_owned(),
        ));
    }
    let Ok(Schedule::Cron(series)) = alarm.written().read() else {
        let message = format!("alarm {} is for once: fire it instead", alarm.id);
        return Err(Error::WrongState(message));
    };
    let fires: Vec<Upcoming> = series
        .fires(from)
        .take_while(|fire| fire.at <= to)
        .take(MOST + 1)
        .map(Upcoming::from)
        .collect();
    if fires.len() > MOST {
        return Err(Error::Invalid(format!(
            "the range holds more than {MOST} occurrences: take a shorter one"
        )));
    }
    Ok(fires)
}
