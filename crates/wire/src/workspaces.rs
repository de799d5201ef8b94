//! Workspaces: tenants with their plans, limits and slots.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::double;

/// A workspace and how its slots are used.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Workspace {
    /// Its id.
    pub id: Uuid,
    /// What people call it: a slug, and the only one of that name.
    pub name: String,
    /// Its plan.
    pub plan: String,
    /// A limit of its own, before the plan's.
    #[cfg_attr(feature = "rows", sqlx(rename = "own_limit"))]
    pub max_concurrent: Option<i32>,
    /// The limit in force.
    pub limit: i32,
    /// Its share when there is not enough for all.
    pub weight: f64,
    /// Admits nothing.
    pub paused: bool,
    /// Slots in use.
    pub active: i32,
    /// Items ready to be admitted; counted up to 10,001.
    pub ready: i64,
    /// When it was made.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub updated_at: Timestamp,
}

/// What waits in a workspace, by workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backlog {
    /// The workflows of which something waits, the one with the most first.
    pub items: Vec<BacklogOfWorkflow>,
}

/// What waits of one workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct BacklogOfWorkflow {
    /// The workflow.
    pub workflow_definition_id: Uuid,
    /// Its name, while there is one.
    pub workflow: Option<String>,
    /// Items ready to be admitted; of a workspace 10,000 are looked at.
    pub ready: i64,
    /// Items that are held because the workflow is paused; counted up to 10,000.
    pub parked: i64,
    /// When the oldest of them was enqueued.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub oldest_at: Timestamp,
}

/// What to set on a workspace. What is left out stays as it is, or takes its default when the workspace is new.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkspaceChange {
    /// What people call it; it is kept as a slug. One made of its id when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: Option<String>,
    /// Its plan; FREE when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 100))]
    pub plan: Option<String>,
    /// A limit of its own, before the plan's; `null` takes it away.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<i32>, minimum = 0))]
    pub max_concurrent: Option<Option<i32>>,
    /// Admit nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}
