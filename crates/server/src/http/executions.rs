//! `/v1/executions`: asking for executions, looking at them, ending them.

use std::time::Duration;

use axum::Json as Answer;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use stationmaster_client::wire;
use stationmaster_core::access::Role;
use stationmaster_core::db::Database;
use stationmaster_core::executions::operate::{self, Wish};
use stationmaster_core::executions::{browse, enqueue, inspect, nodes};
use stationmaster_core::id::{ExecutionId, ItemId};
use stationmaster_core::names as meant;
use tokio::time::{Instant, sleep};
use utoipa_axum::routes;
use uuid::Uuid;

use super::caller::Visit;
use super::cursor::List;
use super::extract::{IdempotencyKey, InStatus, Json, MaybeJson, Path, Query};
use super::names;
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::queue::{cancel_by_id, check_reason, ended_before, search, steps};
use super::routes::{Routes, long};
use super::trace::TraceParent;

/// Requests that one call may make.
const MOST: usize = 1000;
/// How long an answer waits for a run to end.
const PATIENCE: Duration = Duration::from_secs(5);
const FIRST_LOOK: Duration = Duration::from_millis(20);
const LAST_LOOK: Duration = Duration::from_millis(320);

pub(super) fn routes() -> Routes {
    Routes::of("execution")
        .unkept(Role::Operator, routes!(enqueue_one))
        .operator(routes!(enqueue_many))
        .viewer(long(routes!(list)))
        .viewer(long(routes!(counts)))
        .viewer(routes!(show))
        .viewer(long(routes!(history)))
        .viewer(routes!(standing))
        .operator(routes!(complete))
        .operator(routes!(terminate))
        .operator(routes!(cancel))
}

/// Ask for a workflow to run
#[utoipa::path(post, path = "/v1/executions", operation_id = "enqueue_execution", tag = "executions",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as the field idempotency_key", min_length = 1, max_length = 256, pattern = "^[!-~]+$")),
    request_body = wire::asked::Enqueue,
    responses((status = 202, description = "It is in the queue", body = wire::Enqueued, headers(("location" = String, description = "The queue item"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn enqueue_one(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    key: IdempotencyKey,
    trace: TraceParent,
    Json(mut request): Json<wire::asked::Enqueue>,
) -> Result<impl IntoResponse> {
    let mut wrong = Wrong::default();
    request.idempotency_key = wrong.see(key.or_of_body(request.idempotency_key)).flatten();
    request.traceparent = wrong.see(trace.or_of_body(request.traceparent, "")).flatten();
    let ids = async {
        let workspace = names::workspace(&database, &caller, &request.workspace_id).await?;
        let definition = meant::workflow(&database, Some(workspace), &request.workflow_definition_id).await?;
        Ok::<_, Problem>((workspace.0, definition.0))
    };
    let (workspace, definition) = wrong.see(ids.await).unwrap_or_default();
    let request = request.with_ids(workspace, definition);
    check(wrong, std::slice::from_ref(&request), "")?;
    let enqueued = state.gather.enqueue(&database, request, &caller.actor).await;
    let enqueued = enqueued.map_err(|error| refused(error, ""))?;
    let location = [(header::LOCATION, format!("/v1/queue/{}", enqueued.id))];
    Ok((StatusCode::ACCEPTED, location, Answer(enqueued)))
}

/// Ask for many at once, all or none
#[utoipa::path(post, path = "/v1/executions/bulk", operation_id = "enqueue_executions", tag = "executions",
    request_body = wire::asked::BulkEnqueue,
    responses((status = 202, description = "They are in the queue", body = wire::BulkEnqueued),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn enqueue_many(
    Visit { caller, database, .. }: Visit,
    trace: TraceParent,
    Json(mut request): Json<wire::asked::BulkEnqueue>,
) -> Result<impl IntoResponse> {
    if !(1..=MOST).contains(&request.items.len()) {
        return Err(Problem::field("/items", format!("1 to {MOST} requests")));
    }
    let mut wrong = Wrong::default();
    for (index, item) in request.items.iter_mut().enumerate() {
        let traced = trace.or_of_body(item.traceparent.take(), &format!("/items/{index}"));
        item.traceparent = wrong.see(traced).flatten();
    }
    let items = match meant::enqueues(&database, request.items).await {
        Ok(items) => items,
        Err(error) => {
            wrong.see::<(), _>(Err(error));
            return Err(wrong.whole());
        }
    };
    for item in &items {
        caller.may_use(item.workspace_id)?;
    }
    check(wrong, &items, "/items")?;
    let items = enqueue::enqueue_all(&database, &items, &caller.actor).await;
    let items = items.map_err(|error| refused(error, "/items"))?;
    Ok((StatusCode::ACCEPTED, Answer(wire::BulkEnqueued { items })))
}

/// Executions, newest or oldest first
#[utoipa::path(get, path = "/v1/executions", operation_id = "list_executions", tag = "executions", params(wire::ExecutionQuery),
    responses((status = 200, description = "A page of executions", body = wire::Page<wire::Execution>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    InStatus(query, statuses): InStatus<wire::ExecutionQuery, wire::ExecutionStatus>,
) -> Reply<wire::Page<wire::Execution>> {
    let list = List::new(&format!("executions {statuses:?}"), &query)?;
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
        after: query.completed_after,
        before: query.completed_before,
        text: search(query.search.as_deref())?,
        superseded: query.superseded.unwrap_or_default(),
        order: query.order.unwrap_or_default(),
        beyond: list.position()?,
        limit: list.limit(),
    };
    let page = browse::executions_in(&database, &filter, &workspaces, &statuses).await?;
    Ok(list.ending_at(page.rows, page.next))
}

/// How many executions are in each status, counted up to a bound
#[utoipa::path(get, path = "/v1/executions/counts", operation_id = "count_executions", tag = "executions", params(wire::ExecutionCountQuery),
    responses((status = 200, description = "The counts", body = wire::ExecutionCounts)))]
async fn counts(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::ExecutionCountQuery>,
) -> Reply<wire::ExecutionCounts> {
    let (workspaces, definition) = names::several(
        &database,
        &caller,
        query.workspace_id.as_ref(),
        query.workflow_definition_id.as_ref(),
    )
    .await?;
    let filter = browse::Filter {
        definition,
        after: query.completed_after,
        before: query.completed_before,
        ..browse::Filter::default()
    };
    let items = browse::count_executions(&database, &filter, &workspaces).await?;
    Ok(Answer(wire::ExecutionCounts { items }))
}

/// One execution
#[utoipa::path(get, path = "/v1/executions/{id}", operation_id = "show_execution", tag = "executions",
    responses((status = 200, description = "The execution", body = wire::Execution)))]
async fn show(Visit { state, database, .. }: Visit, Path(id): Path<Uuid>) -> Reply<wire::Execution> {
    let mut execution = find(&database, ExecutionId(id)).await?;
    if execution.status == wire::ExecutionStatus::Running {
        execution.obstacle = state.work.obstacle(ExecutionId(id)).await;
    }
    Ok(Answer(execution))
}

/// The graph that an execution runs, and where each node of it stands
///
/// The embedded engine tells where its runs are; of other engines only the graph is known.
#[utoipa::path(get, path = "/v1/executions/{id}/nodes", operation_id = "show_execution_nodes", tag = "executions",
    responses((status = 200, description = "The nodes, in the order in which they run", body = wire::ExecutionNodes)))]
async fn standing(Visit { database, .. }: Visit, Path(id): Path<Uuid>) -> Reply<wire::ExecutionNodes> {
    let found = find(&database, ExecutionId(id)).await?;
    Ok(Answer(nodes::nodes(&database, &found).await?))
}

/// The life of an execution's item, oldest step first
#[utoipa::path(get, path = "/v1/executions/{id}/history", operation_id = "show_execution_history", tag = "executions",
    responses((status = 200, description = "Its steps", body = wire::History)))]
async fn history(Visit { database, .. }: Visit, Path(id): Path<Uuid>) -> Reply<wire::History> {
    let found = find(&database, ExecutionId(id)).await?;
    Ok(Answer(steps(&database, ItemId(found.queue_item_id)).await?))
}

/// End the run of an active execution and record this end; its slot is free when the run has ended
#[utoipa::path(post, path = "/v1/executions/{id}/complete", operation_id = "complete_execution", tag = "executions",
    request_body = wire::Complete,
    responses((status = 200, description = "The execution as it ended", body = wire::Execution),
              (status = 202, description = "Its run has not ended yet; the execution as it is now", body = wire::Execution),
              (status = 409, response = super::ProblemAnswer)))]
async fn complete(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Path(id): Path<Uuid>,
    Json(end): Json<wire::Complete>,
) -> Result<impl IntoResponse> {
    let id = ExecutionId(id);
    find(&database, id).await?;
    if end.force {
        let status = end.status;
        operate::complete(&database, id, end, &caller.actor).await?;
        state.metrics.ended_by_request(status);
    } else {
        operate::end(&database, id, Wish::Complete(end), &caller.actor).await?;
    }
    ended_soon(&database, id).await
}

/// End the run of an execution by force; no worker is needed, and its slot is free when the run has ended
#[utoipa::path(post, path = "/v1/executions/{id}/terminate", operation_id = "terminate_execution", tag = "executions",
    request_body(content = Option<wire::Terminate>),
    responses((status = 200, description = "The execution as it ended", body = wire::Execution),
              (status = 202, description = "Its run has not ended yet; the execution as it is now", body = wire::Execution),
              (status = 409, response = super::ProblemAnswer)))]
async fn terminate(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Uuid>,
    MaybeJson(why): MaybeJson<wire::Terminate>,
) -> Result<impl IntoResponse> {
    check_reason(why.reason.as_deref())?;
    let found = find(&database, ExecutionId(id)).await?;
    // Its item may have gone on since, under another execution that is not meant.
    if found.completed_at.is_some() {
        return Err(ended_before(id, found.status));
    }
    let wish = Wish::Terminate { reason: why.reason };
    operate::end(&database, ExecutionId(id), wish, &caller.actor).await?;
    ended_soon(&database, ExecutionId(id)).await
}

/// A server carries it out, mostly within milliseconds: whoever asked is told how it ended, or that it has not yet.
async fn ended_soon(database: &Database, id: ExecutionId) -> Result<(StatusCode, Answer<wire::Execution>)> {
    let (mut pause, patient_until) = (FIRST_LOOK, Instant::now() + PATIENCE);
    loop {
        let execution = find(database, id).await?;
        if execution.completed_at.is_some() {
            return Ok((StatusCode::OK, Answer(execution)));
        }
        if Instant::now() >= patient_until || !inspect::is_served(database).await? {
            return Ok((StatusCode::ACCEPTED, Answer(execution)));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LAST_LOOK);
    }
}

/// Cancel an execution: its engine is asked, and its slot is free when the run has closed
#[utoipa::path(post, path = "/v1/executions/{id}/cancel", operation_id = "cancel_execution", tag = "executions",
    request_body(content = Option<wire::Cancel>),
    responses((status = 200, description = "Cancelled", body = wire::Cancelled),
              (status = 202, description = "The engine is asked", body = wire::Cancelled),
              (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Uuid>,
    MaybeJson(why): MaybeJson<wire::Cancel>,
) -> Result<impl IntoResponse> {
    let found = find(&database, ExecutionId(id)).await?;
    // Its item may have gone on since, under another execution that is not meant.
    if found.completed_at.is_some() {
        return Err(ended_before(id, found.status));
    }
    cancel_by_id(&database, &caller, id, why).await
}

/// The execution, when the caller may see it.
async fn find(database: &Database, id: ExecutionId) -> Result<wire::Execution> {
    let execution = inspect::execution(database, id).await?;
    execution.ok_or_else(|| Problem::not_found(format!("there is no execution {id}")))
}

/// Everything that is wrong with the requests, by the fields of each, beside what is known to be already.
fn check(mut wrong: Wrong, requests: &[wire::Enqueue], at: &str) -> Result<()> {
    for error in enqueue::problems(requests) {
        wrong.see::<(), _>(Err(refused(error, at)));
    }
    wrong.told()
}

/// Why nothing was enqueued; `at` is where the requests stand in the body, nothing when it is one.
fn refused(error: enqueue::Error, at: &str) -> Problem {
    use enqueue::Error;
    let words = error.to_string();
    match error {
        Error::TooLarge { index, .. } => Problem::field_of(at, Some(index), "input", words),
        Error::BadKey { index, field } => Problem::field_of(at, Some(index), field, words),
        Error::BadInput(_) => Problem::field_of(at, None, "input", words),
        Error::Conflict { .. } => Problem::new(Kind::IdempotencyConflict, words),
        Error::Unknown(_) => Problem::not_found(words),
        Error::Database(error) => error.into(),
    }
}
