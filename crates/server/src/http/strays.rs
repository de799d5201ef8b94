//! `/v1/executions/strays`: runs that the engine holds open and that no row tells of. The reconciler finds them; nobody ends them but
//! people.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use stationmaster_client::wire;
use stationmaster_core::executions::strays;
use stationmaster_core::id::ExecutionId;
use utoipa_axum::routes;
use uuid::Uuid;

use super::caller::Visit;
use super::cursor::List;
use super::extract::{Json, Path, Query};
use super::problem::{Problem, Reply, Result};
use super::queue::check_reason;
use super::routes::{Routes, long};

/// The longest name of a run.
const LONGEST: usize = 200;

pub(super) fn routes() -> Routes {
    Routes::of("execution")
        .viewer(long(routes!(list)))
        .operator(routes!(end))
}

/// Runs that the engine holds open and that no row tells of, in the order of their run ids
///
/// They were lost with the last commits of a failed primary, or are younger than a backup that was brought back. They hold no slot, and
/// are ended only when somebody says so.
#[utoipa::path(get, path = "/v1/executions/strays", operation_id = "list_strays", tag = "executions", params(wire::PageQuery),
    responses((status = 200, description = "A page of strays", body = wire::Page<wire::Stray>)))]
async fn list(
    Visit { database, .. }: Visit,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::Stray>> {
    let list = List::new("strays", &query)?;
    let after: Option<[String; 1]> = list.position()?;
    let after = after.as_ref().map(|[after]| after.as_str());
    let rows = strays::list(&database, None, after, list.rows()).await?;
    Ok(list.page(rows, |stray| [stray.run_id.clone()]))
}

/// End a run that no row tells of, by its run id; a server does that as soon as it can, after one more look
#[utoipa::path(post, path = "/v1/executions/strays/{id}/end", operation_id = "end_stray", tag = "executions",
    params(("id" = Uuid, Path, description = "The execution that it was started for")),
    request_body = wire::EndStray,
    responses((status = 202, description = "It will be ended; the stray as it is now", body = wire::Stray)))]
async fn end(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Uuid>,
    Json(end): Json<wire::EndStray>,
) -> Result<impl IntoResponse> {
    check_reason(end.reason.as_deref())?;
    if end.run_id.is_empty() || end.run_id.chars().count() > LONGEST || end.run_id.contains('\0') {
        return Err(Problem::field("/run_id", format!("1 to {LONGEST} characters")));
    }
    let (id, reason) = (ExecutionId(id), end.reason.as_deref());
    let missing = || Problem::not_found(format!("there is no stray run {} of execution {id}", end.run_id));
    let now = strays::list(&database, Some(id), None, i64::from(u8::MAX)).await?;
    let now = now.into_iter().find(|stray| stray.run_id == end.run_id);
    let now = now.ok_or_else(missing)?;
    if !strays::end(&database, id, &end.run_id, reason, &caller.actor).await? {
        return Err(missing());
    }
    let after = strays::list(&database, Some(id), None, i64::from(u8::MAX)).await?;
    let after = after.into_iter().find(|stray| stray.run_id == end.run_id);
    // Ended before it could be read again: as it was.
    Ok((StatusCode::ACCEPTED, Answer(after.unwrap_or(now))))
}
