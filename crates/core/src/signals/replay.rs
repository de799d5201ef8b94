//! Replay: dead letters go back into the inbox, one or all that match. Whoever mended the trigger does it by hand.

use jiff::Timestamp;

use super::inspect;
use crate::db::{self, Database, statement, within};

const BATCH: i64 = 500;

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
        status: String,
    },
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// Which dead letters; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this project.
    pub project: Option<String>,
    /// Of this task queue.
    pub task_queue: Option<String>,
    /// With this name.
    pub name: Option<String>,
    /// Put aside for this reason.
    pub reason: Option<String>,
}

/// Puts one dead letter back.
pub async fn replay(database: &Database, id: &str, actor: &str) -> Result<(), Error> {
    if back(database, &[id.to_owned()], actor).await? == 1 {
        return Ok(());
    }
    match inspect::show(database, id).await? {
        Some(signal) => Err(Error::WrongState {
            id: id.to_owned(),
            status: signal.status,
        }),
        None => Err(Error::NotFound(id.to_owned())),
    }
}

/// Puts back everything that matches and was dead when this began. Answers how many.
pub async fn replay_matching(database: &Database, filter: &Filter, actor: &str) -> Result<usize, Error> {
    // What dies again meanwhile is not taken twice: only what was settled before the beginning.
    let began: jiff_sqlx::Timestamp =
        within(sqlx::query_scalar("select clock_timestamp()").fetch_one(database.pool())).await?;
    let mut replayed = 0;
    loop {
        let ids = matching(database, filter, began.to_jiff()).await?;
        if ids.is_empty() {
            return Ok(replayed);
        }
        let done = back(database, &ids, actor).await?;
        if done == 0 {
            return Ok(replayed);
        }
        replayed += done;
    }
}

async fn matching(database: &Database, filter: &Filter, before: Timestamp) -> Result<Vec<String>, db::Error> {
    let query = sqlx::query_scalar(statement!("signals/dead"))
        .bind(&filter.project)
        .bind(&filter.task_queue)
        .bind(&filter.name)
        .bind(&filter.reason)
        .bind(BATCH)
        .bind(jiff_sqlx::Timestamp::from(before))
        .persistent(false);
    within(query.fetch_all(database.pool())).await
}

async fn back(database: &Database, ids: &[String], actor: &str) -> Result<usize, db::Error> {
    let mut transaction = database.pool().begin().await?;
    let query = sqlx::query_scalar::<_, String>(statement!("signals/replay")).bind(ids);
    let done = within(query.fetch_all(&mut *transaction)).await?;
    for id in &done {
        let audit = sqlx::query(statement!("reconcile/audit"))
            .bind(actor)
            .bind("signal.replay")
            .bind(None::<uuid::Uuid>)
            .bind(id)
            .bind("{}");
        within(audit.execute(&mut *transaction)).await?;
    }
    transaction.commit().await?;
    Ok(done.len())
}
