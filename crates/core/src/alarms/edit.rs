//! Edit: changes what an alarm says, where it goes or when it fires. What is not named stays.
//!
//! The next occurrence follows the new schedule, counted from now; an occurrence that is open goes on, with what is said
//! from now on.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use stationmaster_wire::{Alarm, AlarmChange};

use super::operate::{self, Opened, give_turns, open, ring};
use super::planner::{NextFire, write_next_fires};
use super::set::{self, catch_up, check_target, small};
use super::terms::{AlarmKind, AlarmStatus, Wrong};
use super::when::{When, problems_of_change, seconds};
use super::{bounds, inspect};
use crate::catalogue::Expectation;
use crate::db::{self, Database, statement, within};
use crate::id::{AlarmId, WorkspaceId};
use crate::names;

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for cannot be.
    #[error(transparent)]
    Request(#[from] set::Error),
    /// It cannot be done to this alarm.
    #[error(transparent)]
    Operation(#[from] operate::Error),
}

impl From<Wrong> for Error {
    fn from(wrong: Wrong) -> Self {
        Self::Request(wrong.into())
    }
}

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Self {
        Self::Operation(error.into())
    }
}

/// Everything about a change of this alarm that cannot be, as far as it can be told without the database; [`edit`] would stop at the
/// first.
#[must_use]
pub fn problems(change: &AlarmChange, alarm: &Alarm) -> Vec<set::Error> {
    let mut problems: Vec<set::Error> = Vec::new();
    let target = check_target(change.target_url.as_ref().and_then(Option::as_deref));
    let window = seconds("misfire_window", change.misfire_window.flatten());
    let jitter = seconds("jitter", change.jitter);
    let checked = [target, window.map(drop), jitter.map(drop)];
    problems.extend(checked.into_iter().filter_map(Result::err).map(set::Error::from));
    problems.extend(bounds::of_change(change).into_iter().map(set::Error::from));
    problems.extend(problems_of_change(change));
    if change.misfire.is_none() && change.catch_up.is_some() {
        problems.push(Wrong::of("catch_up", "it goes with misfire").into());
    }
    let mut after = alarm.clone();
    match When::of_change(change, alarm) {
        Ok(Some(when)) => {
            let put = put_when(&mut after, when, Timestamp::UNIX_EPOCH);
            put_times(&mut after, change);
            let read = put.and_then(|()| inspect::written(&after).read().map(drop));
            problems.extend(read.err().map(set::Error::from));
        }
        Ok(None) => {}
        Err(error) => problems.push(error),
    }
    problems
}

/// Changes an alarm, if it is as expected, and answers how it is now.
pub async fn edit(
    database: &Database,
    id: AlarmId,
    change: &AlarmChange,
    by: &str,
    expected: Expectation<'_, Alarm>,
) -> Result<Alarm, Error> {
    let opened = open(database, id).await?;
    if expected.is_some_and(|expected| !expected(Some(&opened.alarm))) {
        return Err(operate::Error::Unexpected.into());
    }
    carry_out(database, opened, change, by).await
}

async fn carry_out(
    database: &Database,
    mut opened: Opened,
    change: &AlarmChange,
    by: &str,
) -> Result<Alarm, Error> {
    let (locked, transaction) = (&opened.locked, &mut opened.transaction);
    let mut alarm = opened.alarm.clone();
    let id = AlarmId(alarm.id);
    check_target(change.target_url.as_ref().and_then(Option::as_deref))?;
    let when = When::of_change(change, &alarm)?;
    if !matches!(locked.status, AlarmStatus::Active | AlarmStatus::Paused) {
        let message = format!("alarm {id} is {}: set another one", locked.status);
        return Err(operate::Error::WrongState(message).into());
    }
    let moves = when.is_some()
        || change.dst.is_some()
        || change.jitter.is_some()
        || change.start_at.is_some()
        || change.end_at.is_some();
    let becomes_once = when.as_ref().is_some_and(|when| when.written.cron_expr.is_none());
    if moves && locked.under_way && (becomes_once || alarm.kind == AlarmKind::Once) {
        let message = format!("alarm {id} is being fired: its time cannot be changed any more");
        return Err(operate::Error::WrongState(message).into());
    }
    let now = locked.now;
    if let Some(when) = when {
        put_when(&mut alarm, when, now)?;
    }
    put_rest(&mut alarm, change)?;
    let schedule = inspect::written(&alarm).read()?;
    write(transaction, &alarm).await?;
    if moves {
        let next = schedule
            .first_after(now)
            .ok_or_else(|| Wrong::with("it would never fire again"))?;
        let next_fire = NextFire {
            alarm: id,
            next,
            jitter: Duration::try_from_secs_f64(alarm.jitter).unwrap_or_default(),
            follows: now,
        };
        write_next_fires(transaction, &[next_fire])
            .await
            .map_err(operate::Error::Database)?;
        ring(transaction).await?;
    }
    give_turns(transaction, &[id]).await?;
    if locked.under_way {
        ring(transaction).await?;
    }
    let detail = changes(&opened.alarm, &alarm);
    Ok(opened.close(database, "edited", by, Some(&detail)).await?)
}

fn put_when(alarm: &mut Alarm, when: When, now: Timestamp) -> Result<(), Wrong> {
    let asked = when.written;
    alarm.fire_at = match when.delay.map(|delay| now.checked_add(delay)) {
        Some(at) => Some(at.map_err(|_| Wrong::with("that is too far away"))?),
        None => asked.fire_at,
    };
    alarm.kind = match asked.cron_expr {
        Some(_) => AlarmKind::Cron,
        None => AlarmKind::Once,
    };
    alarm.cron_expr = asked.cron_expr;
    alarm.timezone = asked.timezone;
    alarm.civil_at = asked.civil_at;
    Ok(())
}

fn put_rest(alarm: &mut Alarm, change: &AlarmChange) -> Result<(), Wrong> {
    put(&mut alarm.label, change.label.as_ref());
    if let Some(name) = &change.name {
        let kept = name.as_deref().map(names::name).transpose();
        alarm.name = kept.map_err(|error| Wrong::of("name", error.to_string()))?;
    }
    put(&mut alarm.target_url, change.target_url.as_ref());
    put(&mut alarm.user_id, change.user_id.as_ref());
    put(&mut alarm.conversation_id, change.conversation_id.as_ref());
    put(&mut alarm.message, change.message.as_ref());
    put(&mut alarm.payload, change.payload.as_ref());
    put_times(alarm, change);
    put(&mut alarm.overlap, change.overlap.as_ref());
    if let Some(most) = change.max_failures {
        alarm.max_failures = most.map(small);
    }
    if let Some(after) = change.pause_after {
        alarm.pause_after = after.map(small);
    }
    match (change.misfire, change.catch_up) {
        (None, Some(_)) => return Err(Wrong::of("catch_up", "it goes with misfire")),
        (None, None) => {}
        (Some(misfire), many) => {
            alarm.misfire = misfire;
            alarm.catch_up = catch_up(misfire, many).unwrap_or(alarm.catch_up);
        }
    }
    if let Some(window) = change.misfire_window {
        seconds("misfire_window", window)?;
        alarm.misfire_window = window;
    }
    seconds("jitter", change.jitter)?;
    put(&mut alarm.jitter, change.jitter.as_ref());
    Ok(())
}

/// What a series depends on beside its expression.
fn put_times(alarm: &mut Alarm, change: &AlarmChange) {
    put(&mut alarm.start_at, change.start_at.as_ref());
    put(&mut alarm.end_at, change.end_at.as_ref());
    put(&mut alarm.dst, change.dst.as_ref());
}

/// What an edit changed, in words for the history; of what the wake carries and where it goes only the names.
fn changes(before: &Alarm, after: &Alarm) -> String {
    const UNTOLD: [&str; 5] = ["target_url", "user_id", "conversation_id", "message", "payload"];
    let (Value::Object(before), Value::Object(after)) = (json!(before), json!(after)) else {
        return String::new();
    };
    let changed = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(value));
    let words = changed.map(|(name, value)| {
        if UNTOLD.contains(&name.as_str()) {
            name.clone()
        } else {
            format!(
                "{name} from {} to {value}",
                before.get(name).unwrap_or(&Value::Null)
            )
        }
    });
    words.collect::<Vec<_>>().join("; ")
}

fn put<T: Clone>(place: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        place.clone_from(value);
    }
}

async fn write(transaction: &mut sqlx::PgConnection, alarm: &Alarm) -> Result<(), Error> {
    let stamp = |at: Option<Timestamp>| at.map(jiff_sqlx::Timestamp::from);
    let query = sqlx::query(statement!("alarms/edit"))
        .bind(alarm.id)
        .bind(&alarm.label)
        .bind(stamp(alarm.fire_at))
        .bind(&alarm.civil_at)
        .bind(&alarm.cron_expr)
        .bind(&alarm.timezone)
        .bind(&alarm.target_url)
        .bind(&alarm.message)
        .bind(alarm.payload.as_deref().map(RawValue::get))
        .bind(&alarm.user_id)
        .bind(&alarm.conversation_id)
        .bind(alarm.max_failures)
        .bind(alarm.misfire)
        .bind(alarm.catch_up)
        .bind(alarm.misfire_window)
        .bind(alarm.overlap)
        .bind(alarm.dst)
        .bind(alarm.jitter)
        .bind(stamp(alarm.start_at))
        .bind(stamp(alarm.end_at))
        .bind(alarm.pause_after)
        .bind(alarm.kind)
        .bind(&alarm.name);
    within(query.execute(transaction))
        .await
        .map_err(|error| set::Error::of(error, WorkspaceId(alarm.workspace_id)))?;
    Ok(())
}
