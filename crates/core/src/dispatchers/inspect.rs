//! What people see of dispatchers. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{DispatcherId, Epoch};
use crate::columns::{At, Json, MaybeAt, MaybeJson};
use crate::db::{self, Database, statement, within};
use crate::id::ServerId;

/// A dispatcher as people see it.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Dispatcher {
    /// Its id.
    pub id: DispatcherId,
    /// Its project.
    pub project: String,
    /// Its task queue.
    pub task_queue: String,
    /// Does its owner's lease hold?
    pub owned: bool,
    /// Who owns it, now or last.
    pub owner: Option<ServerId>,
    /// What the owner is called.
    pub owner_name: Option<String>,
    /// Its epoch.
    pub epoch: Epoch,
    /// Until when the lease holds.
    #[sqlx(try_from = "MaybeAt")]
    pub lease_until: Option<Timestamp>,
    /// Where its run is.
    pub engine: Option<String>,
    /// The first run of this epoch.
    pub run_id: Option<String>,
    /// When its owner took it.
    #[sqlx(try_from = "MaybeAt")]
    pub taken_at: Option<Timestamp>,
    /// When its run was started.
    #[sqlx(try_from = "MaybeAt")]
    pub run_started_at: Option<Timestamp>,
    /// The last heartbeat, when heartbeats are kept in PostgreSQL.
    #[sqlx(try_from = "MaybeAt")]
    pub heartbeat_at: Option<Timestamp>,
    /// Signals that wait, counted up to 1,000.
    pub waiting: i64,
    /// Since when the oldest of them has waited.
    #[sqlx(try_from = "MaybeAt")]
    pub oldest_waiting_at: Option<Timestamp>,
    /// The servers that stand by, the owner among them.
    #[sqlx(try_from = "MaybeJson")]
    pub servers: Option<Box<RawValue>>,
}

/// Which dispatchers; every field that is given must match.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which<'a> {
    /// Only this one.
    pub only: Option<&'a DispatcherId>,
    /// Of this project.
    pub project: Option<&'a str>,
    /// After this one: where the last page ended.
    pub after: Option<&'a str>,
}

/// One dispatcher.
pub async fn show(database: &Database, id: &DispatcherId) -> Result<Option<Dispatcher>, db::Error> {
    let which = Which {
        only: Some(id),
        ..Which::default()
    };
    Ok(list(database, &which, 1).await?.into_iter().next())
}

/// Dispatchers of projects in scope in the order of their ids.
pub async fn list(database: &Database, which: &Which<'_>, limit: i64) -> Result<Vec<Dispatcher>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("dispatchers/list"))
        .bind(which.only)
        .bind(which.project)
        .bind(limit)
        .bind(database.among(None))
        .bind(which.after)
        .persistent(false);
    let dispatchers = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(dispatchers)
}

/// Something that happened to a dispatcher: `fresh`, `takeover`, `handover` (taken after a hand-over), `handed_over`,
/// `server_evicted`, `run_terminated`, `heartbeat_removed` or `released`.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Event {
    /// Its number; grows.
    pub id: i64,
    /// When.
    #[sqlx(try_from = "At")]
    pub at: Timestamp,
    /// To which dispatcher.
    pub dispatcher_id: DispatcherId,
    /// What.
    pub event: String,
    /// Under which epoch.
    pub epoch: Option<Epoch>,
    /// Which server it is about.
    pub server_id: Option<ServerId>,
    /// Which run it is about.
    pub run_id: Option<String>,
    /// Who did it: a server, or a person.
    pub actor: String,
    /// More, as a JSON object.
    #[sqlx(try_from = "Json")]
    pub detail: Box<RawValue>,
}

/// What happened, newest first: to one dispatcher or to all.
pub async fn events(
    database: &Database,
    dispatcher: Option<&DispatcherId>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Event>, db::Error> {
    let query = sqlx::query_as(statement!("dispatchers/events"))
        .bind(dispatcher)
        .bind(before.unwrap_or(i64::MAX))
        .bind(limit);
    let mut session = database.session().await?;
    let events = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(events)
}
