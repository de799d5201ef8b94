//! Bulk operations by filter, a bounded number at a time, with a preview: what matches, and what was done about it.

use jiff::Timestamp;
use stationmaster_wire::CancellableStatus;
use uuid::Uuid;

use super::operate::{self, Cancelled};
use crate::audit;
use crate::db::{self, Database, statement, within};
use crate::id::{DefinitionId, ItemId, WorkspaceId};

/// The most that one call changes; there may be more, which the next call finds.
pub const MOST: usize = 10_000;
/// The most that a preview counts.
pub const COUNTED: usize = 100_000;
/// Cancels of one transaction.
const BATCH: i64 = 200;
/// Ids read for a count at once.
const COUNT_BATCH: i64 = 10_000;

/// What came of a bulk operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Items changed, or that would be.
    pub items: usize,
    /// There is more than that.
    pub more: bool,
}

/// Which items that wait or run; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Cancellable {
    /// Of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Of this definition.
    pub definition: Option<DefinitionId>,
    /// In this status.
    pub status: Option<CancellableStatus>,
    /// Enqueued at or after.
    pub after: Option<Timestamp>,
    /// Enqueued before.
    pub before: Option<Timestamp>,
}

/// How many ended items a retry would put back.
pub async fn count_retriable(database: &Database, filter: &operate::Filter) -> Result<Done, db::Error> {
    let mut done = Done::default();
    let mut after = ItemId(Uuid::nil());
    while done.items < COUNTED {
        let page = operate::matching(database, filter, after, COUNT_BATCH).await?;
        let Some(last) = page.last() else { return Ok(done) };
        after = *last;
        done.items += page.len();
    }
    Ok(Done { more: true, ..done })
}

/// Puts ended items back into the queue, at most [`MOST`].
pub async fn retry(database: &Database, filter: &operate::Filter, actor: &str) -> Result<Done, db::Error> {
    let mut done = Done::default();
    let mut after = ItemId(Uuid::nil());
    while done.items < MOST {
        let page = operate::matching(database, filter, after, BATCH).await?;
        let Some(last) = page.last() else { return Ok(done) };
        after = *last;
        done.items += operate::retry_some(database, &page, actor).await?;
    }
    Ok(Done { more: true, ..done })
}

/// How many items a cancel would end.
pub async fn count_cancellable(database: &Database, filter: &Cancellable) -> Result<Done, db::Error> {
    let mut done = Done::default();
    let mut after = ItemId(Uuid::nil());
    while done.items < COUNTED {
        let page = cancellable(database, filter, after, COUNT_BATCH).await?;
        let Some(last) = page.last() else { return Ok(done) };
        after = *last;
        done.items += page.len();
    }
    Ok(Done { more: true, ..done })
}

/// Cancels items, at most [`MOST`]: at once what waits, by way of the engine what runs.
pub async fn cancel(
    database: &Database,
    filter: &Cancellable,
    reason: Option<&str>,
    actor: &str,
) -> Result<Done, operate::Error> {
    let mut done = Done::default();
    let mut after = ItemId(Uuid::nil());
    while done.items < MOST {
        let page = cancellable(database, filter, after, BATCH).await?;
        let Some(last) = page.last() else { return Ok(done) };
        after = *last;
        done.items += match cancel_page(database, &page, reason, actor).await {
            // A claim took the same rows in another order, and PostgreSQL ended one of the two.
            Err(operate::Error::Database(error)) if error.is_conflict() => {
                cancel_page(database, &page, reason, actor).await?
            }
            other => other?,
        };
    }
    Ok(Done { more: true, ..done })
}

async fn cancel_page(
    database: &Database,
    items: &[ItemId],
    reason: Option<&str>,
    actor: &str,
) -> Result<usize, operate::Error> {
    let mut session = database.transaction().await?;
    let mut cancelled = 0;
    for item in items {
        match operate::cancel_in(&mut session, item.0, reason, actor).await? {
            Cancelled::AtOnce | Cancelled::Requested => cancelled += 1,
            Cancelled::EndedBefore(_) => continue,
        }
        let workspace = operate::workspace_of(&mut session, item.0).await?;
        let detail = serde_json::json!({ "reason": reason, "bulk": true });
        audit::write(
            &mut session,
            actor,
            "queue.cancel",
            workspace,
            &item.to_string(),
            detail,
        )
        .await?;
    }
    session.finish().await?;
    Ok(cancelled)
}

async fn cancellable(
    database: &Database,
    filter: &Cancellable,
    after: ItemId,
    limit: i64,
) -> Result<Vec<ItemId>, db::Error> {
    let query = sqlx::query_scalar(statement!("operate/cancellable"))
        .bind(database.among(filter.workspace))
        .bind(filter.definition)
        .bind(filter.status)
        .bind(filter.after.map(jiff_sqlx::Timestamp::from))
        .bind(filter.before.map(jiff_sqlx::Timestamp::from))
        .bind(after)
        .bind(limit)
        .persistent(false);
    let mut session = database.session().await?;
    let items = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(items)
}
