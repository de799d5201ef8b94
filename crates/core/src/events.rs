//! What is told to listeners: events in one order that everybody sees alike.
//!
//! ```text
//! a writer's transaction -> [event_inbox] -> number() -> [events], 1, 2, 3 … -> after(position)
//! ```
//!
//! Numbers are given after the commit, under the lock of one row. So whoever has read up to a number has missed nothing
//! below it, however late a transaction ends; ids given while writing could not promise that. A table becomes a source of
//! events by a trigger that inserts into the inbox; nothing here changes for it. While nobody listens, events are numbered about
//! once a minute, so that they can be pruned.
//!
//! The steps of executions are many: those of one statement are one row, which takes a number for each of them and is told apart
//! when it is read.

use std::time::Duration;

use stationmaster_wire::Event;

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::id::WorkspaceId;

/// The most rows that one statement numbers.
const BATCH: i64 = 1000;
/// The most that is kept, however young: executions in great numbers have great numbers of steps.
const MOST: i64 = 2_000_000;

/// Which events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Kept {
    /// The first that is kept; one more than `newest` when none is.
    pub oldest: i64,
    /// The last that was numbered.
    pub newest: i64,
}

/// Begins to tell the steps of executions, or ends it, for all servers of this database. Needs the owner of the tables.
pub async fn tell_steps(database: &Database, wanted: bool) -> Result<(), db::Error> {
    let query = sqlx::query(statement!("events/tell_steps")).bind(wanted);
    query.run(&database.own()).await?;
    Ok(())
}

/// Numbers what has been committed since the last time. Answers how many rows.
pub async fn number(database: &Database) -> Result<usize, db::Error> {
    let mut numbered = 0;
    loop {
        let query = sqlx::query_scalar::<_, i64>(statement!("events/number")).bind(BATCH);
        let count = query.one(&database.own()).await?;
        numbered += usize::try_from(count).unwrap_or_default();
        if count < BATCH {
            return Ok(numbered);
        }
    }
}

/// Which events are kept now.
pub async fn kept(database: &Database) -> Result<Kept, db::Error> {
    sqlx::query_as(statement!("events/kept"))
        .one(&database.own())
        .await
}

/// Events after a position and up to another, oldest first; of this workspace, or of those in scope.
pub async fn after(
    database: &Database,
    workspace: Option<WorkspaceId>,
    position: i64,
    up_to: i64,
    limit: i64,
) -> Result<Vec<Event>, db::Error> {
    let query = sqlx::query_as(statement!("events/after"))
        .bind(position)
        .bind(up_to)
        .bind(database.among(workspace))
        .bind(limit);
    query.all(database).await
}

/// Forgets events that are older than this, and those beyond the most that is kept. Answers how many rows.
pub async fn prune(database: &Database, retention: Duration) -> Result<u64, db::Error> {
    let query = sqlx::query(statement!("events/prune"))
        .bind(retention.as_secs_f64())
        .bind(MOST);
    query.run(&database.own()).await
}
