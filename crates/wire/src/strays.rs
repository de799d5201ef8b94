//! Strays: runs that the engine holds open for a workspace, and that no row tells of.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A run that the engine holds open for a workspace of this database, and that no row tells of: it was lost with the last commits of a
/// failed primary, or is younger than a backup that was brought back. It holds no slot, and is ended only when somebody says so.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Stray {
    /// The execution that it was started for; on the engine it is called `execution-` and this id.
    pub execution_id: Uuid,
    /// The run: an end names it.
    pub run_id: String,
    /// For which workspace it was started.
    pub workspace_id: Uuid,
    /// The name of the workspace, while there is one.
    pub workspace: Option<String>,
    /// When it was started, by the engine's clock.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub started_at: Option<Timestamp>,
    /// When it was found.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub found_at: Timestamp,
    /// When somebody asked that it be ended; a server does that as soon as it can.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub end_requested_at: Option<Timestamp>,
    /// Who asked.
    pub end_requested_by: Option<String>,
}

/// Ends a stray: this very run, and no other of the same name.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndStray {
    /// The run that was looked at.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub run_id: String,
    /// Why, for the audit and the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1000))]
    pub reason: Option<String>,
}
