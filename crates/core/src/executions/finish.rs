//! Finish: the end of executions, whoever says so, in batches. Frees the slots in the same statement.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::busy::Tries;
use super::{EndReason, ItemStatus};
use crate::db::{self, ABOUT_A_ROW, Database, column, statement, within};
use crate::engine::{Close, CloseStatus, OmittedOutput};
use crate::id::{EngineId, ExecutionId, ItemId, ServerId, Token, WorkspaceId};

/// The classes of errors that tell of a value which PostgreSQL cannot hold.
const UNREPRESENTABLE: [&str; 2] = ["22", "54"];

/// A capacity row that is in other hands for longer than this many looks is left to the next round.
const TRIES: u32 = 100;

/// One end.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) execution_id: ExecutionId,
    /// Only under this claim; `None`: whoever holds it.
    pub(crate) token: Option<Token>,
    /// Only in the hands of this server; `None`: whoever holds it.
    pub(crate) holder: Option<ServerId>,
    /// Whose slot it holds, where that is known: it need not be looked up then.
    pub(crate) workspace_id: Option<WorkspaceId>,
    pub(crate) item_status: ItemStatus,
    pub(crate) status: CloseStatus,
    pub(crate) reason: Option<EndReason>,
    pub(crate) last_error: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) output: Option<String>,
    /// The output was too large and stayed with the engine.
    pub(crate) output_omitted: Option<OmittedOutput>,
    pub(crate) attempts: i32,
    pub(crate) run_id: Option<String>,
    /// When its run closed, by the engine's clock.
    pub(crate) closed_at: Option<Timestamp>,
    /// The engine that says so: its word holds for what runs on it. `None`: it was not an engine.
    pub(crate) told_by: Option<EngineId>,
}

impl End {
    /// The end of a run, as the engine told it.
    pub(crate) fn of(close: Close) -> Self {
        Self {
            execution_id: close.execution_id,
            token: close.token,
            holder: close.holder,
            workspace_id: None,
            item_status: ItemStatus::Dispatched,
            status: close.status,
            reason: None,
            last_error: None,
            error: close.error.map(|error| error.get().to_owned()),
            output: close.output.map(|output| output.get().to_owned()),
            output_omitted: close.output_omitted,
            attempts: 0,
            run_id: close.run_id,
            closed_at: close.closed_at,
            told_by: None,
        }
    }

    /// What is known of an output that stayed with the engine, as JSON.
    pub(super) fn omitted(&self) -> Option<String> {
        serde_json::to_string(self.output_omitted.as_ref()?).ok()
    }

    /// A failure by our own word, of an execution that was not started.
    pub(crate) fn failed(execution_id: ExecutionId, reason: EndReason, message: &str) -> Self {
        let close = Close {
            execution_id,
            token: None,
            holder: None,
            run_id: None,
            closed_at: None,
            output_omitted: None,
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
    /// Not now, and to be tried again in a moment: mostly the workspace's capacity was in other hands.
    pub(crate) busy: HashSet<ExecutionId>,
    /// Why one of the busy could not be written though nothing else was in its batch.
    pub(crate) trouble: Option<db::Error>,
}

impl Written {
    pub(super) fn extend(&mut self, other: Self) {
        self.done.extend(other.done);
        self.busy.extend(other.busy);
        self.trouble = self.trouble.take().or(other.trouble);
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
    let mut written = Written::default();
    for round in rounds(ends) {
        written.extend(write_or_halve(database, &round, by, floor).await?);
    }
    Ok(written)
}

/// Ends executions whose engine is not used any more. Answers how many.
pub(crate) async fn end_lost(
    database: &Database,
    executions: &[ExecutionId],
    by: &str,
) -> Result<u64, db::Error> {
    let message =
        "the engine that it was given to is not used any more; retry it to run it on the one that is";
    let lost = |id: &ExecutionId| End {
        item_status: ItemStatus::Dispatched,
        ..End::failed(*id, EndReason::EngineLost, message)
    };
    let mut ends: Vec<End> = executions.iter().map(lost).collect();
    let (mut done, mut tries) = (0, Tries::new(TRIES));
    loop {
        let written = finish(database, &ends, by, 0.0).await?;
        done += written.done.len() as u64;
        if let Some(trouble) = written.trouble {
            return Err(trouble);
        }
        ends.retain(|end| written.busy.contains(&end.execution_id));
        if ends.is_empty() || !tries.again().await {
            return Ok(done);
        }
    }
}

/// One execution can end under two claims: its server was cut off, claimed it again, and brings both ends at once. One statement
/// ends an execution once, so what is told of it later goes into a later one.
fn rounds(ends: &[End]) -> Vec<Cow<'_, [End]>> {
    let mut told = HashMap::with_capacity(ends.len());
    let nth: Vec<usize> = ends
        .iter()
        .map(|end| {
            let times = told.entry(end.execution_id).or_insert(0);
            *times += 1;
            *times - 1
        })
        .collect();
    match nth.iter().max() {
        None => Vec::new(),
        Some(0) => vec![Cow::Borrowed(ends)],
        Some(&last) => (0..=last)
            .map(|round| {
                let of_round = ends.iter().zip(&nth).filter(|(_, nth)| **nth == round);
                Cow::Owned(of_round.map(|(end, _)| end.clone()).collect())
            })
            .collect(),
    }
}

/// Something that PostgreSQL will not take (\u0000 in a JSON string, a number beyond numeric, whatever a constraint forbids) must
/// not keep the others of its batch from ending: halve until it stands alone, then say so instead of storing it.
async fn write_or_halve(
    database: &Database,
    ends: &[End],
    by: &str,
    floor: f64,
) -> Result<Written, db::Error> {
    match (write(database, ends, by, floor).await, ends) {
        (Err(error), [end]) if error.is_of(&UNREPRESENTABLE) => {
            write(database, &[without_values(end, &error)], by, floor).await
        }
        (Err(error), [end]) if error.is_of(&ABOUT_A_ROW) => Ok(Written {
            busy: HashSet::from([end.execution_id]),
            trouble: Some(error),
            ..Written::default()
        }),
        (Err(error), _) if error.is_of(&ABOUT_A_ROW) => {
            let (left, right) = ends.split_at(ends.len() / 2);
            let mut written = Box::pin(write_or_halve(database, left, by, floor)).await?;
            written.extend(Box::pin(write_or_halve(database, right, by, floor)).await?);
            Ok(written)
        }
        (other, _) => other,
    }
}

fn without_values(end: &End, error: &db::Error) -> End {
    let note = serde_json::json!({
        "message": format!("the engine's answer could not be stored: {}", error.message()),
    });
    End {
        output: None,
        output_omitted: None,
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

/// The same for one that waits in the queue and holds no slot. Answers its item and workspace; nothing: it does not wait.
pub(crate) async fn finish_waiting_in(
    connection: &mut sqlx::PgConnection,
    end: &End,
    by: &str,
) -> Result<Result<Option<(ItemId, WorkspaceId)>, End>, db::Error> {
    let query = sqlx::query_as(statement!("cancel/complete_waiting"))
        .bind(end.execution_id)
        .bind(end.status)
        .bind(end.reason)
        .bind(end.output.as_deref())
        .bind(end.error.as_deref())
        .bind(by);
    match within(query.fetch_optional(connection)).await {
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
    let holders: Option<Vec<ServerId>> = ends.iter().map(|end| end.holder).collect();
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
            .bind(ends.first().and_then(|end| end.told_by))
            .bind(holders)
            .bind(column(ends, |end| end.closed_at.map(jiff_sqlx::Timestamp::from)))
            .bind(column(ends, End::omitted))
            .fetch_all(connection),
    )
    .await?;
    Ok(rows.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(execution: u128, token: i64) -> End {
        End {
            token: Some(Token(token)),
            ..End::of(Close {
                execution_id: ExecutionId(uuid::Uuid::from_u128(execution)),
                token: None,
                holder: None,
                run_id: None,
                closed_at: None,
                output_omitted: None,
                status: CloseStatus::Completed,
                output: None,
                error: None,
            })
        }
    }

    fn tokens(ends: &[End]) -> Vec<Vec<i64>> {
        let of = |round: &Cow<'_, [End]>| round.iter().filter_map(|end| Some(end.token?.0)).collect();
        rounds(ends).iter().map(of).collect()
    }

    #[test]
    fn an_execution_is_in_a_round_once_and_the_order_of_what_is_told_of_it_stays() {
        assert_eq!(tokens(&[]), Vec::<Vec<i64>>::new());
        assert_eq!(tokens(&[end(1, 7), end(2, 8)]), [[7, 8]]);
        let twice = [end(1, 7), end(2, 8), end(1, 9), end(3, 10), end(1, 11)];
        assert_eq!(tokens(&twice), [vec![7, 8, 10], vec![9], vec![11]]);
    }
}
