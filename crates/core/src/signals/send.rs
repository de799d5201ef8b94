//! Send: the way in for signals sent through this program. One statement for any number of them, committed before it answers.
//!
//! Other ways in, for any language: the SQL function `stationmaster.send_signal` inside the caller's own transaction, and a plain
//! `INSERT` into `stationmaster.signals`. All end in the same trigger.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
pub use stationmaster_wire::{NewSignal, SignalSent};
use uuid::Uuid;

use super::{DEFAULT_TASK_QUEUE, MAX_NAME};
use crate::db::{self, Database, column, statement, within};
use crate::executions::enqueue::{MAX_INPUT, MAX_KEY, spoken};

fn id(signal: &NewSignal) -> &str {
    signal.id.as_deref().unwrap_or_default()
}

/// What it is known by: senders choose ids for their own project.
fn name(signal: &NewSignal) -> (&str, &str) {
    (id(signal), &signal.project)
}

fn task_queue(signal: &NewSignal) -> &str {
    signal.task_queue.as_deref().unwrap_or(DEFAULT_TASK_QUEUE)
}

fn payload(signal: &NewSignal) -> &str {
    signal.payload.as_deref().map_or("{}", RawValue::get)
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too much payload.
    #[error(
        "the payload has {size} bytes; the limit is {MAX_INPUT}. Store it elsewhere and pass a reference"
    )]
    TooLarge {
        /// Which signal, counted from 0.
        index: usize,
        /// Its size.
        size: usize,
    },
    /// A name that cannot be kept.
    #[error("the {} must have 1 to {limit} characters", spoken(.field))]
    BadName {
        /// Which signal, counted from 0.
        index: usize,
        /// Which field, as the wire names it.
        field: &'static str,
        /// The most that it may have.
        limit: usize,
    },
    /// The id was used for another signal of its project.
    #[error("the id {id:?} was used for another signal")]
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
pub async fn send(database: &Database, signal: NewSignal, by: &str) -> Result<SignalSent, Error> {
    let mut sent = send_all(database, vec![signal], by).await?;
    Ok(sent.swap_remove(0))
}

/// Sends many signals, all or none, and answers for each in their order. They are committed when it returns.
pub async fn send_all(
    database: &Database,
    mut signals: Vec<NewSignal>,
    by: &str,
) -> Result<Vec<SignalSent>, Error> {
    for signal in &mut signals {
        signal.id.get_or_insert_with(|| Uuid::now_v7().to_string());
    }
    check(&signals)?;
    // Two batches with the same ids in other orders can wait for each other; PostgreSQL then ends one of them.
    let is_conflict = |error: &Error| matches!(error, Error::Database(error) if error.is_conflict());
    db::despite_conflicts(|| insert(database, &signals, by), is_conflict).await
}

/// Everything about the signals that cannot be kept, as far as it can be told without the database.
pub fn problems(signals: &[NewSignal]) -> impl Iterator<Item = Error> {
    signals.iter().enumerate().flat_map(|(index, signal)| {
        let size = payload(signal).len();
        let large = (size > MAX_INPUT).then_some(Error::TooLarge { index, size });
        let names = [
            ("id", signal.id.as_ref(), MAX_NAME),
            ("project", Some(&signal.project), MAX_NAME),
            ("task_queue", signal.task_queue.as_ref(), MAX_NAME),
            ("name", Some(&signal.name), MAX_NAME),
            ("correlation_id", signal.correlation_id.as_ref(), MAX_KEY),
            ("traceparent", signal.traceparent.as_ref(), MAX_KEY),
        ];
        let names = names.into_iter().filter_map(move |(field, text, limit)| {
            let bad = |text: &String| text.is_empty() || text.chars().count() > limit || text.contains('\0');
            text.is_some_and(bad)
                .then_some(Error::BadName { index, field, limit })
        });
        large.into_iter().chain(names)
    })
}

fn check(signals: &[NewSignal]) -> Result<(), Error> {
    if let Some(problem) = problems(signals).next() {
        return Err(problem);
    }
    let mut seen: HashMap<(&str, &str), &NewSignal> = HashMap::new();
    for (index, signal) in signals.iter().enumerate() {
        // Payloads are compared as they are written; two spellings of one value in one batch are a mistake worth hearing of.
        let twin = seen.insert(name(signal), signal);
        if twin.is_some_and(|twin| !same(twin, signal)) {
            let id = id(signal).to_owned();
            return Err(Error::Conflict { index, id });
        }
    }
    Ok(())
}

fn same(one: &NewSignal, other: &NewSignal) -> bool {
    task_queue(one) == task_queue(other)
        && one.name == other.name
        && payload(one) == payload(other)
        && one.correlation_id == other.correlation_id
}

async fn insert(database: &Database, signals: &[NewSignal], by: &str) -> Result<Vec<SignalSent>, Error> {
    let mut transaction = database.transaction().await?;
    let new: Vec<(String, String)> = within(
        sqlx::query_as(statement!("signals/send"))
            .bind(column(signals, id))
            .bind(column(signals, |signal| signal.project.as_str()))
            .bind(column(signals, task_queue))
            .bind(column(signals, |signal| signal.name.as_str()))
            .bind(column(signals, payload))
            .bind(column(signals, |signal| signal.correlation_id.as_deref()))
            .bind(column(signals, |signal| signal.traceparent.as_deref()))
            .bind(by)
            .fetch_all(&mut *transaction),
    )
    .await?;
    let mut new: HashSet<(&str, &str)> = new
        .iter()
        .map(|(id, project)| (id.as_str(), project.as_str()))
        .collect();
    let skipped: Vec<usize> = (0..signals.len())
        .filter(|&index| !new.contains(&name(&signals[index])))
        .collect();
    if !skipped.is_empty() {
        compare(&mut transaction, signals, &skipped).await?;
    }
    transaction.finish().await?;
    // Of twins in one batch the first is new.
    let sent = signals.iter().map(|signal| SignalSent {
        id: id(signal).to_owned(),
        duplicate: !new.remove(&name(signal)),
    });
    Ok(sent.collect())
}

/// Some ids were used before: by the same signals, or by others.
async fn compare(
    transaction: &mut sqlx::PgConnection,
    signals: &[NewSignal],
    skipped: &[usize],
) -> Result<(), Error> {
    let asked = || skipped.iter().map(|&index| &signals[index]);
    let rows: Vec<(i64, bool)> = within(
        sqlx::query_as(statement!("signals/same_id"))
            .bind(column(asked(), id))
            .bind(column(asked(), |signal| signal.project.as_str()))
            .bind(column(asked(), task_queue))
            .bind(column(asked(), |signal| signal.name.as_str()))
            .bind(column(asked(), payload))
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
            let id = id(&signals[index]).to_owned();
            Err(Error::Conflict { index, id })
        }
    }
}
