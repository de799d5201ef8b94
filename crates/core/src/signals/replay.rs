//! Replay: dead letters go back into the inbox, one or all that match. Whoever mended the trigger does it by hand.

pub use stationmaster_wire::BulkReplay;
use stationmaster_wire::{BulkAnswer, Signal};

use super::{SignalStatus, inspect};
use crate::bulk::{self, Pages, count, walk};
use crate::db::{self, Database, Read as _, statement};
use crate::id::WorkspaceId;

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
    /// Where it was to go on is no place.
    #[error(transparent)]
    Bulk(#[from] bulk::Error),
    /// Two projects have one of this id.
    #[error("several projects have a signal {0:?}: name the project")]
    Several(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

impl From<inspect::Error> for Error {
    fn from(error: inspect::Error) -> Self {
        match error {
            inspect::Error::Several(id) => Self::Several(id),
            inspect::Error::Database(error) => Self::Database(error),
        }
    }
}

/// Puts one dead letter back. Answers how it is now.
pub async fn replay(
    database: &Database,
    id: &str,
    project: Option<&str>,
    actor: &str,
) -> Result<Signal, Error> {
    let read = async || {
        let signal = inspect::find(database, id, project).await?;
        signal.ok_or_else(|| Error::NotFound(id.to_owned()))
    };
    let (key, before) = read().await?;
    if before.status == SignalStatus::Dead && back(database, &[key], actor).await? == 1 {
        return Ok(read().await?.1);
    }
    Err(Error::WrongState {
        id: id.to_owned(),
        status: before.status,
    })
}

/// Puts back what matches and was dead when this began; there may be more, which the next call finds. A dry run counts it.
pub async fn replay_matching(
    database: &Database,
    request: &BulkReplay,
    actor: &str,
) -> Result<BulkAnswer, Error> {
    let dead = Dead::of(database, request).await?;
    if request.dry_run {
        return Ok(count(database, &dead).await?);
    }
    let replay = |page: Vec<Letter>| async move {
        let keys: Vec<String> = page.into_iter().map(|(key, _)| key).collect();
        Ok(back(database, &keys, actor).await?)
    };
    walk(database, &dead, request.after.as_deref(), replay).await
}

/// A dead letter: its key, and when it was put aside.
type Letter = (String, jiff_sqlx::Timestamp);

/// Dead letters in the order in which they were put aside. What dies again meanwhile is not met twice.
struct Dead<'a> {
    request: &'a BulkReplay,
    before: jiff_sqlx::Timestamp,
}

impl<'a> Dead<'a> {
    /// What matches and is dead now.
    async fn of(database: &Database, request: &'a BulkReplay) -> Result<Self, db::Error> {
        let now = sqlx::query_scalar::<_, jiff_sqlx::Timestamp>("select clock_timestamp()");
        let now = now.one(database).await?.to_jiff();
        let before = request.before.map_or(now, |before| before.min(now)).into();
        Ok(Self { request, before })
    }
}

impl Pages for Dead<'_> {
    type Item = Letter;

    async fn page(
        &self,
        database: &Database,
        after: Option<Letter>,
        limit: i64,
    ) -> Result<Vec<Letter>, db::Error> {
        let (key, at) = after.unzip();
        sqlx::query_as(statement!("signals/dead"))
            .bind(&self.request.project)
            .bind(&self.request.task_queue)
            .bind(&self.request.name)
            .bind(&self.request.reason)
            .bind(limit)
            .bind(self.before)
            .bind(database.among(self.request.workspace_id.map(WorkspaceId)))
            .bind(at)
            .bind(key)
            .persistent(false)
            .all(database)
            .await
    }

    fn place((id, at): &Letter) -> String {
        format!("{}:{id}", at.to_jiff().as_microsecond())
    }

    fn read(place: &str) -> Option<Letter> {
        let (at, id) = place.split_once(':')?;
        let at = jiff::Timestamp::from_microsecond(at.parse().ok()?).ok()?;
        Some((id.to_owned(), at.into()))
    }

    fn name((key, _): &Letter) -> String {
        // What follows the id is its project.
        key.split('\u{1f}').next().unwrap_or_default().to_owned()
    }
}

/// Puts those of these signals back that are dead. Answers how many.
pub(crate) async fn back(database: &Database, keys: &[String], actor: &str) -> Result<usize, db::Error> {
    let query = sqlx::query_scalar(statement!("signals/replay"))
        .bind(keys)
        .bind(actor);
    let done: Vec<String> = query.all(database).await?;
    Ok(done.len())
}
