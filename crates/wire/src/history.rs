//! What happened in each minute, kept for days, for charts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Reference;

/// Which part of the history.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct HistoryQuery {
    /// From when; an hour before the end when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>, format = DateTime))]
    pub from: Option<Timestamp>,
    /// Until when; now when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>, format = DateTime))]
    pub to: Option<Timestamp>,
    /// Only of this workspace: its id or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace: Option<Reference>,
    /// Only of this workflow: its id or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workflow: Option<Reference>,
    /// Only what this server had in hand: its id or its name. It goes with neither of the two above, and is for tokens for all workspaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub server: Option<Reference>,
    /// How much time one point stands for, whole minutes, as in `1m`, `15m`, `1h` or `1d`; when left out, as little as makes at most 300 points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// The history, point by point.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryChart {
    /// Where it begins: at a multiple of the step.
    pub from: Timestamp,
    /// Where it ends: at a multiple of the step.
    pub to: Timestamp,
    /// How much time one point stands for.
    pub step_seconds: i64,
    /// Up to here the minutes are counted: a minute is a few seconds after its end. Nothing: none is counted yet.
    pub counted_until: Option<Timestamp>,
    /// One for each step, oldest first, also where nothing happened.
    pub points: Vec<HistoryPoint>,
}

/// What happened in one step.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HistoryPoint {
    /// Its beginning.
    pub at: Timestamp,
    /// Items enqueued.
    pub enqueued: i64,
    /// Executions started.
    pub started: i64,
    /// Executions completed.
    pub completed: i64,
    /// Executions that failed, and items that could not be started.
    pub failed: i64,
    /// Executions and items that somebody did not want any more.
    pub cancelled: i64,
    /// Executions ended by force.
    pub terminated: i64,
    /// Executions whose time was over.
    pub timed_out: i64,
    /// Items that were ready and waited, at the worst end of a minute; nothing where no minute was looked at, because nothing went on or no server looked.
    pub waiting: Option<i64>,
    /// Slots in use, at the fullest end of a minute; nothing in the same cases.
    pub active: Option<i64>,
    /// How long starts had to wait since their items were due; nothing where none started.
    pub wait: Option<Spread>,
    /// How long what ended had run; nothing where nothing ended that had been started.
    pub run: Option<Spread>,
    /// Occurrences that their target confirmed.
    pub alarms_fired: i64,
    /// Occurrences that no target accepted.
    pub alarms_failed: i64,
    /// Of those that were confirmed, how many were more than a second after they were due.
    pub alarms_late: i64,
}

/// How lengths of time are spread. Mean and longest are exact, the others are read off a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spread {
    /// How many were measured; of starts at most 5,000 a minute are, spread evenly.
    pub count: i64,
    /// Their mean, in seconds.
    pub mean: f64,
    /// Half of them took at most about so long, in seconds.
    pub p50: f64,
    /// All but one in twenty took at most about so long, in seconds.
    pub p95: f64,
    /// The longest, in seconds.
    pub longest: f64,
}
