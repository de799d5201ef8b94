//! What people see of dispatchers. Reads only.

use serde::Serialize;
pub use stationmaster_wire::{Dispatcher, DispatcherEvent};

use super::DispatcherId;
use crate::db::{self, Database, Read as _, statement};

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
    let query = sqlx::query_as(statement!("dispatchers/list"))
        .bind(which.only)
        .bind(which.project)
        .bind(limit)
        .bind(database.among(None))
        .bind(which.after)
        .persistent(false);
    query.all(database).await
}

/// Something that happened, to which dispatcher, and in which trace.
#[derive(Debug, Serialize, sqlx::FromRow)]
pub(super) struct Event {
    dispatcher_id: DispatcherId,
    #[serde(flatten)]
    #[sqlx(flatten)]
    pub(super) happened: DispatcherEvent,
    #[serde(skip)]
    pub(super) traceparent: Option<String>,
}

/// What happened, newest first: to one dispatcher or to all.
pub async fn events(
    database: &Database,
    dispatcher: Option<&DispatcherId>,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<DispatcherEvent>, db::Error> {
    let query = sqlx::query_as(statement!("dispatchers/events"))
        .bind(dispatcher)
        .bind(before.unwrap_or(i64::MAX))
        .bind(limit);
    query.all(database).await
}
