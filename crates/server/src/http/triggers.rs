//! `/v1/triggers`: which workflow a signal's name leads to.

use axum::http::StatusCode;
use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::id::DefinitionId;
use stationmaster_core::signals::triggers::{self, NewTrigger, Which};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{Json, Path, Query};
use super::problem::{Kind, Problem, Reply, Result};
use super::routes::{Routes, conditional, long, tagged};
use super::signals::may_act;

pub(super) fn routes() -> Routes {
    Routes::of("trigger")
        .viewer(long(routes!(list)))
        .viewer(tagged(routes!(show)))
        .admin(conditional(routes!(put)))
        .admin(conditional(routes!(delete)))
}

/// Triggers, in the order of their projects, task queues and names
#[utoipa::path(get, path = "/v1/triggers", operation_id = "list_triggers", tag = "triggers", params(wire::TriggerQuery),
    responses((status = 200, description = "A page of triggers", body = wire::Page<wire::Trigger>)))]
async fn list(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::TriggerQuery>,
) -> Reply<wire::Page<wire::Trigger>> {
    let list = List::new("triggers", &query)?;
    let after: Option<[String; 3]> = list.position()?;
    let which = Which {
        project: query.project.as_deref(),
        workspace: caller.may_ask(query.workspace_id)?,
        after: after
            .as_ref()
            .map(|[project, queue, name]| (project.as_str(), queue.as_str(), name.as_str())),
        ..Which::default()
    };
    let rows = triggers::list(&database, &which, list.rows()).await?;
    let position = |row: &wire::Trigger| {
        let queue = row.task_queue.clone().unwrap_or_default();
        [row.project.clone(), queue, row.name.clone()]
    };
    Ok(list.page(rows, position))
}

/// One trigger
#[utoipa::path(get, path = "/v1/triggers/{project}/{name}", operation_id = "show_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"), wire::TriggerPlace),
    responses((status = 200, description = "The trigger", body = wire::Trigger), (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Visit { database, .. }: Visit,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
) -> Result<Tagged<wire::Trigger>> {
    Ok(Tagged(find(&database, &project, &name, &place).await?))
}

/// Make a trigger or change it. The first trigger of a project is for tokens that are for all workspaces
#[utoipa::path(put, path = "/v1/triggers/{project}/{name}", operation_id = "put_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"), wire::TriggerPlace),
    request_body = wire::TriggerChange,
    responses((status = 200, description = "The trigger as it is now", body = wire::Trigger),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn put(
    visit: Visit,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
    expected: Expected,
    Json(change): Json<wire::TriggerChange>,
) -> Result<Tagged<wire::Trigger>> {
    may_act(&visit, &project).await?;
    let database = visit.database;
    let definition_id = DefinitionId(change.workflow_definition_id);
    catalogue::definition(&database, definition_id).await?;
    let new = NewTrigger {
        project,
        task_queue: place.task_queue,
        name,
        definition_id,
        payload_schema: change.payload_schema,
        priority: change.priority,
    };
    Ok(Tagged(triggers::set(&database, &new, expected.of()).await?))
}

/// Remove a trigger; signals of its name become dead letters from then on
#[utoipa::path(delete, path = "/v1/triggers/{project}/{name}", operation_id = "delete_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"), wire::TriggerPlace),
    responses((status = 204, description = "It is gone"), (status = 404, response = super::ProblemAnswer)))]
async fn delete(
    Visit { database, .. }: Visit,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
    expected: Expected,
) -> Result<StatusCode> {
    find(&database, &project, &name, &place).await?;
    let queue = place.task_queue.as_deref();
    triggers::remove(&database, &project, queue, &name, expected.of()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The trigger, when the caller may see it.
async fn find(
    database: &Database,
    project: &str,
    name: &str,
    place: &wire::TriggerPlace,
) -> Result<wire::Trigger> {
    let missing = || Problem::not_found(format!("project {project:?} has no trigger {name:?}"));
    if project.contains('\0') || name.contains('\0') {
        return Err(missing());
    }
    let which = Which {
        project: Some(project),
        task_queue: Some(place.task_queue.as_deref().unwrap_or_default()),
        name: Some(name),
        ..Which::default()
    };
    let found = triggers::list(database, &which, 1).await?;
    found.into_iter().next().ok_or_else(missing)
}

impl From<triggers::Error> for Problem {
    fn from(error: triggers::Error) -> Self {
        use triggers::Error;
        let words = error.to_string();
        match error {
            Error::BadName(field) => Self::field(field.replace(' ', "_"), words),
            Error::BadSchema(_) => Self::field("/payload_schema", words),
            Error::UnknownDefinition(_) | Error::NotFound { .. } => Self::not_found(words),
            Error::OtherWorkspace(_) => {
                let advice = "take another project, or a workflow of that workspace";
                Self::new(Kind::Conflict, format!("{words}; {advice}"))
            }
            Error::Unexpected => Self::new(Kind::PreconditionFailed, words),
            Error::Database(error) => error.into(),
        }
    }
}

impl Changeable for wire::Trigger {
    fn changeable(&self) -> impl Serialize {
        (self.workflow_definition_id, &self.payload_schema, self.priority)
    }
}
