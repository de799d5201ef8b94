//! Finish: the end of executions, whoever says so, in batches. Frees the slots in the same statement.

use std::collections::HashSet;

use super::{EndReason, ItemStatus};
use crate::db::{self, Database, column, statement, within};
use crate::engine::{Close, CloseStatus};
use crate::id::{ExecutionId, Token, WorkspaceId};

/// The classes of errors that tell of a value which PostgreSQL cannot hold.
const UNREPRESENTABLE: [&str; 2] = ["22", "54"];

/// One end.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) execution_id: ExecutionId,
    /// Only under this claim; `None`: whoever holds it.
    pub(crate) token: Option<Token>,
    /// Whose slot it holds, where that is known: it need not be looked up then.
    pub(crate) workspace_id: Option<WorkspaceId>,
    pub(crate) item_status: ItemStatus,
    pub(crate) status: CloseStatus,
    pub(crate) reason: Option<EndReason>,
    pub(crate) last_error: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) attempts: i32,
    pub(crate) run_id: Option<String>,
}

impl End {
    /// The end of a run, as the engine told it.
    pub(crate) fn of(close: Close) -> Self {
        Self {
            execution_id: close.execution_id,
            token: close.token,
            workspace_id: None,
            item_status: ItemStatus::Dispatched,
            status: close.status,
            reason: None,
            last_error: None,
            error: close.error.map(|error| error.get().to_owned()),
            output: close.output.map(|output| output.get().to_owned()),
            attempts: 0,
            run_id: None,
        }
    }

    /// A failure by our own word, of an execution that was not started.
    pub(crate) fn failed(execution_id: ExecutionId, reason: EndReason, message: &str) -> Self {
        let close = Close {
            execution_id,
            token: None,
            status: CloseStatus::Failed,
            output: None,
            error: None,
        };
        Self {
            item_status: ItemStatus::Failed,
            reason: Some(reason),
            last_error: Some(message.replace('\0', "")),
            error: Some(serde_json::json!({ "message": message, "reason": reason }).to_string()),
            ..Self::of(close)
        }
    }
}

/// What became of a batch. What is in neither set was not active under the token named.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Written.
    pub(crate) done: HashSet<ExecutionId>,
    /// The workspace's capacity was in other hands: try again in a moment.
    pub(crate) busy: HashSet<ExecutionId>,
}

impl Written {
    pub(super) fn extend(&mut self, other: Self) {
        self.done.extend(other.done);
        self.busy.extend(other.busy);
    }
}

/// From the answer of a statement: which, and whether it was written.
impl FromIterator<(ExecutionId, bool)> for Written {
    fn from_iter<I: IntoIterator<Item = (ExecutionId, bool)>>(rows: I) -> Self {
        let mut written = Self::default();
        for (execution, is_done) in rows {
            let set = if is_done {
                &mut written.done
            } else {
                &mut written.busy
            };
            set.insert(execution);
        }
        written
    }
}

/// Ends executions.
pub(crate) async fn finish(
    database: &Database,
    ends: &[End],
    by: &str,
    floor: f64,
) -> Result<Written, db::Error> {
    match write(database, ends, by, floor).await {
        // A value that PostgreSQL cannot hold (\u0000 in a JSON string, a number beyond numeric) must not keep the
        // others of its batch from ending: halve until it stands alone, then say so instead of storing it.
        Err(error) if error.is_of(&UNREPRESENTABLE) => {
            if let [end] = ends {
                return write(database, &[without_values(end, &error)], by, floor).await;
            }
            let (left, right) = ends.split_at(ends.len() / 2);
            let mut written = Box::pin(finish(database, left, by, floor)).await?;
            written.extend(Box::pin(finish(database, right, by, floor)).await?);
            Ok(written)
        }
        other => other,
    }
}

fn without_values(end: &End, error: &db::Error) -> End {
    let note = serde_json::json!({
        "message": format!("the engine's answer could not be stored: {}", error.message()),
    });
    End {
        output: None,
        error: Some(note.to_string()),
        last_error: end.last_error.as_ref().map(|text| text.replace('\0', "")),
        ..end.clone()
    }
}

async fn write(database: &Database, ends: &[End], by: &str, floor: f64) -> Result<Written, db::Error> {
    let mut session = database.session().await?;
    let written = write_in(&mut session, ends, by, floor).await?;
    session.finish().await?;
    Ok(written)
}

/// Ends one execution in a transaction that goes on to do more. A value that cannot be stored breaks that transaction: the answer
/// is then the end to try in another one.
pub(crate) async fn finish_in(
    connection: &mut sqlx::PgConnection,
    end: &End,
    by: &str,
) -> Result<Result<Written, End>, db::Error> {
    match write_in(connection, std::slice::from_ref(end), by, 0.0).await {
        Err(error) if error.is_of(&UNREPRESENTABLE) => Ok(Err(without_values(end, &error))),
        other => other.map(Ok),
    }
}

async fn write_in(
    connection: &mut sqlx::PgConnection,
    ends: &[End],
    by: &str,
    floor: f64,
) -> Result<Written, db::Error> {
    // Under one token, and only then, a set of tokens is as exact as pairs.
    let token = ends.first().and_then(|end| end.token);
    let is_one_claim = token.is_some() && ends.iter().all(|end| end.token == token);
    let workspaces: Option<Vec<WorkspaceId>> = ends
        .iter()
        .map(|end| end.workspace_id.filter(|_| is_one_claim))
        .collect();
    let rows: Vec<(ExecutionId, bool)> = within(
        sqlx::query_as(statement!("executions/finish"))
            .bind(column(ends, |end| end.execution_id))
            .bind(column(ends, |end| end.token))
            .bind(column(ends, |end| end.item_status))
            .bind(column(ends, |end| end.status))
            .bind(column(ends, |end| end.reason))
            .bind(column(ends, |end| end.last_error.as_deref()))
            .bind(column(ends, |end| end.error.as_deref()))
            .bind(column(ends, |end| end.output.as_deref()))
            .bind(column(ends, |end| end.attempts))
            .bind(column(ends, |end| end.run_id.as_deref()))
            .bind(by)
            .bind(floor)
            .bind(workspaces)
            .fetch_all(connection),
    )
    .await?;
    Ok(rows.into_iter().collect())
}
