//! Housekeeping: the nets under the hot path, and the broom behind it. One server at a time, as a duty.
//!
//! Sweeps for ready items that no hint speaks for, compares counters with rows, and prunes what is past its retention. Everything
//! in small steps that hold nobody up, and seldom while there is nothing to do.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::ExecutionsContext;
use crate::db::{self, Read as _, Write as _, statement, within};
use crate::duty;
use crate::id::WorkspaceId;
use crate::task::{Next, Pass, Rest};

const DUTY: &str = "housekeeping";
const BEAT: Duration = Duration::from_secs(1);
const SWEEP_EVERY: Duration = Duration::from_secs(10);
const RECOUNT_EVERY: Duration = Duration::from_mins(1);
const RECOUNT_PAGE: i64 = 200;
const PRUNE_BATCH: i64 = 2_000;
/// A chore may take this share of the time, one part in so many; the larger the backlog, the rarer it gets.
const SHARE: u32 = 50;

/// See the module.
pub(crate) struct Housekeeping {
    context: ExecutionsContext,
    rest: Rest,
    sweep: Pace,
    recount: Pace,
    prune: Pace,
}

/// When a chore is next due: after its interval, or later when it was costly.
struct Pace {
    every: Duration,
    due_at: Instant,
}

impl Pace {
    fn new(every: Duration) -> Self {
        Self {
            every,
            due_at: Instant::now(),
        }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.due_at
    }

    fn done(&mut self, began: Instant) {
        let now = Instant::now();
        self.due_at = now + self.every.max((now - began) * SHARE);
    }
}

impl Housekeeping {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            rest: Rest::default(),
            sweep: Pace::new(SWEEP_EVERY),
            recount: Pace::new(RECOUNT_EVERY),
            prune: Pace::new(Duration::ZERO),
        }
    }
}

impl Pass for Housekeeping {
    fn name(&self) -> &'static str {
        "housekeeping"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if duty::hold(&self.context.database, &self.context.presence, DUTY)
            .await?
            .is_none()
        {
            return Ok(Next::After(duty::ELSEWHERE));
        }
        let unpark = sqlx::query(statement!("housekeeping/unpark")).bind(PRUNE_BATCH);
        let mut done = unpark.run(&self.context.database).await?;
        let began = Instant::now();
        if self.sweep.is_due() {
            done += self.sweep().await?;
            self.sweep.done(began);
        }
        let began = Instant::now();
        if self.recount.is_due() {
            self.recount().await?;
            self.recount.done(began);
        }
        let began = Instant::now();
        if self.prune.is_due() {
            let pruned = self.prune().await?;
            if pruned >= PRUNE_BATCH {
                // With much to prune it goes on, but leaves the machine to others in between.
                return Ok(Next::After(BEAT / 20));
            }
            done += u64::try_from(pruned).unwrap_or_default();
            self.prune.done(began);
        }
        Ok(Next::After(self.rest.after(done > 0)))
    }
}

impl Housekeeping {
    /// Answers how much there was to do.
    async fn sweep(&self) -> Result<u64, db::Error> {
        let missed: Vec<WorkspaceId> = sqlx::query_scalar(statement!("capacity/sweep"))
            .all(&self.context.database)
            .await?;
        if !missed.is_empty() {
            tracing::debug!(
                workspaces = missed.len(),
                "Found ready items that no hint spoke for"
            );
            self.context.bells.queue.ring();
        }
        sqlx::query(statement!("housekeeping/forget_workspaces"))
            .run(&self.context.database)
            .await?;
        let forget = sqlx::query(statement!("embedded/forget")).bind(PRUNE_BATCH);
        let forgotten = forget.run(&self.context.database).await?;
        Ok(forgotten + missed.len() as u64)
    }

    /// Counters and rows change together, so they never differ; if they ever do, this says so and mends it.
    async fn recount(&self) -> Result<(), db::Error> {
        let mut after = WorkspaceId(Uuid::nil());
        loop {
            let mut transaction = self.context.database.begin().await?;
            let locked: Vec<WorkspaceId> = within(
                sqlx::query_scalar(statement!("housekeeping/lock_capacity"))
                    .bind(after)
                    .bind(RECOUNT_PAGE)
                    .fetch_all(&mut *transaction),
            )
            .await?;
            let Some(last) = locked.last().copied() else {
                return Ok(());
            };
            let mended: Vec<(WorkspaceId, i32)> = within(
                sqlx::query_as(statement!("capacity/recount"))
                    .bind(&locked)
                    .fetch_all(&mut *transaction),
            )
            .await?;
            transaction.commit().await?;
            for (workspace, active) in mended {
                self.context.metrics.counter_mended();
                tracing::error!(%workspace, active, "A capacity counter differed from its rows and was mended");
            }
            after = last;
        }
    }

    async fn prune(&self) -> Result<i64, db::Error> {
        sqlx::query_scalar(statement!("housekeeping/prune"))
            .bind(self.context.settings.retention.as_secs_f64())
            .bind(PRUNE_BATCH)
            .one(&self.context.database)
            .await
    }
}
