//! Dispatchers: one router of signals for each project and task queue.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A dispatcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Dispatcher {
    /// Its id.
    pub id: String,
    /// Its project.
    pub project: String,
    /// Its task queue.
    pub task_queue: String,
    /// Is there an owner whose lease holds?
    #[cfg_attr(feature = "rows", sqlx(try_from = "String"))]
    pub state: DispatcherState,
    /// Who owns it, now or last.
    pub owner: Option<Uuid>,
    /// What the owner is or was called.
    pub owner_name: Option<String>,
    /// Grows with every owner.
    pub epoch: i64,
    /// Until when the lease holds.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub lease_until: Option<Timestamp>,
    /// Where its run is.
    pub engine: Option<String>,
    /// The first run of this epoch.
    pub run_id: Option<String>,
    /// When its owner took it.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub taken_at: Option<Timestamp>,
    /// When its run was started.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub run_started_at: Option<Timestamp>,
    /// The last heartbeat, when heartbeats are kept in PostgreSQL.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub heartbeat_at: Option<Timestamp>,
    /// Signals that wait, counted up to 1,000.
    pub waiting: i64,
    /// Since when the oldest of them has waited.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub oldest_waiting_at: Option<Timestamp>,
    /// When somebody asked that it be removed; its owner does that once nothing waits.
    #[serde(default)]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub removal_requested_at: Option<Timestamp>,
    /// The servers that stand by, the owner among them.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::Servers"))]
    pub servers: Vec<DispatcherServer>,
}

/// Whether a dispatcher has an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum DispatcherState {
    /// Somebody's lease holds.
    Owned,
    /// Nobody's does: a server that stands by is about to take it.
    Vacant,
    /// Nobody's does, and nothing waits: the next signal wakes it.
    Resting,
}

impl From<String> for DispatcherState {
    fn from(state: String) -> Self {
        match state.as_str() {
            "owned" => Self::Owned,
            "resting" => Self::Resting,
            _ => Self::Vacant,
        }
    }
}

/// A server that stands by a dispatcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DispatcherServer {
    /// Which.
    pub server_id: Uuid,
    /// What it is called.
    pub name: Option<String>,
    /// For which task queue.
    pub task_queue: String,
    /// Since when.
    pub registered_at: Timestamp,
    /// Was it heard of lately?
    pub alive: bool,
}

/// Which dispatchers; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct DispatcherQuery {
    /// Of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub project: Option<String>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

/// Something that happened to a dispatcher.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct DispatcherEvent {
    /// Its number; grows.
    pub id: i64,
    /// When.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// `fresh`, `takeover`, `handover` (taken after it was handed over), `handed_over`, `rested`, `woken`, `servers_evicted` (`detail.servers` names them),
    /// `run_terminated`, `heartbeat_removed`, `released` or `removed`.
    pub event: String,
    /// Under which epoch.
    pub epoch: Option<i64>,
    /// Which server it is about.
    pub server_id: Option<Uuid>,
    /// Which run it is about.
    pub run_id: Option<String>,
    /// Who did it: a server, or a token.
    pub actor: String,
    /// The name of that server, when it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// More.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::Object"))]
    pub detail: serde_json::Map<String, serde_json::Value>,
}

/// Compares dispatchers, heartbeats and the engine's runs now, and removes what a crash left behind.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reconcile {
    /// Only look.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub dry_run: bool,
    /// What older deployments left behind goes as well.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub legacy: bool,
}

/// What a reconciliation found and did.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reconciled {
    /// Nothing was done.
    pub dry_run: bool,
    /// What was found.
    pub findings: Vec<DispatcherFinding>,
    /// What was done about it.
    pub done: Vec<DispatcherDeed>,
    /// Who did not answer: then nothing that depends on it was done.
    pub problems: Vec<String>,
}

/// One thing that was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DispatcherFinding {
    /// Which dispatcher, or what looks like one.
    pub dispatcher_id: String,
    /// `healthy`, `silent`, `vacant`, `stale`, `orphan`, `legacy` or `foreign`.
    pub class: String,
    /// Why, in words.
    pub reason: String,
    /// The epoch of the row when it was seen.
    pub epoch: Option<i64>,
    /// Whether a lease held when it was seen.
    pub owned: bool,
    /// What to do about it.
    #[serde(flatten)]
    pub act: DispatcherAct,
}

/// Something that was done.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DispatcherDeed {
    /// To which dispatcher.
    pub dispatcher_id: String,
    /// What.
    #[serde(flatten)]
    pub act: DispatcherAct,
    /// What went wrong; none: nothing.
    pub error: Option<String>,
}

/// What is to be done, by its exact name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DispatcherAct {
    /// `terminate`, `remove_heartbeat`, `remove_legacy_heartbeat` or `release`; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<String>,
    /// The run's name on the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_id: Option<String>,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Who wrote the heartbeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<Uuid>,
}
