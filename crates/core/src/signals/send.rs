//! Send: the way in for signals sent through this program. One statement for any number of them, committed before it answers.
//!
//! Other ways in, for any language: the SQL function `stationmaster.send_signal` inside the caller's own transaction, and a plain
//! `INSERT` into `stationmaster.signals`. All end in the same trigger.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use uuid::Uuid;

use super::{DEFAULT_TASK_QUEUE, MAX_NAME};
use crate::db::{self, Database, column, statement, within};
use crate::executions::enqueue::{MAX_INPUT, MAX_KEY};

/// A signal to be sent.
#[derive(Debug, Clone)]
pub struct Signal {
    /// The sender's own id of it; a repeat with the same id is acknowledged and sends nothing.
    pub id: String,
    /// The project that it is for.
    pub project: String,
    /// The task queue of the project.
    pub task_queue: String,
    /// Its name: triggers go by it.
    pub name: String,
    /// What it carries; `None` is `{}`. Becomes the input of the execution, verbatim.
    pub payload: Option<Box<RawValue>>,
    /// The sender's own reference; carried through to the execution.
    pub correlation_id: Option<String>,
    /// The sender's trace context (W3C `traceparent`).
    pub traceparent: Option<String>,
}

impl Signal {
    /// A signal with a new id and nothing special about it.
    #[must_use]
    pub fn new(project: &str, name: &str) -> Self {
        Self {
            id: Uuid::now_v7().to_string(),
            project: project.to_owned(),
            task_queue: DEFAULT_TASK_QUEUE.to_owned(),
            name: name.to_owned(),
            payload: None,
            correlation_id: None,
            traceparent: None,
        }
    }

    fn payload(&self) -> &str {
        self.payload.as_deref().map_or("{}", RawValue::get)
    }
}

/// What became of a signal that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is in the inbox.
    New,
    /// It was sent before; nothing has changed.
    Before,
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too much payload.
    #[error(
        "signal {index}: the payload has {size} bytes; the limit is {MAX_INPUT}. Store it elsewhere and pass a reference"
    )]
    TooLarge {
        /// Which signal, counted from 0.
        index: usize,
        /// Its size.
        size: usize,
    },
    /// A name that cannot be kept.
    #[error("signal {index}: the {field} must have 1 to {limit} characters")]
    BadName {
        /// Which signal, counted from 0.
        index: usize,
        /// Which field.
        field: &'static str,
        /// The most that it may have.
        limit: usize,
    },
    /// The id was used for another signal.
    #[error("signal {index}: the id {id:?} was used for another signal")]
    Conflict {
        /// Which signal, counted from 0.
        index: usize,
        /// The id.
        id: String,
    },
    /// There are too many dispatchers already; the words are the database's.
    #[error("{0}")]
    TooManyQueues(String),
    /// The payload is not something that PostgreSQL can keep.
    #[error("the payload cannot be stored: {0}")]
    BadPayload(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(db::Error),
}

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Self {
        if error.is_of(&["SM001"]) {
            Self::TooManyQueues(error.message())
        } else if error.is_of(&["22", "23514", "54"]) {
            Self::BadPayload(error.message())
        } else {
            Self::Database(error)
        }
    }
}

/// Sends one signal.
pub async fn send(database: &Database, signal: &Signal, by: &str) -> Result<Sent, Error> {
    let answers = send_all(database, std::slice::from_ref(signal), by).await?;
    Ok(answers.first().copied().unwrap_or(Sent::Before))
}

/// Sends many signals, all or none, and answers in their order. They are committed when it returns.
pub async fn send_all(database: &Database, signals: &[Signal], by: &str) -> Result<Vec<Sent>, Error> {
    check(signals)?;
    // Two batches with the same ids in other orders can wait for each other; PostgreSQL then ends one of them.
    let is_conflict = |error: &Error| matches!(error, Error::Database(error) if error.is_conflict());
    db::despite_conflicts(|| insert(database, signals, by), is_conflict).await
}

fn check(signals: &[Signal]) -> Result<(), Error> {
    let mut seen: HashMap<&str, &Signal> = HashMap::new();
    for (index, signal) in signals.iter().enumerate() {
        let size = signal.payload().len();
        if size > MAX_INPUT {
            return Err(Error::TooLarge { index, size });
        }
        let names = [
            ("id", Some(&signal.id), MAX_NAME),
            ("project", Some(&signal.project), MAX_NAME),
            ("task queue", Some(&signal.task_queue), MAX_NAME),
            ("name", Some(&signal.name), MAX_NAME),
            ("correlation id", signal.correlation_id.as_ref(), MAX_KEY),
            ("trace context", signal.traceparent.as_ref(), MAX_KEY),
        ];
        for (field, name, limit) in names {
            let bad = |name: &String| name.is_empty() || name.chars().count() > limit || name.contains('\0');
            if name.is_some_and(bad) {
                return Err(Error::BadName { index, field, limit });
            }
        }
        // Payloads are compared as they are written; two spellings of one value in one batch are a mistake worth hearing of.
        let twin = seen.insert(&signal.id, signal);
        if twin.is_some_and(|twin| !same(twin, signal)) {
            let id = signal.id.clone();
            return Err(Error::Conflict { index, id });
        }
    }
    Ok(())
}

fn same(one: &Signal, other: &Signal) -> bool {
    one.project == other.project
        && one.task_queue == other.task_queue
        && one.name == other.name
        && one.payload() == other.payload()
        && one.correlation_id == other.correlation_id
}

async fn insert(database: &Database, signals: &[Signal], by: &str) -> Result<Vec<Sent>, Error> {
    let mut transaction = database.transaction().await?;
    let new: Vec<String> = within(
        sqlx::query_scalar(statement!("signals/send"))
            .bind(column(signals, |signal| signal.id.as_str()))
            .bind(column(signals, |signal| signal.project.as_str()))
            .bind(column(signals, |signal| signal.task_queue.as_str()))
            .bind(column(signals, |signal| signal.name.as_str()))
            .bind(column(signals, Signal::payload))
            .bind(column(signals, |signal| signal.correlation_id.as_deref()))
            .bind(column(signals, |signal| signal.traceparent.as_deref()))
            .bind(by)
            .fetch_all(&mut *transaction),
    )
    .await?;
    let mut new: HashSet<String> = new.into_iter().collect();
    let skipped: Vec<usize> = (0..signals.len())
        .filter(|&index| !new.contains(&signals[index].id))
        .collect();
    if !skipped.is_empty() {
        compare(&mut transaction, signals, &skipped).await?;
    }
    transaction.finish().await?;
    // Of twins in one batch the first is new.
    let sent = signals.iter().map(|signal| {
        if new.remove(&signal.id) {
            Sent::New
        } else {
            Sent::Before
        }
    });
    Ok(sent.collect())
}

/// Some ids were used before: by the same signals, or by others.
async fn compare(
    transaction: &mut sqlx::PgConnection,
    signals: &[Signal],
    skipped: &[usize],
) -> Result<(), Error> {
    let asked = || skipped.iter().map(|&index| &signals[index]);
    let rows: Vec<(i64, bool)> = within(
        sqlx::query_as(statement!("signals/same_id"))
            .bind(column(asked(), |signal| signal.id.as_str()))
            .bind(column(asked(), |signal| signal.project.as_str()))
            .bind(column(asked(), |signal| signal.task_queue.as_str()))
            .bind(column(asked(), |signal| signal.name.as_str()))
            .bind(column(asked(), Signal::payload))
            .bind(column(asked(), |signal| signal.correlation_id.as_deref()))
            .fetch_all(transaction),
    )
    .await?;
    // An id whose signal may not be seen was used by somebody else: that is another signal, too.
    let same: HashSet<i64> = rows
        .into_iter()
        .filter_map(|(place, same)| same.then_some(place))
        .collect();
    let other = (1..).zip(skipped).find(|(place, _)| !same.contains(place));
    match other {
        None => Ok(()),
        Some((_, &index)) => {
            let id = signals[index].id.clone();
            Err(Error::Conflict { index, id })
        }
    }
}
