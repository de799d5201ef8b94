//! Why items wait: what stands in their way, who holds the slots, and when they are expected to start.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An execution that holds a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct SlotHolder {
    /// The execution.
    pub execution_id: Uuid,
    /// Its item.
    pub queue_item_id: Uuid,
    /// What it runs.
    pub workflow_definition_id: Uuid,
    /// The name of the workflow; none when it is gone.
    pub workflow: Option<String>,
    /// The server that took the slot for it.
    pub server_id: Uuid,
    /// Its name, also when it has left; none when it was forgotten.
    pub server: Option<String>,
    /// Since when it holds the slot.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub since: Timestamp,
}

/// When an item is expected to start, if nothing changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExpectedStart {
    /// About then.
    pub at: Timestamp,
    /// How that was found, in words.
    pub how: String,
}

words! {
    /// What an item waits for.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum WaitingReason {
        /// Its time.
        Scheduled = "scheduled",
        /// Another try.
        BackingOff = "backing_off",
        /// Its workspace, which is paused.
        WorkspacePaused = "workspace_paused",
        /// Its workflow, which is paused.
        DefinitionPaused = "definition_paused",
        /// A server that takes work.
        NoServer = "no_server",
        /// The engine, which is away.
        EngineDown = "engine_down",
        /// A slot.
        Limit = "limit",
        /// Its turn.
        Queued = "queued",
    }
}

/// Why an item waits: an obstacle on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Waiting {
    /// Its time has not come.
    Scheduled {
        /// When it comes.
        until: Option<Timestamp>,
    },
    /// The engine refused, or a server was lost; another try follows.
    BackingOff {
        /// When.
        until: Option<Timestamp>,
        /// What went wrong.
        error: Option<String>,
    },
    /// The workspace is paused.
    WorkspacePaused,
    /// The workflow is paused.
    DefinitionPaused,
    /// No server takes new work.
    NoServer,
    /// The engine is away.
    EngineDown,
    /// Every slot is taken.
    Limit {
        /// The limit.
        limit: i32,
        /// Slots in use.
        active: i32,
        /// The executions that hold them, at most twenty.
        holders: Vec<Uuid>,
        /// Its place in the workspace's queue, from 1; counted up to 10,001.
        position: i64,
    },
    /// It stands in line: others go first, or, in the first place, it is about to be claimed.
    Queued {
        /// Its place in the workspace's queue, from 1; counted up to 10,001.
        position: i64,
    },
}

/// Of which items it is asked why they wait.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct WaitsQuery {
    /// Their ids, with commas between them; at most 100.
    #[cfg_attr(feature = "openapi", param(value_type = Vec<Uuid>, style = Form, explode = false, min_items = 1, max_items = 100))]
    pub ids: String,
}

/// Why several items wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waits {
    /// Those of them that wait, in no order.
    pub items: Vec<ItemWait>,
    /// Positions are counted up to this, less where the items are of many workspaces; one more says that there are more.
    pub counted: i64,
}

/// Why an item of several waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemWait {
    /// The item.
    pub id: Uuid,
    /// Everything that stands in its way, in the order in which it falls away; never empty.
    pub reasons: Vec<Waiting>,
    /// Its place in the workspace's queue, from 1; absent when it does not stand in line yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// When it is expected to start; absent where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedStart>,
}
