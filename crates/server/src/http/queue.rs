//! `/v1/queue`: what waits, why, and what people do about it.

use std::fmt::Display;

use axum::extract::State as Shared;
use axum::response::IntoResponse;
use axum::{Json as Answer, http::StatusCode};
use stationmaster_client::wire;
use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect::{self, Item};
use stationmaster_core::executions::operate::{self, Cancelled};
use stationmaster_core::executions::{browse, bulk};
use stationmaster_core::id::{DefinitionId, ItemId};
use utoipa_axum::routes;
use uuid::Uuid;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::etag::{Expected, Tagged, tag};
use super::extract::{Json, MaybeJson, Path, Query};
use super::problem::{Kind, Problem};
use super::routes::Routes;
use super::words::Translate;

pub(super) fn routes() -> Routes {
    Routes::new()
        .viewer(routes!(list))
        .viewer(routes!(show))
        .viewer(routes!(history))
        .operator(routes!(change))
        .operator(routes!(cancel))
        .operator(routes!(retry))
        .operator(routes!(retry_all))
        .operator(routes!(cancel_all))
}

/// Items of the queue, newest first
#[utoipa::path(get, path = "/v1/queue", operation_id = "list_queue", tag = "queue", params(wire::QueueQuery),
    responses((status = 200, description = "A page of items", body = wire::Page<wire::QueueItem>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::QueueQuery>,
) -> Result<Answer<wire::Page<wire::QueueItem>>, Problem> {
    let list = List::new("queue", &query);
    let filter = browse::Filter {
        workspace: caller.may_ask(query.workspace_id)?,
        definition: query.workflow_definition_id.map(DefinitionId),
        status: query.status.map(Translate::translate),
        after: query.created_after,
        before: query.created_before,
        text: search(query.search.as_deref())?,
        below: list.position(query.cursor.as_deref(), cursor::uuid)?,
        limit: cursor::limit(query.limit)? as usize,
    };
    let page = browse::items(&caller.database(&state), &filter).await?;
    Ok(Answer(wire::Page {
        items: page.rows.into_iter().map(item).collect(),
        next_cursor: page.next.map(|next| list.cursor(next.as_bytes())),
    }))
}

/// One item, and why it waits
#[utoipa::path(get, path = "/v1/queue/{id}", operation_id = "show_queue_item", tag = "queue",
    params(("id" = Uuid, Path, description = "The item")),
    responses((status = 200, description = "The item", body = wire::QueueItemDetails, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::QueueItemDetails>, Problem> {
    let database = caller.database(&state);
    let found = find(&database, ItemId(id)).await?;
    let waiting = inspect::waiting(&database, ItemId(id)).await?;
    let details = wire::QueueItemDetails {
        item: item(found),
        waiting: waiting.map(self::waiting),
    };
    Ok(Tagged(item_tag(&details.item), details))
}

/// The life of an item, oldest step first
#[utoipa::path(get, path = "/v1/queue/{id}/history", operation_id = "show_queue_history", tag = "queue",
    params(("id" = Uuid, Path, description = "The item")),
    responses((status = 200, description = "Its steps", body = wire::History), (status = 404, response = super::ProblemAnswer)))]
async fn history(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Answer<wire::History>, Problem> {
    let database = caller.database(&state);
    find(&database, ItemId(id)).await?;
    Ok(Answer(steps(&database, ItemId(id)).await?))
}

/// Change the priority of an item that waits
#[utoipa::path(patch, path = "/v1/queue/{id}", operation_id = "change_queue_item", tag = "queue",
    params(("id" = Uuid, Path, description = "The item")),
    request_body = wire::QueueItemChange,
    responses((status = 200, description = "The item as it is now", body = wire::QueueItem, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn change(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
    Json(change): Json<wire::QueueItemChange>,
) -> Result<Tagged<wire::QueueItem>, Problem> {
    let database = caller.database(&state);
    let before = item(find(&database, ItemId(id)).await?);
    let unexpected = || Problem::new(Kind::PreconditionFailed, "the item was changed: look again");
    if !expected.holds(Some(&item_tag(&before))) {
        return Err(unexpected());
    }
    let still = (expected != Expected::Anything).then_some(before.priority);
    let changed = operate::set_priority(&database, ItemId(id), change.priority, &caller.actor, still).await;
    let after = item(find(&database, ItemId(id)).await?);
    if changed.is_err() && still.is_some_and(|priority| after.priority != priority) {
        return Err(unexpected());
    }
    changed?;
    Ok(Tagged(item_tag(&after), after))
}

/// Cancel an item: at once when it waits, through the engine when it runs
#[utoipa::path(post, path = "/v1/queue/{id}/cancel", operation_id = "cancel_queue_item", tag = "queue",
    params(("id" = Uuid, Path, description = "The item")),
    request_body(content = Option<wire::Cancel>),
    responses((status = 200, description = "Cancelled", body = wire::Cancelled),
              (status = 202, description = "The engine is asked", body = wire::Cancelled),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    MaybeJson(why): MaybeJson<wire::Cancel>,
) -> Result<impl IntoResponse, Problem> {
    let database = caller.database(&state);
    find(&database, ItemId(id)).await?;
    cancel_by_id(&database, &caller, id, why).await
}

/// Put an item that ended badly back into the queue
#[utoipa::path(post, path = "/v1/queue/{id}/retry", operation_id = "retry_queue_item", tag = "queue",
    params(("id" = Uuid, Path, description = "The item")),
    responses((status = 200, description = "The item, waiting again", body = wire::QueueItem),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn retry(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Answer<wire::QueueItem>, Problem> {
    let database = caller.database(&state);
    find(&database, ItemId(id)).await?;
    operate::retry(&database, ItemId(id), &caller.actor).await?;
    Ok(Answer(item(find(&database, ItemId(id)).await?)))
}

/// Put everything back that ended badly and matches; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/queue/retry", operation_id = "retry_queue", tag = "queue", request_body = wire::BulkRetry,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer)))]
async fn retry_all(
    Shared(state): Shared<State>,
    caller: Caller,
    Json(request): Json<wire::BulkRetry>,
) -> Result<Answer<wire::BulkAnswer>, Problem> {
    let database = caller.database(&state);
    let filter = operate::Filter {
        workspace: caller.may_ask(request.workspace_id)?,
        definition: request.workflow_definition_id.map(DefinitionId),
        status: request.status.map(Translate::translate),
        reason: request.reason,
        after: request.ended_after,
        before: request.ended_before,
    };
    let done = if request.dry_run {
        bulk::count_retriable(&database, &filter).await?
    } else {
        bulk::retry(&database, &filter, &caller.actor).await?
    };
    Ok(Answer(bulk_answer(done, request.dry_run)))
}

/// Cancel everything that waits or runs and matches; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/queue/cancel", operation_id = "cancel_queue", tag = "queue", request_body = wire::BulkCancel,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer)))]
async fn cancel_all(
    Shared(state): Shared<State>,
    caller: Caller,
    Json(request): Json<wire::BulkCancel>,
) -> Result<Answer<wire::BulkAnswer>, Problem> {
    check_reason(request.reason.as_deref())?;
    let database = caller.database(&state);
    let filter = bulk::Cancellable {
        workspace: caller.may_ask(request.workspace_id)?,
        definition: request.workflow_definition_id.map(DefinitionId),
        status: request.status.map(Translate::translate),
        after: request.created_after,
        before: request.created_before,
    };
    let done = if request.dry_run {
        bulk::count_cancellable(&database, &filter).await?
    } else {
        bulk::cancel(&database, &filter, request.reason.as_deref(), &caller.actor).await?
    };
    Ok(Answer(bulk_answer(done, request.dry_run)))
}

/// Cancels by the id of an item or of an execution that the caller may see.
pub(super) async fn cancel_by_id(
    database: &Database,
    caller: &Caller,
    id: Uuid,
    why: wire::Cancel,
) -> Result<(StatusCode, Answer<wire::Cancelled>), Problem> {
    check_reason(why.reason.as_deref())?;
    let (status, result) = match operate::cancel(database, id, why.reason.as_deref(), &caller.actor).await? {
        Cancelled::AtOnce => (StatusCode::OK, wire::CancelledHow::Cancelled),
        Cancelled::Requested => (StatusCode::ACCEPTED, wire::CancelledHow::Requested),
        Cancelled::EndedBefore(status) => return Err(ended_before(id, status)),
    };
    Ok((status, Answer(wire::Cancelled { id, result })))
}

pub(super) fn ended_before(id: Uuid, status: impl Display) -> Problem {
    Problem::new(Kind::Conflict, format!("{id} has ended before: it is {status}"))
}

fn check_reason(reason: Option<&str>) -> Result<(), Problem> {
    match reason {
        Some(reason) if reason.chars().count() > 1000 => {
            Err(Problem::field("/reason", "at most 1000 characters"))
        }
        _ => Ok(()),
    }
}

/// The item, when the caller may see it.
async fn find(database: &Database, id: ItemId) -> Result<Item, Problem> {
    let item = inspect::item(database, id).await?;
    item.ok_or_else(|| Problem::not_found(format!("there is no queue item {id}")))
}

/// The life of an item.
pub(super) async fn steps(database: &Database, id: ItemId) -> Result<wire::History, Problem> {
    let steps = inspect::history(database, id).await?;
    Ok(wire::History {
        items: steps.into_iter().map(step).collect(),
    })
}

/// A step on the wire.
pub(crate) fn step(step: inspect::Step) -> wire::Step {
    wire::Step {
        at: step.at,
        event: step.event,
        actor: step.actor,
        execution_id: step.execution_id.map(|id| id.0),
        detail: step.detail,
    }
}

/// A text to search for.
pub(super) fn search(text: Option<&str>) -> Result<Option<String>, Problem> {
    match text {
        Some(text) if !(1..=200).contains(&text.chars().count()) => {
            Err(Problem::field("search", "1 to 200 characters"))
        }
        text => Ok(text.map(str::to_owned)),
    }
}

fn item_tag(item: &wire::QueueItem) -> String {
    tag(&(item.priority, item.status))
}

pub(crate) fn bulk_answer(done: bulk::Done, dry_run: bool) -> wire::BulkAnswer {
    wire::BulkAnswer {
        items: done.items as u64,
        more: done.more,
        dry_run,
    }
}

/// An item on the wire.
pub(crate) fn item(item: Item) -> wire::QueueItem {
    wire::QueueItem {
        id: item.id.0,
        workspace_id: item.workspace_id.0,
        workflow_definition_id: item.workflow_definition_id.0,
        execution_id: item.execution_id.map(|id| id.0),
        status: item.status.translate(),
        priority: item.priority,
        run_at: item.run_at,
        attempt_count: item.attempt_count,
        recovery_count: item.recovery_count,
        created_at: item.created_at,
        claimed_at: item.claimed_at,
        dispatched_at: item.dispatched_at,
        last_error: item.last_error,
        idempotency_key: item.idempotency_key,
        correlation_id: item.correlation_id,
        enqueued_by: item.enqueued_by,
        input: item.input,
    }
}

pub(crate) fn waiting(waiting: inspect::Waiting) -> wire::Waiting {
    use inspect::Waiting;
    match waiting {
        Waiting::Scheduled { until } => wire::Waiting::Scheduled { until },
        Waiting::BackingOff { until, error } => wire::Waiting::BackingOff { until, error },
        Waiting::WorkspacePaused => wire::Waiting::WorkspacePaused,
        Waiting::DefinitionPaused => wire::Waiting::DefinitionPaused,
        Waiting::NoServer => wire::Waiting::NoServer,
        Waiting::EngineDown => wire::Waiting::EngineDown,
        Waiting::Limit {
            limit,
            active,
            holders,
            position,
        } => wire::Waiting::Limit {
            limit,
            active,
            holders: holders.into_iter().map(|id| id.0).collect(),
            position,
        },
        Waiting::Queued { position } => wire::Waiting::Queued { position },
    }
}
