//! Servers: who shares the work.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Server {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// Its engine.
    pub engine: String,
    /// Does the engine answer it?
    pub engine_up: bool,
    /// Does it take new work?
    pub claiming: bool,
    /// When it started.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub started_at: Timestamp,
    /// Its last heartbeat.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub seen_at: Timestamp,
    /// Does its lease hold?
    pub alive: bool,
}

/// All servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Servers {
    /// The servers, the oldest first.
    pub items: Vec<Server>,
}
