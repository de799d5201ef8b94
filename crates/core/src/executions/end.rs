//! End: executions that somebody wishes to be over, by force or as he says. The run is ended first, and the slot is free when the
//! engine says that it has ended: no worker is needed for it.

use std::collections::HashSet;

use serde_json::json;
use sqlx::PgConnection;

use super::busy::Tries;
use super::cancel::{Wanted, WishKind};
use super::finish::{End, finish_in, finish_waiting_in};
use super::{EndReason, ExecutionsContext};
use crate::db::{self, statement, within};
use crate::engine::{Close, CloseStatus, OpenRun, Reach, RunState};
use crate::id::ExecutionId;

/// The capacity row of a workspace is held for milliseconds at a time.
const TRIES: u32 = 200;

/// What is remembered between two looks at the same wish.
#[derive(Default)]
pub(super) struct Memory {
    /// The engine did not know these runs at the last look.
    missing: HashSet<ExecutionId>,
    /// Runs inside this server that were ended, and whose end is not written yet.
    ended_here: HashSet<ExecutionId>,
}

/// What became of a run that was to end.
enum Over {
    /// The engine tells how it ended.
    Closed(Close),
    /// There is none any more.
    Gone,
    /// Not yet, or nobody answers.
    NotYet,
}

impl Memory {
    /// Whether the run inside this server has been ended already, and only its record is missing.
    pub(super) fn has_ended(&self, execution: ExecutionId) -> bool {
        self.ended_here.contains(&execution)
    }

    /// Ends the run, then the execution. Answers whether the wish is dealt with.
    pub(super) async fn carry_out(
        &mut self,
        context: &ExecutionsContext,
        wish: &Wanted,
    ) -> Result<bool, db::Error> {
        let execution = wish.execution_id;
        let over = if self.has_ended(execution) {
            Over::Gone
        } else {
            end_run(context, wish).await
        };
        let close = match over {
            Over::NotYet => return Ok(false),
            Over::Closed(close) => Some(close),
            // That a service does not know a run is believed at the second look.
            Over::Gone if context.engine.reach() == Reach::Shared && self.missing.insert(execution) => {
                return Ok(false);
            }
            Over::Gone => None,
        };
        if context.engine.reach() == Reach::Local {
            self.ended_here.insert(execution);
        }
        let written = write(context, wish, close).await?;
        if written {
            self.missing.remove(&execution);
            self.ended_here.remove(&execution);
        }
        Ok(written)
    }
}

async fn end_run(context: &ExecutionsContext, wish: &Wanted) -> Over {
    let execution_id = wish.execution_id;
    // Looked at, ended, looked at again: it may have gone on in another run meanwhile, which the next round meets.
    for _ in 0..2 {
        let states = context.engine.describe(&[execution_id]).await;
        context.contact.heard(&states);
        let run_id = match states.ok().and_then(|states| states.into_iter().next()) {
            Some(RunState::Running { run_id }) => run_id,
            Some(RunState::Closed(close)) => return Over::Closed(close),
            Some(RunState::NotFound) => return Over::Gone,
            None => return Over::NotYet,
        };
        let run = OpenRun { execution_id, run_id };
        let ended = context.engine.terminate(&run, &wish.words()).await;
        context.contact.heard(&ended);
        if ended.is_err() {
            return Over::NotYet;
        }
    }
    Over::NotYet
}

/// Writes the end and takes the wish away, both or neither. Answers whether that is done.
async fn write(context: &ExecutionsContext, wish: &Wanted, close: Option<Close>) -> Result<bool, db::Error> {
    let (mut end, by) = end_of(context, wish, close);
    let mut tries = Tries::new(TRIES);
    loop {
        let mut session = context.database.transaction().await?;
        match finish_in(&mut session, &end, &by).await? {
            // A value that cannot be stored: without it, in another transaction.
            Err(storable) => end = storable,
            Ok(written) if written.busy.is_empty() => {
                // Of a wish that came too late nothing is noted.
                let item = wish.item_id.filter(|_| !written.done.is_empty());
                let done = sqlx::query(statement!("cancel/done"))
                    .bind(wish.execution_id)
                    .bind(item)
                    .bind(wish.workspace_id);
                within(done.execute(&mut *session)).await?;
                session.finish().await?;
                if !written.done.is_empty() {
                    tracing::info!(execution = %wish.execution_id, actor = wish.actor, status = %end.status, "Ended an execution as it was wished");
                    context.metrics.finished(end.status);
                    context.bells.queue.ring();
                }
                return Ok(true);
            }
            Ok(_) => {}
        }
        drop(session);
        if !tries.again().await {
            return Ok(false);
        }
    }
}

/// Ends an execution as somebody has said that went back to the queue before its run could be ended: that he was told so holds wherever
/// it is found. Answers whether the wish is dealt with.
pub(super) async fn complete_waiting(context: &ExecutionsContext, wish: &Wanted) -> Result<bool, db::Error> {
    let (mut end, by) = end_of(context, wish, None);
    loop {
        let mut session = context.database.transaction().await?;
        let taken = match finish_waiting_in(&mut session, &end, &by).await? {
            // A value that cannot be stored: without it, in another transaction.
            Err(storable) => {
                end = storable;
                continue;
            }
            Ok(taken) => taken,
        };
        let (item, workspace) = taken.unzip();
        if item.is_none() && is_open(&mut session, wish.execution_id).await? {
            // In between it was claimed again: next time.
            return Ok(false);
        }
        let done = sqlx::query(statement!("cancel/done"))
            .bind(wish.execution_id)
            .bind(item)
            .bind(workspace);
        within(done.execute(&mut *session)).await?;
        session.finish().await?;
        if item.is_some() {
            tracing::info!(execution = %wish.execution_id, actor = wish.actor, status = %end.status, "Ended an execution as it was wished");
            context.metrics.finished(end.status);
        }
        return Ok(true);
    }
}

/// Does it wait or hold a slot, whichever of the two it is in at this moment?
async fn is_open(connection: &mut PgConnection, execution: ExecutionId) -> Result<bool, db::Error> {
    let query = "select exists (select from stationmaster_internal.queue_pending where execution_id = $1)
                     or exists (select from stationmaster_internal.executions_active where execution_id = $1)";
    within(sqlx::query_scalar(query).bind(execution).fetch_one(connection)).await
}

/// How the execution ended, and by whose word.
fn end_of(context: &ExecutionsContext, wish: &Wanted, close: Option<Close>) -> (End, String) {
    let told_by = context.contact.engine_id();
    let is_local = context.engine.reach() == Reach::Local;
    let by_force = || {
        let reason = wish.words();
        let error = json!({
            "message": format!("the run was terminated: {reason}"),
            "type": "Terminated",
            "reason": reason,
        });
        Close {
            execution_id: wish.execution_id,
            token: None,
            // Its run lived in this server; in other hands it would be another one.
            holder: wish.holder.filter(|_| is_local),
            run_id: None,
            closed_at: None,
            output_omitted: None,
            status: CloseStatus::Terminated,
            output: None,
            error: serde_json::value::to_raw_value(&error).ok(),
        }
    };
    let end = End {
        told_by,
        ..End::of(close.unwrap_or_else(by_force))
    };
    match (wish.kind, wish.end_status) {
        (WishKind::Complete, Some(status)) => {
            let end = End {
                status,
                reason: Some(EndReason::CompletedByRequest),
                output: wish.output.clone(),
                output_omitted: None,
                error: wish.error.clone(),
                ..end
            };
            (end, wish.actor.clone())
        }
        _ if end.status == CloseStatus::Terminated => {
            let end = End {
                reason: Some(EndReason::TerminatedByRequest),
                ..end
            };
            (end, wish.actor.clone())
        }
        // It had ended by itself before.
        _ => (end, context.engine.name().to_owned()),
    }
}

/// Takes out those whose runs were ended so that somebody's word of them can be written: whoever carries that out writes it.
pub(super) async fn leave_out_spoken_for(
    context: &ExecutionsContext,
    ends: &mut Vec<End>,
) -> Result<(), db::Error> {
    use crate::db::Read as _;
    let by_force: Vec<ExecutionId> = ends
        .iter()
        .filter(|end| end.status == CloseStatus::Terminated)
        .map(|end| end.execution_id)
        .collect();
    if by_force.is_empty() {
        return Ok(());
    }
    let query = sqlx::query_scalar(statement!("cancel/spoken_for")).bind(by_force);
    let spoken_for: Vec<ExecutionId> = query.all(&context.database).await?;
    ends.retain(|end| !spoken_for.contains(&end.execution_id));
    Ok(())
}
