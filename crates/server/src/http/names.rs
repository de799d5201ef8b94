//! `/v1/names`: what a text means; and what the other nouns mean by the references that they are given.

use axum::Json as Answer;
use stationmaster_client::wire::{self, Reference};
use stationmaster_core::access::Role;
use stationmaster_core::db::Database;
use stationmaster_core::id::{AlarmId, DefinitionId, WorkspaceId};
use stationmaster_core::names;
use utoipa_axum::routes;
use uuid::Uuid;

use super::caller::{Caller, Visit};
use super::extract::Query;
use super::problem::{Kind, Problem, Reply, Result};
use super::routes::{Routes, long};
use super::tokens;

/// Workspaces that a list may be asked for at once.
const MOST: usize = 20;

pub(super) fn routes() -> Routes {
    Routes::of("name").viewer(long(routes!(find)))
}

/// What a text means: a name, an id, or the beginning of one
#[utoipa::path(get, path = "/v1/names", operation_id = "find_names", tag = "names", params(wire::NameQuery),
    responses((status = 200, description = "What was found, and what may have been meant", body = wire::NamesFound),
              (status = 404, response = super::ProblemAnswer)))]
async fn find(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::NameQuery>,
) -> Reply<wire::NamesFound> {
    if query.text.chars().count() > 200 {
        return Err(Problem::field("text", "at most 200 characters"));
    }
    if query.noun == wire::Noun::Token && caller.role < Role::Admin {
        let words = "tokens are shown to the role admin";
        return Err(Problem::new(Kind::Forbidden, words));
    }
    let workspace = asked(&database, &caller, query.workspace_id.as_ref()).await?;
    let mut found = names::find(&database, query.noun, &query.text, workspace).await?;
    if query.noun == wire::Noun::Token {
        found = tokens::seen(&database, &query.text).await?;
    }
    Ok(Answer(found))
}

/// The workspace that a body names must be in scope.
pub(super) async fn workspace(
    database: &Database,
    caller: &Caller,
    reference: &Reference,
) -> Result<WorkspaceId> {
    let id = names::workspace(database, reference).await?;
    caller.may_use(id.0)
}

/// The workspace that an address names must be in scope; else it is as if it were not there.
pub(super) async fn seen(database: &Database, caller: &Caller, reference: &Reference) -> Result<WorkspaceId> {
    let id = names::workspace(database, reference).await?;
    caller.may_see(id.0)
}

/// The workspace that a list is asked for must be in scope.
pub(super) async fn asked(
    database: &Database,
    caller: &Caller,
    reference: Option<&Reference>,
) -> Result<Option<WorkspaceId>> {
    match reference {
        Some(reference) => workspace(database, caller, reference).await.map(Some),
        None => Ok(None),
    }
}

/// The workspace and the workflow that a list or a bulk operation is about.
pub(super) async fn both(
    database: &Database,
    caller: &Caller,
    of_workspace: Option<&Reference>,
    of_workflow: Option<&Reference>,
) -> Result<(Option<WorkspaceId>, Option<DefinitionId>)> {
    let workspace = asked(database, caller, of_workspace).await?;
    let workflow = match of_workflow {
        Some(reference) => Some(names::workflow(database, workspace, reference).await?),
        None => None,
    };
    Ok((workspace, workflow))
}

/// The workspaces, one or several with commas between them, and the workflow that a list is about.
pub(super) async fn several(
    database: &Database,
    caller: &Caller,
    of_workspaces: Option<&Reference>,
    of_workflow: Option<&Reference>,
) -> Result<(Vec<WorkspaceId>, Option<DefinitionId>)> {
    let text = of_workspaces.map(ToString::to_string);
    let named: Vec<&str> = text.iter().flat_map(|text| text.split(',')).collect();
    if named.len() > MOST {
        return Err(Problem::field("workspace_id", format!("at most {MOST}")));
    }
    let mut workspaces = Vec::new();
    for name in named {
        let id = workspace(database, caller, &name.trim().into()).await?;
        if !workspaces.contains(&id) {
            workspaces.push(id);
        }
    }
    let only = workspaces.first().copied().filter(|_| workspaces.len() == 1);
    let workflow = match of_workflow {
        Some(reference) => Some(names::workflow(database, only, reference).await?),
        None => None,
    };
    Ok((workspaces, workflow))
}

/// The ids of both, as requests hold them.
pub(super) async fn ids(
    database: &Database,
    caller: &Caller,
    of_workspace: Option<&Reference>,
    of_workflow: Option<&Reference>,
) -> Result<(Option<Uuid>, Option<Uuid>)> {
    let (workspace, workflow) = both(database, caller, of_workspace, of_workflow).await?;
    Ok((workspace.map(|id| id.0), workflow.map(|id| id.0)))
}

/// The workspaces that a token is for.
pub(super) async fn all(database: &Database, references: Option<&[Reference]>) -> Result<Option<Vec<Uuid>>> {
    let Some(references) = references else {
        return Ok(None);
    };
    let mut ids = Vec::with_capacity(references.len());
    for reference in references {
        ids.push(names::workspace(database, reference).await?.0);
    }
    Ok(Some(ids))
}

/// The workflow that an address names.
pub(super) async fn workflow(database: &Database, reference: &Reference) -> Result<DefinitionId> {
    Ok(names::workflow(database, None, reference).await?)
}

/// A name that is given: it must be one that can be kept.
pub(super) fn given(field: &str, name: Option<&str>) -> Result<()> {
    super::name(field, name)?;
    match name.map(names::name) {
        Some(Err(error)) => Err(Problem::field(field, error.to_string())),
        _ => Ok(()),
    }
}

/// The alarm that an address names.
pub(super) async fn alarm(database: &Database, reference: &Reference) -> Result<AlarmId> {
    Ok(names::alarm(database, reference).await?)
}
