//! Lists for many rows: newest first, by filters, a page at a time, with bounded work for each page.
//!
//! A page is made in two steps ([`crate::pages`]): candidates by what an index can tell (workspace, status, time), then their
//! rows, filtered by what no index tells (definition, text). New rows have higher ids and never move what follows; a row keeps
//! its id through all its states, so nothing is missed or repeated.

use jiff::Timestamp;
use sqlx::postgres::PgRow;
use stationmaster_wire::{Execution, QueueItem};
use uuid::Uuid;

use super::{ExecutionStatus, ItemStatus};
use crate::db::{self, Database, statement, within};
use crate::id::{DefinitionId, WorkspaceId};
pub use crate::pages::{Page, WINDOW};
use crate::pages::{Window, like};
use crate::session::Session;

/// Which rows; every field that is given must match.
#[derive(Debug, Clone)]
pub struct Filter<Status> {
    /// Of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// Of this definition.
    pub definition: Option<DefinitionId>,
    /// In this status.
    pub status: Option<Status>,
    /// Items: enqueued at or after. Executions: ended at or after.
    pub after: Option<Timestamp>,
    /// Items: enqueued before. Executions: ended before.
    pub before: Option<Timestamp>,
    /// With this text in the input or in the last error.
    pub text: Option<String>,
    /// Executions that ended badly, asked for by their status: those too that a retry has followed.
    pub superseded: bool,
    /// Older than this id: where the last page ended.
    pub below: Option<Uuid>,
    /// How many.
    pub limit: usize,
}

impl<Status> Default for Filter<Status> {
    fn default() -> Self {
        Self {
            workspace: None,
            definition: None,
            status: None,
            after: None,
            before: None,
            text: None,
            superseded: false,
            below: None,
            limit: 0,
        }
    }
}

impl<Status: Copy + Into<&'static str>> Filter<Status> {
    fn in_status(&self, status: Status) -> Self {
        Self {
            status: Some(status),
            ..self.clone()
        }
    }

    fn status(&self) -> Option<&'static str> {
        self.status.map(Into::into)
    }

    /// Does an index tell everything, so that every candidate is on the page?
    fn is_plain(&self) -> bool {
        self.definition.is_none()
            && self.text.is_none()
            && self.status() != Some(ItemStatus::Dispatched.as_str())
    }

    fn window(&self) -> Window {
        Window::new(self.limit, self.is_plain())
    }

    /// The text as a pattern that means itself.
    fn pattern(&self) -> Option<String> {
        self.text.as_deref().map(like)
    }
}

/// Items, newest first.
pub async fn items(database: &Database, filter: &Filter<ItemStatus>) -> Result<Page<QueueItem>, db::Error> {
    let mut session = database.session().await?;
    let statement = statement!("browse/item_candidates");
    let ids = candidates(database, &mut session, statement, filter, None).await?;
    let rows = rows(&mut session, statement!("browse/items"), &ids, filter).await?;
    session.finish().await?;
    Ok(filter.window().page(rows, |item: &QueueItem| item.id, &ids))
}

/// Executions, newest first.
pub async fn executions(
    database: &Database,
    filter: &Filter<ExecutionStatus>,
) -> Result<Page<Execution>, db::Error> {
    let mut session = database.session().await?;
    let statement = statement!("browse/execution_candidates");
    let superseded = Some(filter.superseded);
    let ids = candidates(database, &mut session, statement, filter, superseded).await?;
    let rows = rows(&mut session, statement!("browse/executions"), &ids, filter).await?;
    session.finish().await?;
    Ok(filter
        .window()
        .page(rows, |execution: &Execution| execution.id, &ids))
}

/// Items in one of these statuses, newest first; in any, when none is named.
pub async fn items_in(
    database: &Database,
    filter: &Filter<ItemStatus>,
    statuses: &[ItemStatus],
) -> Result<Page<QueueItem>, db::Error> {
    if statuses.is_empty() {
        return items(database, filter).await;
    }
    let mut pages = Vec::new();
    for status in statuses {
        pages.push(items(database, &filter.in_status(*status)).await?);
    }
    Ok(Page::merged(pages, filter.limit, |item| item.id))
}

/// Executions in one of these statuses, newest first; in any, when none is named.
pub async fn executions_in(
    database: &Database,
    filter: &Filter<ExecutionStatus>,
    statuses: &[ExecutionStatus],
) -> Result<Page<Execution>, db::Error> {
    if statuses.is_empty() {
        return executions(database, filter).await;
    }
    let mut pages = Vec::new();
    for status in statuses {
        pages.push(executions(database, &filter.in_status(*status)).await?);
    }
    Ok(Page::merged(pages, filter.limit, |execution| execution.id))
}

/// What a statement of rows gives.
pub(super) trait Row: for<'r> sqlx::FromRow<'r, PgRow> + Send + Unpin {}

impl<T: for<'r> sqlx::FromRow<'r, PgRow> + Send + Unpin> Row for T {}

/// The candidates that match, one more than a page holds.
pub(super) async fn rows<R: Row, Status: Copy + Into<&'static str>>(
    session: &mut Session,
    statement: &'static str,
    candidates: &[Uuid],
    filter: &Filter<Status>,
) -> Result<Vec<R>, db::Error> {
    let query = sqlx::query_as(statement)
        .bind(candidates)
        .bind(filter.definition)
        .bind(filter.status())
        .bind(filter.pattern())
        .bind(filter.window().rows())
        .persistent(false);
    within(query.fetch_all(&mut **session)).await
}

async fn candidates<Status: Copy + Into<&'static str>>(
    database: &Database,
    session: &mut Session,
    statement: &'static str,
    filter: &Filter<Status>,
    superseded: Option<bool>,
) -> Result<Vec<Uuid>, db::Error> {
    let mut query = sqlx::query_scalar(statement)
        .bind(database.among(filter.workspace))
        .bind(filter.status())
        .bind(filter.after.map(jiff_sqlx::Timestamp::from))
        .bind(filter.before.map(jiff_sqlx::Timestamp::from))
        .bind(filter.below.unwrap_or(Uuid::max()))
        .bind(filter.window().candidates())
        .persistent(false);
    if let Some(superseded) = superseded {
        query = query.bind(superseded);
    }
    within(query.fetch_all(&mut **session)).await
}
