//! Bulk operations by filter, a bounded number at a time, with a preview: what matches, and what was done about it.

use jiff::Timestamp;
use stationmaster_wire::CancellableStatus;
use uuid::Uuid;

use super::operate::{self, Cancelled};
use crate::db::{self, Database, Read as _, statement};
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

/// What a bulk operation is about, page by page.
pub(crate) trait Pages: Sync {
    /// What is on a page.
    type Item: Clone + Send + Sync;

    /// The page that follows on `after`; an empty one is behind the last.
    fn page(
        &self,
        database: &Database,
        after: Option<Self::Item>,
        limit: i64,
    ) -> impl Future<Output = Result<Vec<Self::Item>, db::Error>> + Send;
}

/// Goes through pages of `batch` until `most` are done; `act` says how many of a page were.
pub(crate) async fn walk<P: Pages, E: From<db::Error>, F: Future<Output = Result<usize, E>>>(
    database: &Database,
    pages: &P,
    (most, batch): (usize, i64),
    act: impl Fn(Vec<P::Item>) -> F,
) -> Result<Done, E> {
    let mut done = Done::default();
    let mut after = None;
    while done.items < most {
        let page = pages.page(database, after, batch).await?;
        let Some(last) = page.last() else { return Ok(done) };
        after = Some(last.clone());
        done.items += act(page).await?;
    }
    Ok(Done { more: true, ..done })
}

/// Counts, up to [`COUNTED`].
pub(crate) async fn count(database: &Database, pages: &impl Pages) -> Result<Done, db::Error> {
    walk(database, pages, (COUNTED, COUNT_BATCH), async |page| {
        Ok(page.len())
    })
    .await
}

impl Pages for operate::Filter {
    type Item = ItemId;

    async fn page(
        &self,
        database: &Database,
        after: Option<ItemId>,
        limit: i64,
    ) -> Result<Vec<ItemId>, db::Error> {
        sqlx::query_scalar(statement!("operate/matching"))
            .bind(database.among(self.workspace))
            .bind(self.definition)
            .bind(self.status)
            .bind(&self.reason)
            .bind(self.after.map(jiff_sqlx::Timestamp::from))
            .bind(self.before.map(jiff_sqlx::Timestamp::from))
            .bind(after.unwrap_or(ItemId(Uuid::nil())))
            .bind(limit)
            .persistent(false)
            .all(database)
            .await
    }
}

impl Pages for Cancellable {
    type Item = ItemId;

    async fn page(
        &self,
        database: &Database,
        after: Option<ItemId>,
        limit: i64,
    ) -> Result<Vec<ItemId>, db::Error> {
        sqlx::query_scalar(statement!("operate/cancellable"))
            .bind(database.among(self.workspace))
            .bind(self.definition)
            .bind(self.status)
            .bind(self.after.map(jiff_sqlx::Timestamp::from))
            .bind(self.before.map(jiff_sqlx::Timestamp::from))
            .bind(after.unwrap_or(ItemId(Uuid::nil())))
            .bind(limit)
            .persistent(false)
            .all(database)
            .await
    }
}

/// How many ended items a retry would put back.
pub async fn count_retriable(database: &Database, filter: &operate::Filter) -> Result<Done, db::Error> {
    count(database, filter).await
}

/// Puts ended items back into the queue, at most [`MOST`].
pub async fn retry(database: &Database, filter: &operate::Filter, actor: &str) -> Result<Done, db::Error> {
    let again = |page: Vec<ItemId>| async move { operate::retry_some(database, &page, actor).await };
    walk(database, filter, (MOST, BATCH), again).await
}

/// How many items a cancel would end.
pub async fn count_cancellable(database: &Database, filter: &Cancellable) -> Result<Done, db::Error> {
    count(database, filter).await
}

/// Cancels items, at most [`MOST`]: at once what waits, by way of the engine what runs.
pub async fn cancel(
    database: &Database,
    filter: &Cancellable,
    reason: Option<&str>,
    actor: &str,
) -> Result<Done, operate::Error> {
    let end = |page: Vec<ItemId>| async move {
        // A claim may take the same rows in another order, and PostgreSQL then ends one of the two.
        let attempt = || cancel_page(database, &page, reason, actor);
        db::despite_conflicts(
            attempt,
            |error| matches!(error, operate::Error::Database(error) if error.is_conflict()),
        )
        .await
    };
    walk(database, filter, (MOST, BATCH), end).await
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
        let detail = serde_json::json!({ "reason": reason, "bulk": true });
        operate::audit(&mut session, actor, "queue.cancel", item.0, detail).await?;
    }
    session.finish().await?;
    Ok(cancelled)
}
