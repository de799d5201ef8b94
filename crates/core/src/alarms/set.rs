//! Set: the way in for alarms made through this program. An expression that can never fire is refused here, with the place.
//!
//! The other way in, for any language: the SQL function `stationmaster.set_alarm` inside the caller's own transaction. Both
//! end in the same function and the same trigger; what is set here is planned at once, what is set there by the planner.

use std::ops::Range;

use jiff::Timestamp;
use serde_json::value::RawValue;
use stationmaster_schedule::ParseError;
use stationmaster_wire::NewAlarm;

use super::bounds;
use super::planner::{NextFire, write_next_fires};
use super::target::Target;
use super::terms::{MisfirePolicy, Schedule, Written, Wrong};
use super::when::{When, problems_of_new, seconds};
use crate::db::{self, Database, statement, within};
use crate::id::{AlarmId, WorkspaceId};

/// How many missed occurrences are caught up with when nobody says.
const CATCH_UP: u32 = 10;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// A new alarm.
    New(AlarmId),
    /// The alarm that the same request made before.
    Before(AlarmId),
}

impl Set {
    /// The alarm, new or not.
    #[must_use]
    pub fn alarm(self) -> AlarmId {
        match self {
            Self::New(alarm) | Self::Before(alarm) => alarm,
        }
    }
}

/// Why nothing was set.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The expression is not one, or can never fire.
    #[error("{message}")]
    Expression {
        /// What is wrong.
        message: String,
        /// The expression, and a line with marks under the place.
        pointed: String,
        /// The place, in bytes.
        at: Range<usize>,
    },
    /// Something else of the request cannot be.
    #[error(transparent)]
    Invalid(#[from] Wrong),
    /// The key was used for something else.
    #[error("the idempotency key was used in this workspace with another request")]
    Conflict,
    /// The name is another one's.
    #[error("{0}")]
    NameTaken(String),
    /// The workspace is not there.
    #[error("there is no workspace {0}")]
    UnknownWorkspace(WorkspaceId),
    /// The database did not do it.
    #[error(transparent)]
    Database(db::Error),
}

impl Error {
    pub(super) fn expression(text: &str, error: ParseError) -> Self {
        Self::Expression {
            pointed: error.pointed(text),
            message: error.message,
            at: error.at,
        }
    }

    pub(super) fn of(error: db::Error, workspace: WorkspaceId) -> Self {
        let constraint = match &error {
            db::Error::Sql(sqlx::Error::Database(error)) => error.constraint().map(str::to_owned),
            _ => None,
        };
        match (error.code().as_deref(), constraint) {
            (Some("23503"), _) => Self::UnknownWorkspace(workspace),
            (Some("23505"), Some(name)) if name == "alarm_definitions_by_name" => {
                Self::NameTaken(crate::catalogue::taken(&error))
            }
            (Some("23505"), _) => Self::Conflict,
            (Some("23514"), Some(name)) => Self::Invalid(demanded(&name)),
            _ if error.is_of(&["22", "23514", "54"]) => Self::Invalid(Wrong::with(error.message())),
            _ => Self::Database(error),
        }
    }
}

/// The constraints of alarms are named by what they demand, and begin with what they speak of.
pub(super) fn demanded(constraint: &str) -> Wrong {
    let fields = [
        ("the_label", "label"),
        ("the_name", "name"),
        ("the_target", "target_url"),
        ("the_expression", "cron_expr"),
        ("the_time_zone", "timezone"),
        ("the_misfire_window", "misfire_window"),
        ("the_message", "message"),
        ("the_payload", "payload"),
        ("the_end", "end_at"),
        ("the_idempotency_key", "idempotency_key"),
        ("the_trace_context", "traceparent"),
        ("catch_up", "catch_up"),
        ("max_failures", "max_failures"),
        ("pause_after", "pause_after"),
        ("jitter", "jitter"),
        ("user_id", "user_id"),
        ("conversation_id", "conversation_id"),
    ];
    let field = fields
        .into_iter()
        .find(|(subject, _)| constraint.starts_with(subject));
    Wrong {
        field: field.map(|(_, field)| field),
        words: constraint.replace('_', " "),
    }
}

/// A target that could never be called is refused.
pub(super) fn check_target(url: Option<&str>) -> Result<(), Wrong> {
    Target::check(url).map_err(|what| Wrong::of("target_url", format!("the target {what}")))
}

/// Everything about a request that cannot be, as far as it can be told without the database; [`set`] would stop at the first.
#[must_use]
pub fn problems(request: &NewAlarm) -> Vec<Error> {
    let mut problems: Vec<Error> = Vec::new();
    problems.extend(check_target(request.target_url.as_deref()).err().map(Error::from));
    problems.extend(
        seconds("misfire_window", request.misfire_window)
            .err()
            .map(Error::from),
    );
    problems.extend(seconds("jitter", request.jitter).err().map(Error::from));
    problems.extend(bounds::of_new(request).into_iter().map(Error::from));
    problems.extend(problems_of_new(request));
    match When::of_new(request) {
        Ok(when) => {
            let written = Written {
                fire_at: when.written.fire_at.or(Some(Timestamp::UNIX_EPOCH)),
                dst: request.dst.unwrap_or_default().into(),
                ..when.written
            };
            problems.extend(written.read().err().map(Error::from));
        }
        Err(error) => problems.push(error),
    }
    problems
}

/// The instant of an alarm that fires once, at a time that the request names. `None` for one that comes again, and for one that cannot be.
#[must_use]
pub fn only_at(request: &NewAlarm) -> Option<Timestamp> {
    let when = When::of_new(request).ok().filter(|when| when.delay.is_none())?;
    let written = Written {
        dst: request.dst.unwrap_or_default().into(),
        ..when.written
    };
    match written.read().ok()? {
        Schedule::Cron(_) => None,
        once => once.first_after(Timestamp::UNIX_EPOCH).map(|fire| fire.at),
    }
}

/// Sets an alarm. Whoever calls has seen that the caller may use its workspace; the wall stands behind.
pub async fn set(database: &Database, request: &NewAlarm, by: &str) -> Result<Set, Error> {
    check_target(request.target_url.as_deref())?;
    let when = When::of_new(request)?;
    let jitter = seconds("jitter", request.jitter)?.unwrap_or_default();
    seconds("misfire_window", request.misfire_window)?;
    let mut written = Written {
        fire_at: when.written.fire_at.or(Some(Timestamp::UNIX_EPOCH)),
        dst: request.dst.unwrap_or_default().into(),
        start_at: request.start_at,
        end_at: request.end_at,
        ..when.written.clone()
    };
    written.read()?;
    let id = AlarmId::new();
    let mut transaction = database.transaction().await.map_err(Error::Database)?;
    let (now, alarm) = insert(&mut transaction, request, &when, by, id).await?;
    if alarm != id {
        return Ok(Set::Before(alarm));
    }
    let at_an_instant = when.delay.is_some() || when.written.fire_at.is_some();
    if at_an_instant && jitter.is_zero() {
        transaction.finish().await.map_err(Error::Database)?;
        return Ok(Set::New(alarm));
    }
    written.anchor_at = now;
    let delayed = || now.checked_add(when.delay?).ok();
    written.fire_at = when.written.fire_at.or_else(delayed);
    let next = written
        .read()?
        .first_after(now)
        .ok_or_else(|| Wrong::with("it never fires between its start and its end"))?;
    let next_fire = NextFire {
        alarm,
        next,
        jitter,
        follows: now,
    };
    write_next_fires(&mut transaction, &[next_fire])
        .await
        .map_err(Error::Database)?;
    transaction.finish().await.map_err(Error::Database)?;
    Ok(Set::New(alarm))
}

async fn insert(
    transaction: &mut sqlx::PgConnection,
    request: &NewAlarm,
    when: &When,
    by: &str,
    id: AlarmId,
) -> Result<(Timestamp, AlarmId), Error> {
    let stamp = |at: Option<Timestamp>| at.map(jiff_sqlx::Timestamp::from);
    let misfire = request.misfire.unwrap_or_default();
    let query = sqlx::query_as(statement!("alarms/set"))
        .bind(request.workspace_id)
        .bind(&request.label)
        .bind(stamp(when.written.fire_at))
        .bind(request.delay)
        .bind(&when.written.civil_at)
        .bind(&when.written.cron_expr)
        .bind(&when.written.timezone)
        .bind(&request.target_url)
        .bind(&request.message)
        .bind(request.payload.as_deref().map(RawValue::get))
        .bind(&request.user_id)
        .bind(&request.conversation_id)
        .bind(&request.idempotency_key)
        .bind(request.max_failures.map(small))
        .bind(misfire)
        .bind(catch_up(misfire, request.catch_up))
        .bind(request.misfire_window)
        .bind(request.overlap.unwrap_or_default())
        .bind(request.dst.unwrap_or_default())
        .bind(request.jitter.unwrap_or_default())
        .bind(stamp(request.start_at))
        .bind(stamp(request.end_at))
        .bind(request.pause_after.map(small))
        .bind(&request.traceparent)
        .bind(by)
        .bind(id)
        .bind(&request.name);
    let answer: Result<(jiff_sqlx::Timestamp, AlarmId), _> = within(query.fetch_one(transaction)).await;
    let (now, alarm) = answer.map_err(|error| Error::of(error, WorkspaceId(request.workspace_id)))?;
    Ok((now.to_jiff(), alarm))
}

/// How many missed occurrences are caught up with, by the policy that catches up.
pub(super) fn catch_up(misfire: MisfirePolicy, many: Option<u32>) -> Option<i32> {
    (misfire == MisfirePolicy::CatchUp).then(|| small(many.unwrap_or(CATCH_UP)))
}

/// What is too large for the column is too large for its constraint as well.
pub(super) fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
