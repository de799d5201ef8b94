//! Reconcile: what we recorded and what a shared engine runs are compared from both sides (I7).
//!
//! From our side: a run that we say RUNNING and the engine does not list as open is asked about by name. Closed: a lost
//! completion, finished now. Unknown, at two looks in a row: closed with a reason, its slot freed. One that went on in another run
//! is followed. From the engine's side:
//! a run that is open although we recorded its end is terminated, at the second look, by its run id, and audited. When it is another run
//! than the one whose end the engine told us, somebody has reset the execution there: that is adopted and never terminated. A
//! run that we have no record of at all is left alone, and told of when it names a workspace of ours ([`strays`](super::strays)).

use std::collections::HashSet;
use std::time::Instant;

use uuid::Uuid;

use super::end::leave_out_spoken_for;
use super::finish::{End, finish};
use super::strays::Strays;
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
    /// Runs that were begun by a reset after a retry had taken over, and are left alone.
    left_alone: HashSet<String>,
    strays: Strays,
    /// When to look next, while the duty is ours.
    due_at: Option<Instant>,
}

impl Reconcile {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            suspects: HashSet::new(),
            left_alone: HashSet::new(),
            strays: Strays::default(),
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
        self.engine_side(engine, &open).await?;
        self.strays.look(&self.context, engine, &open).await?;
        self.due_at = Some(Instant::now() + interval);
        Ok(Next::After(beat))
    }
}

impl Reconcile {
    async fn our_side(&self, engine: EngineId, open: &[OpenRun]) -> Result<(), db::Error> {
        let runs: HashSet<(ExecutionId, &str)> = open
            .iter()
            .map(|run| (run.execution_id, run.run_id.as_str()))
            .collect();
        let open: HashSet<ExecutionId> = open.iter().map(|run| run.execution_id).collect();
        let interval = self.context.settings.reconcile_interval;
        let mut after = ExecutionId(Uuid::nil());
        loop {
            let rows: Vec<(ExecutionId, bool, Option<String>)> =
                sqlx::query_as(statement!("reconcile/running"))
                    .bind(after)
                    .bind(interval.as_secs_f64())
                    .bind(PAGE)
                    .bind(engine)
                    .all(&self.context.database)
                    .await?;
            let Some((last, ..)) = rows.last() else {
                return Ok(());
            };
            after = *last;
            let is_elsewhere = |id: &ExecutionId, run_id: &Option<String>| {
                let known = run_id.as_deref().unwrap_or_default();
                open.contains(id) && !runs.contains(&(*id, known))
            };
            let moved = rows.iter().filter(|(id, _, run_id)| is_elsewhere(id, run_id));
            let moved: Vec<ExecutionId> = moved.map(|(id, ..)| *id).take(ASK_AT_ONCE).collect();
            self.follow(&moved).await?;
            let absent = rows.into_iter().filter(|(id, ..)| !open.contains(id));
            let absent: Vec<(ExecutionId, bool)> = absent.map(|(id, missing, _)| (id, missing)).collect();
            for some in absent.chunks(ASK_AT_ONCE) {
                self.ask_about(engine, some).await?;
            }
        }
    }

    /// Executions that go on in another run than the one on record.
    async fn follow(&self, moved: &[ExecutionId]) -> Result<(), db::Error> {
        if moved.is_empty() {
            return Ok(());
        }
        let states = self.context.engine.describe(moved).await;
        self.context.contact.heard(&states);
        let running = states.unwrap_or_default().into_iter().zip(moved);
        let (ids, run_ids): (Vec<ExecutionId>, Vec<String>) = running
            .filter_map(|(state, id)| match state {
                RunState::Running { run_id } => Some((*id, run_id)),
                RunState::Closed(_) | RunState::NotFound => None,
            })
            .unzip();
        let query = sqlx::query(statement!("reconcile/follow"))
            .bind(ids)
            .bind(run_ids);
        query.run(&self.context.database).await?;
        Ok(())
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
        leave_out_spoken_for(context, &mut ends).await?;
        let mut trouble = None;
        if !ends.is_empty() {
            tracing::warn!(
                executions = ends.len(),
                "The reconciler ended executions whose completion was lost"
            );
            let written = finish(&context.database, &ends, "reconciler", context.floor()).await?;
            context.metrics.reconciled(written.done.len());
            for end in ends.iter().filter(|end| written.done.contains(&end.execution_id)) {
                context.metrics.finished(end.status);
            }
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

    async fn engine_side(&mut self, engine: EngineId, open: &[OpenRun]) -> Result<(), db::Error> {
        let ids: Vec<ExecutionId> = open.iter().map(|run| run.execution_id).collect();
        let ended: Vec<Ended> = sqlx::query_as(statement!("reconcile/ended"))
            .bind(ids)
            .bind(self.context.settings.reconcile_interval.as_secs_f64())
            .all(&self.context.database)
            .await?;
        let mut suspects = HashSet::new();
        for ended in ended {
            for run in open.iter().filter(|run| run.execution_id == ended.execution_id) {
                if ended.told_by_engine && ended.run_id.as_deref() != Some(&run.run_id) {
                    self.meet_reset(engine, &ended, run).await?;
                } else if ended.long_ago && self.suspects.contains(&run.run_id) {
                    let status = ended.status.unwrap_or(CloseStatus::Failed);
                    self.terminate(run, status, ended.workspace_id).await?;
                } else if ended.long_ago {
                    suspects.insert(run.run_id.clone());
                }
            }
        }
        self.suspects = suspects;
        Ok(())
    }

    /// Somebody has reset an execution that had ended: what is open now is its run.
    async fn meet_reset(&mut self, engine: EngineId, ended: &Ended, run: &OpenRun) -> Result<(), db::Error> {
        let context = &self.context;
        let states = context.engine.describe(&[ended.execution_id]).await;
        context.contact.heard(&states);
        // The list may lag behind; what is asked by name does not.
        let states = states.unwrap_or_default();
        let Some(RunState::Running { run_id }) = states.first() else {
            return Ok(());
        };
        if ended.run_id.as_deref() == Some(run_id) {
            return Ok(());
        }
        let execution = ended.execution_id;
        if ended.retried {
            if self.left_alone.insert(run.run_id.clone()) {
                tracing::warn!(%execution, run = run_id, "An execution was reset on the engine after it had been retried here: its run is left alone and holds no slot");
            }
            return Ok(());
        }
        let Some(server) = context.presence.holder() else {
            return Ok(());
        };
        let query = sqlx::query_as::<_, (i32, i32)>(statement!("reconcile/adopt"))
            .bind(execution)
            .bind(run_id)
            .bind(context.engine.name())
            .bind(engine)
            .bind(server);
        let Some((active, limit)) = query.maybe(&context.database).await? else {
            return Ok(());
        };
        tracing::warn!(%execution, run = run_id, active, limit, "An execution that had ended was reset on the engine: it runs again and holds a slot");
        context.metrics.reset();
        context.bells.closes.ring();
        let detail = serde_json::json!({ "run_id": run_id, "former_run_id": ended.run_id, "active": active, "limit": limit });
        self.audit("execution.reset", ended.workspace_id, execution, &detail)
            .await
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
        self.audit("execution.terminate", workspace, run.execution_id, &detail)
            .await
    }

    async fn audit(
        &self,
        action: &str,
        workspace: WorkspaceId,
        execution: ExecutionId,
        detail: &serde_json::Value,
    ) -> Result<(), db::Error> {
        sqlx::query(statement!("reconcile/audit"))
            .bind(self.context.actor())
            .bind(action)
            .bind(workspace)
            .bind(execution.to_string())
            .bind(detail.to_string())
            .run(&self.context.database)
            .await?;
        Ok(())
    }
}

/// An execution that is over by our record, of which the engine holds a run open.
#[derive(sqlx::FromRow)]
struct Ended {
    execution_id: ExecutionId,
    status: Option<CloseStatus>,
    workspace_id: WorkspaceId,
    /// The run that ended.
    run_id: Option<String>,
    /// Its end is the engine's own word.
    told_by_engine: bool,
    /// Another execution of the same item followed.
    retried: bool,
    long_ago: bool,
}

fn vanished(execution_id: ExecutionId) -> End {
    let message = "the engine does not know this run any more";
    End {
        item_status: ItemStatus::Dispatched,
        ..End::failed(execution_id, EndReason::EngineLost, message)
    }
}
