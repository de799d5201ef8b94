//! Events: what happens, told to those who listen (`text/event-stream`). The name of the stream's event is the kind; its id is
//! the position, to be sent back as `Last-Event-ID`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Reference;

/// Something that happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Event {
    /// Its place among all events.
    pub position: i64,
    /// When it happened.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// What: a family and a name, such as `execution.claimed`, `alarm.fired` or `dispatcher.takeover`.
    pub kind: String,
    /// In which workspace, when it was in one.
    pub workspace_id: Option<Uuid>,
    /// More.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub detail: serde_json::Value,
}

/// The first thing that a listener is told (event `hello`): from where on it hears.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Hello {
    /// Events after this position follow.
    pub position: i64,
}

/// Told when events were missed that are not kept any more (event `reset`): read anew whatever you keep. What follows begins
/// after `newest`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Reset {
    /// The oldest event that is kept.
    pub oldest: i64,
    /// The newest event.
    pub newest: i64,
}

/// Which events.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct EventQuery {
    /// Only of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Only of this family: the part of the kind before its first dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 50))]
    pub family: Option<String>,
}
