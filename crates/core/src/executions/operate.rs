//! What people do to the queue: cancel, retry, change priority, complete. Each leaves a line in the history with its actor.

use std::collections::BTreeMap;

use serde_json::{Value, json};
pub use stationmaster_wire::Complete;
use uuid::Uuid;

use super::busy::Tries;
use super::cancel::WishKind;
use super::finish::{End, finish_in};
use super::{EndReason, ExecutionStatus, ItemStatus};
use crate::audit;
use crate::db::{self, Database, Read as _, Write as _, statement, within};
use crate::engine::{Close, CloseStatus};
use crate::id::{ExecutionId, ItemId, WorkspaceId};
use crate::session::Session;

/// The capacity row of a workspace is held for milliseconds at a time.
const TRIES: u32 = 200;

/// Why an operation was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing with this id.
    #[error("there is no execution or queue item {0}")]
    NotFound(Uuid),
    /// It is in a state in which this cannot be done.
    #[error("{0}")]
    WrongState(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// What came of a cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// It waited; now it is cancelled.
    AtOnce,
    /// It holds a slot: the engine will be asked, and the slot is free when the run has closed.
    Requested,
    /// It had ended before, in this status.
    EndedBefore(CloseStatus),
}

/// Cancels by the id of an item or of its execution. An item shares its id with its first execution; it means the item.
pub async fn cancel(
    database: &Database,
    id: Uuid,
    reason: Option<&str>,
    actor: &str,
) -> Result<Cancelled, Error> {
    let mut session = database.transaction().await?;
    let cancelled = cancel_in(&mut session, id, reason, actor).await?;
    if !matches!(cancelled, Cancelled::EndedBefore(_)) {
        let detail = json!({ "reason": reason });
        audit(&mut session, actor, "queue.cancel", id, detail).await?;
    }
    session.finish().await?;
    Ok(cancelled)
}

/// A line in the audit about an item or execution, for its workspace.
pub(super) async fn audit(
    session: &mut Session,
    actor: &str,
    action: &str,
    id: Uuid,
    detail: Value,
) -> Result<(), db::Error> {
    let query = sqlx::query_scalar(statement!("operate/workspace_of")).bind(id);
    let workspace = within(query.fetch_optional(&mut **session)).await?;
    audit::write(session, actor, action, workspace, &id.to_string(), detail).await
}

/// Cancels in a transaction of the caller's, without a word in the audit: the wish that is carried out left one.
pub(super) async fn cancel_in(
    session: &mut Session,
    id: Uuid,
    reason: Option<&str>,
    actor: &str,
) -> Result<Cancelled, Error> {
    let query = "select coalesce(status, item_status) from stationmaster_internal.executions_finished
                 where (execution_id = $1 or (item_id = $1 and execution_id <> item_id)) and superseded_at is null limit 1";
    if let Some(status) = within(sqlx::query_scalar(query).bind(id).fetch_optional(&mut **session)).await? {
        return Ok(Cancelled::EndedBefore(status));
    }
    let query = "select stationmaster.cancel_execution($1, $2, $3)";
    let query = sqlx::query_scalar(query).bind(id).bind(reason).bind(actor);
    let answer: Result<String, _> = within(query.fetch_one(&mut **session)).await;
    match answer {
        Ok(answer) if answer == "CANCELLING" => Ok(Cancelled::Requested),
        Ok(answer) => Ok(match db::word(&answer)? {
            CloseStatus::Cancelled => Cancelled::AtOnce,
            status => Cancelled::EndedBefore(status),
        }),
        Err(error) if error.code().as_deref() == Some("P0002") => Err(Error::NotFound(id)),
        Err(error) => Err(error.into()),
    }
}

/// Puts one item that ended badly back into the queue.
pub async fn retry(database: &Database, item: ItemId, actor: &str) -> Result<(), Error> {
    if retry_some(database, &[item], actor).await? == 1 {
        return Ok(());
    }
    let query = "select status from stationmaster.workflow_execution_queue where id = $1";
    let status: Option<ItemStatus> = sqlx::query_scalar(query).bind(item).maybe(database).await?;
    match status {
        None => {
            tracing::warn!(%item, "Execution not found for retry");
            Err(Error::NotFound(item.0))
        }
        Some(ItemStatus::Dispatched) => Err(Error::WrongState(format!(
            "item {item} was dispatched and its execution has not failed: only what ended badly can be retried"
        ))),
        Some(status) => Err(Error::WrongState(format!(
            "item {item} is {status}: only what ended badly can be retried"
        ))),
    }
}

/// Puts those of these items back into the queue that ended badly. Answers how many.
pub(crate) async fn retry_some(
    database: &Database,
    items: &[ItemId],
    actor: &str,
) -> Result<usize, db::Error> {
    let attempt = || async {
        let mut session = database.transaction().await?;
        let query = sqlx::query_as::<_, (ItemId, WorkspaceId)>(statement!("operate/retry"))
            .bind(items)
            .bind(actor);
        let retried = within(query.fetch_all(&mut *session)).await?;
        audit_some(&mut session, actor, "queue.retry", &retried, json!({})).await?;
        session.finish().await?;
        Ok(retried.len())
    };
    let retried = db::despite_conflicts(attempt, db::Error::is_conflict).await?;
    if retried > 0 {
        notify(database).await?;
    }
    Ok(retried)
}

/// Cancels those of these items that wait or run. Answers how many.
pub(super) async fn cancel_some(
    database: &Database,
    items: &[ItemId],
    reason: Option<&str>,
    actor: &str,
) -> Result<usize, db::Error> {
    // A claim may take the same rows in another order, and PostgreSQL then ends one of the two.
    let attempt = || async {
        let mut session = database.transaction().await?;
        let query = sqlx::query_as::<_, (ItemId, WorkspaceId, bool)>(statement!("operate/cancel_some"))
            .bind(items)
            .bind(reason)
            .bind(actor);
        let cancelled = within(query.fetch_all(&mut *session)).await?;
        if cancelled.iter().any(|(_, _, runs)| *runs) {
            within(sqlx::query("select pg_notify('stationmaster', 'cancel')").execute(&mut *session)).await?;
        }
        let touched: Vec<(ItemId, WorkspaceId)> =
            cancelled.iter().map(|(item, of, _)| (*item, *of)).collect();
        let detail = json!({ "reason": reason });
        audit_some(&mut session, actor, "queue.cancel", &touched, detail).await?;
        session.finish().await?;
        Ok(touched.len())
    };
    db::despite_conflicts(attempt, db::Error::is_conflict).await
}

/// Gives those of these items that wait this priority. Answers how many had another one.
pub(super) async fn set_priorities(
    database: &Database,
    items: &[ItemId],
    priority: i32,
    actor: &str,
) -> Result<usize, db::Error> {
    let attempt = || async {
        let mut session = database.transaction().await?;
        let query = sqlx::query_as::<_, (ItemId, WorkspaceId)>(statement!("operate/set_priorities"))
            .bind(items)
            .bind(priority)
            .bind(actor);
        let moved = within(query.fetch_all(&mut *session)).await?;
        let detail = json!({ "priority": priority });
        audit_some(&mut session, actor, "queue.prioritise", &moved, detail).await?;
        session.finish().await?;
        Ok(moved.len())
    };
    let moved = db::despite_conflicts(attempt, db::Error::is_conflict).await?;
    if moved > 0 {
        notify(database).await?;
    }
    Ok(moved)
}

/// What was done to many items leaves one line for each workspace: the first of its items, and how many there were.
async fn audit_some(
    session: &mut Session,
    actor: &str,
    action: &str,
    touched: &[(ItemId, WorkspaceId)],
    detail: Value,
) -> Result<(), db::Error> {
    let mut workspaces: BTreeMap<WorkspaceId, Vec<ItemId>> = BTreeMap::new();
    for (item, workspace) in touched {
        workspaces.entry(*workspace).or_default().push(*item);
    }
    for (workspace, items) in workspaces {
        let mut detail = detail.clone();
        detail["items"] = items.len().into();
        let (subject, workspace) = (items[0].to_string(), Some(workspace));
        audit::write(session, actor, action, workspace, &subject, detail).await?;
    }
    Ok(())
}

/// Changes the priority of an item that waits; with `still`, only if it is this one now.
pub async fn set_priority(
    database: &Database,
    item: ItemId,
    priority: i32,
    actor: &str,
    still: Option<i32>,
) -> Result<(), Error> {
    let mut session = database.transaction().await?;
    let query = sqlx::query_scalar::<_, WorkspaceId>(statement!("operate/set_priority"))
        .bind(item)
        .bind(priority)
        .bind(actor)
        .bind(still);
    match within(query.fetch_optional(&mut *session)).await? {
        Some(workspace) => {
            let (subject, detail) = (item.to_string(), json!({ "priority": priority }));
            let workspace = Some(workspace);
            audit::write(
                &mut session,
                actor,
                "queue.prioritise",
                workspace,
                &subject,
                detail,
            )
            .await?;
            session.finish().await?;
            Ok(notify(database).await?)
        }
        None => Err(Error::WrongState(format!(
            "item {item} does not wait: its priority cannot change any more"
        ))),
    }
}

/// How an execution that holds a slot is to end.
#[derive(Debug)]
pub enum Wish {
    /// By force.
    Terminate {
        /// Why.
        reason: Option<String>,
    },
    /// As somebody says; its run is ended by force.
    Complete(Complete),
}

/// What came of a wish that an execution end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wished {
    /// It waited; now it is cancelled.
    Cancelled,
    /// A server ends its run; the slot is free when that has ended.
    Requested,
}

/// Wishes that an execution end: a server ends its run, then the slot is free. One that waits for another start has no run, and is
/// cancelled at once; it cannot be completed.
pub async fn end(
    database: &Database,
    execution: ExecutionId,
    wish: Wish,
    actor: &str,
) -> Result<Wished, Error> {
    let (action, detail) = match &wish {
        Wish::Terminate { reason } => ("execution.terminate", json!({ "reason": reason })),
        Wish::Complete(end) => ("execution.complete", json!({ "status": end.status })),
    };
    let mut session = database.transaction().await?;
    let Some(wished) = end_in(&mut session, execution, &wish, actor).await? else {
        drop(session);
        return Err(not_active(database, execution).await?);
    };
    audit(&mut session, actor, action, execution.0, detail).await?;
    session.finish().await?;
    Ok(wished)
}

/// `None`: it is in no state for it.
async fn end_in(
    session: &mut Session,
    execution: ExecutionId,
    wish: &Wish,
    actor: &str,
) -> Result<Option<Wished>, Error> {
    let (kind, reason, end) = match wish {
        Wish::Terminate { reason } => (WishKind::Terminate, reason.as_deref(), None),
        Wish::Complete(end) => (WishKind::Complete, None, Some(end)),
    };
    let query = sqlx::query(statement!("operate/wish"))
        .bind(execution)
        .bind(kind)
        .bind(actor)
        .bind(reason)
        .bind(end.map(|end| end.status))
        .bind(end.and_then(|end| Some(end.output.as_ref()?.get())))
        .bind(end.and_then(|end| Some(end.error.as_ref()?.get())));
    if within(query.fetch_optional(&mut **session)).await?.is_some() {
        return Ok(Some(Wished::Requested));
    }
    if kind == WishKind::Complete {
        return Ok(None);
    }
    match cancel_in(session, execution.0, reason, actor).await {
        Ok(Cancelled::AtOnce) => Ok(Some(Wished::Cancelled)),
        // Between the two looks it was claimed: the wish was to cancel, which it will be.
        Ok(Cancelled::Requested) => Ok(Some(Wished::Requested)),
        Ok(Cancelled::EndedBefore(_)) | Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Ends an active execution by somebody's word and frees its slot at once. Its run is not ended first: the reconciler finds it open, and
/// ends it.
pub async fn complete(
    database: &Database,
    execution: ExecutionId,
    completion: Complete,
    actor: &str,
) -> Result<(), Error> {
    let close = Close {
        execution_id: execution,
        token: None,
        holder: None,
        run_id: None,
        closed_at: None,
        output_omitted: None,
        status: completion.status,
        output: completion.output,
        error: completion.error,
    };
    let mut end = End {
        reason: Some(EndReason::CompletedByRequest),
        ..End::of(close)
    };
    let mut tries = Tries::new(TRIES);
    while complete_once(database, &mut end, actor).await?.is_none() {
        if !tries.again().await {
            return Err(Error::WrongState(format!(
                "the workspace of execution {execution} is locked by somebody's open transaction; try again later"
            )));
        }
    }
    Ok(())
}

/// One try. `None`: the workspace is in other hands, or the end has to be written in another way.
async fn complete_once(database: &Database, end: &mut End, actor: &str) -> Result<Option<()>, Error> {
    let execution = end.execution_id;
    let mut session = database.transaction().await?;
    let written = match finish_in(&mut session, end, actor).await? {
        Ok(written) => written,
        Err(storable) => {
            *end = storable;
            return Ok(None);
        }
    };
    if written.done.is_empty() {
        drop(session);
        return if written.busy.is_empty() {
            Err(not_active(database, execution).await?)
        } else {
            Ok(None)
        };
    }
    let detail = json!({ "status": end.status });
    audit(&mut session, actor, "execution.complete", execution.0, detail).await?;
    session.finish().await?;
    notify(database).await?;
    Ok(Some(()))
}

async fn not_active(database: &Database, execution: ExecutionId) -> Result<Error, db::Error> {
    let query = "select status from stationmaster.workflow_executions where id = $1";
    let status: Option<ExecutionStatus> = sqlx::query_scalar(query).bind(execution).maybe(database).await?;
    Ok(match status {
        None => Error::NotFound(execution.0),
        Some(status) => Error::WrongState(format!(
            "execution {execution} is {status}: only what holds a slot can be ended"
        )),
    })
}

/// After the commit, from one place: slots or items have become free.
pub(super) async fn notify(database: &Database) -> Result<(), db::Error> {
    let ring = sqlx::query("select pg_notify('stationmaster', 'queue')");
    ring.run(&database.own()).await?;
    Ok(())
}
