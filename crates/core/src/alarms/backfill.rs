//! Backfill: fires occurrences of the past, after a preview of what it would do. What was accepted before is never fired again.

use jiff::Timestamp;
use stationmaster_wire::{Alarm, BackfillItem};

use super::inspect::written;
use super::operate::{Error, get, give_turns, open, ring};
use super::terms::{AlarmStatus, OccurrenceStatus, Schedule, Upcoming};
use crate::db::{self, Database, statement, within};
use crate::id::AlarmId;
use std::collections::HashMap;

/// The most that one backfill makes.
pub const MOST: usize = 1_000;

/// What stands so is not fired again.
const FIRED_OR_WILL_BE: [OccurrenceStatus; 4] = [
    OccurrenceStatus::Fired,
    OccurrenceStatus::Pending,
    OccurrenceStatus::Claimed,
    OccurrenceStatus::Retrying,
];

/// What a backfill of the instants after `from`, up to and with `to`, would do.
pub async fn preview(
    database: &Database,
    id: AlarmId,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<BackfillItem>, Error> {
    let mut session = database.session().await?;
    let alarm = get(database, &mut session, id).await?;
    let fires = fires(&alarm, from, to, db::now(&mut session).await?)?;
    let instants: Vec<jiff_sqlx::Timestamp> = fires.iter().map(|fire| fire.at.into()).collect();
    let query = sqlx::query_as(statement!("alarms/on_record"))
        .bind(id)
        .bind(instants);
    let rows: Vec<(jiff_sqlx::Timestamp, OccurrenceStatus)> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    let known: HashMap<Timestamp, OccurrenceStatus> = rows
        .into_iter()
        .map(|(at, status)| (at.to_jiff(), status))
        .collect();
    let planned = fires.into_iter().map(|fire| {
        let status = known.get(&fire.at).copied();
        BackfillItem {
            scheduled_for: fire.at,
            note: fire.note,
            fires: !status.is_some_and(|status| FIRED_OR_WILL_BE.contains(&status)),
            status: status.map_or("none", OccurrenceStatus::as_str).to_owned(),
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
    let mut opened = open(database, id).await?;
    let fires = fires(&opened.alarm, from, to, opened.locked.now)?;
    if opened.locked.status == AlarmStatus::Cancelled {
        return Err(Error::WrongState(format!("alarm {id} is cancelled")));
    }
    let instants: Vec<jiff_sqlx::Timestamp> = fires.iter().map(|fire| fire.at.into()).collect();
    let notes: Vec<Option<&str>> = fires.iter().map(|fire| fire.note.as_deref()).collect();
    let query = sqlx::query_scalar(statement!("alarms/backfill"))
        .bind(id)
        .bind(instants)
        .bind(notes);
    let made: Vec<jiff_sqlx::Timestamp> = within(query.fetch_all(&mut *opened.transaction)).await?;
    let detail = format!("{} occurrences after {from} up to {to}", made.len());
    opened.close(database, "backfilled", by, Some(&detail)).await?;
    Ok(made.into_iter().map(jiff_sqlx::Timestamp::to_jiff).collect())
}

/// Opens failed occurrences of an alarm again, to be fired now. Answers how many; none of an alarm that was cancelled.
pub(crate) async fn again(
    database: &Database,
    id: AlarmId,
    instants: &[Timestamp],
    by: &str,
) -> Result<usize, Error> {
    let mut opened = open(database, id).await?;
    if opened.locked.status == AlarmStatus::Cancelled {
        return Ok(0);
    }
    let instants: Vec<jiff_sqlx::Timestamp> = instants.iter().map(|at| (*at).into()).collect();
    let query = sqlx::query_scalar(statement!("alarms/again"))
        .bind(id)
        .bind(instants);
    let made: Vec<jiff_sqlx::Timestamp> = within(query.fetch_all(&mut *opened.transaction)).await?;
    if made.is_empty() {
        return Ok(0);
    }
    give_turns(&mut opened.transaction, &[id]).await?;
    ring(&mut opened.transaction).await?;
    let detail = format!("{} occurrences that had failed", made.len());
    opened.close(database, "retried", by, Some(&detail)).await?;
    Ok(made.len())
}

fn fires(alarm: &Alarm, from: Timestamp, to: Timestamp, now: Timestamp) -> Result<Vec<Upcoming>, Error> {
    if to > now {
        return Err(Error::Invalid(
            "the range reaches into the future: that will fire by itself".to_owned(),
        ));
    }
    let Ok(Schedule::Cron(series)) = written(alarm).read() else {
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
