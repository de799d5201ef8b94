//! The audit: who changed what, and when.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Reference;

/// One line of the audit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct AuditEntry {
    /// Its place.
    pub id: i64,
    /// When.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// The name of the server, when it was one.
    pub server: Option<String>,
    /// What, as noun and verb: `workspace.change`, `queue.cancel`.
    pub action: String,
    /// In which workspace, when it was in one.
    pub workspace_id: Option<Uuid>,
    /// The name of that workspace; none when it is gone.
    pub workspace: Option<String>,
    /// To which thing.
    pub subject: String,
    /// More, such as the values before and after.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub detail: serde_json::Value,
}

/// Which lines; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct AuditQuery {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// By this actor, as it is told, or by the token or the server of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub actor: Option<String>,
    /// Of this action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub action: Option<String>,
    /// About this thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub subject: Option<String>,
    /// At this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
    /// Before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}
