//! What comes of alarms: their coming fires, their occurrences, and what people do about them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
#[cfg(feature = "rows")]
use stationmaster_schedule::Fire;
use uuid::Uuid;

use super::Reference;
use super::alarms::{Alarm, AlarmKind, AlarmStatus, Dst};

/// A fire to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Upcoming {
    /// When.
    pub at: Timestamp,
    /// The same with the zone's offset.
    pub local: String,
    /// What a moving clock does to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[cfg(feature = "rows")]
impl From<Fire> for Upcoming {
    fn from(fire: Fire) -> Self {
        Self {
            at: fire.at,
            local: fire.rfc3339(),
            note: fire.note.map(|note| note.to_string()),
        }
    }
}

/// An alarm and its coming fires.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlarmDetails {
    /// The alarm.
    pub alarm: Alarm,
    /// The next ten fires.
    pub upcoming: Vec<Upcoming>,
}

/// What became of a request for an alarm.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlarmMade {
    /// The alarm.
    pub alarm: Alarm,
    /// The next ten fires.
    pub upcoming: Vec<Upcoming>,
    /// The same request was made before under the same key, and this is its alarm.
    pub duplicate: bool,
}

/// Of which time a calendar is asked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct CalendarQuery {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// How many hours ahead; 24 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 168))]
    pub hours: Option<u32>,
}

/// The coming fires of all alarms; of them, what the token may see.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Calendar {
    /// From the beginning of this hour; what is late is counted there.
    pub from: Timestamp,
    /// Up to this instant.
    pub to: Timestamp,
    /// How long a step is: an hour, or three where it is more than two days.
    pub step_seconds: i64,
    /// How many fires come in each step.
    pub steps: Vec<CalendarStep>,
    /// How many come in all.
    pub fires: i64,
    /// The alarms that fire next, at most 20, the soonest first.
    pub alarms: Vec<CalendarAlarm>,
    /// How many alarms fire so often that they are not counted in the steps.
    pub frequent: i64,
    /// Fires that moving clocks have to do with, at most 50.
    pub notes: Vec<CalendarNote>,
    /// There are more alarms than were looked at.
    pub more: bool,
}

/// How many fires come in a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarStep {
    /// Its beginning.
    pub at: Timestamp,
    /// How many.
    pub fires: i64,
}

/// An alarm that fires within the time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarAlarm {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub workspace_id: Uuid,
    /// Its name.
    pub workspace: Option<String>,
    /// The name of the alarm, if it was given one.
    pub name: Option<String>,
    /// What people call it.
    pub label: String,
    /// When it fires, at most 200 of it.
    pub fires: Vec<Timestamp>,
    /// It fires more often than that.
    pub more: bool,
}

/// What moving clocks do to a fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CalendarNote {
    /// The alarm.
    pub alarm_id: Uuid,
    /// What people call it.
    pub alarm: String,
    /// When it fires.
    pub at: Timestamp,
    /// What its clocks show then.
    pub local: String,
    /// What they do to it.
    pub note: String,
}

/// Which alarms; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct AlarmQuery {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// In this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub status: Option<AlarmStatus>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub kind: Option<AlarmKind>,
    /// With this text in the label, in the target or in the last error, in whatever case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 200))]
    pub search: Option<String>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

/// An expression to be tried.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct NextQuery {
    /// The expression.
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub expr: String,
    /// The IANA zone; UTC when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 64))]
    pub zone: Option<String>,
    /// What happens to local times that do not exist or come twice; `vixie` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub dst: Option<Dst>,
    /// After this instant; now when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
    /// How many at most; 10 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 100))]
    pub count: Option<u32>,
}

/// When an expression would fire.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextFires {
    /// The expression in words.
    pub description: String,
    /// The IANA zone.
    pub timezone: String,
    /// The fires.
    pub items: Vec<Upcoming>,
}

/// Something that was done to an alarm.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct AlarmEvent {
    /// Its number; grows.
    pub id: i64,
    /// When.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// What: `set`, `edited`, `paused`, `resumed`, `cancelled`, `fired by hand`, `backfilled` and so on.
    pub event: String,
    /// By whom.
    pub actor: String,
    /// More words: of an edit, what it changed.
    pub detail: Option<String>,
}

words! {
    /// How an occurrence stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum OccurrenceStatus {
        /// Waits for its time, or for an earlier one.
        Pending = "pending",
        /// A server has it in its hands.
        Claimed = "claimed",
        /// It was not confirmed, and is tried again.
        Retrying = "retrying",
        /// Its wake was accepted.
        Fired = "fired",
        /// It was tried often enough.
        Failed = "failed",
        /// It was not fired, by a policy.
        Skipped = "skipped",
        /// A later one was fired for it.
        Coalesced = "coalesced",
        /// Its alarm was cancelled.
        Cancelled = "cancelled",
    }
}

/// One nominal instant of an alarm, or a long row of missed ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Occurrence {
    /// Of which alarm.
    pub alarm_id: Uuid,
    /// The nominal instant.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub scheduled_for: Timestamp,
    /// How it stands.
    pub status: OccurrenceStatus,
    /// `schedule`, `manual` or `backfill`.
    pub origin: String,
    /// Tries that were not confirmed.
    pub attempts: i32,
    /// Servers that were lost with it in their hands.
    pub recoveries: i32,
    /// When it was due, with its jitter.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub due_at: Timestamp,
    /// When it is tried again.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub retry_at: Option<Timestamp>,
    /// When its wake was accepted.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub fired_at: Option<Timestamp>,
    /// When it was settled.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub finished_at: Option<Timestamp>,
    /// Why it did not fire.
    pub reason: Option<String>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The HTTP status of the last answer.
    pub answer_status: Option<i32>,
    /// The beginning of the last answer.
    pub answer: Option<String>,
    /// What a change of the clocks did to it.
    pub note: Option<String>,
    /// How many occurrences this speaks for; none: very many.
    pub covers: Option<i64>,
    /// Of a long row: the first instant that is no part of it.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub until: Option<Timestamp>,
}

/// Which occurrences; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct OccurrenceQuery {
    /// In this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub status: Option<OccurrenceStatus>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

/// An alarm was fired by hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FiredByHand {
    /// Which.
    pub alarm_id: Uuid,
    /// The nominal instant of the occurrence.
    pub scheduled_for: Timestamp,
}

/// Fires occurrences of the past: those after `from`, up to and with `to`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backfill {
    /// After this instant.
    pub from: Timestamp,
    /// Up to this one.
    pub to: Timestamp,
    /// Only tell what would be fired.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub dry_run: bool,
}

/// What a backfill did, or would do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backfilled {
    /// Nothing was fired.
    pub dry_run: bool,
    /// The occurrences of the range.
    pub items: Vec<BackfillItem>,
}

/// One occurrence of the range of a backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfillItem {
    /// Its nominal instant.
    pub scheduled_for: Timestamp,
    /// What a change of the clocks does to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How it stood before; `none` when it was not on record.
    pub status: String,
    /// Is it fired?
    pub fires: bool,
}
