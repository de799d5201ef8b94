//! Lists for many rows: newest or oldest first, or as they stand in line, by filters, a page at a time, with bounded work for each page; and how
//! many there are in each status, counted up to a bound.
//!
//! A page is made in two steps ([`crate::pages`]): candidates by what an index can tell (workspace, status, time), then their
//! rows, filtered by what no index tells (definition, text). New rows have higher ids and never move what follows; a row keeps
//! its id through all its states, so nothing is missed or repeated.

use jiff::Timestamp;
use sqlx::postgres::PgRow;
use stationmaster_wire::{Execution, ExecutionCount, ItemCount, Order, QueueItem};
use uuid::Uuid;

use super::{ExecutionStatus, ItemStatus};
use crate::db::{self, Database, Read as _, statement, within};
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
    /// Which come first.
    pub order: Order,
    /// Beyond this id in that order: where the last page ended.
    pub beyond: Option<Uuid>,
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
            order: Order::Newest,
            beyond: None,
            limit: 0,
        }
    }
}

impl<Status: Copy + Into<&'static str>> Filter<Status> {
    /// One for each workspace in each status, of those that are named.
    fn each(&self, workspaces: &[WorkspaceId], statuses: &[Status]) -> Vec<Self> {
        let none = (
            workspaces.is_empty().then_some(self.workspace),
            statuses.is_empty().then_some(self.status),
        );
        let workspaces: Vec<_> = workspaces.iter().map(|one| Some(*one)).chain(none.0).collect();
        let statuses: Vec<_> = statuses.iter().map(|one| Some(*one)).chain(none.1).collect();
        let with = |workspace: &Option<WorkspaceId>, status: &Option<Status>| Self {
            workspace: *workspace,
            status: *status,
            ..self.clone()
        };
        let of = |workspace| {
            statuses
                .iter()
                .map(move |status| with(workspace, status))
                .collect::<Vec<_>>()
        };
        workspaces.iter().flat_map(of).collect()
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

/// Items, newest first or as the filter wants them.
pub async fn items(database: &Database, filter: &Filter<ItemStatus>) -> Result<Page<QueueItem>, db::Error> {
    let mut session = database.session().await?;
    let statement = match filter.order {
        Order::Newest => statement!("browse/item_candidates"),
        Order::Oldest => statement!("browse/item_candidates_oldest"),
    };
    let ids = candidates(database, &mut session, statement, filter, None).await?;
    let rows = rows(&mut session, statement!("browse/items"), &ids, filter).await?;
    session.finish().await?;
    Ok(filter.window().page(rows, |item: &QueueItem| item.id, &ids))
}

/// Executions, newest first or as the filter wants them.
pub async fn executions(
    database: &Database,
    filter: &Filter<ExecutionStatus>,
) -> Result<Page<Execution>, db::Error> {
    let mut session = database.session().await?;
    let statement = match filter.order {
        Order::Newest => statement!("browse/execution_candidates"),
        Order::Oldest => statement!("browse/execution_candidates_oldest"),
    };
    let superseded = Some(filter.superseded);
    let ids = candidates(database, &mut session, statement, filter, superseded).await?;
    let rows = rows(&mut session, statement!("browse/executions"), &ids, filter).await?;
    session.finish().await?;
    Ok(filter
        .window()
        .page(rows, |execution: &Execution| execution.id, &ids))
}

/// Items of these workspaces in one of these statuses; of any and in any, when none is named.
pub async fn items_in(
    database: &Database,
    filter: &Filter<ItemStatus>,
    workspaces: &[WorkspaceId],
    statuses: &[ItemStatus],
) -> Result<Page<QueueItem>, db::Error> {
    let filters = filter.each(workspaces, statuses);
    if let [one] = &filters[..] {
        return items(database, one).await;
    }
    let mut pages = Vec::new();
    for filter in filters {
        pages.push(items(database, &filter).await?);
    }
    Ok(Page::merged(pages, filter.limit, filter.order, |item| item.id))
}

/// Executions of these workspaces in one of these statuses; of any and in any, when none is named.
pub async fn executions_in(
    database: &Database,
    filter: &Filter<ExecutionStatus>,
    workspaces: &[WorkspaceId],
    statuses: &[ExecutionStatus],
) -> Result<Page<Execution>, db::Error> {
    let filters = filter.each(workspaces, statuses);
    if let [one] = &filters[..] {
        return executions(database, one).await;
    }
    let mut pages = Vec::new();
    for filter in filters {
        pages.push(executions(database, &filter).await?);
    }
    Ok(Page::merged(pages, filter.limit, filter.order, |execution| {
        execution.id
    }))
}

/// Where an item stands in the line of its workspace: by priority, then by age.
pub type PlaceInLine = (i64, i64);

/// Before everybody.
const FIRST: PlaceInLine = (i64::MIN, i64::MIN);

/// What is ready in a workspace, in the order in which it goes; from behind this place on.
pub async fn in_line(
    database: &Database,
    workspace: WorkspaceId,
    filter: &Filter<ItemStatus>,
    behind: Option<PlaceInLine>,
) -> Result<Page<QueueItem, PlaceInLine>, db::Error> {
    let mut session = database.session().await?;
    let (rank, seq) = behind.unwrap_or(FIRST);
    let query = sqlx::query_as(statement!("browse/items_in_line"))
        .bind(workspace)
        .bind(filter.after.map(jiff_sqlx::Timestamp::from))
        .bind(filter.before.map(jiff_sqlx::Timestamp::from))
        .bind(rank)
        .bind(seq)
        .bind(filter.window().candidates())
        .persistent(false);
    let line: Vec<(Uuid, i64, i64)> = within(query.fetch_all(&mut *session)).await?;
    let ids: Vec<Uuid> = line.iter().map(|(id, ..)| *id).collect();
    let rows = rows(&mut session, statement!("browse/items"), &ids, filter).await?;
    session.finish().await?;
    let Page { rows, next } = filter.window().page(rows, |item: &QueueItem| item.id, &ids);
    let next = line.into_iter().find(|(id, ..)| Some(*id) == next);
    Ok(Page {
        rows,
        next: next.map(|(_, rank, seq)| (rank, seq)),
    })
}

/// Rows of one kind that are counted at most.
const COUNTED: i64 = 10_000;
/// Of what ended well fewer: nobody asks whether it was a thousand or ten, and pages ask every two seconds.
const COUNTED_OF_THE_GOOD: i64 = 1_000;

/// How many items there are in each status.
pub async fn count_items(
    database: &Database,
    filter: &Filter<ItemStatus>,
    workspaces: &[WorkspaceId],
) -> Result<Vec<ItemCount>, db::Error> {
    count(database, statement!("browse/item_counts"), filter, workspaces).await
}

/// How many executions there are in each status; of those that ended badly, what no retry has followed.
pub async fn count_executions(
    database: &Database,
    filter: &Filter<ExecutionStatus>,
    workspaces: &[WorkspaceId],
) -> Result<Vec<ExecutionCount>, db::Error> {
    count(
        database,
        statement!("browse/execution_counts"),
        filter,
        workspaces,
    )
    .await
}

async fn count<R: Row, Status>(
    database: &Database,
    statement: &'static str,
    filter: &Filter<Status>,
    workspaces: &[WorkspaceId],
) -> Result<Vec<R>, db::Error> {
    let among = if workspaces.is_empty() {
        database.among(None)
    } else {
        let mine = workspaces.iter().filter_map(|one| database.among(Some(*one)));
        Some(mine.flatten().collect())
    };
    let query = sqlx::query_as(statement)
        .bind(among)
        .bind(filter.definition)
        .bind(filter.after.map(jiff_sqlx::Timestamp::from))
        .bind(filter.before.map(jiff_sqlx::Timestamp::from))
        .bind(COUNTED)
        .bind(COUNTED_OF_THE_GOOD)
        .persistent(false);
    query.all(database).await
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
        .bind(filter.beyond.unwrap_or(match filter.order {
            Order::Newest => Uuid::max(),
            Order::Oldest => Uuid::nil(),
        }))
        .bind(filter.window().candidates())
        .persistent(false);
    if let Some(superseded) = superseded {
        query = query.bind(superseded);
    }
    within(query.fetch_all(&mut **session)).await
}
