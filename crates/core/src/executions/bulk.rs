//! Bulk operations on the queue: retry, cancel and change the priority of everything that matches.

pub use stationmaster_wire::{BulkAnswer, BulkCancel, BulkPriority, BulkRetry, CancellableStatus};
use uuid::Uuid;

use super::operate;
pub use crate::bulk::{COUNTED, Error, MOST};
use crate::bulk::{Pages, count, walk};
use crate::db::{self, Database, Read as _, statement};
use crate::id::{ItemId, WorkspaceId};

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
            .bind(&self.end_reason)
            .bind(self.ended_after.map(jiff_sqlx::Timestamp::from))
            .bind(self.ended_before.map(jiff_sqlx::Timestamp::from))
            .bind(after.unwrap_or(ItemId(Uuid::nil())))
            .bind(limit)
            .bind(self.status_of)
            .persistent(false)
            .all(database)
            .await
    }

    fn place(item: &ItemId) -> String {
        item.to_string()
    }

    fn read(place: &str) -> Option<ItemId> {
        place.parse().ok()
    }

    fn name(item: &ItemId) -> String {
        item.to_string()
    }
}

/// Items that wait or run.
struct Live<'a> {
    workspace: Option<Uuid>,
    definition: Option<Uuid>,
    status: Option<CancellableStatus>,
    /// Enqueued at or after, and before.
    between: (Option<&'a jiff::Timestamp>, Option<&'a jiff::Timestamp>),
}

impl Pages for Live<'_> {
    type Item = ItemId;

    async fn page(
        &self,
        database: &Database,
        after: Option<ItemId>,
        limit: i64,
    ) -> Result<Vec<ItemId>, db::Error> {
        let (from, before) = self.between;
        sqlx::query_scalar(statement!("operate/cancellable"))
            .bind(database.among(self.workspace.map(WorkspaceId)))
            .bind(self.definition)
            .bind(self.status)
            .bind(from.copied().map(jiff_sqlx::Timestamp::from))
            .bind(before.copied().map(jiff_sqlx::Timestamp::from))
            .bind(after.unwrap_or(ItemId(Uuid::nil())))
            .bind(limit)
            .persistent(false)
            .all(database)
            .await
    }

    fn place(item: &ItemId) -> String {
        item.to_string()
    }

    fn read(place: &str) -> Option<ItemId> {
        place.parse().ok()
    }

    fn name(item: &ItemId) -> String {
        item.to_string()
    }
}

/// Puts ended items back into the queue; a dry run counts them.
pub async fn retry(database: &Database, request: &BulkRetry, actor: &str) -> Result<BulkAnswer, Error> {
    if request.dry_run {
        return Ok(count(database, request).await?);
    }
    let again = |page: Vec<ItemId>| async move { Ok(operate::retry_some(database, &page, actor).await?) };
    walk(database, request, request.after.as_deref(), again).await
}

/// Cancels items: at once what waits, by way of the engine what runs. A dry run counts them.
pub async fn cancel(database: &Database, request: &BulkCancel, actor: &str) -> Result<BulkAnswer, Error> {
    let live = Live {
        workspace: request.workspace_id,
        definition: request.workflow_definition_id,
        status: request.status,
        between: (request.created_after.as_ref(), request.created_before.as_ref()),
    };
    if request.dry_run {
        return Ok(count(database, &live).await?);
    }
    let end = |page: Vec<ItemId>| async move {
        Ok(operate::cancel_some(database, &page, request.reason.as_deref(), actor).await?)
    };
    walk(database, &live, request.after.as_deref(), end).await
}

/// Changes the priority of items that wait. A dry run counts them.
pub async fn set_priority(
    database: &Database,
    request: &BulkPriority,
    actor: &str,
) -> Result<BulkAnswer, Error> {
    let waiting = Live {
        workspace: request.workspace_id,
        definition: request.workflow_definition_id,
        status: Some(CancellableStatus::Pending),
        between: (request.created_after.as_ref(), request.created_before.as_ref()),
    };
    if request.dry_run {
        return Ok(count(database, &waiting).await?);
    }
    let change = |page: Vec<ItemId>| async move {
        Ok(operate::set_priorities(database, &page, request.priority, actor).await?)
    };
    walk(database, &waiting, request.after.as_deref(), change).await
}
