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
    let candidates = sqlx::query_scalar::<_, i64>(statement!("signals/candidates"))
        .bind(&query.project)
        .bind(database.among(None))
        .bind(before.unwrap_or(i64::MAX))
        .bind(window.candidates())
        .bind(query.received_after.map(jiff_sqlx::Timestamp::from))
        .bind(query.received_before.map(jiff_sqlx::Timestamp::from))
        .persistent(false);
    let places = within(candidates.fetch_all(&mut *session)).await?;
    let rows = rows(database, &mut session, &places, query, window.rows()).await?;
    session.finish().await?;
    Ok(window.page(rows, |placed| placed.position, &places))
}

/// Why no signal is shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Senders choose ids for themselves, and two projects have chosen the same.
    #[error("several projects have a signal {0:?}: name the project")]
    Several(String),
    /// The database did not answer.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// One signal, when its project is in scope. Ids are the senders' own: where projects share one, the project has to be named.
pub async fn show(database: &Database, id: &str, project: Option<&str>) -> Result<Option<Signal>, Error> {
    Ok(find(database, id, project).await?.map(|(_, signal)| signal))
}

/// The same, with the key that it is known by within.
pub(super) async fn find(
    database: &Database,
    id: &str,
    project: Option<&str>,
) -> Result<Option<(String, Signal)>, Error> {
    let mut session = database.session().await?;
    let named = sqlx::query_as::<_, (i64, String, String)>(statement!("signals/named"))
        .bind(id)
        .bind(project)
        .bind(database.among(None));
    let named = within(named.fetch_all(&mut *session)).await?;
    let found = match &named[..] {
        [] => None,
        [(place, key, _)] => {
            let query = SignalQuery::default();
            let found = rows(database, &mut session, &[*place], &query, 1).await?;
            let signal = found.into_iter().next().map(|found| found.signal);
            signal.map(|signal| (key.clone(), signal))
        }
        _ => return Err(Error::Several(id.to_owned())),
    };
    session.finish().await?;
    Ok(found)
}

async fn rows(
    database: &Database,
    session: &mut Session,
    candidates: &[i64],
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
