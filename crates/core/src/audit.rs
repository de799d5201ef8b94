//! The audit: who changed what, and when. Rows are only ever added, and forgotten after a long time.
//!
//! Changes to the catalogue and to tokens are written down by triggers, whoever makes them; what people do to the queue is
//! written here, in the transaction that does it. The ordinary way of an item is told by its own history instead.

use std::time::Duration;

use serde_json::Value;
use sqlx::PgConnection;
pub use stationmaster_wire::{AuditEntry, AuditQuery};

use crate::db::{self, Database, Write as _, statement, within};
use crate::id::WorkspaceId;
use crate::pages::{Page, Window};

/// Lines that match, of the workspace that the query names; newest first, below a place.
pub async fn list(
    database: &Database,
    query: &AuditQuery,
    workspace: Option<WorkspaceId>,
    before: Option<i64>,
    limit: usize,
) -> Result<Page<AuditEntry, i64>, db::Error> {
    let plain = query.actor.is_none() && query.action.is_none() && query.subject.is_none();
    let window = Window::new(limit, plain);
    let mut session = database.session().await?;
    let candidates = sqlx::query_scalar(statement!("audit/candidates"))
        .bind(database.among(workspace))
        .bind(before.unwrap_or(i64::MAX))
        .bind(window.candidates())
        .bind(query.after.map(jiff_sqlx::Timestamp::from))
        .bind(query.before.map(jiff_sqlx::Timestamp::from))
        .persistent(false);
    let candidates: Vec<i64> = within(candidates.fetch_all(&mut *session)).await?;
    let rows = sqlx::query_as(statement!("audit/list"))
        .bind(&candidates)
        .bind(&query.actor)
        .bind(&query.action)
        .bind(&query.subject)
        .bind(window.rows())
        .persistent(false);
    let rows = within(rows.fetch_all(&mut *session)).await?;
    session.finish().await?;
    Ok(window.page(rows, |entry: &AuditEntry| entry.id, &candidates))
}

/// Lines forgotten by one statement.
const BATCH: i64 = 5_000;

/// Forgets lines that are older than this, some at a time. Answers how many.
pub async fn prune(database: &Database, retention: Duration) -> Result<u64, db::Error> {
    let query = sqlx::query(statement!("audit/prune"))
        .bind(retention.as_secs_f64())
        .bind(BATCH);
    query.run(&database.own()).await
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
