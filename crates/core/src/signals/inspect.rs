//! What people see of signals. Reads only.

pub use stationmaster_wire::Signal;

use super::SignalStatus;
use crate::db::{self, Database, statement, within};

/// Which signals; every field that is given must match.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Of this project.
    pub project: Option<String>,
    /// Of this task queue.
    pub task_queue: Option<String>,
    /// With this name.
    pub name: Option<String>,
    /// In this status.
    pub status: Option<SignalStatus>,
    /// Older than this position: where the last page ended.
    pub before: Option<i64>,
    /// How many.
    pub limit: i64,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            project: None,
            task_queue: None,
            name: None,
            status: None,
            before: None,
            limit: 100,
        }
    }
}

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

/// Signals of projects in scope, newest first.
pub async fn list(database: &Database, filter: &Filter) -> Result<Vec<Placed>, db::Error> {
    select(database, filter, None).await
}

/// One signal, when its project is in scope.
pub async fn show(database: &Database, id: &str) -> Result<Option<Signal>, db::Error> {
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let found = select(database, &filter, Some(id)).await?;
    Ok(found.into_iter().next().map(|found| found.signal))
}

async fn select(database: &Database, filter: &Filter, only: Option<&str>) -> Result<Vec<Placed>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("signals/list"))
        .bind(&filter.project)
        .bind(&filter.task_queue)
        .bind(&filter.name)
        .bind(filter.status)
        .bind(filter.before.unwrap_or(i64::MAX))
        .bind(filter.limit)
        .bind(only)
        .bind(database.among(None))
        .persistent(false);
    let signals = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(signals)
}
