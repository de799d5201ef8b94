//! Workers: does anybody poll the task queues on which executions run? Without one a run holds its slot and never moves.
//!
//! Asked by one server for all, only while something has run for a while, and of each queue once.

use std::collections::HashSet;
use std::time::Duration;

use super::ExecutionsContext;
use crate::db::{self, Database, Read as _, statement};
use crate::duty;
use crate::engine::Reach;
use crate::id::EngineId;
use crate::task::{Next, Pass};

const DUTY: &str = "workers";
/// Task queues that are asked about in one round.
const QUEUES: i64 = 100;
/// A run that was only just started says nothing about its workers: it is left out for this part of the time between two looks.
const SETTLED: u32 = 3;

/// A task queue, and how many executions run on it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TaskQueue {
    /// Its name.
    pub name: String,
    /// Executions that run on it.
    pub executions: i64,
}

/// The task queues on which executions of an engine run (`None`: of any that is a service of its own), the busiest first; `usual` is that
/// of definitions which name none.
pub async fn task_queues(
    database: &Database,
    engine: Option<EngineId>,
    usual: &str,
    settled: Duration,
) -> Result<Vec<TaskQueue>, db::Error> {
    let query = sqlx::query_as(statement!("executions/task_queues"))
        .bind(engine)
        .bind(usual)
        .bind(settled.as_secs_f64())
        .bind(QUEUES)
        .bind(crate::engine::LOCAL);
    query.all(database).await
}

/// See the module.
pub(super) struct Workers {
    context: ExecutionsContext,
    /// Task queues that nobody polled at the last look.
    deserted: HashSet<String>,
}

impl Workers {
    pub(super) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            deserted: HashSet::new(),
        }
    }

    /// `None`: another server looks, or the engine does not answer.
    async fn look(&self) -> Result<Option<Vec<TaskQueue>>, db::Error> {
        let context = &self.context;
        let Some(engine) = context.contact.engine_id() else {
            return Ok(None);
        };
        let usual = &context.settings.task_queue;
        let settled = context.settings.reconcile_interval / SETTLED;
        let queues = task_queues(&context.database, Some(engine), usual, settled).await?;
        if queues.is_empty() {
            return Ok(Some(queues));
        }
        let held = duty::hold(&context.database, &context.presence, DUTY).await;
        if !matches!(held, Ok(Some(_))) {
            return held.map(|_| None);
        }
        let mut deserted = Vec::new();
        for queue in queues {
            if !context.contact.breaker.is_closed() {
                return Ok(None);
            }
            match context.engine.is_polled(&queue.name).await {
                Ok(true) => {}
                Ok(false) => deserted.push(queue),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(deserted))
    }
}

impl Pass for Workers {
    fn name(&self) -> &'static str {
        "workers"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        debug_assert!(
            self.context.engine.reach() == Reach::Shared,
            "others need no workers"
        );
        let again = Next::After(self.context.settings.reconcile_interval);
        let looked = self.look().await;
        let Ok(Some(deserted)) = looked else {
            // Whoever has the duty and an answer tells, and nobody else.
            self.context.metrics.deserted(None);
            return looked.map(|_| again);
        };
        for queue in &deserted {
            if !self.deserted.contains(&queue.name) {
                tracing::warn!(
                    task_queue = queue.name,
                    executions = queue.executions,
                    "No worker polls this task queue: what runs on it holds its slots and does not go on"
                );
            }
        }
        let executions = deserted.iter().map(|queue| queue.executions).sum();
        self.context.metrics.deserted(Some((deserted.len(), executions)));
        self.deserted = deserted.into_iter().map(|queue| queue.name).collect();
        Ok(again)
    }
}
