//! `/v1/queue`: what waits, why, and what people do about it.

use std::fmt::Display;

use axum::response::{IntoResponse, Response};
use axum::{Json as Answer, http::StatusCode};
use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::db::Database;
use stationmaster_core::executions::operate::{self, Cancelled};
use stationmaster_core::executions::{EndReason, browse, inspect};
use stationmaster_core::id::{ExecutionId, ItemId, WorkspaceId};
use stationmaster_core::operations::Request;
use utoipa_axum::routes;
use uuid::Uuid;

use super::caller::{Caller, Visit};
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{InStatus, Json, MaybeJson, Path, Prefer, Query};
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::routes::{Routes, conditional, detachable, long, tagged};
use super::{names, operations};

pub(super) fn routes() -> Routes {
    Routes::of("item")
        .viewer(long(routes!(list)))
        .viewer(long(routes!(counts)))
        .viewer(long(routes!(waits)))
        .viewer(tagged(routes!(show)))
        .viewer(long(routes!(history)))
        .operator(conditional(routes!(change)))
        .operator(routes!(cancel))
        .operator(routes!(retry))
        .operator(detachable(routes!(retry_all)))
        .operator(detachable(routes!(cancel_all)))
        .operator(detachable(routes!(set_priorities)))
}

/// Items of the queue, newest first or in another order
#[utoipa::path(get, path = "/v1/queue", operation_id = "list_queue", tag = "queue", params(wire::QueueQuery),
    responses((status = 200, description = "A page of items", body = wire::Page<wire::QueueItem>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    InStatus(query, statuses): InStatus<wire::QueueQuery, wire::ItemStatus>,
) -> Reply<wire::Page<wire::QueueItem>> {
    let list = List::new(&format!("queue {statuses:?}"), &query)?;
    let (workspaces, definition) = names::several(
        &database,
        &caller,
        query.workspace_id.as_ref(),
        query.workflow_definition_id.as_ref(),
    )
    .await?;
    let filter = browse::Filter {
        workspace: None,
        definition,
        status: None,
        after: query.created_after,
        before: query.created_before,
        text: search(query.search.as_deref())?,
        superseded: false,
        order: wire::Order::Newest,
        beyond: None,
        limit: list.limit(),
    };
    let order = match query.order.unwrap_or_default() {
        wire::QueueOrder::Newest => wire::Order::Newest,
        wire::QueueOrder::Oldest => wire::Order::Oldest,
        wire::QueueOrder::Next => {
            let workspace = line_of(&workspaces, &statuses)?;
            let page = browse::in_line(&database, workspace, &filter, list.position()?).await?;
            return Ok(list.ending_at(page.rows, page.next));
        }
    };
    let beyond = list.position()?;
    let filter = browse::Filter {
        order,
        beyond,
        ..filter
    };
    let page = browse::items_in(&database, &filter, &workspaces, &statuses).await?;
    Ok(list.ending_at(page.rows, page.next))
}

/// The workspace whose line is asked for: each has its own, and only what waits stands in it.
fn line_of(workspaces: &[WorkspaceId], statuses: &[wire::ItemStatus]) -> Result<WorkspaceId> {
    if statuses.iter().any(|status| *status != wire::ItemStatus::Pending) {
        return Err(Problem::field("status", "order=next is for what is PENDING"));
    }
    match workspaces {
        [workspace] => Ok(*workspace),
        _ => Err(Problem::field(
            "order",
            "each workspace has a line of its own: name one with workspace_id",
        )),
    }
}

/// How many items are in each status, counted up to a bound
#[utoipa::path(get, path = "/v1/queue/counts", operation_id = "count_queue", tag = "queue", params(wire::QueueCountQuery),
    responses((status = 200, description = "The counts", body = wire::ItemCounts)))]
async fn counts(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::QueueCountQuery>,
) -> Reply<wire::ItemCounts> {
    let (workspaces, definition) = names::several(
        &database,
        &caller,
        query.workspace_id.as_ref(),
        query.workflow_definition_id.as_ref(),
    )
    .await?;
    let filter = browse::Filter {
        definition,
        after: query.created_after,
        before: query.created_before,
        ..browse::Filter::default()
    };
    let items = browse::count_items(&database, &filter, &workspaces).await?;
    Ok(Answer(wire::ItemCounts { items }))
}

/// Items of which it can be asked at once why they wait.
const ASKED: usize = 100;

/// Why several items wait: what stands in the way of each, its position, and when it is expected to start
///
/// Those that do not wait, or are not to be seen, are left out.
#[utoipa::path(get, path = "/v1/queue/waits", operation_id = "show_waits", tag = "queue", params(wire::WaitsQuery),
    responses((status = 200, description = "Those that wait", body = wire::Waits)))]
async fn waits(Visit { database, .. }: Visit, Query(query): Query<wire::WaitsQuery>) -> Reply<wire::Waits> {
    let ids: std::result::Result<Vec<ItemId>, _> = query
        .ids
        .split(',')
        .map(|id| id.trim().parse().map(ItemId))
        .collect();
    let ids = ids.map_err(|error| Problem::field("ids", format!("not an id: {error}")))?;
    if ids.len() > ASKED {
        return Err(Problem::field("ids", format!("at most {ASKED}")));
    }
    Ok(Answer(inspect::waits(&database, &ids).await?))
}

/// One item, and why it waits
#[utoipa::path(get, path = "/v1/queue/{id}", operation_id = "show_queue_item", tag = "queue",
    responses((status = 200, description = "The item", body = wire::QueueItemDetails)))]
async fn show(
    Visit { state, database, .. }: Visit,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::QueueItemDetails>> {
    let item = find(&database, ItemId(id)).await?;
    let obstacle = match item.execution_id.map(ExecutionId) {
        Some(execution) if item.status == wire::ItemStatus::Dispatched => {
            let runs = inspect::execution(&database, execution).await?;
            if runs.is_some_and(|execution| execution.status == wire::ExecutionStatus::Running) {
                state.work.obstacle(execution).await
            } else {
                None
            }
        }
        _ => None,
    };
    let wait = inspect::waiting(&database, ItemId(id)).await?;
    let (reasons, position, holders, expected) = wait.map_or_else(Default::default, |wait| {
        (wait.reasons, wait.position, wait.holders, wait.expected)
    });
    Ok(Tagged(wire::QueueItemDetails {
        item,
        waiting: reasons.first().cloned(),
        reasons,
        position,
        holders,
        expected,
        obstacle,
    }))
}

/// The life of an item, oldest step first
#[utoipa::path(get, path = "/v1/queue/{id}/history", operation_id = "show_queue_history", tag = "queue",
    responses((status = 200, description = "Its steps", body = wire::History)))]
async fn history(Visit { database, .. }: Visit, Path(id): Path<Uuid>) -> Reply<wire::History> {
    find(&database, ItemId(id)).await?;
    Ok(Answer(steps(&database, ItemId(id)).await?))
}

/// Change the priority of an item that waits
#[utoipa::path(patch, path = "/v1/queue/{id}", operation_id = "change_queue_item", tag = "queue",
    request_body = wire::QueueItemChange,
    responses((status = 200, description = "The item as it is now", body = wire::QueueItem),
              (status = 409, response = super::ProblemAnswer)))]
async fn change(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Uuid>,
    expected: Expected,
    Json(change): Json<wire::QueueItemChange>,
) -> Result<Tagged<wire::QueueItem>> {
    let before = find(&database, ItemId(id)).await?;
    let unexpected = || Problem::new(Kind::PreconditionFailed, "the item was changed: look again");
    if !expected.holds(Some(&before.tag())) {
        return Err(unexpected());
    }
    let still = (expected != Expected::Anything).then_some(before.priority);
    let changed = operate::set_priority(&database, ItemId(id), change.priority, &caller.actor, still).await;
    let after = find(&database, ItemId(id)).await?;
    if changed.is_err() && still.is_some_and(|priority| after.priority != priority) {
        return Err(unexpected());
    }
    changed?;
    Ok(Tagged(after))
}

/// Cancel an item: at once when it waits, through the engine when it runs
#[utoipa::path(post, path = "/v1/queue/{id}/cancel", operation_id = "cancel_queue_item", tag = "queue",
    request_body(content = Option<wire::Cancel>),
    responses((status = 200, description = "Cancelled", body = wire::Cancelled),
              (status = 202, description = "The engine is asked", body = wire::Cancelled),
              (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Uuid>,
    MaybeJson(why): MaybeJson<wire::Cancel>,
) -> Result<impl IntoResponse> {
    find(&database, ItemId(id)).await?;
    cancel_by_id(&database, &caller, id, why).await
}

/// Put an item that ended badly back into the queue
#[utoipa::path(post, path = "/v1/queue/{id}/retry", operation_id = "retry_queue_item", tag = "queue",
    responses((status = 200, description = "The item, waiting again", body = wire::QueueItem),
              (status = 409, response = super::ProblemAnswer)))]
async fn retry(Visit { caller, database, .. }: Visit, Path(id): Path<Uuid>) -> Reply<wire::QueueItem> {
    operate::retry(&database, ItemId(id), &caller.actor).await?;
    find(&database, ItemId(id)).await.map(Answer)
}

/// Put everything back that ended badly and matches; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/queue/retry", operation_id = "retry_queue", tag = "queue", request_body = wire::asked::BulkRetry,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer)))]
async fn retry_all(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkRetry>,
) -> Result<Response> {
    let mut wrong = Wrong::default();
    if let Some(reason) = &request.end_reason {
        let known = reason.parse::<EndReason>();
        wrong.see(known.map_err(|unknown| Problem::field("/end_reason", unknown.to_string())));
    }
    let filters = [
        request.workspace_id.is_some(),
        request.workflow_definition_id.is_some(),
        request.status.is_some(),
        request.end_reason.is_some(),
        request.ended_after.is_some(),
        request.ended_before.is_some(),
    ];
    let place = (
        request.workspace_id.as_ref(),
        request.workflow_definition_id.as_ref(),
    );
    let (workspace, definition) = meant(&visit, wrong, place, &filters, request.all).await?;
    let request = request.with_ids(workspace, definition);
    operations::answer(&visit, prefer, Request::Retry(request)).await
}

/// Cancel everything that waits or runs and matches; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/queue/cancel", operation_id = "cancel_queue", tag = "queue", request_body = wire::asked::BulkCancel,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer)))]
async fn cancel_all(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkCancel>,
) -> Result<Response> {
    let mut wrong = Wrong::default();
    wrong.see(check_reason(request.reason.as_deref()));
    let filters = [
        request.workspace_id.is_some(),
        request.workflow_definition_id.is_some(),
        request.status.is_some(),
        request.created_after.is_some(),
        request.created_before.is_some(),
    ];
    let place = (
        request.workspace_id.as_ref(),
        request.workflow_definition_id.as_ref(),
    );
    let (workspace, definition) = meant(&visit, wrong, place, &filters, request.all).await?;
    let request = request.with_ids(workspace, definition);
    operations::answer(&visit, prefer, Request::Cancel(request)).await
}

/// Change the priority of everything that waits and matches; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/queue/priority", operation_id = "prioritise_queue", tag = "queue", request_body = wire::asked::BulkPriority,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer)))]
async fn set_priorities(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkPriority>,
) -> Result<Response> {
    let filters = [
        request.workspace_id.is_some(),
        request.workflow_definition_id.is_some(),
        request.created_after.is_some(),
        request.created_before.is_some(),
    ];
    let place = (
        request.workspace_id.as_ref(),
        request.workflow_definition_id.as_ref(),
    );
    let (workspace, definition) = meant(&visit, Wrong::default(), place, &filters, request.all).await?;
    let request = request.with_ids(workspace, definition);
    operations::answer(&visit, prefer, Request::Priority(request)).await
}

/// The ids of the workspace and the workflow that a bulk operation is about, once all that is wrong with the request is told.
pub(super) async fn meant(
    visit: &Visit,
    mut wrong: Wrong,
    (workspace, workflow): (Option<&wire::Reference>, Option<&wire::Reference>),
    filters: &[bool],
    all: bool,
) -> Result<(Option<Uuid>, Option<Uuid>)> {
    wrong.see(narrowed(filters, all));
    let ids = names::ids(&visit.database, &visit.caller, workspace, workflow);
    let ids = wrong.see(ids.await);
    wrong.told()?;
    Ok(ids.unwrap_or_default())
}

/// A request that no filter narrows has to say that everything is meant; a note is no filter.
pub(super) fn narrowed(filters: &[bool], all: bool) -> Result<()> {
    if all || filters.contains(&true) {
        return Ok(());
    }
    let words = "no filter narrows this to less than everything: give one, or say \"all\": true";
    Err(Problem::field("/all", words))
}

/// Cancels by the id of an item or of an execution that the caller may see.
pub(super) async fn cancel_by_id(
    database: &Database,
    caller: &Caller,
    id: Uuid,
    why: wire::Cancel,
) -> Result<(StatusCode, Answer<wire::Cancelled>)> {
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

pub(super) fn check_reason(reason: Option<&str>) -> Result<()> {
    match reason {
        Some(reason) if reason.chars().count() > 1000 => {
            Err(Problem::field("/reason", "at most 1000 characters"))
        }
        _ => Ok(()),
    }
}

/// The item, when the caller may see it.
async fn find(database: &Database, id: ItemId) -> Result<wire::QueueItem> {
    let item = inspect::item(database, id).await?;
    item.ok_or_else(|| Problem::not_found(format!("there is no queue item {id}")))
}

/// The life of an item.
pub(super) async fn steps(database: &Database, id: ItemId) -> Result<wire::History> {
    let items = inspect::history(database, id).await?;
    Ok(wire::History { items })
}

/// A text to search for.
pub(super) fn search(text: Option<&str>) -> Result<Option<String>> {
    match text {
        Some(text) if !(1..=200).contains(&text.chars().count()) => {
            Err(Problem::field("search", "1 to 200 characters"))
        }
        text => Ok(text.map(str::to_owned)),
    }
}

impl Changeable for wire::QueueItem {
    fn changeable(&self) -> impl Serialize {
        (self.priority, self.status)
    }
}

impl Changeable for wire::QueueItemDetails {
    fn changeable(&self) -> impl Serialize {
        self.item.changeable()
    }
}
