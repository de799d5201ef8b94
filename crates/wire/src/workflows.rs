//! Workflows: definitions and their immutable versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Reference, double};

/// A workflow definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Workflow {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub workspace_id: Uuid,
    /// The name of that workspace.
    pub workspace: String,
    /// What people call it: a slug, unique in its workspace.
    pub name: String,
    /// The task queue that its workers poll; none: the server's setting.
    pub task_queue: Option<String>,
    /// The workflow type that its workers register; none: the server's setting.
    pub workflow_type: Option<String>,
    /// Starts that may be refused; none: the server's setting.
    pub max_attempts: Option<i32>,
    /// How long a run may take from its start, in seconds; then it ends `TIMED_OUT`. None: for ever.
    pub run_timeout: Option<f64>,
    /// The version that new items get; none: the newest.
    pub published_version: Option<i32>,
    /// Admits nothing.
    pub paused: bool,
    /// The version that an enqueue resolves to now; none: there is none yet.
    pub current_version: Option<i32>,
    /// The graph of that version.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub graph: Option<Box<RawValue>>,
    /// When it was made.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub updated_at: Timestamp,
}

/// What to set on a workflow. What is left out stays as it is, or takes its default when the workflow is new.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowChange<Id = Uuid> {
    /// Whose it is. A workflow never moves to another workspace.
    #[serde(alias = "workspace")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workspace_id: Id,
    /// What people call it; it is kept as a slug. One made of its id when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: Option<String>,
    /// The task queue that its workers poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub task_queue: Option<String>,
    /// The workflow type that its workers register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub workflow_type: Option<String>,
    /// Starts that may be refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub max_attempts: Option<i32>,
    /// How long a run may take from its start, in seconds; then it ends `TIMED_OUT`. `null`: for ever. What runs already keeps the
    /// time that it was started with.
    #[serde(default, deserialize_with = "double", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<f64>, minimum = 1, maximum = 315_360_000))]
    pub run_timeout: Option<Option<f64>>,
    /// The version that new items get; it must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub published_version: Option<i32>,
    /// Admit nothing of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

with_ids! {
    WorkflowChange { workspace_id: To }
    name, task_queue, workflow_type, max_attempts, run_timeout, published_version, paused
}

impl<Id> WorkflowChange<Id> {
    /// A change of a workflow of this workspace that changes nothing yet.
    #[must_use]
    pub fn of(workspace_id: Id) -> Self {
        Self {
            workspace_id,
            name: None,
            task_queue: None,
            workflow_type: None,
            max_attempts: None,
            run_timeout: None,
            published_version: None,
            paused: None,
        }
    }
}

/// Which workflows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct WorkflowQuery {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

/// A new version.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewVersion {
    /// The graph: `{"nodes": [{"id": "a", "type": "noop"}], "edges": [{"from": "a", "to": "b"}]}`. A cycle, a duplicate id and an
    /// unknown id are refused.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub workflow: Box<RawValue>,
}

/// A version that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct VersionMade {
    /// Its id.
    pub id: Uuid,
    /// Its number.
    pub version: i32,
}

/// A graph that can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GraphChecked {
    /// Its nodes, in the order in which they run.
    pub nodes: Vec<String>,
}

/// A version of a workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Version {
    /// Its id.
    pub id: Uuid,
    /// Its number.
    pub version: i32,
    /// Its graph.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    #[cfg_attr(feature = "rows", sqlx(rename = "graph", try_from = "crate::columns::Json"))]
    pub workflow: Box<RawValue>,
    /// When it was made.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
}
