//! Replay: dead letters go back into the inbox, one or all that match. Whoever mended the trigger does it by hand.

use stationmaster_wire::Signal;

use super::{SignalStatus, inspect};
use crate::db::{self, Database, statement, within};
use crate::executions::bulk::{COUNTED, Done, MOST};
use crate::id::WorkspaceId;

/// Dead letters put back by one transaction.
const BATCH: i64 = 500;
/// Ids read for a count at once.
const COUNT_BATCH: i64 = 10_000;

/// Why a signal was not put back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such signal.
    #[error("there is no signal {0:?}")]
    NotFound(String),
    /// It is no dead letter.
    #[error("signal {id:?} is {status}: only dead letters can be replayed")]
    WrongState {
        /// Which.
        id: String,
        /// What it is.
        status: SignalStatus,
    },
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// Which dead letters; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of projects of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Of this project.
    pub project: Option<String>,
    /// Of this task queue.
    pub task_queue: Option<String>,
    /// With this name.
    pub name: Option<String>,
    /// Put aside for this reason.
    pub reason: Option<String>,
}

/// Puts one dead letter back. Answers how it is now.
pub async fn replay(database: &Database, id: &str, actor: &str) -> Result<Signal, Error> {
    let read = async || {
        let signal = inspect::show(database, id).await?;
        signal.ok_or_else(|| Error::NotFound(id.to_owned()))
    };
    let before = read().await?;
    if before.status == SignalStatus::Dead && back(database, &[id.to_owned()], actor).await? == 1 {
        return read().await;
    }
    Err(Error::WrongState {
        id: id.to_owned(),
        status: before.status,
    })
}

/// Puts back what matches and was dead when this began, at most [`MOST`]; there may be more, which the next call finds.
pub async fn replay_matching(database: &Database, filter: &Filter, actor: &str) -> Result<Done, Error> {
    let mut done = Done::default();
    let mut place = Place::beginning(database).await?;
    while done.items < MOST {
        let page = matching(database, filter, &mut place, BATCH).await?;
        if page.is_empty() {
            return Ok(done);
        }
        done.items += back(database, &page, actor).await?;
    }
    Ok(Done { more: true, ..done })
}

/// How many dead letters such a replay would put back, counted up to [`COUNTED`].
pub async fn count_matching(database: &Database, filter: &Filter) -> Result<Done, Error> {
    let mut done = Done::default();
    let mut place = Place::beginning(database).await?;
    while done.items < COUNTED {
        let page = matching(database, filter, &mut place, COUNT_BATCH).await?;
        if page.is_empty() {
            return Ok(done);
        }
        done.items += page.len();
    }
    Ok(Done { more: true, ..done })
}

/// How far a walk over dead letters has come, in the order in which they were put aside, and where it ends. What dies again
/// meanwhile is not met twice.
struct Place {
    after: Option<(jiff_sqlx::Timestamp, String)>,
    before: jiff_sqlx::Timestamp,
}

impl Place {
    async fn beginning(database: &Database) -> Result<Self, db::Error> {
        let mut session = database.session().await?;
        let before = db::now(&mut session).await?.into();
        session.finish().await?;
        Ok(Self { after: None, before })
    }
}

async fn matching(
    database: &Database,
    filter: &Filter,
    place: &mut Place,
    limit: i64,
) -> Result<Vec<String>, db::Error> {
    let (at, id) = place.after.clone().unzip();
    let query = sqlx::query_as(statement!("signals/dead"))
        .bind(&filter.project)
        .bind(&filter.task_queue)
        .bind(&filter.name)
        .bind(&filter.reason)
        .bind(limit)
        .bind(place.before)
        .bind(database.among(filter.workspace))
        .bind(at)
        .bind(id)
        .persistent(false);
    let mut session = database.session().await?;
    let rows: Vec<(String, jiff_sqlx::Timestamp)> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    if let Some((id, at)) = rows.last() {
        place.after = Some((*at, id.clone()));
    }
    Ok(rows.into_iter().map(|(id, _)| id).collect())
}

async fn back(database: &Database, ids: &[String], actor: &str) -> Result<usize, db::Error> {
    let query = sqlx::query_scalar(statement!("signals/replay"))
        .bind(ids)
        .bind(actor);
    let mut session = database.session().await?;
    let done: Vec<String> = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(done.len())
}
