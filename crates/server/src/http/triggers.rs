//! `/v1/triggers`: which workflow a signal's name leads to.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use stationmaster_client::wire;
use stationmaster_core::catalogue;
use stationmaster_core::id::DefinitionId;
use stationmaster_core::signals::triggers::{self, NewTrigger, Trigger, Which};
use utoipa_axum::routes;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::etag::{Expected, Tagged, tag};
use super::extract::{Json, Path, Query};
use super::problem::{Kind, Problem};
use super::routes::Routes;
use super::signals::may_act;

/// Where a page of triggers ended.
type Position = (String, String, String);

pub(super) fn routes() -> Routes {
    Routes::new()
        .viewer(routes!(list))
        .viewer(routes!(show))
        .admin(routes!(put))
        .admin(routes!(delete))
}

/// Triggers, in the order of their projects, task queues and names
#[utoipa::path(get, path = "/v1/triggers", operation_id = "list_triggers", tag = "triggers", params(wire::TriggerQuery),
    responses((status = 200, description = "A page of triggers", body = wire::Page<wire::Trigger>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::TriggerQuery>,
) -> Result<Answer<wire::Page<wire::Trigger>>, Problem> {
    let list = List::new("triggers", &query);
    let limit = cursor::limit(query.limit)?;
    let read = |bytes: &[u8]| serde_json::from_slice::<Position>(bytes).ok();
    let after = list.position(query.cursor.as_deref(), read)?;
    let which = Which {
        project: query.project.as_deref(),
        workspace: caller.may_ask(query.workspace_id)?,
        after: after
            .as_ref()
            .map(|(project, queue, name)| (project.as_str(), queue.as_str(), name.as_str())),
        ..Which::default()
    };
    let rows = triggers::list(&caller.database(&state), &which, i64::from(limit) + 1).await?;
    let position = |row: &Trigger| {
        let queue = row.task_queue.as_deref().unwrap_or_default();
        serde_json::to_vec(&(&row.project, queue, &row.name)).unwrap_or_default()
    };
    Ok(list.page(rows, limit, position, trigger))
}

/// One trigger
#[utoipa::path(get, path = "/v1/triggers/{project}/{name}", operation_id = "show_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"),
           wire::TriggerPlace),
    responses((status = 200, description = "The trigger", body = wire::Trigger, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
) -> Result<Tagged<wire::Trigger>, Problem> {
    Ok(tagged(find(&state, &caller, &project, &name, &place).await?))
}

/// Make a trigger or change it. The first trigger of a project is for tokens that are for all workspaces
#[utoipa::path(put, path = "/v1/triggers/{project}/{name}", operation_id = "put_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"),
           wire::TriggerPlace),
    request_body = wire::TriggerChange,
    responses((status = 200, description = "The trigger as it is now", body = wire::Trigger, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn put(
    Shared(state): Shared<State>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
    expected: Expected,
    Json(change): Json<wire::TriggerChange>,
) -> Result<Tagged<wire::Trigger>, Problem> {
    may_act(&state, &caller, &project).await?;
    let database = caller.database(&state);
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
    Ok(tagged(
        triggers::set(&database, &new, expected.of(trigger_tag)).await?,
    ))
}

/// Remove a trigger; signals of its name become dead letters from then on
#[utoipa::path(delete, path = "/v1/triggers/{project}/{name}", operation_id = "delete_trigger", tag = "triggers",
    params(("project" = String, Path, description = "The project"), ("name" = String, Path, description = "The name of the signal"),
           wire::TriggerPlace),
    responses((status = 204, description = "It is gone"), (status = 404, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn delete(
    Shared(state): Shared<State>,
    caller: Caller,
    Path((project, name)): Path<(String, String)>,
    Query(place): Query<wire::TriggerPlace>,
    expected: Expected,
) -> Result<StatusCode, Problem> {
    find(&state, &caller, &project, &name, &place).await?;
    let (database, queue) = (caller.database(&state), place.task_queue.as_deref());
    triggers::remove(&database, &project, queue, &name, expected.of(trigger_tag)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The trigger, when the caller may see it.
async fn find(
    state: &State,
    caller: &Caller,
    project: &str,
    name: &str,
    place: &wire::TriggerPlace,
) -> Result<Trigger, Problem> {
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
    let found = triggers::list(&caller.database(state), &which, 1).await?;
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

fn tagged(found: Trigger) -> Tagged<wire::Trigger> {
    Tagged(trigger_tag(&found), trigger(found))
}

/// What can be changed of a trigger.
fn trigger_tag(trigger: &Trigger) -> String {
    tag(&(
        trigger.workflow_definition_id,
        &trigger.payload_schema,
        trigger.priority,
    ))
}

/// A trigger on the wire.
pub(crate) fn trigger(trigger: Trigger) -> wire::Trigger {
    wire::Trigger {
        project: trigger.project,
        task_queue: trigger.task_queue,
        name: trigger.name,
        workflow_definition_id: trigger.workflow_definition_id.0,
        workspace_id: trigger.workspace_id.0,
        payload_schema: trigger.payload_schema,
        priority: trigger.priority,
        created_at: trigger.created_at,
        updated_at: trigger.updated_at,
    }
}
