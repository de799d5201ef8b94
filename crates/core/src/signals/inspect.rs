//! What people see of signals. Reads only.

pub use stationmaster_wire::{Signal, SignalQuery};

use crate::db::{self, Database, statement, within};

/// A signal with its place in the order of arrival, by which pages go.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Placed {
    /// The place.
    #[sqlx(rename = "seq")]
    pub position: i64,
    /// The signal.
    #[sqlx(flatten)]
    pub signal: Signal,
}

/// Signals of projects in scope that match, newest first, below a place.
pub async fn list(
    database: &Database,
    query: &SignalQuery,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<Placed>, db::Error> {
    select(database, query, before, limit, None).await
}

/// One signal, when its project is in scope.
pub async fn show(database: &Database, id: &str) -> Result<Option<Signal>, db::Error> {
    let found = select(database, &SignalQuery::default(), None, 1, Some(id)).await?;
    Ok(found.into_iter().next().map(|found| found.signal))
}

async fn select(
    database: &Database,
    query: &SignalQuery,
    before: Option<i64>,
    limit: i64,
    only: Option<&str>,
) -> Result<Vec<Placed>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("signals/list"))
        .bind(&query.project)
        .bind(&query.task_queue)
        .bind(&query.name)
        .bind(query.status)
        .bind(before.unwrap_or(i64::MAX))
        .bind(limit)
        .bind(only)
        .bind(database.among(None))
        .persistent(false);
    let signals = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(signals)
}
