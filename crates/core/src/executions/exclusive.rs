//! The exclusive mode: one server at a time works through the queue, in turns, as the source design has it.
//!
//! A turn: take the lock, claim one batch, start its items one after another in priority then age order, give the lock
//! back. A lock that is taken means skip. Turns come at a fixed delay; nothing wakes them earlier.
//!
//! Both locks are for economy. What is correct rests on the tokens of the claims and on the capacity rows, exactly as in
//! the parallel mode: two servers that both believe to have the lock still start every item once and exceed no limit. So a
//! lock that is lost in the middle of a turn only means: start nothing more, give the rest back.

use std::collections::HashMap;
use std::time::Duration;

use tracing::Instrument as _;

use super::ExecutionsContext;
use super::claim::Claim;
use super::lane::ExecutionsLane;
use super::settle::{Settlement, Verdict};
use crate::db::{self, Read as _, statement};
use crate::id::ExecutionId;
use crate::lane::Lane as _;
use crate::locks::{Kept, LockName, LockTable, Locked, Locks, Terms};
use crate::pipeline::SETTLE_AGAIN;
use crate::task::{Next, Pass, chain};

/// The lock under which the queue is processed. For economy.
pub const TURN_LOCK: &str = "processExecutionQueue";
/// The lock under which stale claims are recovered. For economy.
pub const RECOVERY_LOCK: &str = "recoverStaleQueueItems";

/// A turn looks for work this often before it takes the queue to be empty, and only when it is told to look again soon.
const LOOKS: u32 = 5;
const SOON: Duration = Duration::from_millis(200);

/// How the exclusive mode behaves.
#[derive(Debug, Clone)]
pub struct Exclusive {
    /// Where the locks are.
    pub table: LockTable,
    /// For how long [`TURN_LOCK`] is held.
    pub turn: Terms,
    /// For how long [`RECOVERY_LOCK`] is held.
    pub recovery: Terms,
    /// Time between two recoveries.
    pub recovery_interval: Duration,
    /// Only claims that are older than this are recovered.
    pub stale_after: Duration,
}

/// One of the two locks, and what this server remembers of it.
pub(crate) struct Mutual {
    locks: Locks,
    name: LockName,
    terms: Terms,
    owner: String,
    /// The last time it could not even be asked for.
    troubled: bool,
}

impl Mutual {
    pub(crate) fn new(
        context: &ExecutionsContext,
        table: &LockTable,
        name: &'static str,
        terms: Terms,
    ) -> Self {
        Self {
            locks: Locks::new(context.database.clone(), table.clone(), context.metrics.clone()),
            name: LockName::ours(name),
            terms,
            owner: format!("stationmaster@{}", printable(context.presence.name())),
            troubled: false,
        }
    }

    /// The lock, kept alive; `None`: somebody else has it. An error is told by the loop that runs us, once.
    pub(crate) async fn take(&mut self) -> Result<Option<Kept>, db::Error> {
        match self.locks.lock(&self.name, self.terms, &self.owner).await {
            Ok(answer) => {
                if std::mem::take(&mut self.troubled) {
                    tracing::info!(lock = %self.name, "The lock can be asked for again; work goes on");
                }
                Ok(match answer {
                    Locked::Acquired(lock) => Some(self.locks.keep(lock)),
                    Locked::Taken(_) => None,
                })
            }
            Err(error) => {
                self.troubled = true;
                Err(error.into())
            }
        }
    }

    /// Gives the lock back. When that fails it runs out by itself.
    pub(crate) async fn give_back(&self, lock: Kept) {
        if let Err(error) = lock.unlock().await {
            tracing::warn!(lock = %self.name, error = chain(&error), "Could not give a lock back; it will run out");
        }
    }
}

fn printable(name: &str) -> String {
    name.replace(char::is_control, " ")
}

/// Takes the turns of this server.
pub(crate) struct Turns {
    context: ExecutionsContext,
    lane: ExecutionsLane,
    lock: Mutual,
}

impl Turns {
    pub(crate) fn new(context: ExecutionsContext, exclusive: &Exclusive) -> Self {
        Self {
            lock: Mutual::new(&context, &exclusive.table, TURN_LOCK, exclusive.turn),
            lane: ExecutionsLane::new(context.clone()),
            context,
        }
    }

    async fn turn(&self, lock: &Kept) -> Result<(), db::Error> {
        let claims = self.claim().await?;
        for claim in self.in_order(claims).await {
            let settlement = if self.context.stop.is_cancelled() {
                self.lane.release(claim)
            } else if lock.is_held() {
                self.lane.deliver(claim).await
            } else {
                given_back(claim)
            };
            self.settle(settlement).await;
        }
        Ok(())
    }

    /// A batch. A workspace that was in other hands for a moment would else wait for the next turn.
    async fn claim(&self) -> Result<Vec<Claim>, db::Error> {
        for _ in 0..LOOKS {
            let claimed = self.lane.claim(self.context.settings.batch_size).await?;
            if !claimed.claims.is_empty() {
                return Ok(claimed.claims);
            }
            match claimed.next {
                Next::After(wait) if wait > SOON => break,
                Next::After(wait) => tokio::time::sleep(wait).await,
                Next::Now => {}
            }
        }
        Ok(Vec::new())
    }

    /// The order is worth a read, but not a failure: whatever happens, all of them come back.
    async fn in_order(&self, claims: Vec<Claim>) -> Vec<Claim> {
        if claims.len() < 2 {
            return claims;
        }
        let ids: Vec<ExecutionId> = claims.iter().map(|claim| claim.execution_id).collect();
        let query = sqlx::query_scalar(statement!("executions/in_order")).bind(ids);
        let order: Vec<ExecutionId> = match query.all(&self.context.database).await {
            Ok(order) => order,
            Err(error) => {
                tracing::warn!(error = chain(&error), "Could not read the order of a batch");
                return claims;
            }
        };
        let places: HashMap<ExecutionId, usize> = order.into_iter().zip(0..).collect();
        let mut claims = claims;
        claims.sort_by_key(|claim| places.get(&claim.execution_id).copied().unwrap_or(usize::MAX));
        claims
    }

    /// Before the next item is started, until it is written down.
    async fn settle(&self, settlement: Settlement) {
        let mut left = vec![settlement];
        let mut failures = 0;
        loop {
            left = self.lane.settle(left).await;
            if left.is_empty() {
                return;
            }
            failures += 1;
            tokio::time::sleep(SETTLE_AGAIN.wait(failures)).await;
        }
    }
}

fn given_back(claim: Claim) -> Settlement {
    let message = format!("the lock {TURN_LOCK} was lost before its turn came");
    Settlement {
        claim,
        verdict: Verdict::Released { message },
    }
}

impl Pass for Turns {
    fn name(&self) -> &'static str {
        self.lane.name()
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let poll = self.context.settings.poll_interval;
        // A server that could start nothing leaves the turn to one that can.
        if self.context.presence.taker().is_none() || !self.context.contact.breaker.is_closed() {
            return Ok(Next::After(poll));
        }
        let Some(lock) = self.lock.take().await? else {
            return Ok(Next::After(poll));
        };
        let turn = self.turn(&lock).instrument(self.lane.span()).await;
        self.lock.give_back(lock).await;
        turn?;
        Ok(Next::After(poll))
    }
}
