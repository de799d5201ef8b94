//! Triggers: which definition a signal's name leads to.
//!
//! A project belongs to one workspace: that of its first trigger. All of its triggers name definitions of that workspace, so
//! whoever may act for the workspace may send its signals, and nobody can route into another tenant's slots.

use serde_json::value::RawValue;
pub use stationmaster_wire::{Trigger, TriggerChange};

use super::MAX_NAME;
use super::schema::Schema;
use crate::catalogue::{self, Expectation};
use crate::db::{self, Database, Read as _, statement, within};
use crate::id::{DefinitionId, WorkspaceId};
use crate::session::Session;

/// Which trigger.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The project.
    pub project: &'a str,
    /// Only for signals of this task queue; `None`: for every queue that has no trigger of its own for the name.
    pub task_queue: Option<&'a str>,
    /// The name of the signal.
    pub name: &'a str,
}

/// Why a trigger could not be set or removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name that cannot be kept.
    #[error("the {0} must have 1 to {MAX_NAME} characters")]
    BadName(&'static str),
    /// The schema cannot be used.
    #[error("the schema of the payload cannot be used: {0}")]
    BadSchema(String),
    /// No such definition.
    #[error("there is no workflow definition {0}")]
    UnknownDefinition(DefinitionId),
    /// The project belongs to another workspace.
    #[error("{0}")]
    OtherWorkspace(String),
    /// There are too many dispatchers already; the words are the database's.
    #[error("{0}")]
    TooManyQueues(String),
    /// It is not what the caller expected.
    #[error("the trigger was changed: look again")]
    Unexpected,
    /// No such trigger.
    #[error("project {project:?} has no trigger {name:?}{}", queue_words(.task_queue.as_deref()))]
    NotFound {
        /// The project.
        project: String,
        /// The task queue.
        task_queue: Option<String>,
        /// The name.
        name: String,
    },
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

fn queue_words(task_queue: Option<&str>) -> String {
    task_queue
        .map(|queue| format!(" for the task queue {queue:?}"))
        .unwrap_or_default()
}

/// Everything about a trigger that cannot be, as far as it can be told without the database; [`set`] would stop at the first. `schema` is
/// that of its payloads.
#[must_use]
pub fn problems(place: Place<'_>, schema: Option<&RawValue>) -> Vec<Error> {
    let schema = schema.and_then(|schema| Schema::read(schema.get()).err());
    let schema = schema.map(Error::BadSchema);
    place.problems().chain(schema).collect()
}

/// Makes a trigger or changes it, if it is as expected. The database writes it down in the audit.
pub async fn set(
    database: &Database,
    place: Place<'_>,
    change: &TriggerChange,
    expected: Expectation<'_, Trigger>,
) -> Result<Trigger, Error> {
    place.check()?;
    let schema = change.payload_schema.as_ref();
    let schema = schema.and_then(|schema| schema.as_deref().map(RawValue::get));
    if let Some(schema) = schema {
        Schema::read(schema).map_err(Error::BadSchema)?;
    }
    let mut transaction = database.transaction().await?;
    place.meet(&mut transaction, expected).await?;
    let query = sqlx::query(statement!("triggers/set"))
        .bind(place.project)
        .bind(place.task_queue.unwrap_or_default())
        .bind(place.name)
        .bind(change.workflow_definition_id)
        .bind(schema)
        .bind(change.priority)
        .bind(change.payload_schema.is_some());
    within(query.execute(&mut *transaction))
        .await
        .map_err(|error| match error.code().as_deref() {
            Some("23503") => Error::UnknownDefinition(DefinitionId(change.workflow_definition_id)),
            Some("23514") => Error::OtherWorkspace(error.message()),
            Some("SM001") => Error::TooManyQueues(error.message()),
            Some(code) if code.starts_with("22") => Error::BadSchema(error.message()),
            _ => Error::Database(error),
        })?;
    let now = place.read(&mut transaction).await?;
    transaction.finish().await?;
    now.ok_or_else(|| place.not_found())
}

impl Place<'_> {
    /// Whoever changes this trigger conditionally comes one after the other, also while it is not there yet.
    async fn meet(self, session: &mut Session, expected: Expectation<'_, Trigger>) -> Result<(), Error> {
        let Some(expected) = expected else { return Ok(()) };
        let key = serde_json::json!(["trigger", self.project, self.task_queue, self.name]).to_string();
        catalogue::lock(session, &key).await?;
        if expected(self.read(session).await?.as_ref()) {
            Ok(())
        } else {
            Err(Error::Unexpected)
        }
    }

    async fn read(self, session: &mut Session) -> Result<Option<Trigger>, db::Error> {
        Ok(read(session, &self.into(), None, 1).await?.into_iter().next())
    }

    fn problems(self) -> impl Iterator<Item = Error> {
        let names = [
            ("project", Some(self.project)),
            ("task queue", self.task_queue),
            ("name", Some(self.name)),
        ];
        let bad = |name: &str| name.is_empty() || name.chars().count() > MAX_NAME || name.contains('\0');
        let wrong = names.into_iter().filter(move |(_, name)| name.is_some_and(bad));
        wrong.map(|(field, _)| Error::BadName(field))
    }

    fn check(self) -> Result<(), Error> {
        self.problems().next().map_or(Ok(()), Err)
    }

    fn not_found(self) -> Error {
        Error::NotFound {
            project: self.project.to_owned(),
            task_queue: self.task_queue.map(str::to_owned),
            name: self.name.to_owned(),
        }
    }
}

/// Which triggers; every field that is given must match.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which<'a> {
    /// Of this project.
    pub project: Option<&'a str>,
    /// Of this task queue; empty: that of every queue.
    pub task_queue: Option<&'a str>,
    /// Of this name.
    pub name: Option<&'a str>,
    /// Of projects of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// After this project, task queue (empty: every) and name: where the last page ended.
    pub after: Option<(&'a str, &'a str, &'a str)>,
}

impl<'a> From<Place<'a>> for Which<'a> {
    fn from(place: Place<'a>) -> Self {
        Self {
            project: Some(place.project),
            task_queue: Some(place.task_queue.unwrap_or_default()),
            name: Some(place.name),
            ..Self::default()
        }
    }
}

/// One trigger, when it is in scope.
pub async fn show(database: &Database, place: Place<'_>) -> Result<Trigger, Error> {
    let names = [place.project, place.task_queue.unwrap_or_default(), place.name];
    if names.iter().any(|name| name.contains('\0')) {
        return Err(place.not_found());
    }
    let found = list(database, &place.into(), 1).await?;
    found.into_iter().next().ok_or_else(|| place.not_found())
}

/// Triggers of projects in scope in the order of their projects, task queues and names.
pub async fn list(database: &Database, which: &Which<'_>, limit: i64) -> Result<Vec<Trigger>, Error> {
    let mut session = database.session().await?;
    let triggers = read(&mut session, which, database.among(which.workspace), limit).await?;
    session.finish().await?;
    Ok(triggers)
}

async fn read(
    session: &mut Session,
    which: &Which<'_>,
    among: Option<Vec<WorkspaceId>>,
    limit: i64,
) -> Result<Vec<Trigger>, db::Error> {
    let query = sqlx::query_as(statement!("triggers/list"))
        .bind(which.project)
        .bind(which.task_queue)
        .bind(which.name)
        .bind(among)
        .bind(limit)
        .bind(which.after.map(|(project, _, _)| project))
        .bind(which.after.map(|(_, task_queue, _)| task_queue))
        .bind(which.after.map(|(_, _, name)| name))
        .persistent(false);
    within(query.fetch_all(&mut **session)).await
}

/// Removes a trigger, if it is as expected. Signals of its name become dead letters from then on.
pub async fn remove(
    database: &Database,
    place: Place<'_>,
    expected: Expectation<'_, Trigger>,
) -> Result<(), Error> {
    let mut transaction = database.transaction().await?;
    place.meet(&mut transaction, expected).await?;
    let query = sqlx::query(statement!("triggers/remove"))
        .bind(place.project)
        .bind(place.task_queue.unwrap_or_default())
        .bind(place.name);
    if within(query.execute(&mut *transaction)).await?.rows_affected() == 0 {
        return Err(place.not_found());
    }
    transaction.finish().await?;
    Ok(())
}

/// The workspace that a project belongs to; `None` when no trigger has given it one yet.
pub async fn workspace_of(database: &Database, project: &str) -> Result<Option<WorkspaceId>, db::Error> {
    let query = "select workspace_id from stationmaster.projects where name = $1";
    sqlx::query_scalar(query).bind(project).maybe(database).await
}
