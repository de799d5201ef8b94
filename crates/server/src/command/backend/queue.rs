//! The queue.

use anyhow::Result;
use stationmaster_client::{Error, wire};
use stationmaster_core::executions::enqueue::{self, Enqueue};
use stationmaster_core::executions::operate::{self, Cancelled};
use stationmaster_core::executions::{browse, bulk, inspect};
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};
use uuid::Uuid;

use super::super::Context;
use super::{Backend, Listed, place, size, told};
use crate::http::shapes;

impl Backend {
    /// Items that match; the limit and the cursor of the query are not looked at.
    pub(in crate::command) async fn queue(
        &self,
        query: &wire::QueueQuery,
        limit: usize,
        before: Option<&str>,
    ) -> Result<Listed<wire::QueueItem>> {
        Listed::read(limit, before, async |limit, before| match self {
            Self::Database(direct) => {
                let filter = browse::Filter {
                    workspace: query.workspace_id.map(WorkspaceId),
                    definition: query.workflow_definition_id.map(DefinitionId),
                    status: query.status.map(shapes::Translate::translate),
                    after: query.created_after,
                    before: query.created_before,
                    text: query.search.clone(),
                    below: place(before)?,
                    limit,
                };
                let page = browse::items(&direct.database, &filter).await?;
                let found = page.rows.into_iter().map(shapes::item).collect();
                Ok((found, page.next.map(|id| id.to_string())))
            }
            Self::Api(client) => {
                let query = wire::QueueQuery {
                    limit: size(limit),
                    cursor: before,
                    ..query.clone()
                };
                Ok(told(client.queue(&query).await?))
            }
        })
        .await
    }

    pub(in crate::command) async fn queue_item(&self, id: Uuid) -> Result<wire::QueueItemDetails> {
        match self {
            Self::Database(direct) => {
                let found = inspect::item(&direct.database, ItemId(id)).await?;
                let item = found.ok_or(operate::Error::NotFound(id))?;
                let waiting = inspect::waiting(&direct.database, ItemId(id)).await?;
                Ok(wire::QueueItemDetails {
                    item: shapes::item(item),
                    waiting: waiting.map(shapes::waiting),
                })
            }
            Self::Api(client) => Ok(client.queue_item(id).await?),
        }
    }

    pub(in crate::command) async fn history(&self, item: Uuid) -> Result<Vec<wire::Step>> {
        match self {
            Self::Database(direct) => {
                let steps = inspect::history(&direct.database, ItemId(item)).await?;
                Ok(steps.into_iter().map(shapes::step).collect())
            }
            Self::Api(client) => Ok(client.queue_history(item).await?.items),
        }
    }

    pub(in crate::command) async fn enqueue(&self, request: wire::Enqueue) -> Result<wire::Enqueued> {
        match self {
            Self::Database(direct) => {
                let done = enqueue::enqueue(&direct.database, asked(request), &Context::actor()).await?;
                Ok(shapes::enqueued_wire(done))
            }
            Self::Api(client) => Ok(client.enqueue(&request).await?),
        }
    }

    /// Many at once, all or none.
    pub(in crate::command) async fn enqueue_all(
        &self,
        requests: Vec<wire::Enqueue>,
    ) -> Result<Vec<wire::Enqueued>> {
        match self {
            Self::Database(direct) => {
                let requests: Vec<Enqueue> = requests.into_iter().map(asked).collect();
                let done = enqueue::enqueue_all(&direct.database, &requests, &Context::actor()).await?;
                Ok(done.into_iter().map(shapes::enqueued_wire).collect())
            }
            Self::Api(client) => Ok(client.enqueue_all(requests).await?),
        }
    }

    /// By the id of an item or of its execution.
    pub(in crate::command) async fn cancel(
        &self,
        id: Uuid,
        reason: Option<String>,
    ) -> Result<wire::Cancelled> {
        match self {
            Self::Database(direct) => {
                let done =
                    operate::cancel(&direct.database, id, reason.as_deref(), &Context::actor()).await?;
                let result = match done {
                    Cancelled::AtOnce => wire::CancelledHow::Cancelled,
                    Cancelled::Requested => wire::CancelledHow::Requested,
                    Cancelled::EndedBefore(status) => {
                        let message = format!("{id} has ended before: it is {status}");
                        return Err(operate::Error::WrongState(message).into());
                    }
                };
                Ok(wire::Cancelled { id, result })
            }
            Self::Api(client) => {
                let why = wire::Cancel { reason };
                match client.cancel(id, &why).await {
                    Err(Error::NotFound(_)) => Ok(client.cancel_execution(id, &why).await?),
                    other => Ok(other?),
                }
            }
        }
    }

    pub(in crate::command) async fn retry(&self, id: Uuid) -> Result<()> {
        match self {
            Self::Database(direct) => {
                Ok(operate::retry(&direct.database, ItemId(id), &Context::actor()).await?)
            }
            Self::Api(client) => Ok(client.retry(id).await.map(drop)?),
        }
    }

    /// Counts what ended badly and matches, or puts some of it back.
    pub(in crate::command) async fn retry_all(&self, request: &wire::BulkRetry) -> Result<wire::BulkAnswer> {
        match self {
            Self::Database(direct) => {
                let filter = operate::Filter {
                    workspace: request.workspace_id.map(WorkspaceId),
                    definition: request.workflow_definition_id.map(DefinitionId),
                    status: request.status.map(shapes::Translate::translate),
                    reason: request.reason.clone(),
                    after: request.ended_after,
                    before: request.ended_before,
                };
                let done = if request.dry_run {
                    bulk::count_retriable(&direct.database, &filter).await?
                } else {
                    bulk::retry(&direct.database, &filter, &Context::actor()).await?
                };
                Ok(shapes::bulk_answer(done, request.dry_run))
            }
            Self::Api(client) => Ok(client.retry_all(request, None).await?),
        }
    }

    /// Counts what waits or runs and matches, or cancels some of it.
    pub(in crate::command) async fn cancel_all(
        &self,
        request: &wire::BulkCancel,
    ) -> Result<wire::BulkAnswer> {
        match self {
            Self::Database(direct) => {
                let filter = bulk::Cancellable {
                    workspace: request.workspace_id.map(WorkspaceId),
                    definition: request.workflow_definition_id.map(DefinitionId),
                    status: request.status.map(shapes::Translate::translate),
                    after: request.created_after,
                    before: request.created_before,
                };
                let done = if request.dry_run {
                    bulk::count_cancellable(&direct.database, &filter).await?
                } else {
                    let reason = request.reason.as_deref();
                    bulk::cancel(&direct.database, &filter, reason, &Context::actor()).await?
                };
                Ok(shapes::bulk_answer(done, request.dry_run))
            }
            Self::Api(client) => Ok(client.cancel_all(request, None).await?),
        }
    }

    pub(in crate::command) async fn set_priority(&self, id: Uuid, priority: i32) -> Result<()> {
        match self {
            Self::Database(direct) => {
                if inspect::item(&direct.database, ItemId(id)).await?.is_none() {
                    return Err(operate::Error::NotFound(id).into());
                }
                let actor = Context::actor();
                Ok(operate::set_priority(&direct.database, ItemId(id), priority, &actor, None).await?)
            }
            Self::Api(client) => {
                let change = wire::QueueItemChange { priority };
                Ok(client.change_queue_item(id, &change).await.map(drop)?)
            }
        }
    }
}

fn asked(request: wire::Enqueue) -> Enqueue {
    Enqueue {
        workspace_id: WorkspaceId(request.workspace_id),
        definition_id: DefinitionId(request.workflow_definition_id),
        input: request.input,
        priority: request.priority,
        run_at: request.run_at,
        idempotency_key: request.idempotency_key,
        traceparent: request.traceparent,
        correlation_id: request.correlation_id,
    }
}
