//! `/v1/workflows`: definitions and their immutable versions.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::value::RawValue;
use stationmaster_client::wire;
use stationmaster_core::catalogue::{self, Definition, DefinitionChange};
use stationmaster_core::id::DefinitionId;
use utoipa_axum::routes;
use uuid::Uuid;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::etag::{Expected, Tagged, tag};
use super::extract::{Json, Path, Query};
use super::problem::Problem;
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .viewer(routes!(list))
        .viewer(routes!(show))
        .admin(routes!(put))
        .admin(routes!(delete))
        .operator(routes!(pause))
        .operator(routes!(resume))
        .viewer(routes!(versions))
        .admin(routes!(add_version))
}

/// Workflows, in the order of their ids
#[utoipa::path(get, path = "/v1/workflows", operation_id = "list_workflows", tag = "workflows", params(wire::WorkflowQuery),
    responses((status = 200, description = "A page of workflows", body = wire::Page<wire::Workflow>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::WorkflowQuery>,
) -> Result<Answer<wire::Page<wire::Workflow>>, Problem> {
    let list = List::new("workflows", &query);
    let workspace = caller.may_ask(query.workspace_id)?;
    let after = list
        .position(query.cursor.as_deref(), cursor::uuid)?
        .map(DefinitionId);
    let limit = cursor::limit(query.limit)?;
    let database = caller.database(&state);
    let rows = catalogue::definitions(&database, workspace, after, i64::from(limit) + 1).await?;
    Ok(list.page(
        rows,
        limit,
        |workflow| workflow.id.0.as_bytes().to_vec(),
        workflow,
    ))
}

/// One workflow, with the graph of its current version
#[utoipa::path(get, path = "/v1/workflows/{id}", operation_id = "show_workflow", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow")),
    responses((status = 200, description = "The workflow", body = wire::Workflow, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Workflow>, Problem> {
    Ok(tagged(
        catalogue::definition(&caller.database(&state), DefinitionId(id)).await?,
    ))
}

/// Make a workflow or change it; what is left out stays as it is
#[utoipa::path(put, path = "/v1/workflows/{id}", operation_id = "put_workflow", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow")),
    request_body = wire::WorkflowChange,
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn put(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
    Json(change): Json<wire::WorkflowChange>,
) -> Result<Tagged<wire::Workflow>, Problem> {
    let workspace = caller.may_use(change.workspace_id)?;
    check(&change)?;
    let change = DefinitionChange {
        name: change.name,
        task_queue: change.task_queue,
        workflow_type: change.workflow_type,
        max_attempts: change.max_attempts,
        published_version: change.published_version,
        paused: change.paused,
    };
    let (database, id) = (caller.database(&state), DefinitionId(id));
    let made = catalogue::put_definition(&database, id, workspace, change, expected.of(workflow_tag)).await?;
    Ok(tagged(made))
}

/// Delete a workflow; items of it that wait fail when their turn comes
#[utoipa::path(delete, path = "/v1/workflows/{id}", operation_id = "delete_workflow", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow")),
    responses((status = 204, description = "It is gone"), (status = 404, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn delete(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
) -> Result<StatusCode, Problem> {
    let database = caller.database(&state);
    let found = catalogue::definition(&database, DefinitionId(id)).await?;
    catalogue::delete_definition(&database, found.id, expected.of(workflow_tag)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start nothing more of a workflow; what runs goes on
#[utoipa::path(post, path = "/v1/workflows/{id}/pause", operation_id = "pause_workflow", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow")),
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow), (status = 404, response = super::ProblemAnswer)))]
async fn pause(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Workflow>, Problem> {
    set_paused(&state, &caller, id, true).await
}

/// Start again
#[utoipa::path(post, path = "/v1/workflows/{id}/resume", operation_id = "resume_workflow", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow")),
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow), (status = 404, response = super::ProblemAnswer)))]
async fn resume(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Workflow>, Problem> {
    set_paused(&state, &caller, id, false).await
}

/// The versions of a workflow, newest first
#[utoipa::path(get, path = "/v1/workflows/{id}/versions", operation_id = "list_workflow_versions", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow"), wire::PageQuery),
    responses((status = 200, description = "A page of versions", body = wire::Page<wire::Version>), (status = 404, response = super::ProblemAnswer)))]
async fn versions(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<wire::PageQuery>,
) -> Result<Answer<wire::Page<wire::Version>>, Problem> {
    let list = List::new("versions", &id);
    let below = list.position(query.cursor.as_deref(), cursor::number)?;
    let below = below.map(|below| i32::try_from(below).unwrap_or(i32::MAX));
    let limit = cursor::limit(query.limit)?;
    let database = caller.database(&state);
    catalogue::definition(&database, DefinitionId(id)).await?;
    let rows = catalogue::versions(&database, DefinitionId(id), below, i64::from(limit) + 1).await?;
    Ok(list.page(
        rows,
        limit,
        |version| i64::from(version.version).to_be_bytes().to_vec(),
        version,
    ))
}

/// Add a version; a graph that cannot run is refused with the reason
#[utoipa::path(post, path = "/v1/workflows/{id}/versions", operation_id = "add_workflow_version", tag = "workflows",
    params(("id" = Uuid, Path, description = "The workflow")),
    request_body = wire::NewVersion,
    responses((status = 201, description = "It is made", body = wire::VersionMade), (status = 404, response = super::ProblemAnswer)))]
async fn add_version(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    Json(version): Json<wire::NewVersion>,
) -> Result<impl IntoResponse, Problem> {
    let database = caller.database(&state);
    let found = catalogue::definition(&database, DefinitionId(id)).await?;
    let (id, number) = catalogue::add_version(&database, found.id, version.workflow.get()).await?;
    let made = wire::VersionMade {
        id: id.0,
        version: number,
    };
    Ok((StatusCode::CREATED, Answer(made)))
}

async fn set_paused(
    state: &State,
    caller: &Caller,
    id: Uuid,
    paused: bool,
) -> Result<Tagged<wire::Workflow>, Problem> {
    let database = caller.database(state);
    let found = catalogue::definition(&database, DefinitionId(id)).await?;
    let change = DefinitionChange {
        paused: Some(paused),
        ..DefinitionChange::default()
    };
    let changed = catalogue::put_definition(&database, found.id, found.workspace_id, change, None).await?;
    Ok(tagged(changed))
}

fn check(change: &wire::WorkflowChange) -> Result<(), Problem> {
    super::name("/name", change.name.as_deref())?;
    super::name("/task_queue", change.task_queue.as_deref())?;
    super::name("/workflow_type", change.workflow_type.as_deref())?;
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

fn workflow_tag(workflow: &Definition) -> String {
    tag(&(
        &workflow.name,
        &workflow.task_queue,
        &workflow.workflow_type,
        workflow.max_attempts,
        workflow.published_version,
        workflow.paused,
    ))
}

fn tagged(found: Definition) -> Tagged<wire::Workflow> {
    Tagged(workflow_tag(&found), workflow(found))
}

pub(crate) fn workflow(definition: Definition) -> wire::Workflow {
    wire::Workflow {
        id: definition.id.0,
        workspace_id: definition.workspace_id.0,
        name: definition.name,
        task_queue: definition.task_queue,
        workflow_type: definition.workflow_type,
        max_attempts: definition.max_attempts,
        published_version: definition.published_version,
        paused: definition.paused,
        current_version: definition.current_version,
        graph: definition
            .graph
            .and_then(|graph| RawValue::from_string(graph).ok()),
        created_at: definition.created_at,
        updated_at: definition.updated_at,
    }
}

fn version(version: catalogue::Version) -> wire::Version {
    wire::Version {
        id: version.id.0,
        version: version.version,
        workflow: RawValue::from_string(version.graph).unwrap_or_default(),
        created_at: version.created_at,
    }
}
