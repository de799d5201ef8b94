//! Edit: changes what an alarm says, where it goes or when it fires. What is not named stays.
//!
//! The next occurrence follows the new schedule, counted from now; an occurrence that is open goes on, with what is said
//! from now on.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use stationmaster_schedule::DstPolicy;
use stationmaster_wire::Alarm;

use super::inspect;
use super::operate::{self, Opened, give_turns, open, ring};
use super::planner::{NextFire, write_next_fires};
use super::set::{self, When, check_schedule, check_target, small};
use super::terms::{AlarmKind, AlarmStatus, Misfire, Overlap, Written};
use crate::db::{self, Database, statement, within};
use crate::id::{AlarmId, WorkspaceId};

/// What to change. `None` leaves a thing as it is; `Some(None)` takes it away.
#[derive(Debug, Clone, Default)]
pub struct Edit {
    /// What people call it.
    pub label: Option<String>,
    /// When it fires.
    pub when: Option<When>,
    /// Where the wake goes.
    pub target_url: Option<Option<String>>,
    /// In the wake.
    pub user_id: Option<Option<String>>,
    /// In the wake.
    pub conversation_id: Option<Option<String>>,
    /// In the wake.
    pub message: Option<Option<String>>,
    /// In the wake.
    pub payload: Option<Option<Box<RawValue>>>,
    /// Tries before an occurrence fails.
    pub max_failures: Option<Option<u32>>,
    /// What happens to missed occurrences.
    pub misfire: Option<Misfire>,
    /// How far back they are made up for.
    pub misfire_window: Option<Option<Duration>>,
    /// What happens while an earlier occurrence is not settled.
    pub overlap: Option<Overlap>,
    /// What happens to local times that do not exist or come twice.
    pub dst: Option<DstPolicy>,
    /// Up to so much later.
    pub jitter: Option<Duration>,
    /// Not before.
    pub start_at: Option<Option<Timestamp>>,
    /// Not after.
    pub end_at: Option<Option<Timestamp>>,
    /// Failed occurrences in a row after which it is paused.
    pub pause_after: Option<Option<u32>>,
}

impl Edit {
    /// Does it change when the alarm fires?
    fn moves(&self) -> bool {
        self.when.is_some()
            || self.dst.is_some()
            || self.jitter.is_some()
            || self.start_at.is_some()
            || self.end_at.is_some()
    }
}

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

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Self {
        Self::Operation(error.into())
    }
}

/// Changes an alarm, and answers how it is now.
pub async fn edit(database: &Database, id: AlarmId, edit: &Edit, by: &str) -> Result<Alarm, Error> {
    edit_by(database, id, by, |_| Ok(edit.clone())).await
}

/// Changes an alarm by what `decide` says of it, which is asked under its lock and may refuse.
pub async fn edit_by<E: From<Error>>(
    database: &Database,
    id: AlarmId,
    by: &str,
    decide: impl FnOnce(&Alarm) -> Result<Edit, E>,
) -> Result<Alarm, E> {
    let opened = open(database, id).await.map_err(Error::from)?;
    let edit = decide(&opened.alarm)?;
    Ok(carry_out(database, opened, &edit, by).await?)
}

async fn carry_out(database: &Database, mut opened: Opened, edit: &Edit, by: &str) -> Result<Alarm, Error> {
    let (locked, transaction) = (&opened.locked, &mut opened.transaction);
    let mut alarm = opened.alarm.clone();
    let id = AlarmId(alarm.id);
    check_target(edit.target_url.as_ref().and_then(Option::as_deref))?;
    if !matches!(locked.status, AlarmStatus::Active | AlarmStatus::Paused) {
        let message = format!("alarm {id} is {}: set another one", locked.status);
        return Err(operate::Error::WrongState(message).into());
    }
    let moves = edit.moves();
    let becomes_once = edit
        .when
        .as_ref()
        .is_some_and(|when| !matches!(when, When::Cron { .. }));
    if moves && locked.under_way && (becomes_once || alarm.kind == AlarmKind::Once) {
        let message = format!("alarm {id} is being fired: its time cannot be changed any more");
        return Err(operate::Error::WrongState(message).into());
    }
    let now = locked.now;
    change(&mut alarm, edit, now)?;
    let written = inspect::written(&alarm);
    check(edit, &written)?;
    write(transaction, &alarm).await?;
    if moves {
        let next = written
            .read()
            .map_err(set::Error::Invalid)?
            .first_after(now)
            .ok_or_else(|| set::Error::Invalid("it would never fire again".to_owned()))?;
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

fn check(edit: &Edit, written: &Written) -> Result<(), Error> {
    match &edit.when {
        Some(when) => check_schedule(when, written)?,
        None => drop(written.read().map_err(set::Error::Invalid)?),
    }
    Ok(())
}

fn change(alarm: &mut Alarm, edit: &Edit, now: Timestamp) -> Result<(), Error> {
    if let Some(when) = &edit.when {
        let asked = when.written();
        alarm.fire_at = match when.delay() {
            Some(delay) => {
                let at = now.checked_add(delay);
                Some(at.map_err(|_| set::Error::Invalid("that is too far away".to_owned()))?)
            }
            None => asked.fire_at,
        };
        alarm.kind = match asked.cron_expr {
            Some(_) => AlarmKind::Cron,
            None => AlarmKind::Once,
        };
        alarm.cron_expr = asked.cron_expr;
        alarm.timezone = asked.timezone;
        alarm.civil_at = asked.civil_at;
    }
    put(&mut alarm.label, edit.label.as_ref());
    put(&mut alarm.target_url, edit.target_url.as_ref());
    put(&mut alarm.user_id, edit.user_id.as_ref());
    put(&mut alarm.conversation_id, edit.conversation_id.as_ref());
    put(&mut alarm.message, edit.message.as_ref());
    put(&mut alarm.payload, edit.payload.as_ref());
    put(&mut alarm.start_at, edit.start_at.as_ref());
    put(&mut alarm.end_at, edit.end_at.as_ref());
    if let Some(most) = edit.max_failures {
        alarm.max_failures = small(most);
    }
    if let Some(after) = edit.pause_after {
        alarm.pause_after = small(after);
    }
    put(&mut alarm.overlap, edit.overlap.as_ref());
    if let Some(dst) = edit.dst {
        alarm.dst = dst.into();
    }
    if let Some(misfire) = edit.misfire {
        alarm.misfire = misfire.name();
        alarm.catch_up = small(misfire.how_many()).unwrap_or(alarm.catch_up);
    }
    if let Some(window) = edit.misfire_window {
        alarm.misfire_window = window.map(|window| window.as_secs_f64());
    }
    if let Some(jitter) = edit.jitter {
        alarm.jitter = jitter.as_secs_f64();
    }
    Ok(())
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
        .bind(alarm.kind);
    within(query.execute(transaction))
        .await
        .map_err(|error| set::Error::of(error, WorkspaceId(alarm.workspace_id)))?;
    Ok(())
}
