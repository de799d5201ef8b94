//! Enqueue: the way in for requests made through this program. One statement for any number of them.
//!
//! Other ways in, for any language: the SQL function `stationmaster.enqueue_execution` inside the caller's own transaction, and a
//! plain `INSERT` into `stationmaster.workflow_execution_queue`. All end in the same trigger.

use std::collections::HashSet;

use serde_json::value::RawValue;
pub use stationmaster_wire::{Enqueue, Enqueued};

use crate::db::{self, Database, column, statement, within};
use crate::id::ItemId;

/// The largest input, in bytes of JSON.
pub const MAX_INPUT: usize = 256 * 1024;
/// The longest idempotency key, trace context or correlation id.
pub const MAX_KEY: usize = 256;

pub(super) fn input(request: &Enqueue) -> &str {
    request.input.as_deref().map_or("{}", RawValue::get)
}

fn run_at(request: &Enqueue) -> Option<jiff_sqlx::Timestamp> {
    request.run_at.map(jiff_sqlx::Timestamp::from)
}

fn new(id: ItemId) -> Enqueued {
    Enqueued {
        id: id.0,
        duplicate: false,
    }
}

/// A field of the wire in words.
pub(crate) fn spoken(field: &str) -> String {
    match field {
        "traceparent" => "trace context".to_owned(),
        field => field.replace('_', " "),
    }
}

/// Why nothing was enqueued.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too much input.
    #[error("the input has {size} bytes; the limit is {MAX_INPUT}. Store it elsewhere and pass a reference")]
    TooLarge {
        /// Which request, counted from 0.
        index: usize,
        /// Its size.
        size: usize,
    },
    /// A key that cannot be kept.
    #[error("the {} must have 1 to {MAX_KEY} characters", spoken(.field))]
    BadKey {
        /// Which request, counted from 0.
        index: usize,
        /// Which field, as the wire names it.
        field: &'static str,
    },
    /// The key was used for something else.
    #[error("the idempotency key {key:?} was used in this workspace with another request")]
    Conflict {
        /// Which request, counted from 0.
        index: usize,
        /// The key.
        key: String,
    },
    /// The workspace, the definition or its version is not there.
    #[error("{0}")]
    Unknown(String),
    /// The input is not something that PostgreSQL can keep.
    #[error("the input cannot be stored: {0}")]
    BadInput(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(db::Error),
}

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Self {
        match error.code().as_deref() {
            Some("23503") => Self::Unknown(error.message()),
            _ if error.is_of(&["22", "23514", "54"]) => Self::BadInput(error.message()),
            _ => Self::Database(error),
        }
    }
}

/// Enqueues one request. Whoever calls has seen that the caller may use its workspace; the wall stands behind.
pub async fn enqueue(database: &Database, request: Enqueue, by: &str) -> Result<Enqueued, Error> {
    let mut answers = enqueue_all(database, std::slice::from_ref(&request), by).await?;
    answers
        .pop()
        .ok_or_else(|| Error::Unknown("nothing was enqueued".to_owned()))
}

/// Enqueues many requests, all or none, and answers in their order.
pub async fn enqueue_all(
    database: &Database,
    requests: &[Enqueue],
    by: &str,
) -> Result<Vec<Enqueued>, Error> {
    check(requests)?;
    // Two bulks with the same keys in other orders can wait for each other; PostgreSQL then ends one of them.
    let is_conflict = |error: &Error| matches!(error, Error::Database(error) if error.is_conflict());
    db::despite_conflicts(|| insert(database, requests, by), is_conflict).await
}

async fn insert(database: &Database, requests: &[Enqueue], by: &str) -> Result<Vec<Enqueued>, Error> {
    let ids: Vec<ItemId> = requests.iter().map(|_| ItemId::new()).collect();
    let mut transaction = database.transaction().await?;
    let made: Vec<ItemId> = within(
        sqlx::query_scalar(statement!("queue/enqueue"))
            .bind(&ids)
            .bind(column(requests, |request| request.workspace_id))
            .bind(column(requests, |request| request.workflow_definition_id))
            .bind(column(requests, input))
            .bind(column(requests, |request| request.priority))
            .bind(column(requests, run_at))
            .bind(column(requests, |request| request.idempotency_key.as_deref()))
            .bind(column(requests, |request| request.traceparent.as_deref()))
            .bind(column(requests, |request| request.correlation_id.as_deref()))
            .bind(by)
            .fetch_all(&mut *transaction),
    )
    .await?;
    let answers = if made.len() == ids.len() {
        ids.into_iter().map(new).collect()
    } else {
        find_before(&mut transaction, requests, &ids, &made.into_iter().collect()).await?
    };
    transaction.finish().await?;
    Ok(answers)
}

pub(super) fn check(requests: &[Enqueue]) -> Result<(), Error> {
    problems(requests).next().map_or(Ok(()), Err)
}

/// Everything about the requests that cannot be, as far as it can be told without the database.
pub fn problems(requests: &[Enqueue]) -> impl Iterator<Item = Error> {
    requests.iter().enumerate().flat_map(|(index, request)| {
        let size = input(request).len();
        let large = (size > MAX_INPUT).then_some(Error::TooLarge { index, size });
        let keys = [
            ("idempotency_key", &request.idempotency_key),
            ("traceparent", &request.traceparent),
            ("correlation_id", &request.correlation_id),
        ];
        let bad = |key: &String| key.is_empty() || key.chars().count() > MAX_KEY || key.contains('\0');
        let keys = keys
            .into_iter()
            .filter(move |(_, key)| key.as_ref().is_some_and(bad))
            .map(move |(field, _)| Error::BadKey { index, field });
        large.into_iter().chain(keys)
    })
}

/// Some were skipped because their keys were used before: by an earlier request, or earlier in this very batch.
async fn find_before(
    transaction: &mut sqlx::PgConnection,
    requests: &[Enqueue],
    ids: &[ItemId],
    made: &HashSet<ItemId>,
) -> Result<Vec<Enqueued>, Error> {
    let mut answers: Vec<Option<Enqueued>> =
        ids.iter().map(|id| made.contains(id).then(|| new(*id))).collect();
    let skipped: Vec<usize> = (0..ids.len()).filter(|&index| answers[index].is_none()).collect();
    let asked = || skipped.iter().map(|&index| &requests[index]);
    let rows: Vec<(i64, ItemId, bool)> = within(
        sqlx::query_as(statement!("queue/same_key"))
            .bind(column(asked(), |request| request.workspace_id))
            .bind(column(asked(), |request| request.idempotency_key.as_deref()))
            .bind(column(asked(), |request| request.workflow_definition_id))
            .bind(column(asked(), input))
            .bind(column(asked(), |request| request.priority))
            .bind(column(asked(), run_at))
            .fetch_all(transaction),
    )
    .await?;
    for (place, item, same) in rows {
        let index = skipped[usize::try_from(place - 1).unwrap_or_default()];
        if !same {
            let key = requests[index].idempotency_key.clone().unwrap_or_default();
            return Err(Error::Conflict { index, key });
        }
        answers[index] = Some(Enqueued {
            id: item.0,
            duplicate: true,
        });
    }
    let all: Option<Vec<Enqueued>> = answers.into_iter().collect();
    all.ok_or_else(|| Error::Unknown("an item with the same key was removed meanwhile; try again".to_owned()))
}
