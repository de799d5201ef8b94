//! `/v1/workflows`: definitions and their immutable versions.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use stationmaster_client::wire::{self, Reference};
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use stationmaster_core::names as meant;
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{Json, Path, Query};
use super::names;
use super::problem::{Problem, Reply, Result, Wrong};
use super::routes::{Routes, conditional, long, tagged};

/// How often a name is looked for that others take at the same moment.
const TRIES: u32 = 3;
/// What a run may be given, in seconds.
const LONGEST_RUN: std::ops::RangeInclusive<f64> = 1.0..=315_360_000.0;

pub(super) fn routes() -> Routes {
    Routes::of("workflow")
        .named()
        .viewer(long(routes!(list)))
        .viewer(tagged(routes!(show)))
        .admin(conditional(routes!(put)))
        .admin(conditional(routes!(delete)))
        .operator(routes!(pause))
        .operator(routes!(resume))
        .viewer(long(routes!(versions)))
        .admin(routes!(add_version))
        .viewer(routes!(check_graph))
}

/// Workflows, in the order of their ids
#[utoipa::path(get, path = "/v1/workflows", operation_id = "list_workflows", tag = "workflows", params(wire::WorkflowQuery),
    responses((status = 200, description = "A page of workflows", body = wire::Page<wire::Workflow>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::WorkflowQuery>,
) -> Reply<wire::Page<wire::Workflow>> {
    let list = List::new("workflows", &query)?;
    let workspace = names::asked(&database, &caller, query.workspace_id.as_ref()).await?;
    let after = list.position()?.map(DefinitionId);
    let rows = catalogue::definitions(&database, workspace, after, list.rows()).await?;
    Ok(list.page(rows, |workflow| workflow.id))
}

/// One workflow, with the graph of its current version
#[utoipa::path(get, path = "/v1/workflows/{id}", operation_id = "show_workflow", tag = "workflows",
    responses((status = 200, description = "The workflow", body = wire::Workflow)))]
async fn show(Visit { database, .. }: Visit, Path(id): Path<Reference>) -> Result<Tagged<wire::Workflow>> {
    let id = names::workflow(&database, &id).await?;
    Ok(Tagged(catalogue::definition(&database, id).await?))
}

/// Make a workflow or change it; what is left out stays as it is
#[utoipa::path(put, path = "/v1/workflows/{id}", operation_id = "put_workflow", tag = "workflows",
    request_body = wire::asked::WorkflowChange,
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow),
              (status = 409, response = super::ProblemAnswer)))]
async fn put(
    Visit { caller, database, .. }: Visit,
    Path(reference): Path<Reference>,
    expected: Expected,
    Json(change): Json<wire::asked::WorkflowChange>,
) -> Result<Tagged<wire::Workflow>> {
    let workspace = names::workspace(&database, &caller, &change.workspace_id).await?;
    let change = change.with_ids(workspace.0);
    check(&change)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let (id, name) = place(&database, workspace, &reference).await?;
        let is_new = name.is_some();
        let change = wire::WorkflowChange {
            name: change.name.clone().or(name),
            ..change.clone()
        };
        match catalogue::put_definition(&database, id, change, expected.of()).await {
            // Somebody else made it at the same moment: then it is changed.
            Err(catalogue::Error::Taken(_)) if is_new && tries < TRIES => {}
            put => return Ok(Tagged(put?)),
        }
    }
}

/// Which workflow of the workspace is to be put: its id, and its name when it is not there yet.
async fn place(
    database: &Database,
    workspace: WorkspaceId,
    reference: &Reference,
) -> Result<(DefinitionId, Option<String>)> {
    let given = match reference {
        Reference::Id(id) => return Ok((DefinitionId(*id), None)),
        Reference::Name(given) => given,
    };
    let own = match given.rsplit_once('.') {
        Some((within, own)) => {
            if meant::workspace(database, &within.into()).await? != workspace {
                let words = format!("{given} is not of the workspace that the body names");
                return Err(Problem::field("path", words));
            }
            own
        }
        None => given,
    };
    names::given("path", Some(own))?;
    match meant::workflow(database, Some(workspace), &own.into()).await {
        Ok(id) => Ok((id, None)),
        Err(meant::Error::Unknown { .. }) => Ok((DefinitionId::new(), Some(meant::fold(own)))),
        Err(error) => Err(error.into()),
    }
}

/// Delete a workflow; items of it that wait fail when their turn comes
#[utoipa::path(delete, path = "/v1/workflows/{id}", operation_id = "delete_workflow", tag = "workflows",
    responses((status = 204, description = "It is gone")))]
async fn delete(
    Visit { database, .. }: Visit,
    Path(id): Path<Reference>,
    expected: Expected,
) -> Result<StatusCode> {
    let id = names::workflow(&database, &id).await?;
    catalogue::definition(&database, id).await?;
    catalogue::delete_definition(&database, id, expected.of()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start nothing more of a workflow; what runs goes on
#[utoipa::path(post, path = "/v1/workflows/{id}/pause", operation_id = "pause_workflow", tag = "workflows",
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow)))]
async fn pause(Visit { database, .. }: Visit, Path(id): Path<Reference>) -> Result<Tagged<wire::Workflow>> {
    set_paused(&database, &id, true).await
}

/// Start again
#[utoipa::path(post, path = "/v1/workflows/{id}/resume", operation_id = "resume_workflow", tag = "workflows",
    responses((status = 200, description = "The workflow as it is now", body = wire::Workflow)))]
async fn resume(Visit { database, .. }: Visit, Path(id): Path<Reference>) -> Result<Tagged<wire::Workflow>> {
    set_paused(&database, &id, false).await
}

/// The versions of a workflow, newest first
#[utoipa::path(get, path = "/v1/workflows/{id}/versions", operation_id = "list_workflow_versions", tag = "workflows",
    params(wire::PageQuery),
    responses((status = 200, description = "A page of versions", body = wire::Page<wire::Version>)))]
async fn versions(
    Visit { database, .. }: Visit,
    Path(id): Path<Reference>,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::Version>> {
    let id = names::workflow(&database, &id).await?;
    let list = List::new(&format!("versions of {id}"), &query)?;
    let below = list
        .position()?
        .map(|below: i64| i32::try_from(below).unwrap_or(i32::MAX));
    catalogue::definition(&database, id).await?;
    let rows = catalogue::versions(&database, id, below, list.rows()).await?;
    Ok(list.page(rows, |version| i64::from(version.version)))
}

/// Add a version; a graph that cannot run is refused with the reason
#[utoipa::path(post, path = "/v1/workflows/{id}/versions", operation_id = "add_workflow_version", tag = "workflows",
    request_body = wire::NewVersion,
    responses((status = 201, description = "It is made", body = wire::VersionMade)))]
async fn add_version(
    Visit { database, .. }: Visit,
    Path(id): Path<Reference>,
    Json(version): Json<wire::NewVersion>,
) -> Result<impl IntoResponse> {
    let id = names::workflow(&database, &id).await?;
    catalogue::definition(&database, id).await?;
    let made = catalogue::add_version(&database, id, version.workflow.get()).await?;
    Ok((StatusCode::CREATED, Answer(made)))
}

/// Look at a graph as adding it would, and make nothing
#[utoipa::path(post, path = "/v1/graphs/check", operation_id = "check_graph", tag = "workflows",
    request_body = wire::NewVersion,
    responses((status = 200, description = "It can run", body = wire::GraphChecked)))]
async fn check_graph(
    Visit { database, .. }: Visit,
    Json(version): Json<wire::NewVersion>,
) -> Reply<wire::GraphChecked> {
    let nodes = catalogue::check_graph(&database, version.workflow.get()).await?;
    Ok(Answer(wire::GraphChecked { nodes }))
}

async fn set_paused(database: &Database, id: &Reference, paused: bool) -> Result<Tagged<wire::Workflow>> {
    let id = names::workflow(database, id).await?;
    let found = catalogue::definition(database, id).await?;
    let change = wire::WorkflowChange {
        paused: Some(paused),
        ..wire::WorkflowChange::of(found.workspace_id)
    };
    let changed = catalogue::put_definition(database, id, change, None).await?;
    Ok(Tagged(changed))
}

pub(super) fn check(change: &wire::WorkflowChange) -> Result<()> {
    let mut wrong = Wrong::default();
    let mut field = |field: &str, words: &str| {
        wrong.see::<(), _>(Err(Problem::field(field, words)));
    };
    if let Some(Some(seconds)) = change.run_timeout
        && !LONGEST_RUN.contains(&seconds)
    {
        field("/run_timeout", "1 second to ten years, in seconds");
    }
    for (at, value) in [
        ("/max_attempts", change.max_attempts),
        ("/published_version", change.published_version),
    ] {
        if value.is_some_and(|value| value < 1) {
            field(at, "1 or more");
        }
    }
    wrong.see(names::given("/name", change.name.as_deref()));
    wrong.see(super::name("/task_queue", change.task_queue.as_deref()));
    wrong.see(super::name("/workflow_type", change.workflow_type.as_deref()));
    wrong.told()
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
