//! The audit: who changed what, and when. Rows are only ever added, and forgotten after a long time.
//!
//! Changes to the catalogue and to tokens are written down by triggers, whoever makes them; what people do to the queue is
//! written here, in the transaction that does it. The ordinary way of an item is told by its own history instead.

use std::time::Duration;

use serde_json::Value;
use sqlx::PgConnection;
use stationmaster_wire::AuditEntry;

use crate::db::{self, Database, statement, within};
use crate::id::WorkspaceId;

/// Which lines; every field that is given must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// By this actor.
    pub actor: Option<String>,
    /// Of this action.
    pub action: Option<String>,
    /// About this thing.
    pub subject: Option<String>,
    /// Older than this place: where the last page ended.
    pub before: Option<i64>,
    /// How many.
    pub limit: i64,
}

/// Lines, newest first.
pub async fn list(database: &Database, filter: &Filter) -> Result<Vec<AuditEntry>, db::Error> {
    let mut session = database.session().await?;
    let query = sqlx::query_as(statement!("audit/list"))
        .bind(database.among(filter.workspace))
        .bind(&filter.actor)
        .bind(&filter.action)
        .bind(&filter.subject)
        .bind(filter.before.unwrap_or(i64::MAX))
        .bind(filter.limit)
        .persistent(false);
    let entries = within(query.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(entries)
}

/// Lines forgotten by one statement.
const BATCH: i64 = 5_000;

/// Forgets lines that are older than this, some at a time. Answers how many.
pub async fn prune(database: &Database, retention: Duration) -> Result<u64, db::Error> {
    let query = sqlx::query(statement!("audit/prune"))
        .bind(retention.as_secs_f64())
        .bind(BATCH);
    Ok(within(query.execute(database.pool())).await?.rows_affected())
}

/// Writes one line about something that was done outside of the caller's transaction.
pub async fn note(
    database: &Database,
    actor: &str,
    action: &str,
    workspace: Option<WorkspaceId>,
    subject: &str,
    detail: Value,
) -> Result<(), db::Error> {
    let mut session = database.session().await?;
    write(&mut session, actor, action, workspace, subject, detail).await?;
    session.finish().await
}

/// Writes one line, in the transaction of what it tells.
pub(crate) async fn write(
    connection: &mut PgConnection,
    actor: &str,
    action: &str,
    workspace: Option<WorkspaceId>,
    subject: &str,
    detail: Value,
) -> Result<(), db::Error> {
    let query = sqlx::query(statement!("reconcile/audit"))
        .bind(actor)
        .bind(action)
        .bind(workspace)
        .bind(subject)
        .bind(detail.to_string());
    within(query.execute(connection)).await?;
    Ok(())
}
