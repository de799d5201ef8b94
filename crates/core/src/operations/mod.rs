//! Operations: what is done to everything that matches, by the servers, while nobody waits for it.
//!
//! ```text
//! a request --> look (how many, as of when) --> [operations] --> Operator, a call after the other --> COMPLETED
//!                                                   |                 another goes on where one was killed
//!                                                   +--> cancel: no further call; what was done stays done
//! ```
//!
//! An operation is the same [`bulk`](crate::bulk) call that a request could make, in the name and within the scope of whoever asked for it, so what it
//! may touch is decided in one place. It is bound to its look: what came later is not swept away.

mod operator;

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use stationmaster_wire::{
    BulkAnswer, BulkCancel, BulkFailures, BulkPriority, BulkReplay, BulkRetry, Operation, OperationKind,
    OperationQuery, OperationStatus,
};
use uuid::Uuid;

pub(crate) use operator::Operator;

use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::executions::bulk;
use crate::failures;
use crate::id::WorkspaceId;
use crate::names::Range;
use crate::signals::replay;

/// Operations of one who asks that may be open at once.
pub const MOST: i64 = 100;
/// Operations forgotten by one statement.
const BATCH: i64 = 1_000;

/// Why something was not done about an operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// That cannot be the id of one.
    #[error("an operation's id is a UUID, or at least the first four digits of it")]
    NoId,
    /// There is none, or it is not to be seen.
    #[error("there is no operation {0}")]
    NotFound(String),
    /// Several begin like it.
    #[error("several operations begin with {0}: give more digits")]
    Ambiguous(String),
    /// It is over.
    #[error("operation {id} has ended before: it is {status}")]
    Ended {
        /// Which.
        id: Uuid,
        /// How it ended.
        status: OperationStatus,
    },
    /// Too many are open.
    #[error("{MOST} operations of yours are not over: wait for one, or cancel it")]
    TooMany,
    /// An operation has no place to go on from.
    #[error("an operation begins at the beginning, and knows itself where to go on: leave it out")]
    Place,
    /// What is on record cannot be read.
    #[error("the request cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A walk could not begin.
    #[error(transparent)]
    Bulk(#[from] crate::bulk::Error),
    /// Failures.
    #[error(transparent)]
    Failures(#[from] failures::Error),
    /// Dead letters.
    #[error(transparent)]
    Replay(#[from] replay::Error),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

impl Error {
    /// What the database said, if it was the database.
    fn of_database(self) -> Result<db::Error, Self> {
        match self {
            Self::Database(error)
            | Self::Bulk(crate::bulk::Error::Database(error))
            | Self::Failures(
                failures::Error::Database(error) | failures::Error::Bulk(crate::bulk::Error::Database(error)),
            )
            | Self::Replay(
                replay::Error::Database(error) | replay::Error::Bulk(crate::bulk::Error::Database(error)),
            ) => Ok(error),
            other => Err(other),
        }
    }
}

/// What can be done to everything that matches, at once or as an operation.
#[derive(Debug, Clone)]
pub enum Request {
    /// Cancels items.
    Cancel(BulkCancel),
    /// Puts items back into the queue.
    Retry(BulkRetry),
    /// Changes the priority of items.
    Priority(BulkPriority),
    /// Tries failures again.
    RetryFailures(BulkFailures),
    /// Sets failures aside.
    SetAside(BulkFailures),
    /// Cancels what still waits of a workflow that fails.
    CancelFailing(BulkCancel),
    /// Puts dead letters back into the inbox.
    Replay(BulkReplay),
}

/// The fields that every one of these requests has, whatever they are called.
struct Fields<'a> {
    workspace: Option<Uuid>,
    before: &'a mut Option<Timestamp>,
    after: &'a mut Option<String>,
    dry_run: &'a mut bool,
}

impl Request {
    /// What it does.
    #[must_use]
    pub fn kind(&self) -> OperationKind {
        match self {
            Self::Cancel(_) => OperationKind::CancelQueue,
            Self::Retry(_) => OperationKind::RetryQueue,
            Self::Priority(_) => OperationKind::PrioritiseQueue,
            Self::RetryFailures(_) => OperationKind::RetryFailures,
            Self::SetAside(_) => OperationKind::SetFailuresAside,
            Self::CancelFailing(_) => OperationKind::CancelFailures,
            Self::Replay(_) => OperationKind::ReplaySignals,
        }
    }

    /// Is it only a look?
    #[must_use]
    pub fn is_look(&self) -> bool {
        match self {
            Self::Cancel(request) | Self::CancelFailing(request) => request.dry_run,
            Self::Retry(request) => request.dry_run,
            Self::Priority(request) => request.dry_run,
            Self::RetryFailures(request) | Self::SetAside(request) => request.dry_run,
            Self::Replay(request) => request.dry_run,
        }
    }

    /// May it bring signals into the inbox?
    #[must_use]
    pub fn brings_signals(&self) -> bool {
        matches!(self, Self::RetryFailures(_) | Self::Replay(_)) && !self.is_look()
    }

    fn read(kind: OperationKind, request: Value) -> Result<Self, serde_json::Error> {
        use serde_json::from_value;
        Ok(match kind {
            OperationKind::CancelQueue => Self::Cancel(from_value(request)?),
            OperationKind::RetryQueue => Self::Retry(from_value(request)?),
            OperationKind::PrioritiseQueue => Self::Priority(from_value(request)?),
            OperationKind::RetryFailures => Self::RetryFailures(from_value(request)?),
            OperationKind::SetFailuresAside => Self::SetAside(from_value(request)?),
            OperationKind::CancelFailures => Self::CancelFailing(from_value(request)?),
            OperationKind::ReplaySignals => Self::Replay(from_value(request)?),
        })
    }

    /// As it is kept.
    fn written(&self) -> Result<Value, serde_json::Error> {
        use serde_json::to_value;
        let mut written = match self {
            Self::Cancel(request) | Self::CancelFailing(request) => to_value(request),
            Self::Retry(request) => to_value(request),
            Self::Priority(request) => to_value(request),
            Self::RetryFailures(request) | Self::SetAside(request) => to_value(request),
            Self::Replay(request) => to_value(request),
        }?;
        if let Some(fields) = written.as_object_mut() {
            fields.remove("dry_run");
        }
        Ok(written)
    }

    fn fields(&mut self) -> Fields<'_> {
        macro_rules! of {
            ($request:ident, $before:ident) => {
                Fields {
                    workspace: $request.workspace_id,
                    before: &mut $request.$before,
                    after: &mut $request.after,
                    dry_run: &mut $request.dry_run,
                }
            };
        }
        match self {
            Self::Cancel(request) | Self::CancelFailing(request) => of!(request, created_before),
            Self::Retry(request) => of!(request, ended_before),
            Self::Priority(request) => of!(request, created_before),
            Self::RetryFailures(request) | Self::SetAside(request) => of!(request, before),
            Self::Replay(request) => of!(request, before),
        }
    }

    /// Makes one call of it: a look, or as much as a call may do.
    pub async fn call(&self, database: &Database, actor: &str) -> Result<BulkAnswer, Error> {
        Ok(match self {
            Self::Cancel(request) | Self::CancelFailing(request) => {
                bulk::cancel(database, request, actor).await?
            }
            Self::Retry(request) => bulk::retry(database, request, actor).await?,
            Self::Priority(request) => bulk::set_priority(database, request, actor).await?,
            Self::RetryFailures(request) => failures::retry(database, request, actor).await?,
            Self::SetAside(request) => failures::set_aside(database, request, actor).await?,
            Self::Replay(request) => replay::replay_matching(database, request, actor).await?,
        })
    }
}

/// Looks how much it is, and puts it on record for the servers to carry out, bound to the look.
pub async fn begin(database: &Database, mut request: Request, actor: &str) -> Result<Operation, Error> {
    let fields = request.fields();
    if fields.after.is_some() {
        return Err(Error::Place);
    }
    let workspaces = database.among(fields.workspace.map(WorkspaceId));
    *fields.dry_run = true;
    let seen = request.call(database, actor).await?;
    let fields = request.fields();
    *fields.dry_run = false;
    *fields.before = Some(fields.before.map_or(seen.as_of, |before| before.min(seen.as_of)));
    let begun: Option<Uuid> = sqlx::query_scalar(statement!("operations/begin"))
        .bind(request.kind())
        .bind(request.written()?)
        .bind(workspaces)
        .bind(jiff_sqlx::Timestamp::from(seen.as_of))
        .bind(i64::try_from(seen.items).unwrap_or(i64::MAX))
        .bind(seen.more)
        .bind(actor)
        .bind(MOST)
        .maybe(database)
        .await?;
    let id = begun.ok_or(Error::TooMany)?;
    find(database, &id.to_string()).await
}

/// The operation that is meant by an id, or by the beginning of one.
pub async fn find(database: &Database, text: &str) -> Result<Operation, Error> {
    let range = Range::of(text).ok_or(Error::NoId)?;
    let found = ask(database, &[], None, range, 2).await?;
    match <[Operation; 1]>::try_from(found) {
        Ok([one]) => Ok(one),
        Err(none) if none.is_empty() => Err(Error::NotFound(text.to_owned())),
        Err(_) => Err(Error::Ambiguous(text.to_owned())),
    }
}

/// Operations, newest first, in one of these statuses; in any, when none is named.
pub async fn list(
    database: &Database,
    query: &OperationQuery,
    statuses: &[OperationStatus],
    below: Option<Uuid>,
    rows: i64,
) -> Result<Vec<Operation>, db::Error> {
    let before = |id: Uuid| Uuid::from_u128(id.as_u128().saturating_sub(1));
    let range = Range {
        to: below.map_or(Range::ALL.to, before),
        ..Range::ALL
    };
    ask(database, statuses, query.kind, range, rows).await
}

async fn ask(
    database: &Database,
    statuses: &[OperationStatus],
    kind: Option<OperationKind>,
    range: Range,
    rows: i64,
) -> Result<Vec<Operation>, db::Error> {
    sqlx::query_as(statement!("operations/list"))
        .bind((!statuses.is_empty()).then_some(statuses))
        .bind(kind)
        .bind(range.from)
        .bind(range.to)
        .bind(rows)
        .persistent(false)
        .all(database)
        .await
}

/// Ends an operation that is not over; what was done stays done. Answers how it is now. One that was cancelled before is as it was.
pub async fn cancel(database: &Database, id: Uuid, actor: &str) -> Result<Cancelled, Error> {
    let was_open = end(database, id, OperationStatus::Cancelled, Some(actor), None).await?;
    let now = find(database, &id.to_string()).await?;
    match (was_open, now.status) {
        (true, _) => Ok(Cancelled::Now(now)),
        (false, OperationStatus::Cancelled) => Ok(Cancelled::Before(now)),
        (false, status) => Err(Error::Ended { id, status }),
    }
}

/// What came of a cancel.
#[derive(Debug, Clone)]
pub enum Cancelled {
    /// It was open.
    Now(Operation),
    /// Somebody else was faster.
    Before(Operation),
}

async fn end(
    database: &Database,
    id: Uuid,
    status: OperationStatus,
    by: Option<&str>,
    error: Option<&str>,
) -> Result<bool, db::Error> {
    let query = sqlx::query(statement!("operations/end"))
        .bind(id)
        .bind(status)
        .bind(by)
        .bind(error);
    Ok(query.run(database).await? > 0)
}

/// Forgets operations that ended long ago, a batch at a time. Answers how many.
pub async fn prune(database: &Database, retention: Duration) -> Result<u64, db::Error> {
    let query = sqlx::query(statement!("operations/prune"))
        .bind(retention.as_secs_f64())
        .bind(BATCH);
    query.run(&database.own()).await
}
