//! The whole at a glance, for pages and charts.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Alarm, Execution, FailureGroup, OpenBreaker, Server, Stray, Workspace};

/// How far back.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct OverviewQuery {
    /// How many minutes the chart goes back; 60 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1440))]
    pub minutes: Option<i32>,
}

/// The whole at a glance; of it, what the token may see.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overview {
    /// Numbers of now.
    pub overview: Numbers,
    /// What ended in each of the last minutes, oldest first; fewer minutes than asked for where more than 500,000 ended in them.
    pub minutes: Vec<Minute>,
    /// What needs a person, by what it has in common: at most 20 groups, the one with the newest failure first.
    pub failures: Vec<FailureGroup>,
    /// Workspaces, at most 200: those first in which work waits and cannot run, then those with the most slots in use.
    pub workspaces: Vec<Workspace>,
    /// The alarms that are due next, at most 20, the late ones first.
    #[serde(default)]
    pub coming: Vec<Alarm>,
    /// Alarms whose last occurrences failed, at most 20, those with the most in a row first.
    #[serde(default)]
    pub failing: Vec<Alarm>,
    /// Workflows that are paused while items wait for them, at most 20.
    #[serde(default)]
    pub held: Vec<HeldWorkflow>,
    /// Targets of wakes that do not answer a server, at most 20, the one that has been silent longest first; for a token that is not for all
    /// workspaces, those of its own alarms.
    #[serde(default)]
    pub breakers: Vec<OpenBreaker>,
    /// Runs that the engine holds open and that no row tells of, at most 20.
    #[serde(default)]
    pub strays: Vec<Stray>,
    /// The newest executions.
    pub executions: Vec<Execution>,
    /// The servers.
    pub servers: Vec<Server>,
    /// Servers that were lost within the last hour, none of whose name is there again, at most 20.
    #[serde(default)]
    pub lost: Vec<Server>,
    /// Nobody is asked for a token: whoever reaches this address may do everything.
    pub open: bool,
}

/// A workflow that is paused while items wait for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct HeldWorkflow {
    /// Which.
    pub workflow_definition_id: Uuid,
    /// Its name.
    pub workflow: String,
    /// In which workspace.
    pub workspace_id: Uuid,
    /// The name of that.
    pub workspace: String,
    /// How many wait that would have been started otherwise, counted up to 10,000, and 10,001 when there are more.
    pub held: i64,
}

/// Numbers of now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Numbers {
    /// Items that wait; an estimate when very many.
    pub waiting: i64,
    /// Executions being started.
    pub starting: i64,
    /// Executions that run.
    pub running: i64,
    /// Completed within the last minute.
    pub completed_last_minute: i64,
    /// Failed, terminated or timed out within the last minute.
    pub failed_last_minute: i64,
    /// What needs a person: failures that were neither retried nor set aside, counted up to 10,000, and 10,001 when there are more.
    pub failures: i64,
    /// Servers alive.
    pub servers: i64,
    /// Does every server reach its engine?
    pub engine_up: bool,
}

/// What ended within one minute.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Minute {
    /// Its beginning.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// Executions completed.
    pub completed: i64,
    /// Executions and items that failed, were terminated or timed out.
    pub failed: i64,
    /// Executions and items that somebody did not want any more.
    pub cancelled: i64,
}
