//! `/v1/failures`: what needs a person, and what a person does about it.

use axum::Json as Answer;
use stationmaster_client::wire;
use stationmaster_core::db::Database;
use stationmaster_core::executions::bulk;
use stationmaster_core::failures;
use utoipa_axum::routes;

use super::caller::{Caller, Visit};
use super::cursor::List;
use super::extract::{Json, Path, Query};
use super::names;
use super::problem::{Kind, Problem, Reply, Result};
use super::queue::{check_reason, narrowed, search};
use super::routes::{Routes, long};

pub(super) fn routes() -> Routes {
    Routes::of("group of failures")
        .viewer(long(routes!(list)))
        .viewer(long(routes!(show)))
        .viewer(long(routes!(members)))
        .operator(routes!(retry))
        .operator(routes!(set_aside))
        .operator(routes!(cancel))
}

/// What needs a person, by what it has in common; the group with the newest failure first
#[utoipa::path(get, path = "/v1/failures", operation_id = "list_failures", tag = "failures", params(wire::FailureQuery),
    responses((status = 200, description = "A page of groups", body = wire::Page<wire::FailureGroup>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::FailureQuery>,
) -> Reply<wire::Page<wire::FailureGroup>> {
    let list = List::new("failures", &query)?;
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
    if let Some([at, id]) = list.position::<[String; 2]>()? {
        groups.retain(|group| place(group) < [at.clone(), id.clone()]);
    }
    Ok(list.page(groups, place))
}

/// Where a group stands in the list; times are written so that their order is that of their text.
fn place(group: &wire::FailureGroup) -> [String; 2] {
    [
        format!("{:020}", group.last_at.as_microsecond()),
        group.id.clone(),
    ]
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
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Json(request): Json<wire::asked::BulkFailures>,
) -> Reply<wire::BulkAnswer> {
    let request = checked(&database, &caller, request).await?;
    let done = failures::retry(&database, &request, &caller.actor).await?;
    if !request.dry_run {
        state.work.ring_for_signals();
    }
    Ok(Answer(done))
}

/// Set failures aside: they stay on record and need nobody any more; with `dry_run`, only count them
#[utoipa::path(post, path = "/v1/failures/set-aside", operation_id = "set_failures_aside", tag = "failures", request_body = wire::asked::BulkFailures,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn set_aside(
    Visit { caller, database, .. }: Visit,
    Json(request): Json<wire::asked::BulkFailures>,
) -> Reply<wire::BulkAnswer> {
    let request = checked(&database, &caller, request).await?;
    Ok(Answer(
        failures::set_aside(&database, &request, &caller.actor).await?,
    ))
}

/// Cancel what still waits of the workflow that a group is about; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/failures/cancel", operation_id = "cancel_failures", tag = "failures", request_body = wire::asked::BulkFailures,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    Visit { caller, database, .. }: Visit,
    Json(request): Json<wire::asked::BulkFailures>,
) -> Reply<wire::BulkAnswer> {
    if request.group.is_none() {
        return Err(Problem::field("/group", "say of which group"));
    }
    let request = checked(&database, &caller, request).await?;
    let which = failures::cancels(&database, &request).await?;
    Ok(Answer(bulk::cancel(&database, &which, &caller.actor).await?))
}

/// What is asked for, by ids: in scope, narrowed by something, with a note that can be kept.
async fn checked(
    database: &Database,
    caller: &Caller,
    request: wire::asked::BulkFailures,
) -> Result<wire::BulkFailures> {
    check_reason(request.note.as_deref())?;
    let (workspace, definition) = names::ids(
        database,
        caller,
        request.workspace_id.as_ref(),
        request.workflow_definition_id.as_ref(),
    )
    .await?;
    let request = request.with_ids(workspace, definition);
    let filters = [
        request.group.is_some(),
        request.workspace_id.is_some(),
        request.workflow_definition_id.is_some(),
        request.kind.is_some(),
    ];
    narrowed(&filters, request.all)?;
    Ok(request)
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
