//! Cancel, of executions that hold a slot: the wish is a row, this pass carries it to the engine. So it is with the wishes that such an
//! execution be ended at once ([`end`](super::end)), and that a run be ended which no row tells of ([`strays`]).
//!
//! The slot is freed when the engine reports the run closed, not before: until then it runs. A wish about an execution
//! that is still starting waits until the start is settled.

use std::time::Duration;

use super::end::{Memory, complete_waiting};
use super::operate::{self, Cancelled};
use super::strays;
use super::{ExecutionStatus, ExecutionsContext};
use crate::db::{self, Read as _, Write as _, statement};
use crate::engine::{CloseStatus, Reach, RunState};
use crate::id::{EngineId, ExecutionId, ItemId, ServerId, WorkspaceId};
use crate::task::{Next, Pass};
use crate::words;

/// The bell tells of new wishes; this is for one that was not heard.
const EVERY: Duration = Duration::from_secs(10);
/// How soon to look again at a wish that could not be carried out yet.
const AGAIN: Duration = Duration::from_millis(100);
const BATCH: i64 = 200;

/// See the module.
pub(crate) struct Cancels {
    context: ExecutionsContext,
    ends: Memory,
}

words! {
    /// What somebody wishes of an execution that holds a slot.
    pub(crate) enum WishKind {
        /// That its run be asked to end.
        Cancel = "cancel",
        /// That its run be ended by force.
        Terminate = "terminate",
        /// The same, and that it be recorded as he says.
        Complete = "complete",
    }
}

#[derive(sqlx::FromRow)]
pub(super) struct Wanted {
    pub(super) execution_id: ExecutionId,
    pub(super) actor: String,
    reason: Option<String>,
    pub(super) kind: WishKind,
    pub(super) end_status: Option<CloseStatus>,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    state: Option<ExecutionStatus>,
    pub(super) holder: Option<ServerId>,
    engine_id: Option<EngineId>,
    pub(super) item_id: Option<ItemId>,
    pub(super) workspace_id: Option<WorkspaceId>,
}

impl Wanted {
    /// Why, in words for the engine.
    pub(super) fn words(&self) -> String {
        let done = match self.kind {
            WishKind::Cancel => "cancelled",
            WishKind::Terminate => "terminated",
            WishKind::Complete => "completed",
        };
        let words = || format!("{done} by {}", self.actor);
        self.reason.clone().unwrap_or_else(words)
    }
}

impl Pass for Cancels {
    fn name(&self) -> &'static str {
        "cancels"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let wanted: Vec<Wanted> = sqlx::query_as(statement!("cancel/wanted"))
            .bind(BATCH)
            .all(&self.context.database)
            .await?;
        let mut waiting = false;
        for wish in wanted {
            waiting |= !self.carry_out(wish).await?;
        }
        if self.context.engine.reach() == Reach::Shared {
            waiting |= strays::end_wished(&self.context).await?;
        }
        Ok(Next::After(if waiting { AGAIN } else { EVERY }))
    }
}

impl Cancels {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            ends: Memory::default(),
        }
    }

    /// Answers whether the wish is dealt with.
    async fn carry_out(&mut self, wish: Wanted) -> Result<bool, db::Error> {
        let context = &self.context;
        match wish.state {
            Some(ExecutionStatus::Running) => {}
            Some(_) => return Ok(false),
            None if wish.kind == WishKind::Complete => return complete_waiting(context, &wish).await,
            None => return self.cancel_waiting(&wish).await,
        }
        let elsewhere = context.engine.reach() == Reach::Local
            && wish.holder.is_none_or(|holder| !context.presence.is(holder));
        if elsewhere || wish.engine_id != context.contact.engine_id() {
            return Ok(true);
        }
        if context.engine.reach() == Reach::Local
            && !self.ends.has_ended(wish.execution_id)
            && !self.runs_here(wish.execution_id).await
        {
            // Adopted from a lost server and not given back yet: it will be found in the queue.
            return Ok(false);
        }
        if wish.kind != WishKind::Cancel {
            return self.ends.carry_out(context, &wish).await;
        }
        let asked = context.engine.cancel(wish.execution_id, &wish.words()).await;
        context.contact.heard(&asked);
        if asked.is_err() {
            return Ok(false);
        }
        tracing::info!(execution = %wish.execution_id, actor = wish.actor, "Asked the engine to cancel an execution");
        self.done(&wish).await?;
        Ok(true)
    }

    async fn runs_here(&self, execution: ExecutionId) -> bool {
        let states = self.context.engine.describe(&[execution]).await;
        states.is_ok_and(|states| matches!(states.first(), Some(RunState::Running { .. })))
    }

    /// It holds no slot any more: it went back to the queue, where it is cancelled, or it is over.
    async fn cancel_waiting(&self, wish: &Wanted) -> Result<bool, db::Error> {
        let reason = wish.reason.as_deref();
        let mut session = self.context.database.transaction().await?;
        let cancelled = operate::cancel_in(&mut session, wish.execution_id.0, reason, &wish.actor).await;
        if cancelled.is_ok() {
            session.finish().await?;
        }
        match cancelled {
            // In between it was claimed again: next time.
            Ok(Cancelled::Requested) => return Ok(false),
            Ok(_) | Err(operate::Error::NotFound(_) | operate::Error::WrongState(_)) => {}
            Err(operate::Error::Database(error)) => return Err(error),
        }
        self.done(wish).await?;
        Ok(true)
    }

    async fn done(&self, wish: &Wanted) -> Result<(), db::Error> {
        sqlx::query(statement!("cancel/done"))
            .bind(wish.execution_id)
            .bind(wish.item_id)
            .bind(wish.workspace_id)
            .run(&self.context.database)
            .await?;
        Ok(())
    }
}
