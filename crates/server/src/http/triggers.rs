//! `/v1/triggers`: which workflow a signal's name leads to.

use axum::http::StatusCode;
use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::catalogue;
use stationmaster_core::signals::triggers::{self, Place, Which};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{Json, Path, Query};
use super::names;
use super::problem::{Kind, Problem, Reply, Result, Wrong};
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
        workspace: names::asked(&database, &caller, query.workspace_id.as_ref()).await?,
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
    let place = at(&project, &name, &place);
    Ok(Tagged(triggers::show(&database, place).await?))
}

/// Make a trigger or change it. The first trigger of a project is for tokens that are for all workspaces
#[utoipa::path(put, path = "/v1/triggers/{project}/{name}", operation_id = "put_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"), wire::TriggerPlace),
    request_body = wire::asked::TriggerChange,
    responses((status = 200, description = "The trigger as it is now", body = wire::Trigger),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn put(
    visit: Visit,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
    expected: Expected,
    Json(change): Json<wire::asked::TriggerChange>,
) -> Result<Tagged<wire::Trigger>> {
    may_act(&visit, &project).await?;
    let database = visit.database;
    let place = at(&project, &name, &place);
    let mut wrong = Wrong::default();
    let schema = change.payload_schema.as_ref().and_then(Option::as_deref);
    for problem in triggers::problems(place, schema) {
        wrong.see::<(), _>(Err(problem));
    }
    let Some(definition) = wrong.see(names::workflow(&database, &change.workflow_definition_id).await) else {
        return Err(wrong.whole());
    };
    wrong.told()?;
    catalogue::definition(&database, definition).await?;
    let change = change.with_ids(definition.0);
    let trigger = triggers::set(&database, place, &change, expected.of()).await?;
    Ok(Tagged(trigger))
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
    let place = at(&project, &name, &place);
    triggers::show(&database, place).await?;
    triggers::remove(&database, place, expected.of()).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn at<'a>(project: &'a str, name: &'a str, place: &'a wire::TriggerPlace) -> Place<'a> {
    Place {
        project,
        task_queue: place.task_queue.as_deref(),
        name,
    }
}

impl From<triggers::Error> for Problem {
    fn from(error: triggers::Error) -> Self {
        use triggers::Error;
        let words = error.to_string();
        match error {
            Error::BadName(field) => Self::field(field.replace(' ', "_"), words),
            Error::TooManyQueues(_) => Self::field("task_queue", words),
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
