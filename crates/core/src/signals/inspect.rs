//! What people see of signals. Reads only.

pub use stationmaster_wire::{Signal, SignalQuery};

use crate::db::{self, Database, statement, within};
use crate::pages::{Page, Window};
use crate::session::Session;

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
    limit: usize,
) -> Result<Page<Placed, i64>, db::Error> {
    let plain = query.task_queue.is_none() && query.name.is_none() && query.status.is_none();
    let window = Window::new(limit, plain);
    let mut session = database.session().await?;
    let candidates = sqlx::query_as::<_, (String, i64)>(statement!("signals/candidates"))
        .bind(&query.project)
        .bind(database.among(None))
        .bind(before.unwrap_or(i64::MAX))
        .bind(window.candidates())
        .persistent(false);
    let candidates = within(candidates.fetch_all(&mut *session)).await?;
    let (ids, places): (Vec<String>, Vec<i64>) = candidates.into_iter().unzip();
    let rows = rows(database, &mut session, &ids, query, window.rows()).await?;
    session.finish().await?;
    Ok(window.page(rows, |placed| placed.position, &places))
}

/// One signal, when its project is in scope.
pub async fn show(database: &Database, id: &str) -> Result<Option<Signal>, db::Error> {
    let mut session = database.session().await?;
    let found = rows(
        database,
        &mut session,
        &[id.to_owned()],
        &SignalQuery::default(),
        1,
    )
    .await?;
    session.finish().await?;
    Ok(found.into_iter().next().map(|found| found.signal))
}

async fn rows(
    database: &Database,
    session: &mut Session,
    candidates: &[String],
    query: &SignalQuery,
    limit: i64,
) -> Result<Vec<Placed>, db::Error> {
    let query = sqlx::query_as(statement!("signals/list"))
        .bind(candidates)
        .bind(&query.task_queue)
        .bind(&query.name)
        .bind(query.status)
        .bind(limit)
        .bind(database.among(None))
        .persistent(false);
    within(query.fetch_all(&mut **session)).await
}
