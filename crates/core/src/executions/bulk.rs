//! Bulk operations by filter, a bounded number at a time, with a preview: what matches, and what was done about it.

pub use stationmaster_wire::{BulkAnswer, BulkCancel, BulkRetry};
use uuid::Uuid;

use super::operate::{self, Cancelled};
use crate::db::{self, Database, Read as _, statement};
use crate::id::{ItemId, WorkspaceId};

/// The most that one call changes; there may be more, which the next call finds.
pub const MOST: u64 = 10_000;
/// The most that a preview counts.
pub const COUNTED: u64 = 100_000;
/// Cancels of one transaction.
const BATCH: i64 = 200;
/// Ids read for a count at once.
const COUNT_BATCH: i64 = 10_000;

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
    (most, batch): (u64, i64),
    act: impl Fn(Vec<P::Item>) -> F,
) -> Result<BulkAnswer, E> {
    let mut done = BulkAnswer {
        items: 0,
        more: true,
        dry_run: false,
    };
    let mut after = None;
    while done.items < most {
        let page = pages.page(database, after, batch).await?;
        let Some(last) = page.last() else {
            return Ok(BulkAnswer { more: false, ..done });
        };
        after = Some(last.clone());
        done.items += act(page).await? as u64;
    }
    Ok(done)
}

/// Counts, up to [`COUNTED`].
pub(crate) async fn count(database: &Database, pages: &impl Pages) -> Result<BulkAnswer, db::Error> {
    let mut counted = walk(database, pages, (COUNTED, COUNT_BATCH), async |page| {
        Ok::<_, db::Error>(page.len())
    })
    .await?;
    counted.dry_run = true;
    Ok(counted)
}

impl Pages for BulkRetry {
    type Item = ItemId;

    async fn page(
        &self,
        database: &Database,
        after: Option<ItemId>,
        limit: i64,
    ) -> Result<Vec<ItemId>, db::Error> {
        sqlx::query_scalar(statement!("operate/matching"))
            .bind(database.among(self.workspace_id.map(WorkspaceId)))
            .bind(self.workflow_definition_id)
            .bind(self.status)
            .bind(&self.reason)
            .bind(self.ended_after.map(jiff_sqlx::Timestamp::from))
            .bind(self.ended_before.map(jiff_sqlx::Timestamp::from))
            .bind(after.unwrap_or(ItemId(Uuid::nil())))
            .bind(limit)
            .persistent(false)
            .all(database)
            .await
    }
}

impl Pages for BulkCancel {
    type Item = ItemId;

    async fn page(
        &self,
        database: &Database,
        after: Option<ItemId>,
        limit: i64,
    ) -> Result<Vec<ItemId>, db::Error> {
        sqlx::query_scalar(statement!("operate/cancellable"))
            .bind(database.among(self.workspace_id.map(WorkspaceId)))
            .bind(self.workflow_definition_id)
            .bind(self.status)
            .bind(self.created_after.map(jiff_sqlx::Timestamp::from))
            .bind(self.created_before.map(jiff_sqlx::Timestamp::from))
            .bind(after.unwrap_or(ItemId(Uuid::nil())))
            .bind(limit)
            .persistent(false)
            .all(database)
            .await
    }
}

/// Puts ended items back into the queue, at most [`MOST`]; a dry run counts them.
pub async fn retry(database: &Database, request: &BulkRetry, actor: &str) -> Result<BulkAnswer, db::Error> {
    if request.dry_run {
        return count(database, request).await;
    }
    let again = |page: Vec<ItemId>| async move { operate::retry_some(database, &page, actor).await };
    walk(database, request, (MOST, BATCH), again).await
}

/// Cancels items, at most [`MOST`]: at once what waits, by way of the engine what runs. A dry run counts them.
pub async fn cancel(
    database: &Database,
    request: &BulkCancel,
    actor: &str,
) -> Result<BulkAnswer, operate::Error> {
    if request.dry_run {
        return Ok(count(database, request).await?);
    }
    let end = |page: Vec<ItemId>| async move {
        // A claim may take the same rows in another order, and PostgreSQL then ends one of the two.
        let attempt = || cancel_page(database, &page, request.reason.as_deref(), actor);
        db::despite_conflicts(
            attempt,
            |error| matches!(error, operate::Error::Database(error) if error.is_conflict()),
        )
        .await
    };
    walk(database, request, (MOST, BATCH), end).await
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
