//! `/v1/operations`: what servers do to everything that matches, while nobody waits for it. They are begun where the same is done at once, by the
//! header `Prefer: respond-async`.

use axum::Json as Answer;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use stationmaster_client::wire;
use stationmaster_core::operations::{self, Cancelled, Request};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::extract::{InStatus, Path, Prefer};
use super::problem::{Kind, Problem, Reply, Result};
use super::routes::{Routes, long};

/// When to look again at what is not over, in seconds.
const AGAIN: &str = "1";

pub(super) fn routes() -> Routes {
    Routes::of("operation")
        .viewer(long(routes!(list)))
        .viewer(routes!(show))
        .operator(routes!(cancel))
}

/// Operations, newest first
///
/// They are shown to whoever may see all the workspaces that they are about.
#[utoipa::path(get, path = "/v1/operations", operation_id = "list_operations", tag = "operations", params(wire::OperationQuery),
    responses((status = 200, description = "A page of operations", body = wire::Page<wire::Operation>)))]
async fn list(
    Visit { database, .. }: Visit,
    InStatus(query, statuses): InStatus<wire::OperationQuery, wire::OperationStatus>,
) -> Reply<wire::Page<wire::Operation>> {
    let list = List::new(&format!("operations {statuses:?}"), &query)?;
    let rows = operations::list(&database, &query, &statuses, list.position()?, list.rows()).await?;
    Ok(list.page(rows, |operation| operation.id))
}

/// One operation: how it stands, and how far it is
///
/// While it is not over the answer says by `Retry-After` when to look again. `/v1/events?family=operation` tells each step.
#[utoipa::path(get, path = "/v1/operations/{id}", operation_id = "show_operation", tag = "operations",
    params(("id" = String, Path, description = "The operation's id, or its beginning")),
    responses((status = 200, description = "The operation", body = wire::Operation,
               headers(("retry-after" = u32, description = "While it is not over: look again after so many seconds"))),
              (status = 409, response = super::ProblemAnswer)))]
async fn show(Visit { database, .. }: Visit, Path(id): Path<String>) -> Result<Response> {
    let operation = operations::find(&database, &id).await?;
    let is_open = !operation.status.has_ended();
    let mut response = Answer(operation).into_response();
    if is_open {
        let again = HeaderValue::from_static(AGAIN);
        response.headers_mut().insert(header::RETRY_AFTER, again);
    }
    Ok(response)
}

/// End an operation that is not over; what it has done stays done
#[utoipa::path(post, path = "/v1/operations/{id}/cancel", operation_id = "cancel_operation", tag = "operations",
    params(("id" = String, Path, description = "The operation's id, or its beginning")),
    responses((status = 200, description = "The operation as it is now", body = wire::Operation),
              (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Path(id): Path<String>,
) -> Reply<wire::Operation> {
    let id = operations::find(&database, &id).await?.id;
    match operations::cancel(&database, id, &caller.actor).await? {
        Cancelled::Now(operation) => {
            state.metrics.operation_ended(operation.status);
            Ok(Answer(operation))
        }
        Cancelled::Before(operation) => Ok(Answer(operation)),
    }
}

/// Does what is asked for, as much as a call may; or puts it on record, when the caller prefers not to wait.
pub(super) async fn answer(visit: &Visit, prefer: Prefer, request: Request) -> Result<Response> {
    let (database, actor) = (&visit.database, &visit.caller.actor);
    if prefer == Prefer::NotWaiting && !request.is_look() {
        let begun = operations::begin(database, request, actor).await?;
        let location = format!("/v1/operations/{}", begun.id);
        let headers = [
            (header::LOCATION, location.as_str()),
            (
                header::HeaderName::from_static("preference-applied"),
                "respond-async",
            ),
        ];
        return Ok((StatusCode::ACCEPTED, headers, Answer(begun)).into_response());
    }
    let done = request.call(database, actor).await?;
    if request.brings_signals() {
        visit.state.work.ring_for_signals();
    }
    Ok(Answer(done).into_response())
}

impl From<operations::Error> for Problem {
    fn from(error: operations::Error) -> Self {
        use operations::Error;
        let words = error.to_string();
        match error {
            Error::NotFound(_) | Error::NoId => Self::not_found(words),
            Error::Ambiguous(_) | Error::Ended { .. } | Error::TooMany => Self::new(Kind::Conflict, words),
            Error::Place => Self::field("/after", words),
            Error::Unreadable(_) => Self::new(Kind::Internal, words),
            Error::Bulk(error) => error.into(),
            Error::Failures(error) => error.into(),
            Error::Replay(error) => error.into(),
            Error::Database(error) => error.into(),
        }
    }
}
