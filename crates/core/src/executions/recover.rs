//! Recovery: claims that nobody looks after any more are taken over, and the engine is asked what became of them.
//!
//! It runs: settled. It is over: finished. The engine does not know it: back to PENDING under the same execution id, and
//! the loss is counted; an item that was lost too often is put aside, because it may be what kills the servers. The
//! engine does not answer: the claim is kept, with its slot, until it does.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use super::busy::Tries;
use super::exclusive::{Exclusive, Mutual, RECOVERY_LOCK};
use super::finish::{End, finish};
use super::settle::{self, Release, give_back};
use super::{EndReason, ExecutionStatus, ExecutionsContext, WaitsFor};
use crate::db::{self, Read as _, Write as _, column, statement};
use crate::engine::{LOCAL, RunState};
use crate::id::{ExecutionId, ItemId, ServerId, Token, WorkspaceId};
use crate::retry::Backoff;
use crate::task::{Next, Pass};

/// How soon to look again while something of a lost server is left.
const SOON: Duration = Duration::from_secs(1);
/// How often to look for leases that ran out while their server lives. That a server is lost is told by a bell.
const EVERY: Duration = Duration::from_secs(10);
/// Of the time, a scan for leases that ran out may take one part in this many: a table that is large, or full of what a held
/// snapshot keeps from being cleaned away, is read less often. When a server is known to be dead it is read at once.
const SCAN_SHARE: u32 = 50;
const SCAN_AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// What was adopted and could not be resolved is looked at again after this.
const ADOPTION: Duration = Duration::from_secs(2);
/// A capacity row that is in other hands for longer than this many looks is left to the next round.
const TRIES: u32 = 20;
const BATCH: i64 = 500;
/// An item lost more than once comes back after a wait of its own, so that one that kills servers soon stands alone.
const APART: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
};

/// See the module.
pub(crate) struct Recover {
    context: ExecutionsContext,
    /// In the exclusive mode: the lock, how often, and which claims are stale.
    exclusive: Option<(Mutual, Exclusive)>,
    /// When to look again for leases that ran out.
    scan_at: Instant,
    /// Until then something may be left of what was adopted.
    alert_until: Instant,
}

#[derive(sqlx::FromRow)]
struct Orphan {
    execution_id: ExecutionId,
    item_id: ItemId,
    workspace_id: WorkspaceId,
    token: Token,
    recoveries: i32,
    state: ExecutionStatus,
    lost_by: ServerId,
}

impl Pass for Recover {
    fn name(&self) -> &'static str {
        "recovery"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let Some((lock, exclusive)) = &mut self.exclusive else {
            return self.recover(Duration::ZERO).await;
        };
        let Exclusive {
            recovery_interval,
            stale_after,
            ..
        } = *exclusive;
        let Some(held) = lock.take().await? else {
            return Ok(Next::After(recovery_interval));
        };
        let recovered = loop {
            let recovered = self.recover(stale_after).await;
            if !matches!(recovered, Ok(Next::Now)) || !held.is_held() {
                break recovered;
            }
        };
        if let Some((lock, _)) = &self.exclusive {
            lock.give_back(held).await;
        }
        recovered?;
        Ok(Next::After(recovery_interval))
    }
}

impl Recover {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        let exclusive = context.settings.exclusive.clone().map(|exclusive| {
            let lock = Mutual::new(&context, &exclusive.table, RECOVERY_LOCK, exclusive.recovery);
            (lock, exclusive)
        });
        Self {
            context,
            exclusive,
            scan_at: Instant::now(),
            alert_until: Instant::now(),
        }
    }

    /// One scan for claims that are at least this old.
    async fn recover(&mut self, stale_after: Duration) -> Result<Next, db::Error> {
        let Some(me) = self.context.presence.holder() else {
            return Ok(Next::After(SOON));
        };
        let dead: Vec<(ServerId, String)> = sqlx::query_as(statement!("servers/dead"))
            .all(&self.context.database)
            .await?;
        let dead: Vec<ServerId> = dead
            .into_iter()
            .map(|(id, _)| id)
            .filter(|id| *id != me)
            .collect();
        if !dead.is_empty() {
            // Enqueuers may have relied on a server that looks no more.
            self.context.bells.queue.ring();
        }
        // What was claimed for another engine is not for this one to judge.
        let Some(engine) = self.context.contact.engine_id() else {
            return Ok(Next::After(SOON));
        };
        let began = Instant::now();
        let orphans: Vec<Orphan> = if dead.is_empty() && began < self.scan_at {
            Vec::new()
        } else {
            let adopt = sqlx::query_as(statement!("executions/adopt_expired"))
                .bind(me)
                .bind(ADOPTION.as_secs_f64())
                .bind(&dead)
                .bind(BATCH)
                .bind(stale_after.as_secs_f64())
                .bind(LOCAL)
                .bind(engine);
            let orphans = adopt.all(&self.context.database).await?;
            self.scan_at = began + (began.elapsed() * SCAN_SHARE).min(SCAN_AT_LEAST_EVERY);
            orphans
        };
        let full = i64::try_from(orphans.len()).unwrap_or(BATCH) >= BATCH;
        if full {
            self.scan_at = began;
        }
        if !orphans.is_empty() || !dead.is_empty() {
            // What cannot be resolved now is adopted for a moment only, and then found again.
            self.alert_until = began + ADOPTION + 2 * SOON;
        }
        if !orphans.is_empty() {
            self.resolve(me, orphans).await?;
        } else if !dead.is_empty() {
            let buried: Vec<(ServerId, String)> = sqlx::query_as(statement!("servers/bury"))
                .bind(&dead)
                .bind(LOCAL)
                .all(&self.context.database)
                .await?;
            for (id, name) in buried {
                tracing::warn!(server = %id, name, "A server is gone; nothing is left in its hands");
            }
        }
        self.fail_orphans().await?;
        Ok(if full {
            Next::Now
        } else if Instant::now() < self.alert_until {
            Next::After(SOON)
        } else {
            Next::After(EVERY)
        })
    }

    async fn resolve(&self, me: ServerId, orphans: Vec<Orphan>) -> Result<(), db::Error> {
        let context = &self.context;
        let ids: Vec<ExecutionId> = orphans.iter().map(|orphan| orphan.execution_id).collect();
        let states = context.engine.describe(&ids).await;
        context.contact.heard(&states);
        let states = match states {
            Ok(states) => states,
            Err(error) => {
                // They keep their slots and their ids under our lease; when it runs out somebody asks again.
                tracing::warn!(executions = ids.len(), error = %error, "Lost claims stay in doubt");
                return Ok(());
            }
        };
        self.put_down(me, &orphans).await?;
        let (mut running, mut ends, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        // Started by a server that did not live to say so, and over already.
        let mut started = HashSet::new();
        for (orphan, state) in orphans.into_iter().zip(states) {
            match state {
                RunState::Running { run_id } => running.push((orphan, run_id)),
                RunState::Closed(close) => {
                    if orphan.state == ExecutionStatus::Starting {
                        started.insert(orphan.execution_id);
                    }
                    ends.push(End {
                        token: Some(orphan.token),
                        holder: Some(me),
                        ..End::of(close)
                    });
                }
                RunState::NotFound if self.is_suspect(&orphan) => ends.push(End {
                    holder: Some(me),
                    ..quarantine(&orphan)
                }),
                RunState::NotFound => lost.push(orphan),
            }
        }
        let (count, requeued) = (running.len() + ends.len() + lost.len(), lost.len());
        self.settle_running(me, &running).await?;
        self.end(ends, &started).await?;
        self.requeue(me, lost).await?;
        context.metrics.recovered(count);
        tracing::info!(items = count, requeued, "Recovered {count} stale queue items");
        context.bells.queue.ring();
        Ok(())
    }

    /// What becomes of a server's is on its record.
    async fn put_down(&self, me: ServerId, orphans: &[Orphan]) -> Result<(), db::Error> {
        let mut lost: BTreeMap<ServerId, i64> = BTreeMap::new();
        for orphan in orphans {
            *lost.entry(orphan.lost_by).or_default() += 1;
        }
        let query = sqlx::query(statement!("servers/recovered"))
            .bind(lost.keys().copied().collect::<Vec<_>>())
            .bind(lost.values().copied().collect::<Vec<_>>())
            .bind(me);
        query.run(&self.context.database).await?;
        Ok(())
    }

    fn is_suspect(&self, orphan: &Orphan) -> bool {
        u32::try_from(orphan.recoveries).unwrap_or_default() + 1 >= self.context.settings.max_recoveries
            && orphan.state == ExecutionStatus::Starting
    }

    async fn settle_running(&self, me: ServerId, running: &[(Orphan, String)]) -> Result<(), db::Error> {
        if running.is_empty() {
            return Ok(());
        }
        let executions = column(running, |(orphan, _)| orphan.execution_id);
        let tokens = column(running, |(orphan, _)| orphan.token);
        let run_ids = column(running, |(_, run_id)| run_id.as_str());
        let written = settle::running(&self.context, &executions, &tokens, &run_ids, &[me]).await?;
        let newly = running.iter().filter(|(orphan, _)| {
            orphan.state == ExecutionStatus::Starting && written.done.contains(&orphan.execution_id)
        });
        self.context.metrics.dispatched(newly.count() as u64);
        Ok(())
    }

    async fn requeue(&self, me: ServerId, lost: Vec<Orphan>) -> Result<(), db::Error> {
        if lost.is_empty() {
            return Ok(());
        }
        let releases = lost.into_iter().map(|orphan| {
            let release = Release {
                wait: match u32::try_from(orphan.recoveries).unwrap_or_default() {
                    0 => Duration::ZERO,
                    times => APART.wait(times),
                },
                attempts: 0,
                recoveries: 1,
                event: WaitsFor::Recovered,
                detail: format!("server {} was lost with this in its hands", orphan.lost_by),
            };
            (orphan.execution_id, orphan.token, release)
        });
        give_back(&self.context, me, releases.collect(), TRIES).await?;
        Ok(())
    }

    async fn end(&self, mut ends: Vec<End>, started: &HashSet<ExecutionId>) -> Result<(), db::Error> {
        let context = &self.context;
        if ends.is_empty() {
            return Ok(());
        }
        let mut tries = Tries::new(TRIES);
        loop {
            let written = finish(&context.database, &ends, &context.actor(), context.floor()).await?;
            for end in ends.iter().filter(|end| written.done.contains(&end.execution_id)) {
                context.metrics.finished(end.status);
                if started.contains(&end.execution_id) {
                    context.metrics.dispatched(1);
                }
                if end.reason == Some(EndReason::Quarantined) {
                    context.metrics.failed(EndReason::Quarantined);
                }
            }
            ends.retain(|end| written.busy.contains(&end.execution_id));
            if ends.is_empty() || !tries.again().await {
                return written.trouble.map_or(Ok(()), Err);
            }
        }
    }

    /// Items of deleted workspaces cannot wait for a slot that will never come.
    async fn fail_orphans(&self) -> Result<(), db::Error> {
        let failed: Vec<(WorkspaceId, i64)> = sqlx::query_as(statement!("executions/fail_orphans"))
            .bind(self.context.actor())
            .bind(BATCH)
            .all(&self.context.database)
            .await?;
        for (workspace, items) in failed {
            tracing::warn!(%workspace, items, "Workspace not found");
            for _ in 0..items {
                self.context.metrics.failed(EndReason::WorkspaceGone);
            }
        }
        Ok(())
    }
}

fn quarantine(orphan: &Orphan) -> End {
    let times = orphan.recoveries + 1;
    let message = format!("put aside: {times} servers were lost while starting this; retry it to try again");
    tracing::error!(item = %orphan.item_id, workspace = %orphan.workspace_id, error = %message, attempt = times, "Error processing queue item");
    End {
        workspace_id: Some(orphan.workspace_id),
        token: Some(orphan.token),
        ..End::failed(orphan.execution_id, EndReason::Quarantined, &message)
    }
}

/// Lengthens the leases of starts that take their time.
pub(crate) struct Renew {
    pub(crate) context: ExecutionsContext,
}

impl Pass for Renew {
    fn name(&self) -> &'static str {
        "renewal"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let lease = self.context.settings.claim_lease;
        let (executions, tokens) = self.context.in_flight.older_than(lease / 3);
        if !executions.is_empty() && self.context.presence.holder().is_some() {
            sqlx::query(statement!("executions/renew"))
                .bind(executions)
                .bind(tokens)
                .bind(lease.as_secs_f64())
                .run(&self.context.database.keepers())
                .await?;
        }
        Ok(Next::After(lease / 3))
    }
}
