//! What people see of signals. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{DeadReason, SignalStatus};
use crate::columns::{At, MaybeAt, MaybeJson};
use crate::db::{self, Database, statement, within};
use crate::id::{ExecutionId, ItemId};

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

/// A signal as people see it.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Signal {
    /// The sender's id of it.
    pub id: String,
    /// The project.
    pub project: String,
    /// The task queue.
    pub task_queue: String,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub status: SignalStatus,
    /// The execution that it led to, once there is one.
    pub execution_id: Option<ExecutionId>,
    /// The queue item that it became.
    pub queue_item_id: Option<ItemId>,
    /// When it came in.
    #[sqlx(try_from = "At")]
    pub received_at: Timestamp,
    /// When it was routed or put aside.
    #[sqlx(try_from = "MaybeAt")]
    pub settled_at: Option<Timestamp>,
    /// Why it was put aside: a word.
    pub reason: Option<DeadReason>,
    /// Why it was put aside: a sentence.
    pub detail: Option<String>,
    /// The sender's own reference.
    pub correlation_id: Option<String>,
    /// Who sent it.
    pub sent_by: String,
    /// Who routes it.
    pub dispatcher_id: String,
    /// The epoch of the dispatcher that settled it.
    pub epoch: Option<i64>,
    /// How often it was put back into the inbox.
    pub replays: i32,
    /// Its place in the order of arrival; pages go by it.
    #[sqlx(rename = "seq")]
    pub position: i64,
    /// What it carries.
    #[sqlx(try_from = "MaybeJson")]
    pub payload: Option<Box<RawValue>>,
}

/// Signals of projects in scope, newest first.
pub async fn list(database: &Database, filter: &Filter) -> Result<Vec<Signal>, db::Error> {
    select(database, filter, None).await
}

/// One signal, when its project is in scope.
pub async fn show(database: &Database, id: &str) -> Result<Option<Signal>, db::Error> {
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    let found = select(database, &filter, Some(id)).await?;
    Ok(found.into_iter().next())
}

async fn select(database: &Database, filter: &Filter, only: Option<&str>) -> Result<Vec<Signal>, db::Error> {
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
