//! `/v1/workflows`: definitions and their immutable versions.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::id::DefinitionId;
use utoipa_axum::routes;
use uuid::Uuid;

use super::caller::Visit;
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{Json, Path, Query};
use super::problem::{Problem, Reply, Result};
use super::routes::{Routes, conditional, long, tagged};

/// What a run may be given, in seconds.
const LONGEST_RUN: std::ops::RangeInclusive<f64> = 1.0..=315_360_000.0;

pub(super) fn routes() -> Routes {
    Routes::of("workflow")
        .viewer(long(routes!(list)))
        .viewer(tagged(routes!(show)))
        .admin(conditional(routes!(put)))
        .admin(conditional(routes!(delete)))
        .operator(routes!(pause))
        .operator(routes!(resume))
        .viewer(long(routes!(versions)))
        .admin(routes!(add_version))
}

/// Workflows, in the order of their ids
#[utoipa::path(get, path = "/v1/workflows", operation_id = "list_workflows", tag = "workflows", params(wire::WorkflowQuery),
    responses((status = 200, description = "A page of workflows", body = wire::Page<wire::Workflow>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::WorkflowQuery>,
) -> Reply<wire::Page<wire::Workflow>> {
    let list = List::new("workflows", &query)?;
    let workspace = caller.may_ask(query.workspace_id)?;
    let after = list.position()?.map(DefinitionId);
    let rows = catalogue::definitions(&database, workspace, after, list.rows()).await?;
    Ok(list.page(rows, |workflow| workflow.id))
}

/// One workflow, with the graph of its current version
#[utoipa::path(get, path = "/v1/workflows/{id}", operation_id = "show_workflow", tag = "workflows",
    responses((status = 200, description = "The workflow", body = wire::Workflow)))]
async fn show(Visit { database, .. }: Visit, Path(id): Path<Uuid>) -> Result<Tagged<wire::Workflow>> {
    Ok(Tagged(catalogue::definition(&database, DefinitionId(id)).await?))
}

/// Make a workflow or change it; what is left out stays as it is
#[utoipa::path(put, path = "/v1/workflows/{id}", operation_id = "put_workflow", tag = "workflows",
    request_body = wire::WorkflowChange,
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow),
              (status = 409, response = super::ProblemAnswer)))]
async fn put(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Uuid>,
    expected: Expected,
    Json(change): Json<wire::WorkflowChange>,
) -> Result<Tagged<wire::Workflow>> {
    caller.may_use(change.workspace_id)?;
    check(&change)?;
    let made = catalogue::put_definition(&database, DefinitionId(id), change, expected.of()).await?;
    Ok(Tagged(made))
}

/// Delete a workflow; items of it that wait fail when their turn comes
#[utoipa::path(delete, path = "/v1/workflows/{id}", operation_id = "delete_workflow", tag = "workflows",
    responses((status = 204, description = "It is gone")))]
async fn delete(
    Visit { database, .. }: Visit,
    Path(id): Path<Uuid>,
    expected: Expected,
) -> Result<StatusCode> {
    catalogue::definition(&database, DefinitionId(id)).await?;
    catalogue::delete_definition(&database, DefinitionId(id), expected.of()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start nothing more of a workflow; what runs goes on
#[utoipa::path(post, path = "/v1/workflows/{id}/pause", operation_id = "pause_workflow", tag = "workflows",
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow)))]
async fn pause(Visit { database, .. }: Visit, Path(id): Path<Uuid>) -> Result<Tagged<wire::Workflow>> {
    set_paused(&database, id, true).await
}

/// Start again
#[utoipa::path(post, path = "/v1/workflows/{id}/resume", operation_id = "resume_workflow", tag = "workflows",
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow)))]
async fn resume(Visit { database, .. }: Visit, Path(id): Path<Uuid>) -> Result<Tagged<wire::Workflow>> {
    set_paused(&database, id, false).await
}

/// The versions of a workflow, newest first
#[utoipa::path(get, path = "/v1/workflows/{id}/versions", operation_id = "list_workflow_versions", tag = "workflows",
    params(wire::PageQuery),
    responses((status = 200, description = "A page of versions", body = wire::Page<wire::Version>)))]
async fn versions(
    Visit { database, .. }: Visit,
    Path(id): Path<Uuid>,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::Version>> {
    let list = List::new(&format!("versions of {id}"), &query)?;
    let below = list
        .position()?
        .map(|below: i64| i32::try_from(below).unwrap_or(i32::MAX));
    catalogue::definition(&database, DefinitionId(id)).await?;
    let rows = catalogue::versions(&database, DefinitionId(id), below, list.rows()).await?;
    Ok(list.page(rows, |version| i64::from(version.version)))
}

/// Add a version; a graph that cannot run is refused with the reason
#[utoipa::path(post, path = "/v1/workflows/{id}/versions", operation_id = "add_workflow_version", tag = "workflows",
    request_body = wire::NewVersion,
    responses((status = 201, description = "It is made", body = wire::VersionMade)))]
async fn add_version(
    Visit { database, .. }: Visit,
    Path(id): Path<Uuid>,
    Json(version): Json<wire::NewVersion>,
) -> Result<impl IntoResponse> {
    catalogue::definition(&database, DefinitionId(id)).await?;
    let made = catalogue::add_version(&database, DefinitionId(id), version.workflow.get()).await?;
    Ok((StatusCode::CREATED, Answer(made)))
}

async fn set_paused(database: &Database, id: Uuid, paused: bool) -> Result<Tagged<wire::Workflow>> {
    let found = catalogue::definition(database, DefinitionId(id)).await?;
    let change = wire::WorkflowChange {
        paused: Some(paused),
        ..wire::WorkflowChange::of(found.workspace_id)
    };
    let changed = catalogue::put_definition(database, DefinitionId(id), change, None).await?;
    Ok(Tagged(changed))
}

fn check(change: &wire::WorkflowChange) -> Result<()> {
    super::name("/name", change.name.as_deref())?;
    super::name("/task_queue", change.task_queue.as_deref())?;
    super::name("/workflow_type", change.workflow_type.as_deref())?;
    if let Some(Some(seconds)) = change.run_timeout
        && !LONGEST_RUN.contains(&seconds)
    {
        return Err(Problem::field(
            "/run_timeout",
            "1 second to ten years, in seconds",
        ));
    }
    for (field, value) in [
        ("/max_attempts", change.max_attempts),
        ("/published_version", change.published_version),
    ] {
        if value.is_some_and(|value| value < 1) {
            return Err(Problem::field(field, "1 or more"));
        }
    }
    Ok(())
}

impl Changeable for wire::Workflow {
    fn changeable(&self) -> impl Serialize {
        (
            &self.name,
            &self.task_queue,
            &self.workflow_type,
            self.max_attempts,
            self.run_timeout,
            self.published_version,
            self.paused,
        )
    }
}
