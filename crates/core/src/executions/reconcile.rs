//! Reconcile: what we recorded and what a shared engine runs are compared from both sides (I7).
//!
//! From our side: a run that we say RUNNING and the engine does not list as open is asked about by name. Closed: a lost
//! completion, finished now. Unknown, at two looks in a row: closed with a reason, its slot freed. From the engine's side:
//! a run that is open although we recorded its end is terminated, at the second look, by its run id, and audited. A
//! run that we have no record of at all is somebody else's and is left alone.

use std::collections::HashSet;
use std::time::Instant;

use uuid::Uuid;

use super::finish::{End, finish};
use super::{EndReason, ExecutionsContext, ItemStatus};
use crate::db::{self, Read as _, Write as _, statement};
use crate::duty;
use crate::engine::{CloseStatus, OpenRun, RunState, all_pages};
use crate::id::{EngineId, ExecutionId, WorkspaceId};
use crate::task::{Next, Pass};

const DUTY: &str = "reconcile";
const PAGE: i64 = 1_000;
const ASK_AT_ONCE: usize = 100;

/// See the module.
pub(crate) struct Reconcile {
    context: ExecutionsContext,
    /// Open on the engine and over by our record, at the last look.
    suspects: HashSet<String>,
    /// When to look next, while the duty is ours.
    due_at: Option<Instant>,
}

impl Reconcile {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            suspects: HashSet::new(),
            due_at: None,
        }
    }
}

impl Pass for Reconcile {
    fn name(&self) -> &'static str {
        "reconciler"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let interval = self.context.settings.reconcile_interval;
        // The duty is held by renewing it; the work itself is done once an interval.
        let beat = (duty::ELSEWHERE / 2).min(interval / 3);
        if duty::hold(&self.context.database, &self.context.presence, DUTY)
            .await?
            .is_none()
        {
            self.due_at = None;
            return Ok(Next::After(beat));
        }
        // Not at once: a list of everything that is open is the last thing that an engine needs from a server that starts.
        let due_at = *self.due_at.get_or_insert_with(|| Instant::now() + interval / 3);
        if Instant::now() < due_at || !self.context.contact.breaker.is_closed() {
            return Ok(Next::After(beat));
        }
        let Some(engine) = self.context.contact.engine_id() else {
            return Ok(Next::After(beat));
        };
        let open = all_pages(|page| self.context.engine.open_runs(page)).await;
        self.context.contact.heard(&open);
        let Ok(open) = open else {
            return Ok(Next::After(beat));
        };
        self.our_side(engine, &open).await?;
        self.engine_side(&open).await?;
        self.due_at = Some(Instant::now() + interval);
        Ok(Next::After(beat))
    }
}

impl Reconcile {
    async fn our_side(&self, engine: EngineId, open: &[OpenRun]) -> Result<(), db::Error> {
        let open: HashSet<ExecutionId> = open.iter().map(|run| run.execution_id).collect();
        let interval = self.context.settings.reconcile_interval;
        let mut after = ExecutionId(Uuid::nil());
        loop {
            let rows: Vec<(ExecutionId, bool)> = sqlx::query_as(statement!("reconcile/running"))
                .bind(after)
                .bind(interval.as_secs_f64())
                .bind(PAGE)
                .bind(engine)
                .all(&self.context.database)
                .await?;
            let Some((last, _)) = rows.last() else {
                return Ok(());
            };
            after = *last;
            let absent: Vec<(ExecutionId, bool)> =
                rows.into_iter().filter(|(id, _)| !open.contains(id)).collect();
            for some in absent.chunks(ASK_AT_ONCE) {
                self.ask_about(engine, some).await?;
            }
        }
    }

    async fn ask_about(&self, engine: EngineId, absent: &[(ExecutionId, bool)]) -> Result<(), db::Error> {
        let context = &self.context;
        let ids: Vec<ExecutionId> = absent.iter().map(|(id, _)| *id).collect();
        let states = context.engine.describe(&ids).await;
        context.contact.heard(&states);
        let Ok(states) = states else {
            return Ok(());
        };
        let (mut ends, mut missing, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for ((id, missed_before), state) in absent.iter().zip(states) {
            match state {
                RunState::Closed(close) => ends.push(End {
                    reason: Some(EndReason::Reconciled),
                    told_by: Some(engine),
                    ..End::of(close)
                }),
                RunState::Running { .. } if *missed_before => found.push(*id),
                RunState::Running { .. } => {}
                RunState::NotFound if *missed_before => ends.push(End {
                    told_by: Some(engine),
                    ..vanished(*id)
                }),
                RunState::NotFound => missing.push(*id),
            }
        }
        let mut trouble = None;
        if !ends.is_empty() {
            tracing::warn!(
                executions = ends.len(),
                "The reconciler ended executions whose completion was lost"
            );
            let written = finish(&context.database, &ends, "reconciler", context.floor()).await?;
            context.metrics.reconciled(written.done.len());
            context.bells.queue.ring();
            trouble = written.trouble;
        }
        self.mark_missing(missing, true).await?;
        self.mark_missing(found, false).await?;
        trouble.map_or(Ok(()), Err)
    }

    async fn mark_missing(&self, executions: Vec<ExecutionId>, missing: bool) -> Result<(), db::Error> {
        if executions.is_empty() {
            return Ok(());
        }
        let query = sqlx::query(statement!("reconcile/mark_missing"))
            .bind(executions)
            .bind(missing);
        query.run(&self.context.database).await?;
        Ok(())
    }

    async fn engine_side(&mut self, open: &[OpenRun]) -> Result<(), db::Error> {
        let ids: Vec<ExecutionId> = open.iter().map(|run| run.execution_id).collect();
        let ended: Vec<(ExecutionId, Option<CloseStatus>, WorkspaceId)> =
            sqlx::query_as(statement!("reconcile/ended"))
                .bind(ids)
                .bind(self.context.settings.reconcile_interval.as_secs_f64())
                .all(&self.context.database)
                .await?;
        let mut suspects = HashSet::new();
        for (execution, status, workspace) in ended {
            for run in open.iter().filter(|run| run.execution_id == execution) {
                if !self.suspects.contains(&run.run_id) {
                    suspects.insert(run.run_id.clone());
                    continue;
                }
                self.terminate(run, status.unwrap_or(CloseStatus::Failed), workspace)
                    .await?;
            }
        }
        self.suspects = suspects;
        Ok(())
    }

    async fn terminate(
        &self,
        run: &OpenRun,
        status: CloseStatus,
        workspace: WorkspaceId,
    ) -> Result<(), db::Error> {
        let reason = format!("stationmaster recorded this execution as {status}");
        let terminated = self.context.engine.terminate(run, &reason).await;
        if terminated.is_err() {
            self.context.contact.heard(&terminated);
            return Ok(());
        }
        tracing::warn!(execution = %run.execution_id, run = run.run_id, %status, "Terminated a run that had ended by our record");
        let detail = serde_json::json!({ "run_id": run.run_id, "status": status });
        sqlx::query(statement!("reconcile/audit"))
            .bind(self.context.actor())
            .bind("execution.terminate")
            .bind(workspace)
            .bind(run.execution_id.to_string())
            .bind(detail.to_string())
            .run(&self.context.database)
            .await?;
        Ok(())
    }
}

fn vanished(execution_id: ExecutionId) -> End {
    let message = "the engine does not know this run any more";
    End {
        item_status: ItemStatus::Dispatched,
        ..End::failed(execution_id, EndReason::EngineLost, message)
    }
}
