//! Lists for many rows: newest first, by filters, a page at a time, with bounded work for each page.
//!
//! A page is made in two steps: candidates by what an index can tell (workspace, status, time), then their rows, filtered by
//! what no index tells (definition, text). At most [`WINDOW`] candidates are looked at for a page, so a page may hold fewer
//! rows than asked for and still not be the last: where the next one begins is told. New rows have higher ids and never
//! move what follows; a row keeps its id through all its states, so nothing is missed or repeated.

use jiff::Timestamp;
use sqlx::postgres::PgRow;
use stationmaster_wire::{Execution, QueueItem};
use uuid::Uuid;

use super::{ExecutionStatus, ItemStatus};
use crate::db::{self, Database, statement, within};
use crate::id::{DefinitionId, WorkspaceId};
use crate::session::Session;

/// The most candidates that are looked at for one page.
pub const WINDOW: i64 = 5_000;

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
    /// Older than this id: where the last page ended.
    pub below: Option<Uuid>,
    /// How many.
    pub limit: usize,
}

/// A page, and where the next one begins.
#[derive(Debug, Clone)]
pub struct Page<T> {
    /// The rows, newest first.
    pub rows: Vec<T>,
    /// What to give as `below` for more; none: this was all.
    pub next: Option<Uuid>,
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
            below: None,
            limit: 0,
        }
    }
}

impl<Status: Copy + Into<&'static str>> Filter<Status> {
    fn status(&self) -> Option<&'static str> {
        self.status.map(Into::into)
    }

    /// Does an index tell everything, so that every candidate is on the page?
    fn is_plain(&self) -> bool {
        self.definition.is_none()
            && self.text.is_none()
            && self.status() != Some(ItemStatus::Dispatched.as_str())
    }

    fn window(&self) -> i64 {
        let limit = i64::try_from(self.limit).unwrap_or(WINDOW);
        if self.is_plain() { limit + 1 } else { WINDOW }
    }

    /// The text as a pattern that means itself.
    fn pattern(&self) -> Option<String> {
        let escape = |text: &String| {
            let text = text.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
            format!("%{text}%")
        };
        self.text.as_ref().map(escape)
    }
}

/// Items, newest first.
pub async fn items(database: &Database, filter: &Filter<ItemStatus>) -> Result<Page<QueueItem>, db::Error> {
    let mut session = database.session().await?;
    let statement = statement!("browse/item_candidates");
    let ids = candidates(database, &mut session, statement, filter).await?;
    let rows = rows(&mut session, statement!("browse/items"), &ids, filter).await?;
    session.finish().await?;
    Ok(page(rows, |item: &QueueItem| item.id, &ids, filter))
}

/// Executions, newest first.
pub async fn executions(
    database: &Database,
    filter: &Filter<ExecutionStatus>,
) -> Result<Page<Execution>, db::Error> {
    let mut session = database.session().await?;
    let statement = statement!("browse/execution_candidates");
    let ids = candidates(database, &mut session, statement, filter).await?;
    let rows = rows(&mut session, statement!("browse/executions"), &ids, filter).await?;
    session.finish().await?;
    Ok(page(rows, |execution: &Execution| execution.id, &ids, filter))
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
        .bind(i64::try_from(filter.limit).unwrap_or(WINDOW) + 1)
        .persistent(false);
    within(query.fetch_all(&mut **session)).await
}

async fn candidates<Status: Copy + Into<&'static str>>(
    database: &Database,
    session: &mut Session,
    statement: &'static str,
    filter: &Filter<Status>,
) -> Result<Vec<Uuid>, db::Error> {
    let query = sqlx::query_scalar(statement)
        .bind(database.among(filter.workspace))
        .bind(filter.status())
        .bind(filter.after.map(jiff_sqlx::Timestamp::from))
        .bind(filter.before.map(jiff_sqlx::Timestamp::from))
        .bind(filter.below.unwrap_or(Uuid::max()))
        .bind(filter.window())
        .persistent(false);
    within(query.fetch_all(&mut **session)).await
}

fn page<T, Status: Copy + Into<&'static str>>(
    mut rows: Vec<T>,
    id: impl Fn(&T) -> Uuid,
    candidates: &[Uuid],
    filter: &Filter<Status>,
) -> Page<T> {
    if rows.len() > filter.limit {
        rows.truncate(filter.limit);
        let next = rows.last().map(&id);
        return Page { rows, next };
    }
    // A full window may have more behind it. With a plain filter the one beyond the page is only a sign that there is more.
    let full = i64::try_from(candidates.len()).is_ok_and(|count| count >= filter.window());
    let last = if filter.is_plain() {
        candidates.get(filter.limit.saturating_sub(1))
    } else {
        candidates.last()
    };
    let next = last.copied().filter(|_| full);
    if let Some(next) = next {
        rows.retain(|row| id(row) >= next);
    }
    Page { rows, next }
}
