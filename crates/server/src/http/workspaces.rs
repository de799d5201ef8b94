//! `/v1/workspaces`: tenants with their plans, limits and slots.

use axum::Json as Answer;
use axum::http::StatusCode;
use serde::Serialize;
use stationmaster_client::wire::{self, Reference};
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect;
use stationmaster_core::id::WorkspaceId;
use stationmaster_core::names::{fold, workspace_named};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{Json, Path, Query};
use super::names;
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::routes::{Routes, conditional, long, tagged};

/// How often a name is looked for that others take at the same moment.
const TRIES: u32 = 3;

pub(super) fn routes() -> Routes {
    Routes::of("workspace")
        .named()
        .viewer(long(routes!(list)))
        .viewer(tagged(routes!(show)))
        .viewer(long(routes!(backlog)))
        .admin(conditional(routes!(put)))
        .admin(conditional(routes!(delete)))
        .operator(routes!(pause))
        .operator(routes!(resume))
}

/// Workspaces, in the order of their ids
#[utoipa::path(get, path = "/v1/workspaces", operation_id = "list_workspaces", tag = "workspaces", params(wire::PageQuery),
    responses((status = 200, description = "A page of workspaces", body = wire::Page<wire::Workspace>)))]
async fn list(
    Visit { database, .. }: Visit,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::Workspace>> {
    let list = List::new("workspaces", &query)?;
    let after = list.position()?.map(WorkspaceId);
    let rows = catalogue::workspaces(&database, after, list.rows()).await?;
    Ok(list.page(rows, |workspace| workspace.id))
}

/// One workspace
#[utoipa::path(get, path = "/v1/workspaces/{id}", operation_id = "show_workspace", tag = "workspaces",
    responses((status = 200, description = "The workspace", body = wire::Workspace)))]
async fn show(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Reference>,
) -> Result<Tagged<wire::Workspace>> {
    let id = names::seen(&database, &caller, &id).await?;
    Ok(Tagged(catalogue::workspace(&database, id).await?))
}

/// What waits in a workspace, by workflow
#[utoipa::path(get, path = "/v1/workspaces/{id}/backlog", operation_id = "show_backlog", tag = "workspaces",
    responses((status = 200, description = "What waits", body = wire::Backlog)))]
async fn backlog(Visit { caller, database, .. }: Visit, Path(id): Path<Reference>) -> Reply<wire::Backlog> {
    let id = names::seen(&database, &caller, &id).await?;
    let items = inspect::backlog(&database, id).await?;
    Ok(Answer(wire::Backlog { items }))
}

/// Make a workspace or change it; what is left out stays as it is
#[utoipa::path(put, path = "/v1/workspaces/{id}", operation_id = "put_workspace", tag = "workspaces",
    request_body = wire::WorkspaceChange,
    responses((status = 200, description = "The workspace as it is now", body = wire::Workspace)))]
async fn put(
    Visit { caller, database, .. }: Visit,
    Path(reference): Path<Reference>,
    expected: Expected,
    Json(change): Json<wire::WorkspaceChange>,
) -> Result<Tagged<wire::Workspace>> {
    check(&change)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let (id, name) = place(&database, &reference).await?;
        let id = if name.is_none() { caller.may_use(id.0)? } else { id };
        let is_new = name.is_some();
        let change = wire::WorkspaceChange {
            name: change.name.clone().or(name),
            ..change.clone()
        };
        let change = if caller.sees_all().is_ok() {
            change
        } else {
            within_quota(&database, id, change).await?
        };
        match catalogue::put_workspace(&database, id, change, expected.of()).await {
            // Somebody else made it at the same moment: then it is changed.
            Err(catalogue::Error::Taken(_)) if is_new && tries < TRIES => {}
            put => return Ok(Tagged(put?)),
        }
    }
}

/// Which workspace is to be put: its id, and its name when it is not there yet.
async fn place(database: &Database, reference: &Reference) -> Result<(WorkspaceId, Option<String>)> {
    let given = match reference {
        Reference::Id(id) => return Ok((WorkspaceId(*id), None)),
        Reference::Name(given) => given,
    };
    names::given("path", Some(given))?;
    let name = fold(given);
    match workspace_named(database, &name).await? {
        Some(id) => Ok((id, None)),
        None => Ok((WorkspaceId::new(), Some(name))),
    }
}

/// How much a workspace may have, and that there is one, is for those to say who see all of them: else a tenant would set its own
/// quota, also by deleting its workspace and making it anew. What a tenant repeats of it is left out, and so writes nothing.
async fn within_quota(
    database: &Database,
    id: WorkspaceId,
    change: wire::WorkspaceChange,
) -> Result<wire::WorkspaceChange> {
    let now = match catalogue::workspace(database, id).await {
        Err(catalogue::Error::UnknownWorkspace(_)) => {
            let words = "only tokens that are for all workspaces make new ones";
            return Err(Problem::new(Kind::Forbidden, words));
        }
        now => now?,
    };
    let same_plan = change.plan.as_ref().is_none_or(|plan| *plan == now.plan);
    let same_limit = change
        .max_concurrent
        .is_none_or(|limit| limit == now.max_concurrent);
    if !(same_plan && same_limit) {
        let words = "only tokens that are for all workspaces change a plan or a limit";
        return Err(Problem::new(Kind::Forbidden, words));
    }
    Ok(wire::WorkspaceChange {
        plan: None,
        max_concurrent: None,
        ..change
    })
}

/// Delete a workspace and its workflows; what waits fails, what runs goes on to its end
#[utoipa::path(delete, path = "/v1/workspaces/{id}", operation_id = "delete_workspace", tag = "workspaces",
    responses((status = 204, description = "It is gone")))]
async fn delete(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Reference>,
    expected: Expected,
) -> Result<StatusCode> {
    let id = names::seen(&database, &caller, &id).await?;
    catalogue::delete_workspace(&database, id, expected.of()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start nothing more for a workspace; what runs goes on
#[utoipa::path(post, path = "/v1/workspaces/{id}/pause", operation_id = "pause_workspace", tag = "workspaces",
    responses((status = 200, description = "The workspace as it is now", body = wire::Workspace)))]
async fn pause(visit: Visit, Path(id): Path<Reference>) -> Result<Tagged<wire::Workspace>> {
    set_paused(&visit, &id, true).await
}

/// Start again
#[utoipa::path(post, path = "/v1/workspaces/{id}/resume", operation_id = "resume_workspace", tag = "workspaces",
    responses((status = 200, description = "The workspace as it is now", body = wire::Workspace)))]
async fn resume(visit: Visit, Path(id): Path<Reference>) -> Result<Tagged<wire::Workspace>> {
    set_paused(&visit, &id, false).await
}

async fn set_paused(visit: &Visit, id: &Reference, paused: bool) -> Result<Tagged<wire::Workspace>> {
    let id = names::seen(&visit.database, &visit.caller, id).await?;
    let change = wire::WorkspaceChange {
        paused: Some(paused),
        ..wire::WorkspaceChange::default()
    };
    // Pausing must not make one that is not there.
    match catalogue::put_workspace(&visit.database, id, change, Expected::There.of()).await {
        Err(catalogue::Error::Unexpected) => Err(catalogue::Error::UnknownWorkspace(id).into()),
        changed => Ok(Tagged(changed?)),
    }
}

pub(super) fn check(change: &wire::WorkspaceChange) -> Result<()> {
    let mut wrong = Wrong::default();
    wrong.see(names::given("/name", change.name.as_deref()));
    wrong.see(super::name("/plan", change.plan.as_deref()));
    if let Some(Some(..0)) = change.max_concurrent {
        wrong.see::<(), _>(Err(Problem::field("/max_concurrent", "0 or more")));
    }
    wrong.told()
}

impl Changeable for wire::Workspace {
    fn changeable(&self) -> impl Serialize {
        (&self.name, &self.plan, self.max_concurrent, self.paused)
    }
}
