//! Set: the way in for alarms made through this program. An expression that can never fire is refused here, with the place.
//!
//! The other way in, for any language: the SQL function `stationmaster.set_alarm` inside the caller's own transaction. Both
//! end in the same function and the same trigger; what is set here is planned at once, what is set there by the planner.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::value::RawValue;
use stationmaster_schedule::{Cron, DstPolicy};

use super::planner::{NextFire, write_next_fires};
use super::target::Target;
use super::terms::{Misfire, Overlap, Written};
use crate::db::{self, Database, statement, within};
use crate::id::{AlarmId, WorkspaceId};

/// When an alarm fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Once, at this instant.
    At(Timestamp),
    /// Once, after this time, by the database's clock.
    In(Duration),
    /// Once, when the clocks of a zone show this time.
    Civil {
        /// The local time.
        at: DateTime,
        /// The IANA zone.
        zone: String,
    },
    /// Again and again.
    Cron {
        /// The expression.
        expression: String,
        /// The IANA zone.
        zone: String,
    },
}

/// A request for an alarm.
#[derive(Debug, Clone)]
pub struct SetAlarm {
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// What people call it.
    pub label: String,
    /// When it fires.
    pub when: When,
    /// Where the wake goes; `None`: to the router.
    pub target_url: Option<String>,
    /// In the wake; `None`: the workspace's id.
    pub user_id: Option<String>,
    /// In the wake.
    pub conversation_id: Option<String>,
    /// In the wake.
    pub message: Option<String>,
    /// In the wake, as it is.
    pub payload: Option<Box<RawValue>>,
    /// A repeat with the same key and the same request gives the first alarm.
    pub idempotency_key: Option<String>,
    /// Tries before an occurrence fails; `None`: the server's setting.
    pub max_failures: Option<u32>,
    /// What happens to missed occurrences.
    pub misfire: Misfire,
    /// How far back they are made up for; `None`: the server's setting.
    pub misfire_window: Option<Duration>,
    /// What happens while an earlier occurrence is not settled.
    pub overlap: Overlap,
    /// What happens to local times that do not exist or come twice.
    pub dst: DstPolicy,
    /// Each occurrence is due up to so much later, always by the same amount.
    pub jitter: Duration,
    /// Not before.
    pub start_at: Option<Timestamp>,
    /// Not after.
    pub end_at: Option<Timestamp>,
    /// Failed occurrences in a row after which the alarm is paused; `None`: never.
    pub pause_after: Option<u32>,
    /// The caller's trace context (W3C `traceparent`).
    pub traceparent: Option<String>,
}

impl SetAlarm {
    /// A request with nothing special about it.
    #[must_use]
    pub fn new(workspace_id: WorkspaceId, when: When) -> Self {
        Self {
            workspace_id,
            label: String::new(),
            when,
            target_url: None,
            user_id: None,
            conversation_id: None,
            message: None,
            payload: None,
            idempotency_key: None,
            max_failures: None,
            misfire: Misfire::default(),
            misfire_window: None,
            overlap: Overlap::default(),
            dst: DstPolicy::default(),
            jitter: Duration::ZERO,
            start_at: None,
            end_at: None,
            pause_after: None,
            traceparent: None,
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A new alarm.
    New(AlarmId),
    /// The alarm that the same request made before.
    Before(AlarmId),
}

impl Answer {
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
        at: std::ops::Range<usize>,
    },
    /// Something else of the request cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The key was used for something else.
    #[error("the idempotency key was used in this workspace with another request")]
    Conflict,
    /// The workspace is not there.
    #[error("there is no workspace {0}")]
    UnknownWorkspace(WorkspaceId),
    /// The database did not do it.
    #[error(transparent)]
    Database(db::Error),
}

impl Error {
    pub(super) fn of(error: db::Error, workspace: WorkspaceId) -> Self {
        let constraint = match &error {
            db::Error::Sql(sqlx::Error::Database(error)) => {
                error.constraint().map(|name| name.replace('_', " "))
            }
            _ => None,
        };
        match error.code().as_deref() {
            Some("23503") => Self::UnknownWorkspace(workspace),
            Some("23505") => Self::Conflict,
            // The constraints are named by what they demand.
            Some("23514") => Self::Invalid(constraint.unwrap_or_else(|| error.message())),
            _ if error.is_of(&["22", "54"]) => Self::Invalid(error.message()),
            _ => Self::Database(error),
        }
    }
}

impl When {
    /// As rows hold it; a delay becomes an instant only by the database's clock.
    pub(super) fn written(&self) -> Written {
        let none = Written::default();
        match self {
            Self::At(at) => Written {
                fire_at: Some(*at),
                ..none
            },
            Self::In(_) => none,
            Self::Civil { at, zone } => Written {
                civil_at: Some(at.to_string()),
                timezone: Some(zone.clone()),
                ..none
            },
            Self::Cron { expression, zone } => Written {
                cron_expr: Some(expression.clone()),
                timezone: Some(zone.clone()),
                ..none
            },
        }
    }

    pub(super) fn delay(&self) -> Option<Duration> {
        match self {
            Self::In(delay) => Some(*delay),
            Self::At(_) | Self::Civil { .. } | Self::Cron { .. } => None,
        }
    }
}

/// A target that could never be called is refused.
pub(super) fn check_target(url: Option<&str>) -> Result<(), Error> {
    Target::check(url).map_err(|what| Error::Invalid(format!("the target {what}")))
}

/// The place of a mistake in the expression is told; everything else in words.
pub(super) fn check_schedule(when: &When, written: &Written) -> Result<(), Error> {
    if let When::Cron { expression, .. } = when
        && let Err(error) = Cron::parse(expression)
    {
        return Err(Error::Expression {
            message: error.message.clone(),
            pointed: error.pointed(expression),
            at: error.at.clone(),
        });
    }
    written.read().map(drop).map_err(Error::Invalid)
}

/// Sets an alarm.
pub async fn set(database: &Database, request: &SetAlarm, by: &str) -> Result<Answer, Error> {
    check_target(request.target_url.as_deref())?;
    let asked = request.when.written();
    let mut written = Written {
        fire_at: asked.fire_at.or(Some(Timestamp::UNIX_EPOCH)),
        dst: request.dst,
        start_at: request.start_at,
        end_at: request.end_at,
        ..asked.clone()
    };
    check_schedule(&request.when, &written)?;
    let id = AlarmId::new();
    let mut transaction = database.transaction().await.map_err(Error::Database)?;
    let (now, alarm) = insert(&mut transaction, request, &asked, by, id).await?;
    if alarm != id {
        return Ok(Answer::Before(alarm));
    }
    if matches!(request.when, When::At(_) | When::In(_)) && request.jitter.is_zero() {
        transaction.finish().await.map_err(Error::Database)?;
        return Ok(Answer::New(alarm));
    }
    written.anchor_at = now;
    let delayed = || now.checked_add(request.when.delay()?).ok();
    written.fire_at = asked.fire_at.or_else(delayed);
    let next = written
        .read()
        .map_err(Error::Invalid)?
        .first_after(now)
        .ok_or_else(|| Error::Invalid("it never fires between its start and its end".to_owned()))?;
    let next_fire = NextFire {
        alarm,
        next,
        jitter: request.jitter,
        follows: now,
    };
    write_next_fires(&mut transaction, &[next_fire])
        .await
        .map_err(Error::Database)?;
    transaction.finish().await.map_err(Error::Database)?;
    Ok(Answer::New(alarm))
}

async fn insert(
    transaction: &mut sqlx::PgConnection,
    request: &SetAlarm,
    asked: &Written,
    by: &str,
    id: AlarmId,
) -> Result<(Timestamp, AlarmId), Error> {
    let stamp = |at: Option<Timestamp>| at.map(jiff_sqlx::Timestamp::from);
    let query = sqlx::query_as(statement!("alarms/set"))
        .bind(request.workspace_id)
        .bind(&request.label)
        .bind(stamp(asked.fire_at))
        .bind(request.when.delay().map(|delay| delay.as_secs_f64()))
        .bind(&asked.civil_at)
        .bind(&asked.cron_expr)
        .bind(&asked.timezone)
        .bind(&request.target_url)
        .bind(&request.message)
        .bind(request.payload.as_deref().map(RawValue::get))
        .bind(&request.user_id)
        .bind(&request.conversation_id)
        .bind(&request.idempotency_key)
        .bind(small(request.max_failures))
        .bind(request.misfire.name())
        .bind(small(request.misfire.how_many()))
        .bind(request.misfire_window.map(|window| window.as_secs_f64()))
        .bind(request.overlap)
        .bind(request.dst.as_str())
        .bind(request.jitter.as_secs_f64())
        .bind(stamp(request.start_at))
        .bind(stamp(request.end_at))
        .bind(small(request.pause_after))
        .bind(&request.traceparent)
        .bind(by)
        .bind(id);
    let answer: Result<(jiff_sqlx::Timestamp, AlarmId), _> = within(query.fetch_one(transaction)).await;
    let (now, alarm) = answer.map_err(|error| Error::of(error, request.workspace_id))?;
    Ok((now.to_jiff(), alarm))
}

/// What is too large for the column is too large for its constraint as well.
pub(super) fn small(number: Option<u32>) -> Option<i32> {
    number.map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}
