//! Alarms: what is asked for, and how they stand.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(feature = "rows")]
use stationmaster_schedule::DstPolicy;
use uuid::Uuid;

use super::double;

/// A request for an alarm. Of `fire_at`, `delay`, `civil_at` and `cron_expr` exactly one is given.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewAlarm<Id = Uuid> {
    /// Whose it is.
    #[serde(alias = "workspace")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workspace_id: Id,
    /// What people call it, in any words.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_length = 200, default = ""))]
    pub label: String,
    /// A name by which it can be referred to; it is kept as a slug, unique among the alarms of the workspace that have not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: Option<String>,
    /// Once, at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire_at: Option<Timestamp>,
    /// Once, after so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000_000))]
    pub delay: Option<f64>,
    /// Once, when the clocks of `timezone` show this time, such as `2026-03-29T02:30:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 40))]
    pub civil_at: Option<String>,
    /// Again and again, by this expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub cron_expr: Option<String>,
    /// The IANA zone of `civil_at` or `cron_expr`; UTC when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    pub timezone: Option<String>,
    /// Where the wake goes; to the router when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
    pub target_url: Option<String>,
    /// In the wake; the workspace's id when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 256))]
    pub user_id: Option<String>,
    /// In the wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 256))]
    pub conversation_id: Option<String>,
    /// In the wake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// In the wake, as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// A repeat with the same key and the same request gives the first alarm. The header `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub idempotency_key: Option<String>,
    /// Tries before an occurrence fails; the server's setting when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100))]
    pub max_failures: Option<u32>,
    /// What happens to missed occurrences; `coalesce` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire: Option<Misfire>,
    /// How many are caught up with, for `catch_up`; 10 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub catch_up: Option<u32>,
    /// How far back they are made up for, in seconds; the server's setting when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 1_000_000_000))]
    pub misfire_window: Option<f64>,
    /// What happens while an earlier occurrence is not settled; `allow` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What happens to local times that do not exist or come twice; `vixie` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Dst>,
    /// Each occurrence is due up to so many seconds later, always by the same amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400))]
    pub jitter: Option<f64>,
    /// Not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Timestamp>,
    /// Not after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Timestamp>,
    /// Failed occurrences in a row after which it is paused; never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub pause_after: Option<u32>,
    /// The caller's trace context (W3C `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub traceparent: Option<String>,
}

with_ids! {
    NewAlarm { workspace_id: To }
    label, name, fire_at, delay, civil_at, cron_expr, timezone, target_url, user_id, conversation_id, message, payload, idempotency_key, max_failures, misfire, catch_up, misfire_window, overlap, dst, jitter, start_at, end_at, pause_after, traceparent
}

/// What to change of an alarm. What is left out stays as it is; `null` takes it away. Of `fire_at`, `delay`, `civil_at` and
/// `cron_expr` at most one is given.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlarmChange {
    /// What people call it, in any words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub label: Option<String>,
    /// A name by which it can be referred to; `null` takes it away.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, min_length = 1, max_length = 200))]
    pub name: Option<Option<String>>,
    /// Once, at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire_at: Option<Timestamp>,
    /// Once, after so many seconds from now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 1_000_000_000))]
    pub delay: Option<f64>,
    /// Once, when the clocks of `timezone` show this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 40))]
    pub civil_at: Option<String>,
    /// Again and again, by this expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub cron_expr: Option<String>,
    /// The IANA zone; the one that the alarm has when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 64))]
    pub timezone: Option<String>,
    /// Where the wake goes; `null`: to the router.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 2000))]
    pub target_url: Option<Option<String>>,
    /// In the wake.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 256))]
    pub user_id: Option<Option<String>>,
    /// In the wake.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, max_length = 256))]
    pub conversation_id: Option<Option<String>>,
    /// In the wake.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub message: Option<Option<String>>,
    /// In the wake, as it is.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Option<Box<RawValue>>>,
    /// Tries before an occurrence fails; `null`: the server's setting.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1, maximum = 100))]
    pub max_failures: Option<Option<u32>>,
    /// What happens to missed occurrences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire: Option<Misfire>,
    /// How many are caught up with; with `misfire`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 1000))]
    pub catch_up: Option<u32>,
    /// How far back they are made up for, in seconds; `null`: the server's setting.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1_000_000_000))]
    pub misfire_window: Option<Option<f64>>,
    /// What happens while an earlier occurrence is not settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<Overlap>,
    /// What happens to local times that do not exist or come twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<Dst>,
    /// Each occurrence is due up to so many seconds later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 0, maximum = 86_400))]
    pub jitter: Option<f64>,
    /// Not before; `null`: from now on.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Timestamp>))]
    pub start_at: Option<Option<Timestamp>>,
    /// Not after; `null`: without end.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Timestamp>))]
    pub end_at: Option<Option<Timestamp>>,
    /// Failed occurrences in a row after which it is paused; `null`: never.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>, minimum = 1, maximum = 1000))]
    pub pause_after: Option<Option<u32>>,
}

words! {
    /// How often an alarm fires.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum AlarmKind {
        /// Once.
        Once = "once",
        /// Again and again.
        Cron = "cron",
    }

    /// How an alarm stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum AlarmStatus {
        /// It will fire.
        Active = "active",
        /// It would, but for the pause.
        Paused = "paused",
        /// It has fired for the last time.
        Fired = "fired",
        /// Somebody did not want it any more.
        Cancelled = "cancelled",
        /// It has failed for good.
        Failed = "failed",
    }

    /// What happens to occurrences that were missed.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Misfire {
        /// One wake for all of them: the newest.
        #[default]
        Coalesce = "coalesce",
        /// One wake each, for the newest of them.
        CatchUp = "catch_up",
        /// None.
        Skip = "skip",
    }

    /// What happens when an occurrence comes while an earlier one is not settled.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Overlap {
        /// It fires all the same.
        #[default]
        Allow = "allow",
        /// It waits for the earlier one.
        Queue = "queue",
        /// It is skipped.
        Skip = "skip",
    }

    /// What becomes of fixed local times that do not exist or come twice.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum Dst {
        /// Once: in a gap at the first instant after it, in an overlap the first time.
        #[default]
        Vixie = "vixie",
        /// Not at all in a gap; in an overlap the first time.
        Skip = "skip",
        /// In a gap at the first instant after it, in an overlap both times.
        Both = "both",
    }
}

#[cfg(feature = "rows")]
impl From<Dst> for DstPolicy {
    fn from(word: Dst) -> Self {
        match word {
            Dst::Vixie => Self::Vixie,
            Dst::Skip => Self::Skip,
            Dst::Both => Self::Both,
        }
    }
}

#[cfg(feature = "rows")]
impl From<DstPolicy> for Dst {
    fn from(policy: DstPolicy) -> Self {
        match policy {
            DstPolicy::Vixie => Self::Vixie,
            DstPolicy::Skip => Self::Skip,
            DstPolicy::Both => Self::Both,
        }
    }
}

/// An alarm.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Alarm {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub workspace_id: Uuid,
    /// The name of that workspace; none when it is gone.
    pub workspace: Option<String>,
    /// Its name, if it was given one: a slug, unique in its workspace.
    pub name: Option<String>,
    /// What people call it, in any words.
    pub label: String,
    /// How often it fires.
    pub kind: AlarmKind,
    /// How it stands.
    pub status: AlarmStatus,
    /// The expression.
    pub cron_expr: Option<String>,
    /// The expression in words.
    #[cfg_attr(feature = "rows", sqlx(skip))]
    pub description: Option<String>,
    /// The IANA zone of the expression or of the local time.
    pub timezone: Option<String>,
    /// The local time, when it was given as one.
    pub civil_at: Option<String>,
    /// The instant, of one that fires once.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub fire_at: Option<Timestamp>,
    /// The nominal instant of the next occurrence.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub next_fire_at: Option<Timestamp>,
    /// When a wake was last accepted.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub last_fired_at: Option<Timestamp>,
    /// Tries that failed since then.
    pub failure_count: i32,
    /// Occurrences that failed since then.
    pub failed_in_a_row: i32,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Where the wake goes; none: to the router.
    pub target_url: Option<String>,
    /// In the wake.
    pub user_id: Option<String>,
    /// In the wake.
    pub conversation_id: Option<String>,
    /// In the wake.
    pub message: Option<String>,
    /// In the wake.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub payload: Option<Box<RawValue>>,
    /// Tries before an occurrence fails; none: the server's setting.
    pub max_failures: Option<i32>,
    /// What happens to missed occurrences.
    pub misfire: Misfire,
    /// How many are caught up with, for `catch_up`.
    pub catch_up: i32,
    /// How far back they are made up for, in seconds; none: the server's setting.
    pub misfire_window: Option<f64>,
    /// What happens while an earlier occurrence is not settled.
    pub overlap: Overlap,
    /// What happens to local times that do not exist or come twice.
    pub dst: Dst,
    /// Up to so many seconds later.
    pub jitter: f64,
    /// Not before.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub start_at: Option<Timestamp>,
    /// Not after.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub end_at: Option<Timestamp>,
    /// Failed occurrences in a row after which it is paused.
    pub pause_after: Option<i32>,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// Who set it.
    pub set_by: String,
    /// When it was set.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// When it was changed last.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub updated_at: Timestamp,
}
