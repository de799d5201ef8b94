//! Claim: the loop that looks for work, takes it, and says when to look again. The transaction itself is [`admit`](super::admit).
//!
//! An idle queue costs one read a poll. A busy one is looked at again and again, so that enqueuers need not ring
//! ([`attention`](crate::attention)); what they leave in transactions that are still open then is waited for. A claim whose answer was
//! lost is given back before the next one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::admit::{Admission, Admitted, AdmittedRow, Uncertain};
use super::load::Loader;
use super::lost::Lost;
use super::{EndReason, ExecutionsContext, Hold};
use crate::attention::Terms;
use crate::db::{self, Read as _, statement};
use crate::engine::StartRequest;
use crate::id::{ExecutionId, ItemId, ServerId, Token, WorkspaceId};
use crate::lane::Claimed;
use crate::observe::Metrics;
use crate::retry::Backoff;
use crate::task::Next;

/// After work there is often more.
pub(super) const ATTENTION: Terms = Terms {
    holds: Duration::from_secs(1),
    look_again: Duration::from_millis(15),
};
/// Later items promoted at once.
const PROMOTE: i64 = 1_000;
/// While busy, how often to look for items that have become due.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Others hold every workspace that could be served: usually they are done in a moment.
const CONTENDED: Backoff = Backoff {
    base: Duration::from_millis(3),
    cap: Duration::from_millis(200),
};
/// Workspaces whose last mention is remembered.
const MENTIONED: usize = 10_000;
/// What was open when this server stopped to watch is looked for after a tenth of the time that it has been open since, within these
/// bounds.
const OPEN_FOR: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// A full workspace is mentioned in the log at most this often.
const MENTION_EVERY: Duration = Duration::from_secs(10);

/// An item that this server has leased, and what it needs to be started.
pub(crate) struct Claim {
    pub(crate) execution_id: ExecutionId,
    pub(crate) item_id: ItemId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) token: Token,
    pub(crate) holder: ServerId,
    /// Keeps the lease renewed until the claim is settled or lost.
    pub(crate) _hold: Hold,
    /// Kept by all that one claim took, until the last of them is settled.
    pub(crate) batch: Arc<Batch>,
    /// When it could first start, by the database's clock; `None`: not known.
    pub(crate) ready_at: Option<Timestamp>,
    /// By our own clock, counted from before the claim was made.
    pub(crate) valid_until: Instant,
    pub(crate) attempts: u32,
    pub(crate) max_attempts: u32,
    pub(crate) work: Work,
}

/// What one claim took: the time until all of it is settled is what a batch took.
pub(crate) struct Batch {
    pub(crate) items: usize,
    pub(crate) began: Instant,
    pub(crate) metrics: Arc<Metrics>,
    /// The span of the round, of which all that becomes of them is a part.
    pub(crate) round: tracing::Span,
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.metrics.processed(self.began.elapsed());
    }
}

/// Can it be started at all?
pub(crate) enum Work {
    Ready(Box<StartRequest>),
    /// What it needs was deleted since it was enqueued.
    Gone(EndReason),
}

#[derive(Default)]
struct Memory {
    mentioned: HashMap<WorkspaceId, Instant>,
    look_at: Option<Instant>,
    next_due: Option<Instant>,
    /// Claims in a row that found everything locked.
    contended: u32,
    /// Until when it would sleep; `None`: it has never slept.
    asleep_until: Option<Instant>,
    open: Option<Open>,
}

/// Transactions that were open at the last look of a server that had watched, or was rung. What they enqueue they did not ring for,
/// because somebody watched; but it can be seen only when they are over.
#[derive(Clone, Copy)]
struct Open {
    /// All of them have lower numbers.
    below: i64,
    since: Instant,
}

impl Open {
    /// How long to wait for their ends: lateness in proportion to how long they take.
    fn wait(self) -> Duration {
        let (least, most) = OPEN_FOR;
        (self.since.elapsed() / 10).clamp(least, most)
    }
}

/// Makes claims.
pub(crate) struct Claimer {
    context: ExecutionsContext,
    admission: Admission,
    loader: Loader,
    lost: Lost,
    memory: Mutex<Memory>,
}

enum Look {
    Nothing,
    /// There are hints, and nothing else is known.
    Hints,
    Something,
}

impl Claimer {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        Self {
            admission: Admission::new(context.clone()),
            loader: Loader::new(context.clone()),
            context,
            lost: Lost::default(),
            memory: Mutex::default(),
        }
    }

    /// Claims at most `room` items, in this round.
    #[tracing::instrument(name = "step:claim_batch", level = "debug", skip_all)]
    pub(crate) async fn claim(&self, room: usize, round: tracing::Span) -> Result<Claimed<Claim>, db::Error> {
        let began = Instant::now();
        let poll = self.context.settings.poll_interval;
        let Some(holder) = self.context.presence.holder() else {
            return Ok(Claimed::nothing(Duration::from_millis(50)));
        };
        if !self.context.contact.breaker.is_closed() || self.context.presence.is_draining() {
            return Ok(Claimed::nothing(poll));
        }
        self.lost.give_back(&self.context).await?;
        let look = self.look().await?;
        if let Look::Nothing = look {
            let mut memory = self.memory.lock();
            memory.contended = 0;
            let sleep = self.context.attention.sleep(poll, memory.next_due);
            let sleep = memory.open.map_or(sleep, |open| sleep.min(open.wait()));
            memory.asleep_until = Some(Instant::now() + sleep);
            return Ok(Claimed::nothing(sleep));
        }
        let admitted = self.admission.admit(holder, room).await;
        let admitted = admitted.map_err(|Uncertain { error, token }| {
            // It may hold in the database, and nobody here knows of it.
            if let Some(token) = token {
                self.lost.suspect(holder, token);
            }
            error
        })?;
        let (claims, next) = match admitted {
            Admitted::Rows(token, rows) => {
                self.memory.lock().contended = 0;
                self.mention_full(&rows);
                let loaded = self.loader.load((holder, token), began, rows, round).await;
                (
                    loaded.inspect_err(|_| self.lost.suspect(holder, token))?,
                    Next::Now,
                )
            }
            Admitted::Contended => (Vec::new(), Next::After(self.contended())),
            Admitted::Nothing => {
                self.memory.lock().look_at = None;
                // Hints that were there and could not be had are in the hands of others: of a claim, or of somebody who cancels.
                let next = match look {
                    Look::Hints => Next::After(self.contended()),
                    Look::Something | Look::Nothing => Next::Now,
                };
                (Vec::new(), next)
            }
        };
        // In turns nobody looks again soon, so nobody may say so.
        if self.context.settings.exclusive.is_none() {
            let (attention, database) = (&self.context.attention, &self.context.database);
            attention.attend(database, Some(self.context.floor())).await;
        }
        if !claims.is_empty() {
            self.context.metrics.claimed(claims.len(), began.elapsed());
            tracing::debug!(items = claims.len(), "Processing {} queue items", claims.len());
        }
        Ok(Claimed { claims, next })
    }

    /// How long to leave alone what others hold.
    fn contended(&self) -> Duration {
        let mut memory = self.memory.lock();
        memory.contended += 1;
        CONTENDED.wait(memory.contended).max(CONTENDED.base)
    }

    /// A look that writes nothing, so that an idle queue costs one read. While busy it is taken only now and then.
    async fn look(&self) -> Result<Look, db::Error> {
        let now = Instant::now();
        if self.memory.lock().look_at.is_some_and(|look_at| now < look_at) {
            return Ok(Look::Something);
        }
        let from = self.context.low_water.lock().from();
        let (hinted, eligible, next_due_in, open_from, open_to): (bool, bool, Option<f64>, i64, i64) =
            sqlx::query_as(statement!("executions/look"))
                .bind(from)
                .one(&self.context.database)
                .await?;
        let due = next_due_in.is_some_and(|seconds| seconds <= 0.0);
        if due {
            let promote = sqlx::query_scalar::<_, i64>(statement!("executions/promote_due")).bind(PROMOTE);
            promote.one(&self.context.database).await?;
        }
        let mut memory = self.memory.lock();
        let was_rung = memory.asleep_until.is_none_or(|until| now < until);
        if self.context.attention.is_awake() || was_rung {
            memory.open = (open_from < open_to).then_some(Open {
                below: open_to,
                since: now,
            });
        } else if memory.open.is_some_and(|open| open.below <= open_from) {
            memory.open = None;
        }
        memory.next_due =
            next_due_in.map(|seconds| now + Duration::try_from_secs_f64(seconds).unwrap_or_default());
        if hinted || eligible || due {
            memory.look_at = (!due).then(|| now + LOOK_EVERY);
            return Ok(if eligible || due {
                Look::Something
            } else {
                Look::Hints
            });
        }
        memory.look_at = None;
        Ok(Look::Nothing)
    }

    fn mention_full(&self, rows: &[AdmittedRow]) {
        let full = rows
            .iter()
            .filter(|row| row.more == Some(true) && row.active >= row.max_concurrent);
        let mut memory = self.memory.lock();
        for row in full {
            self.context.metrics.at_capacity();
            let mentioned = memory.mentioned.get(&row.workspace_id);
            if mentioned.is_some_and(|at| at.elapsed() < MENTION_EVERY) {
                continue;
            }
            tracing::info!(workspace = %row.workspace_id, active = row.active, limit = row.max_concurrent, "Workspace at capacity");
            if memory.mentioned.len() >= MENTIONED {
                memory.mentioned.clear();
            }
            memory.mentioned.insert(row.workspace_id, Instant::now());
        }
    }
}
