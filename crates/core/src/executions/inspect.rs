//! What people see: items, executions, the history of each, and why a waiting item waits. Reads only.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::browse::{Filter, Row, rows};
use super::{ExecutionStatus, ItemStatus, Stage, WaitsFor};
use crate::columns::{At, MaybeAt, MaybeJson};
use crate::db::{self, Database, statement, within};
use crate::id::{DefinitionId, ExecutionId, ItemId, VersionId, WorkspaceId};

/// An item of the queue.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// What it runs.
    pub workflow_definition_id: DefinitionId,
    /// Its execution, once there is one.
    pub execution_id: Option<ExecutionId>,
    /// How it stands.
    pub status: ItemStatus,
    /// Higher goes first.
    pub priority: i32,
    /// Not before.
    #[sqlx(try_from = "MaybeAt")]
    pub run_at: Option<Timestamp>,
    /// Starts that the engine refused.
    pub attempt_count: i32,
    /// Servers that were lost with it in their hands.
    pub recovery_count: i32,
    /// When it was enqueued.
    #[sqlx(try_from = "At")]
    pub created_at: Timestamp,
    /// When it was claimed last.
    #[sqlx(try_from = "MaybeAt")]
    pub claimed_at: Option<Timestamp>,
    /// When its execution was started.
    #[sqlx(try_from = "MaybeAt")]
    pub dispatched_at: Option<Timestamp>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// The caller's reference.
    pub correlation_id: Option<String>,
    /// Who enqueued it.
    pub enqueued_by: String,
    /// What was asked.
    #[sqlx(try_from = "MaybeJson")]
    pub input: Option<Box<RawValue>>,
}

/// An execution.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// The item that asked for it.
    pub queue_item_id: ItemId,
    /// Whose it is.
    pub workspace_id: WorkspaceId,
    /// What it runs.
    pub workflow_definition_id: DefinitionId,
    /// Which version of it.
    pub workflow_definition_version_id: Option<VersionId>,
    /// How it stands.
    pub status: ExecutionStatus,
    /// When it was claimed last.
    #[sqlx(try_from = "MaybeAt")]
    pub claimed_at: Option<Timestamp>,
    /// When the engine started it.
    #[sqlx(try_from = "MaybeAt")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[sqlx(try_from = "MaybeAt")]
    pub completed_at: Option<Timestamp>,
    /// Where it runs.
    pub engine: Option<String>,
    /// The engine's own id of it.
    pub run_id: Option<String>,
    /// Why it ended as it did, when the engine did not say.
    pub reason: Option<String>,
    /// Starts that the engine refused.
    pub attempts: i32,
    /// Servers that were lost with it in their hands.
    pub recoveries: i32,
    /// What was asked.
    #[sqlx(try_from = "MaybeJson")]
    pub input: Option<Box<RawValue>>,
    /// What came of it.
    #[sqlx(try_from = "MaybeJson")]
    pub output: Option<Box<RawValue>>,
    /// What went wrong.
    #[sqlx(try_from = "MaybeJson")]
    pub error: Option<Box<RawValue>>,
}

/// One item.
pub async fn item(database: &Database, id: ItemId) -> Result<Option<Item>, db::Error> {
    let item: Option<Item> = one(database, statement!("browse/items"), id.0).await?;
    Ok(item.filter(|item| database.scope().holds(item.workspace_id)))
}

/// One execution.
pub async fn execution(database: &Database, id: ExecutionId) -> Result<Option<Execution>, db::Error> {
    let execution: Option<Execution> = one(database, statement!("browse/executions"), id.0).await?;
    Ok(execution.filter(|execution| database.scope().holds(execution.workspace_id)))
}

async fn one<R: Row>(database: &Database, statement: &'static str, id: Uuid) -> Result<Option<R>, db::Error> {
    let mut session = database.session().await?;
    let row = rows(&mut session, statement, &[id], &Filter::<ItemStatus>::default()).await?;
    session.finish().await?;
    Ok(row.into_iter().next())
}

/// The whole at a glance.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Overview {
    /// Items that wait (an estimate when very many).
    pub waiting: i64,
    /// Executions being started.
    pub starting: i64,
    /// Executions that run.
    pub running: i64,
    /// Completed within the last minute.
    pub completed_last_minute: i64,
    /// Ended otherwise within the last minute.
    pub failed_last_minute: i64,
    /// Servers alive.
    pub servers: i64,
    /// Does every server reach its engine?
    pub engine_up: bool,
}

/// The whole at a glance, as far as it is in scope.
pub async fn overview(database: &Database) -> Result<Overview, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("inspect/overview"))
        .bind(database.among(None))
        .persistent(false);
    let overview = within(query.fetch_one(&mut *session)).await?;
    session.finish().await?;
    Ok(overview)
}

/// What ended within one minute.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Minute {
    /// Its beginning.
    #[sqlx(try_from = "At")]
    pub at: Timestamp,
    /// Executions completed.
    pub completed: i64,
    /// Executions and items that ended otherwise.
    pub failed: i64,
}

/// What ended in each of the last minutes, oldest first; minutes in which nothing did are there too.
pub async fn minutes(database: &Database, count: i32) -> Result<Vec<Minute>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("inspect/minutes"))
        .bind(database.among(None))
        .bind(count)
        .persistent(false);
    let minutes = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(minutes)
}

/// One step in the life of an item.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Step {
    /// When.
    #[sqlx(try_from = "At")]
    pub at: Timestamp,
    /// What.
    pub event: String,
    /// Who: a server, the engine, the reconciler, or a person.
    pub actor: String,
    /// Which execution, when it was about one.
    pub execution_id: Option<ExecutionId>,
    /// More words.
    pub detail: Option<String>,
}

/// The life of an item, oldest first.
pub async fn history(database: &Database, item: ItemId) -> Result<Vec<Step>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("inspect/history")).bind(item);
    let steps = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(steps)
}

/// Why a pending item waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Waiting {
    /// Its time has not come.
    Scheduled {
        /// When it comes.
        until: Option<Timestamp>,
    },
    /// The engine refused, or a server was lost; another try follows.
    BackingOff {
        /// When.
        until: Option<Timestamp>,
        /// What went wrong.
        error: Option<String>,
    },
    /// The workspace is paused.
    WorkspacePaused,
    /// The definition is paused.
    DefinitionPaused,
    /// No server takes new work.
    NoServer,
    /// The engine is away.
    EngineDown,
    /// Every slot is taken.
    Limit {
        /// The limit.
        limit: i32,
        /// Slots in use.
        active: i32,
        /// Who holds them (at most twenty).
        holders: Vec<ExecutionId>,
        /// Its place in the workspace's queue, from 1 (counted up to 10,001).
        position: i64,
    },
    /// Nothing is in its way: it is about to be claimed.
    Queued {
        /// Its place in the workspace's queue, from 1 (counted up to 10,001).
        position: i64,
    },
}

#[derive(sqlx::FromRow)]
struct Facts {
    stage: Stage,
    #[sqlx(try_from = "MaybeAt")]
    run_at: Option<Timestamp>,
    waits_for: Option<WaitsFor>,
    last_error: Option<String>,
    workspace_paused: bool,
    definition_paused: bool,
    active: i32,
    max_concurrent: i32,
    position: i64,
    servers: i64,
    engine_up: bool,
    holders: Vec<ExecutionId>,
}

/// Why an item waits; `None` when it does not.
pub async fn waiting(database: &Database, item: ItemId) -> Result<Option<Waiting>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("inspect/waiting")).bind(item);
    let facts: Option<Facts> = within(query.fetch_optional(&mut *session)).await?;
    session.finish().await?;
    Ok(facts.map(reason))
}

/// The first obstacle on the item's way; later ones would not matter yet.
fn reason(facts: Facts) -> Waiting {
    let until = facts.run_at;
    match facts {
        Facts {
            stage: Stage::Later,
            waits_for: Some(WaitsFor::Schedule),
            ..
        } => Waiting::Scheduled { until },
        Facts {
            stage: Stage::Later,
            last_error,
            ..
        } => Waiting::BackingOff {
            until,
            error: last_error,
        },
        Facts {
            workspace_paused: true,
            ..
        } => Waiting::WorkspacePaused,
        Facts {
            definition_paused: true,
            ..
        } => Waiting::DefinitionPaused,
        Facts { servers: 0, .. } => Waiting::NoServer,
        Facts { engine_up: false, .. } => Waiting::EngineDown,
        Facts {
            active,
            max_concurrent,
            holders,
            position,
            ..
        } if active >= max_concurrent => Waiting::Limit {
            limit: max_concurrent,
            active,
            holders,
            position,
        },
        Facts { position, .. } => Waiting::Queued { position },
    }
}
