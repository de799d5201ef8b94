//! What runs, and for whom: workspaces, plans, workflow definitions and their versions.
//!
//! Data only: limits take effect through the capacity rows that triggers keep beside the workspaces.

pub use stationmaster_wire::{
    Plan, Version, VersionMade, Workflow, WorkflowChange, Workspace, WorkspaceChange,
};
use uuid::Uuid;

use crate::db::{self, Database, Read as _, statement, within};
use crate::engine::embedded::nodes::{self, NodeProblem};
use crate::graph::{Graph, GraphError};
use crate::id::{DefinitionId, WorkspaceId};
use crate::session::Session;

/// Why something in the catalogue could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such plan.
    #[error("there is no plan {0:?}: the plans are {1}")]
    UnknownPlan(String, String),
    /// No such workspace.
    #[error("there is no workspace {0}")]
    UnknownWorkspace(WorkspaceId),
    /// No such definition.
    #[error("there is no workflow definition {0}")]
    UnknownDefinition(DefinitionId),
    /// The definition belongs to another workspace.
    #[error("workflow definition {0} belongs to another workspace")]
    OtherWorkspace(DefinitionId),
    /// The published version is not there.
    #[error("workflow definition {0} has no version {1}")]
    UnknownVersion(DefinitionId, i32),
    /// The graph cannot run.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Some of its nodes cannot run on the only engine that there is.
    #[error("{}", told(.0))]
    Nodes(Vec<NodeProblem>),
    /// A value is out of its range.
    #[error("{0}")]
    Invalid(String),
    /// The name is another one's.
    #[error("{0}")]
    Taken(String),
    /// It is not as the caller expects it to be.
    #[error("it was changed meanwhile, or is not there: look again")]
    Unexpected,
    /// The database did not do it.
    #[error(transparent)]
    Database(db::Error),
}

fn told(problems: &[NodeProblem]) -> String {
    let words = problems
        .iter()
        .map(|problem| format!("node {:?}: {}", problem.id, problem.words));
    words.collect::<Vec<_>>().join("; ")
}

impl From<db::Error> for Error {
    fn from(error: db::Error) -> Self {
        match error.code().as_deref() {
            // Check violations and numbers out of range are the caller's.
            Some(code) if code == "23514" || code.starts_with("22") || code.starts_with("54") => {
                Self::Invalid(error.message())
            }
            Some("23505") => Self::Taken(taken(&error)),
            _ => Self::Database(error),
        }
    }
}

/// Who has the name already, as far as the caller may know.
pub(crate) fn taken(error: &db::Error) -> String {
    match error.message() {
        // By an index: whoever has it came at the same moment, or is not to be seen.
        told if told.contains("unique constraint") => "the name is taken".to_owned(),
        told => told,
    }
}

/// The plans there are.
pub async fn plans(database: &Database) -> Result<Vec<Plan>, Error> {
    let query = "select name, max_concurrent, weight from stationmaster.plans order by max_concurrent, name";
    let mut session = database.session().await?;
    let plans = within(sqlx::query_as(query).fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(plans)
}

/// Makes a plan or changes it, whatever the case of its name; the limits of its workspaces follow; only if it is as expected.
pub async fn put_plan(
    database: &Database,
    plan: &Plan,
    expected: Expectation<'_, Plan>,
) -> Result<(), Error> {
    let mut session = database.transaction().await?;
    if let Some(expected) = expected {
        lock(&mut session, &plan.name.to_lowercase()).await?;
        let query =
            "select name, max_concurrent, weight from stationmaster.plans where lower(name) = lower($1)";
        let before: Option<Plan> = within(
            sqlx::query_as(query)
                .bind(&plan.name)
                .fetch_optional(&mut *session),
        )
        .await?;
        if !expected(before.as_ref()) {
            return Err(Error::Unexpected);
        }
    }
    let query = "insert into stationmaster.plans (name, max_concurrent, weight) values ($1, $2, $3)
                 on conflict ((lower(name))) do update set max_concurrent = excluded.max_concurrent, weight = excluded.weight";
    let query = sqlx::query(query)
        .bind(&plan.name)
        .bind(plan.max_concurrent)
        .bind(plan.weight);
    within(query.execute(&mut *session)).await?;
    session.finish().await?;
    Ok(())
}

/// What a caller expects of a thing before it is changed; asked under a lock, of `None` when it is not there. `None`: whatever.
pub type Expectation<'a, T> = Option<Box<dyn Fn(Option<&T>) -> bool + Send + Sync + 'a>>;

/// Makes a workspace or changes it; only if it is as expected.
pub async fn put_workspace(
    database: &Database,
    id: WorkspaceId,
    change: WorkspaceChange,
    expected: Expectation<'_, Workspace>,
) -> Result<Workspace, Error> {
    let mut session = database.transaction().await?;
    if let Some(expected) = expected {
        lock(&mut session, &id.to_string()).await?;
        if !expected(read_workspace(&mut session, id).await?.as_ref()) {
            return Err(Error::Unexpected);
        }
    }
    let query = sqlx::query(statement!("catalogue/put_workspace"))
        .bind(id)
        .bind(&change.name)
        .bind(&change.plan)
        .bind(change.max_concurrent.flatten())
        .bind(change.max_concurrent == Some(None))
        .bind(change.paused);
    match within(query.execute(&mut *session)).await {
        Ok(_) => {
            let workspace = read_workspace(&mut session, id).await?;
            session.finish().await?;
            workspace.ok_or(Error::UnknownWorkspace(id))
        }
        Err(error) if error.code().as_deref() == Some("23503") => {
            let names: Vec<String> = plans(database).await?.into_iter().map(|plan| plan.name).collect();
            Err(Error::UnknownPlan(
                change.plan.unwrap_or_default(),
                names.join(", "),
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whoever changes this thing conditionally comes one after the other, also while it is not there yet.
pub(crate) async fn lock(session: &mut Session, key: &str) -> Result<(), db::Error> {
    within(
        sqlx::query(statement!("catalogue/lock"))
            .bind(key)
            .execute(&mut **session),
    )
    .await?;
    Ok(())
}

async fn read_workspace(session: &mut Session, id: WorkspaceId) -> Result<Option<Workspace>, db::Error> {
    let query = sqlx::query_as(statement!("catalogue/list_workspaces"))
        .bind(id)
        .bind(Uuid::nil())
        .bind(1_i64)
        .bind(None::<Vec<Uuid>>);
    within(query.fetch_optional(&mut **session)).await
}

/// One workspace.
pub async fn workspace(database: &Database, id: WorkspaceId) -> Result<Workspace, Error> {
    let mut session = database.session().await?;
    let workspace = read_workspace(&mut session, id).await?;
    session.finish().await?;
    workspace
        .filter(|workspace| database.scope().holds(WorkspaceId(workspace.id)))
        .ok_or(Error::UnknownWorkspace(id))
}

/// Workspaces in scope in the order of their ids, after `after`.
pub async fn workspaces(
    database: &Database,
    after: Option<WorkspaceId>,
    limit: i64,
) -> Result<Vec<Workspace>, Error> {
    let query = sqlx::query_as(statement!("catalogue/list_workspaces"))
        .bind(None::<Uuid>)
        .bind(after.map_or(Uuid::nil(), |id| id.0))
        .bind(limit)
        .bind(database.among(None));
    Ok(query.all(database).await?)
}

/// Workspaces in scope: those in which work waits and cannot run first, then those with the most slots in use.
pub async fn busiest_workspaces(database: &Database, limit: i64) -> Result<Vec<Workspace>, Error> {
    let query = sqlx::query_as(statement!("catalogue/busiest_workspaces"))
        .bind(database.among(None))
        .bind(limit)
        .persistent(false);
    Ok(query.all(database).await?)
}

/// Deletes a workspace and its definitions. Its waiting items fail, its running executions run to their end.
/// Only if it is as expected.
pub async fn delete_workspace(
    database: &Database,
    id: WorkspaceId,
    expected: Expectation<'_, Workspace>,
) -> Result<(), Error> {
    let mut session = database.transaction().await?;
    if let Some(expected) = expected {
        lock(&mut session, &id.to_string()).await?;
        let before = read_workspace(&mut session, id).await?;
        if before.is_some() && !expected(before.as_ref()) {
            return Err(Error::Unexpected);
        }
    }
    let query = sqlx::query("delete from stationmaster.workspaces where id = $1").bind(id);
    let gone = within(query.execute(&mut *session)).await?.rows_affected();
    session.finish().await?;
    if gone == 0 {
        Err(Error::UnknownWorkspace(id))
    } else {
        Ok(())
    }
}

/// Makes a definition or changes it; only if it is as expected.
pub async fn put_definition(
    database: &Database,
    id: DefinitionId,
    change: WorkflowChange,
    expected: Expectation<'_, Workflow>,
) -> Result<Workflow, Error> {
    let mut transaction = database.transaction().await?;
    if let Some(expected) = expected {
        lock(&mut transaction, &id.to_string()).await?;
        if !expected(read_definition(&mut transaction, id).await?.as_ref()) {
            return Err(Error::Unexpected);
        }
    }
    let query = sqlx::query(statement!("catalogue/put_definition"))
        .bind(id)
        .bind(change.workspace_id)
        .bind(&change.name)
        .bind(&change.task_queue)
        .bind(&change.workflow_type)
        .bind(change.max_attempts)
        .bind(change.published_version)
        .bind(change.paused)
        .bind(change.run_timeout.flatten())
        .bind(change.run_timeout == Some(None));
    match within(query.execute(&mut *transaction)).await {
        Ok(done) if done.rows_affected() == 0 => return Err(Error::OtherWorkspace(id)),
        Ok(_) => {}
        Err(error) if error.code().as_deref() == Some("23503") => {
            return Err(Error::UnknownWorkspace(WorkspaceId(change.workspace_id)));
        }
        Err(error) => return Err(error.into()),
    }
    if let Some(version) = change.published_version {
        let query =
            "select current_version_id is not null from stationmaster.workflow_definitions where id = $1";
        let found: bool = within(sqlx::query_scalar(query).bind(id).fetch_one(&mut *transaction)).await?;
        if !found {
            // Dropping the transaction takes the change back: a definition is never left without its version.
            return Err(Error::UnknownVersion(id, version));
        }
    }
    let definition = read_definition(&mut transaction, id).await?;
    transaction.finish().await?;
    definition.ok_or(Error::UnknownDefinition(id))
}

async fn read_definition(session: &mut Session, id: DefinitionId) -> Result<Option<Workflow>, db::Error> {
    let query = sqlx::query_as(statement!("catalogue/list_definitions"))
        .bind(id)
        .bind(None::<Vec<Uuid>>)
        .bind(Uuid::nil())
        .bind(1_i64);
    within(query.fetch_optional(&mut **session)).await
}

/// One definition.
pub async fn definition(database: &Database, id: DefinitionId) -> Result<Workflow, Error> {
    let mut session = database.session().await?;
    let definition = read_definition(&mut session, id).await?;
    session.finish().await?;
    definition
        .filter(|definition| database.scope().holds(WorkspaceId(definition.workspace_id)))
        .ok_or(Error::UnknownDefinition(id))
}

/// Definitions in scope in the order of their ids, after `after`.
pub async fn definitions(
    database: &Database,
    workspace: Option<WorkspaceId>,
    after: Option<DefinitionId>,
    limit: i64,
) -> Result<Vec<Workflow>, Error> {
    let query = sqlx::query_as(statement!("catalogue/list_definitions"))
        .bind(None::<Uuid>)
        .bind(database.among(workspace))
        .bind(after.map_or(Uuid::nil(), |id| id.0))
        .bind(limit);
    Ok(query.all(database).await?)
}

/// Deletes a definition. Items of it that wait fail when their turn comes.
/// Only if it is as expected.
pub async fn delete_definition(
    database: &Database,
    id: DefinitionId,
    expected: Expectation<'_, Workflow>,
) -> Result<(), Error> {
    let mut session = database.transaction().await?;
    if let Some(expected) = expected {
        lock(&mut session, &id.to_string()).await?;
        let before = read_definition(&mut session, id).await?;
        if before.is_some() && !expected(before.as_ref()) {
            return Err(Error::Unexpected);
        }
    }
    let query = sqlx::query("delete from stationmaster.workflow_definitions where id = $1").bind(id);
    let gone = within(query.execute(&mut *session)).await?.rows_affected();
    session.finish().await?;
    if gone == 0 {
        Err(Error::UnknownDefinition(id))
    } else {
        Ok(())
    }
}

/// Looks at a graph as [`add_version`] does, and makes nothing. Answers its nodes in the order in which they run.
pub async fn check_graph(database: &Database, graph: &str) -> Result<Vec<String>, Error> {
    let graph = Graph::parse(graph)?;
    let mut session = database.session().await?;
    check_nodes(&mut session, &graph).await?;
    session.finish().await?;
    Ok(graph.node_ids().map(str::to_owned).collect())
}

/// Nodes that the embedded engine could not run are refused while there is no other.
async fn check_nodes(session: &mut Session, graph: &Graph) -> Result<(), Error> {
    let problems = nodes::problems(graph);
    if problems.is_empty() {
        return Ok(());
    }
    let only = sqlx::query_scalar("select stationmaster_internal.runs_embedded_only()");
    if within(only.fetch_one(&mut **session)).await? {
        return Err(Error::Nodes(problems));
    }
    Ok(())
}

/// Adds a version. A graph that cannot run is refused, with the reason; while all servers have the embedded engine, also one with nodes
/// that it does not know.
pub async fn add_version(
    database: &Database,
    definition: DefinitionId,
    graph: &str,
) -> Result<VersionMade, Error> {
    let parsed = Graph::parse(graph)?;
    let query = sqlx::query_as(statement!("catalogue/add_version"))
        .bind(definition)
        .bind(graph);
    let mut session = database.session().await?;
    check_nodes(&mut session, &parsed).await?;
    match within(query.fetch_one(&mut *session)).await {
        Ok(row) => {
            session.finish().await?;
            Ok(row)
        }
        Err(error) if error.code().as_deref() == Some("23503") => Err(Error::UnknownDefinition(definition)),
        Err(error) => Err(error.into()),
    }
}

/// The versions of a definition, newest first, below a number.
pub async fn versions(
    database: &Database,
    definition: DefinitionId,
    below: Option<i32>,
    limit: i64,
) -> Result<Vec<Version>, Error> {
    let query = sqlx::query_as(statement!("catalogue/list_versions"))
        .bind(definition)
        .bind(below.unwrap_or(i32::MAX))
        .bind(limit);
    Ok(query.all(database).await?)
}
