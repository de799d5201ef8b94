//! Servers: who shares the work.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

words! {
    /// How a server's time ended.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum ServerEnd {
        /// It left in good order.
        Left = "left",
        /// The same, because somebody wished it.
        Drained = "drained",
        /// Its lease ran out.
        Lost = "lost",
        /// Its lease ran out, and the same process went on under another id.
        Replaced = "replaced",
    }
}

/// A server.
#[allow(
    clippy::struct_excessive_bools,
    reason = "a row of answers, each to a question of its own"
)]
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
    /// Since when the engine has not answered it; none while it does.
    #[serde(default)]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub engine_away_at: Option<Timestamp>,
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
    /// Does somebody wish that it takes no new work?
    #[serde(default)]
    pub draining: bool,
    /// Executions that it started, or is starting, and that hold a slot; those of the workspaces that the token is for.
    #[serde(default)]
    pub in_hand: i64,
    /// When it left, or its lease ran out; none while it is there.
    #[serde(default)]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub left_at: Option<Timestamp>,
    /// How its time ended; none while it is there.
    #[serde(default)]
    pub ended: Option<ServerEnd>,
    /// Executions and wakes that others took out of its hands; 0 for a token that is not for all workspaces.
    #[serde(default)]
    pub recovered: i64,
    /// The name of the server that did so last.
    #[serde(default)]
    pub recovered_by: Option<String>,
}

/// A target of wakes that does not answer a server, which holds back what would go there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct OpenBreaker {
    /// Scheme, host and port of the target, or the word `router`.
    pub target: String,
    /// The server.
    pub server_id: Uuid,
    /// Its name.
    pub server: String,
    /// Since when.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub opened_at: Timestamp,
}

/// Which servers.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ServerQuery {
    /// Those that have left too; not when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// A wish that a server takes no new work.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Drain {
    /// And that it leaves then, as if its process had been told to stop.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub exit: bool,
}

/// All servers.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Servers {
    /// The servers that are there, the oldest first; then those that have left, the last one first.
    pub items: Vec<Server>,
}
