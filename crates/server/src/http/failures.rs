//! `/v1/failures`: what needs a person, and what a person does about it.

use axum::Json as Answer;
use axum::response::Response;
use stationmaster_client::wire;
use stationmaster_core::failures;
use stationmaster_core::operations::Request;
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::extract::{Json, Path, Prefer, Query};
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::queue::{meant, search};
use super::routes::{Routes, detachable, long};
use super::{names, operations};

pub(super) fn routes() -> Routes {
    Routes::of("group of failures")
        .viewer(long(routes!(list)))
        .viewer(long(routes!(show)))
        .viewer(long(routes!(members)))
        .operator(detachable(routes!(retry)))
        .operator(detachable(routes!(set_aside)))
        .operator(detachable(routes!(cancel)))
}

/// What needs a person, by what it has in common; the group with the newest failure first, or by another order
#[utoipa::path(get, path = "/v1/failures", operation_id = "list_failures", tag = "failures", params(wire::FailureQuery),
    responses((status = 200, description = "A page of groups", body = wire::Page<wire::FailureGroup>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::FailureQuery>,
) -> Reply<wire::Page<wire::FailureGroup>> {
    let order = query.order.unwrap_or_default();
    let list = List::new(&format!("failures {order}"), &query)?;
    let place = |group: &wire::FailureGroup| place(group, order);
    let (workspace, definition) = names::both(
        &database,
        &caller,
        query.workspace_id.as_ref(),
        query.workflow_definition_id.as_ref(),
    )
    .await?;
    let filter = failures::Filter {
        workspace,
        definition,
        kind: query.kind,
        after: query.after,
        before: query.before,
        text: search(query.search.as_deref())?,
    };
    let mut groups = failures::groups(&database, &filter).await?;
    groups.sort_by_key(|group| std::cmp::Reverse(place(group)));
    if let Some([at, id]) = list.position::<[String; 2]>()? {
        groups.retain(|group| place(group) < [at.clone(), id.clone()]);
    }
    let mut page = list.page(groups, place);
    if query.trend == Some(true) {
        failures::tell_trends(&database, &mut page.items).await?;
    }
    Ok(page)
}

/// Where a group stands in the list; numbers are written so that their order is that of their text.
fn place(group: &wire::FailureGroup, order: wire::FailureOrder) -> [String; 2] {
    let number = match order {
        wire::FailureOrder::Last => group.last_at.as_microsecond(),
        wire::FailureOrder::First => group.first_at.as_microsecond(),
        wire::FailureOrder::Count => group.count,
    };
    [format!("{number:020}"), group.id.clone()]
}

/// One group; its id may be cut short as long as it means one
#[utoipa::path(get, path = "/v1/failures/{group}", operation_id = "show_failures", tag = "failures",
    params(("group" = String, Path, description = "The group's id, or its beginning")),
    responses((status = 200, description = "The group", body = wire::FailureGroup),
              (status = 409, response = super::ProblemAnswer)))]
async fn show(Visit { database, .. }: Visit, Path(group): Path<String>) -> Reply<wire::FailureGroup> {
    let id = failures::find(&database, &group).await?;
    let found = failures::group(&database, id).await?;
    let missing = || Problem::not_found(format!("nothing of group {id} needs anybody any more"));
    Ok(Answer(found.ok_or_else(missing)?))
}

/// The failures of a group, newest first, those among them that were set aside
#[utoipa::path(get, path = "/v1/failures/{group}/members", operation_id = "list_failures_of_group", tag = "failures",
    params(("group" = String, Path, description = "The group's id, or its beginning"), wire::PageQuery),
    responses((status = 200, description = "A page of failures", body = wire::Page<wire::Failure>),
              (status = 409, response = super::ProblemAnswer)))]
async fn members(
    Visit { database, .. }: Visit,
    Path(group): Path<String>,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::Failure>> {
    let id = failures::find(&database, &group).await?;
    let list = List::new(&format!("failures {id}"), &query)?;
    let mut rows = failures::members(&database, id, list.position()?, list.rows()).await?;
    let more = rows.len() > list.limit();
    rows.truncate(list.limit());
    let next = rows.last().map(|member| member.id).filter(|_| more);
    let rows = rows.into_iter().map(|member| member.failure).collect();
    Ok(list.ending_at(rows, next))
}

/// Try again what failed and matches; with `dry_run`, only count it
///
/// Items go back into the queue, occurrences are due again, dead letters go back into the inbox.
#[utoipa::path(post, path = "/v1/failures/retry", operation_id = "retry_failures", tag = "failures", request_body = wire::asked::BulkFailures,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn retry(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkFailures>,
) -> Result<Response> {
    let request = checked(&visit, Wrong::default(), request).await?;
    operations::answer(&visit, prefer, Request::RetryFailures(request)).await
}

/// Set failures aside: they stay on record and need nobody any more; with `dry_run`, only count them
#[utoipa::path(post, path = "/v1/failures/set-aside", operation_id = "set_failures_aside", tag = "failures", request_body = wire::asked::BulkFailures,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn set_aside(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkFailures>,
) -> Result<Response> {
    let request = checked(&visit, Wrong::default(), request).await?;
    operations::answer(&visit, prefer, Request::SetAside(request)).await
}

/// Cancel what still waits of the workflow that a group is about; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/failures/cancel", operation_id = "cancel_failures", tag = "failures", request_body = wire::asked::BulkFailures,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkFailures>,
) -> Result<Response> {
    let mut wrong = Wrong::default();
    if request.group.is_none() {
        wrong.see::<(), _>(Err(Problem::field("/group", "say of which group")));
    }
    let request = checked(&visit, wrong, request).await?;
    let which = failures::cancels(&visit.database, &request).await?;
    operations::answer(&visit, prefer, Request::CancelFailing(which)).await
}

/// What is asked for, by ids: in scope, meant by something, with a note that can be kept.
async fn checked(
    visit: &Visit,
    mut wrong: Wrong,
    request: wire::asked::BulkFailures,
) -> Result<wire::BulkFailures> {
    wrong.see(check_note(request.note.as_deref()));
    let filters = [
        request.group.is_some(),
        request.workspace_id.is_some(),
        request.workflow_definition_id.is_some(),
        request.kind.is_some(),
        request.ended_after.is_some(),
    ];
    let place = (
        request.workspace_id.as_ref(),
        request.workflow_definition_id.as_ref(),
    );
    let (workspace, definition) = meant(visit, wrong, place, &filters, request.all).await?;
    Ok(request.with_ids(workspace, definition))
}

fn check_note(note: Option<&str>) -> Result<()> {
    match note {
        Some(note) if note.chars().count() > 1000 => Err(Problem::field("/note", "at most 1000 characters")),
        _ => Ok(()),
    }
}

impl From<failures::Error> for Problem {
    fn from(error: failures::Error) -> Self {
        use failures::Error;
        let words = error.to_string();
        match error {
            Error::NoId => Self::field("/group", words),
            Error::NotFound(_) => Self::not_found(words),
            Error::Ambiguous(_) | Error::WrongKind(_) => Self::new(Kind::Conflict, words),
            Error::Bulk(error) => error.into(),
            Error::Database(error) => error.into(),
        }
    }
}

impl From<stationmaster_core::bulk::Error> for Problem {
    fn from(error: stationmaster_core::bulk::Error) -> Self {
        use stationmaster_core::bulk::Error;
        match error {
            Error::Place => Self::field("/after", error.to_string()),
            Error::Database(error) => error.into(),
        }
    }
}
