//! `/v1/workspaces`: tenants with their plans, limits and slots.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use stationmaster_client::wire;
use stationmaster_core::catalogue::{self, Workspace, WorkspaceChange};
use stationmaster_core::id::WorkspaceId;
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
}

/// Workspaces, in the order of their ids
#[utoipa::path(get, path = "/v1/workspaces", operation_id = "list_workspaces", tag = "workspaces", params(wire::PageQuery),
    responses((status = 200, description = "A page of workspaces", body = wire::Page<wire::Workspace>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::PageQuery>,
) -> Result<Answer<wire::Page<wire::Workspace>>, Problem> {
    let list = List::new("workspaces", &query);
    let after = list
        .position(query.cursor.as_deref(), cursor::uuid)?
        .map(WorkspaceId);
    let limit = cursor::limit(query.limit)?;
    let database = caller.database(&state);
    let rows = catalogue::workspaces(&database, after, i64::from(limit) + 1).await?;
    Ok(list.page(
        rows,
        limit,
        |workspace| workspace.id.0.as_bytes().to_vec(),
        workspace,
    ))
}

/// One workspace
#[utoipa::path(get, path = "/v1/workspaces/{id}", operation_id = "show_workspace", tag = "workspaces",
    params(("id" = Uuid, Path, description = "The workspace")),
    responses((status = 200, description = "The workspace", body = wire::Workspace, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Workspace>, Problem> {
    let found = catalogue::workspace(&caller.database(&state), WorkspaceId(id)).await?;
    Ok(tagged(found))
}

/// Make a workspace or change it; what is left out stays as it is
#[utoipa::path(put, path = "/v1/workspaces/{id}", operation_id = "put_workspace", tag = "workspaces",
    params(("id" = Uuid, Path, description = "The workspace")),
    request_body = wire::WorkspaceChange,
    responses((status = 200, description = "The workspace as it is now", body = wire::Workspace, headers(("etag" = String, description = "For If-Match"))),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn put(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
    Json(change): Json<wire::WorkspaceChange>,
) -> Result<Tagged<wire::Workspace>, Problem> {
    let id = caller.may_use(id)?;
    check(&change)?;
    let change = WorkspaceChange {
        name: change.name,
        plan: change.plan,
        max_concurrent: change.max_concurrent,
        paused: change.paused,
    };
    let database = caller.database(&state);
    let made = catalogue::put_workspace(&database, id, change, expected.of(workspace_tag)).await?;
    Ok(tagged(made))
}

/// Delete a workspace and its workflows; what waits fails, what runs goes on to its end
#[utoipa::path(delete, path = "/v1/workspaces/{id}", operation_id = "delete_workspace", tag = "workspaces",
    params(("id" = Uuid, Path, description = "The workspace")),
    responses((status = 204, description = "It is gone"), (status = 404, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn delete(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
) -> Result<StatusCode, Problem> {
    let id = caller.may_see(id)?;
    let database = caller.database(&state);
    catalogue::delete_workspace(&database, id, expected.of(workspace_tag)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start nothing more for a workspace; what runs goes on
#[utoipa::path(post, path = "/v1/workspaces/{id}/pause", operation_id = "pause_workspace", tag = "workspaces",
    params(("id" = Uuid, Path, description = "The workspace")),
    responses((status = 200, description = "The workspace as it is now", body = wire::Workspace), (status = 404, response = super::ProblemAnswer)))]
async fn pause(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Workspace>, Problem> {
    set_paused(&state, &caller, id, true).await
}

/// Start again
#[utoipa::path(post, path = "/v1/workspaces/{id}/resume", operation_id = "resume_workspace", tag = "workspaces",
    params(("id" = Uuid, Path, description = "The workspace")),
    responses((status = 200, description = "The workspace as it is now", body = wire::Workspace), (status = 404, response = super::ProblemAnswer)))]
async fn resume(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Workspace>, Problem> {
    set_paused(&state, &caller, id, false).await
}

async fn set_paused(
    state: &State,
    caller: &Caller,
    id: Uuid,
    paused: bool,
) -> Result<Tagged<wire::Workspace>, Problem> {
    let id = caller.may_see(id)?;
    let database = caller.database(state);
    let change = WorkspaceChange {
        paused: Some(paused),
        ..WorkspaceChange::default()
    };
    // Pausing must not make one that is not there.
    let there = Expected::There;
    let changed = catalogue::put_workspace(&database, id, change, there.of(workspace_tag)).await;
    match changed {
        Err(catalogue::Error::Unexpected) => Err(catalogue::Error::UnknownWorkspace(id).into()),
        other => Ok(tagged(other?)),
    }
}

fn check(change: &wire::WorkspaceChange) -> Result<(), Problem> {
    super::name("/name", change.name.as_deref())?;
    super::name("/plan", change.plan.as_deref())?;
    match change.max_concurrent {
        Some(Some(limit)) if limit < 0 => Err(Problem::field("/max_concurrent", "0 or more")),
        _ => Ok(()),
    }
}

fn workspace_tag(workspace: &Workspace) -> String {
    tag(&(
        &workspace.name,
        &workspace.plan,
        workspace.own_limit,
        workspace.paused,
    ))
}

fn tagged(found: Workspace) -> Tagged<wire::Workspace> {
    Tagged(workspace_tag(&found), workspace(found))
}

/// A workspace on the wire.
pub(crate) fn workspace(workspace: Workspace) -> wire::Workspace {
    wire::Workspace {
        id: workspace.id.0,
        name: workspace.name,
        plan: workspace.plan,
        max_concurrent: workspace.own_limit,
        limit: workspace.limit,
        weight: workspace.weight,
        paused: workspace.paused,
        active: workspace.active,
        ready: workspace.ready,
        created_at: workspace.created_at,
        updated_at: workspace.updated_at,
    }
}
