//! What people see: items, executions, the history of each, and why a waiting item waits. Reads only.

use jiff::Timestamp;
pub use stationmaster_wire::{Execution, Minute, Numbers, QueueItem, Step, Waiting};
use uuid::Uuid;

use super::browse::{Filter, Row, rows};
use super::{ItemStatus, Stage, WaitsFor};
use crate::columns::MaybeAt;
use crate::db::{self, Database, Read as _, statement};
use crate::id::{ExecutionId, ItemId, WorkspaceId};

/// One item.
pub async fn item(database: &Database, id: ItemId) -> Result<Option<QueueItem>, db::Error> {
    let item: Option<QueueItem> = one(database, statement!("browse/items"), id.0).await?;
    Ok(item.filter(|item| database.scope().holds(WorkspaceId(item.workspace_id))))
}

/// One execution.
pub async fn execution(database: &Database, id: ExecutionId) -> Result<Option<Execution>, db::Error> {
    let execution: Option<Execution> = one(database, statement!("browse/executions"), id.0).await?;
    Ok(execution.filter(|execution| database.scope().holds(WorkspaceId(execution.workspace_id))))
}

async fn one<R: Row>(database: &Database, statement: &'static str, id: Uuid) -> Result<Option<R>, db::Error> {
    let mut session = database.session().await?;
    let row = rows(&mut session, statement, &[id], &Filter::<ItemStatus>::default()).await?;
    session.finish().await?;
    Ok(row.into_iter().next())
}

/// The whole at a glance, as far as it is in scope.
pub async fn overview(database: &Database) -> Result<Numbers, db::Error> {
    let query = sqlx::query_as(statement!("inspect/overview"))
        .bind(database.among(None))
        .persistent(false);
    query.one(database).await
}

/// Executions that are counted for a chart at most.
pub const COUNTED: i64 = 500_000;

/// What ended in each of the last minutes, oldest first; minutes in which nothing did are there too. When more than `counted` ended in
/// them, fewer minutes are told, and at least the one that is not over yet.
pub async fn minutes(database: &Database, minutes: i32, counted: i64) -> Result<Vec<Minute>, db::Error> {
    let mut minutes = minutes;
    loop {
        let counted = if minutes > 1 { counted } else { i64::MAX - 1 };
        let query = sqlx::query_as(statement!("inspect/minutes"))
            .bind(database.among(None))
            .bind(minutes)
            .bind(counted)
            .persistent(false);
        let told: Vec<Minute> = query.all(database).await?;
        if minutes <= 1 || !told.is_empty() {
            return Ok(told);
        }
        minutes = (minutes / 4).max(1);
    }
}

/// Is there a server that would carry out what is asked of an execution?
pub async fn is_served(database: &Database) -> Result<bool, db::Error> {
    let query = "select exists (select from stationmaster_internal.servers where lease_until > now())";
    sqlx::query_scalar(query).one(database).await
}

/// The life of an item, oldest first.
pub async fn history(database: &Database, item: ItemId) -> Result<Vec<Step>, db::Error> {
    let query = sqlx::query_as(statement!("inspect/history")).bind(item);
    query.all(database).await
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
    holders: Vec<Uuid>,
}

/// Why an item waits; `None` when it does not.
pub async fn waiting(database: &Database, item: ItemId) -> Result<Option<Waiting>, db::Error> {
    let query = sqlx::query_as(statement!("inspect/waiting")).bind(item);
    let facts: Option<Facts> = query.maybe(database).await?;
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
