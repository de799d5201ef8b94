//! Claim and admit: pending items become STARTING executions, within the limits, in one short transaction.
//!
//! Exact (I3): the capacity rows are locked and read in one statement, and a later statement takes no more than what
//! was free under that lock. Fair: lowest virtual time first, shared by weight. Flat: only workspaces that are ready
//! *and* have room are in the index that is looked at, and each is read from its remembered head.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::Instrument as _;

use super::load::Loader;
use super::lost::Lost;
use super::{EndReason, Hold, Shared};
use crate::capacity::{Demand, share};
use crate::db::{self, statement, within};
use crate::engine::StartRequest;
use crate::id::{DefinitionId, ExecutionId, ItemId, ServerId, Token, VersionId, WorkspaceId};
use crate::lane::Claimed;
use crate::retry::Backoff;
use crate::task::{Next, chain};

/// Hints taken in at once.
const HINTS: i64 = 2_000;
/// Later items promoted at once.
const PROMOTE: i64 = 1_000;
/// After work there is often more: for this long we look again and again, and enqueuers need not ring.
const ATTENTION: Duration = Duration::from_secs(1);
/// How soon we look again while attentive.
const LOOK_AGAIN: Duration = Duration::from_millis(15);
/// While busy, how often to look for items that have become due.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Others hold every workspace that could be served: usually they are done in a moment.
const CONTENDED: Backoff = Backoff {
    base: Duration::from_millis(3),
    cap: Duration::from_millis(200),
};
/// Fewer workspaces than this, and claims and settlements take turns.
const FEW: usize = 16;
/// Even when a single workspace could fill a batch, several share it.
const FEWEST_LOCKED: i64 = 16;
/// Workspaces whose last mention is remembered.
const MENTIONED: usize = 10_000;
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
    /// By our own clock, counted from before the claim was made.
    pub(crate) valid_until: Instant,
    pub(crate) attempts: u32,
    pub(crate) max_attempts: u32,
    pub(crate) work: Work,
}

/// Can it be started at all?
pub(crate) enum Work {
    Ready(Box<StartRequest>),
    /// What it needs was deleted since it was enqueued.
    Gone(EndReason),
}

#[derive(sqlx::FromRow)]
struct Room {
    workspace_id: WorkspaceId,
    free: i32,
    weight: f64,
    virtual_time: f64,
}

#[derive(sqlx::FromRow)]
pub(super) struct Admitted {
    pub(super) workspace_id: WorkspaceId,
    /// How the workspace stands, in the rows that say so.
    active: Option<i32>,
    max_concurrent: Option<i32>,
    more: Option<bool>,
    /// What was admitted, in the rows that say that. No execution id: the first try, under the item's own.
    pub(super) execution_id: Option<ExecutionId>,
    pub(super) item_id: Option<ItemId>,
    pub(super) workflow_definition_id: Option<DefinitionId>,
    pub(super) workflow_definition_version_id: Option<VersionId>,
    pub(super) attempts: Option<i32>,
}

#[derive(Default)]
struct Memory {
    mentioned: HashMap<WorkspaceId, Instant>,
    look_at: Option<Instant>,
    next_due: Option<Instant>,
    /// When there was something to do last, and when others were told that we look again soon.
    worked_at: Option<Instant>,
    /// The lowest hint to look at.
    hints_from: i64,
    /// Claims in a row that found everything locked.
    contended: u32,
    attended_at: Option<Instant>,
    /// Items that a workspace could have taken in the last claims, on average.
    appetite: f64,
}

/// Makes claims.
pub(crate) struct Claimer {
    shared: Shared,
    loader: Loader,
    lost: Lost,
    memory: Mutex<Memory>,
}

enum Look {
    Nothing,
    Something,
}

impl Claimer {
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            loader: Loader::new(shared.clone()),
            shared,
            lost: Lost::default(),
            memory: Mutex::default(),
        }
    }

    /// Claims at most `room` items.
    #[tracing::instrument(name = "step:claim_batch", level = "debug", skip_all)]
    pub(crate) async fn claim(&self, room: usize) -> Result<Claimed<Claim>, db::Error> {
        let began = Instant::now();
        let Some(holder) = self.shared.presence.holder() else {
            return Ok(Claimed {
                claims: Vec::new(),
                next: Next::After(Duration::from_millis(50)),
            });
        };
        if !self.shared.breaker.is_closed() {
            return Ok(Claimed {
                claims: Vec::new(),
                next: Next::After(self.shared.settings.poll_interval),
            });
        }
        self.lost.give_back(&self.shared).await?;
        if let Look::Nothing = self.look().await? {
            return Ok(Claimed {
                claims: Vec::new(),
                next: Next::After(self.sleep()),
            });
        }
        let (claims, next) = match self.admit(holder, room).await? {
            Admission::Rows(token, rows) => {
                self.mention_full(&rows);
                let loaded = self.loader.load(holder, token, began, rows).await;
                (
                    loaded.inspect_err(|_| self.lost.suspect(holder, token))?,
                    Next::Now,
                )
            }
            Admission::Contended => (Vec::new(), Next::After(self.contended())),
            Admission::Nothing => {
                self.memory().look_at = None;
                (Vec::new(), Next::Now)
            }
        };
        self.attend().await;
        if !claims.is_empty() {
            self.shared.metrics.claimed(claims.len(), began.elapsed());
            tracing::debug!(items = claims.len(), "Processing {} queue items", claims.len());
        }
        Ok(Claimed { claims, next })
    }

    fn contended(&self) -> Duration {
        let mut memory = self.memory();
        memory.contended += 1;
        CONTENDED.wait(memory.contended).max(CONTENDED.base)
    }

    /// Tells enqueuers, now and then, that they need not ring. When it cannot be told they ring, and that is all.
    async fn attend(&self) {
        // In turns nobody looks again soon, so nobody may say so.
        if self.shared.settings.exclusive.is_some() {
            return;
        }
        {
            let mut memory = self.memory();
            let busy = memory.worked_at.is_some_and(|at| at.elapsed() < LOOK_AGAIN * 2);
            let said = memory
                .attended_at
                .is_some_and(|at| at.elapsed() < ATTENTION.mul_f64(0.4));
            if !busy || said {
                return;
            }
            memory.attended_at = Some(Instant::now());
        }
        let attend = sqlx::query(statement!("attention/attend"))
            .bind("executions")
            .bind(ATTENTION.as_secs_f64())
            .bind(self.shared.floor());
        if let Err(error) = within(attend.execute(self.shared.database.pool())).await {
            tracing::debug!(
                error = chain(&error),
                "Could not tell enqueuers that they need not ring"
            );
        }
    }

    /// Takes the word back: enqueuers ring again, and the others look once for what came without a ring.
    pub(crate) async fn look_away(&self) {
        if self
            .memory()
            .attended_at
            .take()
            .is_none_or(|at| at.elapsed() > ATTENTION)
        {
            return;
        }
        let inattention = sqlx::query(statement!("attention/look_away"))
            .bind("executions")
            .bind("queue")
            .bind(self.shared.floor());
        if let Err(error) = within(inattention.execute(self.shared.database.pool())).await {
            tracing::debug!(error = chain(&error), "Could not tell the others to look");
        }
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self) -> Duration {
        let memory = self.memory();
        let due = memory
            .next_due
            .map(|due| due.saturating_duration_since(Instant::now()));
        let attentive = memory
            .worked_at
            .is_some_and(|at| at.elapsed() < ATTENTION.mul_f64(1.3));
        let poll = if attentive {
            LOOK_AGAIN
        } else {
            self.shared.settings.poll_interval
        };
        // A moment past the due time, so that the database's clock has surely reached it.
        due.map_or(poll, |due| (due + Duration::from_millis(1)).min(poll))
    }

    /// A look that writes nothing, so that an idle queue costs one read. While busy it is taken only now and then.
    async fn look(&self) -> Result<Look, db::Error> {
        let now = Instant::now();
        if self.memory().look_at.is_some_and(|look_at| now < look_at) {
            return Ok(Look::Something);
        }
        let from = self.low_water().from();
        let (hinted, eligible, next_due_in): (bool, bool, Option<f64>) = within(
            sqlx::query_as(statement!("executions/look"))
                .bind(from)
                .fetch_one(self.shared.database.pool()),
        )
        .await?;
        let due = next_due_in.is_some_and(|seconds| seconds <= 0.0);
        if due {
            let promote = sqlx::query_scalar::<_, i64>(statement!("executions/promote_due")).bind(PROMOTE);
            within(promote.fetch_one(self.shared.database.pool())).await?;
        }
        let mut memory = self.memory();
        memory.next_due =
            next_due_in.map(|seconds| now + Duration::try_from_secs_f64(seconds).unwrap_or_default());
        if hinted || eligible || due {
            memory.look_at = (!due).then(|| now + LOOK_EVERY);
            return Ok(Look::Something);
        }
        memory.look_at = None;
        Ok(Look::Nothing)
    }

    fn low_water(&self) -> std::sync::MutexGuard<'_, crate::capacity::LowWater> {
        self.shared
            .low_water
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn admit(&self, holder: ServerId, room: usize) -> Result<Admission, db::Error> {
        let mut token = None;
        let admission = self.admit_in_transaction(holder, room, &mut token);
        let call = tokio::time::timeout(db::CALL_TIMEOUT, admission).await;
        let admission = call.unwrap_or(Err(db::Error::Timeout(db::CALL_TIMEOUT)));
        if let (Err(_), Some(token)) = (&admission, token) {
            self.lost.suspect(holder, token);
        }
        admission
    }

    async fn admit_in_transaction(
        &self,
        holder: ServerId,
        room: usize,
        known_token: &mut Option<Token>,
    ) -> Result<Admission, db::Error> {
        let (from, floor) = {
            let low_water = self.low_water();
            (low_water.from(), low_water.floor())
        };
        // A settlement of ours that found a workspace locked by this claim waits at the gate for its turn.
        let _gate = self.shared.gate.lock().await;
        let hints_from = self.memory().hints_from;
        let mut transaction = self.shared.database.pool().begin().await?;
        let (last, seen, used, token): (Option<i64>, i64, i64, Token) =
            sqlx::query_as(statement!("capacity/absorb_hints"))
                .bind(hints_from)
                .bind(HINTS)
                .bind(floor)
                .fetch_one(&mut *transaction)
                .await?;
        *known_token = Some(token);
        {
            let mut memory = self.memory();
            // Thousands of hints for workspaces that somebody keeps locked must not hide those behind them.
            memory.hints_from = if seen == HINTS && used < seen {
                last.unwrap_or_default() + 1
            } else {
                0
            };
            if used > 0 {
                memory.worked_at = Some(Instant::now());
            }
        }
        let looked_at = Instant::now();
        let rooms: Vec<Room> = sqlx::query_as(statement!("capacity/lock_eligible"))
            .bind(from)
            .bind(self.workspaces_to_lock(room))
            .fetch_all(&mut *transaction)
            .instrument(tracing::debug_span!("step:check_capacity"))
            .await?;
        self.low_water().looked(
            from,
            looked_at.elapsed(),
            rooms.first().map(|room| room.virtual_time),
        );
        self.shared.few.store(rooms.len() < FEW, Ordering::Relaxed);
        if rooms.is_empty() {
            transaction.commit().await?;
            let contended = used < seen || self.is_anybody_eligible().await?;
            return Ok(if contended {
                Admission::Contended
            } else {
                Admission::Nothing
            });
        }
        let demands: Vec<Demand> = rooms
            .iter()
            .map(|room| Demand {
                free: u32::try_from(room.free).unwrap_or_default(),
                weight: room.weight,
                virtual_time: room.virtual_time,
            })
            .collect();
        let shares = share(u32::try_from(room).unwrap_or(u32::MAX), &demands);
        let (workspaces, takes): (Vec<WorkspaceId>, Vec<i32>) = rooms
            .iter()
            .zip(&shares)
            .filter(|(_, share)| **share > 0)
            .map(|(room, share)| (room.workspace_id, i32::try_from(*share).unwrap_or(i32::MAX)))
            .unzip();
        let rows: Vec<Admitted> = sqlx::query_as(statement!("executions/admit"))
            .bind(workspaces)
            .bind(takes)
            .bind(holder)
            .bind(self.shared.settings.claim_lease.as_secs_f64())
            .bind(token)
            .bind(self.shared.engine.name())
            .fetch_all(&mut *transaction)
            .await?;
        transaction.commit().await?;
        {
            let mut memory = self.memory();
            memory.worked_at = Some(Instant::now());
            memory.contended = 0;
        }
        let clocks = rooms
            .iter()
            .zip(&shares)
            .map(|(room, share)| room.virtual_time + f64::from(*share) / room.weight);
        if let Some(behind) = clocks.min_by(f64::total_cmp) {
            self.low_water().served(behind);
        }
        self.remember_appetite(&rooms, &rows);
        Ok(Admission::Rows(token, rows))
    }

    /// As many workspaces as it takes to fill the batch and a few more, judging by the last claims: a workspace that is
    /// locked here cannot be settled there.
    fn workspaces_to_lock(&self, room: usize) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "small numbers"
        )]
        let wanted = (2.0 * room as f64 / self.memory().appetite.max(0.5)) as i64;
        wanted.clamp(
            FEWEST_LOCKED,
            i64::try_from(room).unwrap_or(i64::MAX).max(FEWEST_LOCKED),
        )
    }

    /// A workspace that had more to give could have filled all its free slots; another gave what it had.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn remember_appetite(&self, rooms: &[Room], rows: &[Admitted]) {
        let hungry: HashSet<WorkspaceId> = rows
            .iter()
            .filter(|row| row.more == Some(true))
            .map(|row| row.workspace_id)
            .collect();
        let of_hungry = rooms
            .iter()
            .filter(|room| hungry.contains(&room.workspace_id))
            .map(|room| f64::from(room.free));
        let of_others = rows
            .iter()
            .filter(|row| row.item_id.is_some() && !hungry.contains(&row.workspace_id))
            .count();
        let each = (of_hungry.sum::<f64>() + of_others as f64) / rooms.len().max(1) as f64;
        let mut memory = self.memory();
        memory.appetite = 0.5 * memory.appetite + 0.5 * each;
    }

    async fn is_anybody_eligible(&self) -> Result<bool, db::Error> {
        let query = "select exists (select from stationmaster_internal.workspace_capacity where eligible)";
        within(sqlx::query_scalar(query).fetch_one(self.shared.database.pool())).await
    }

    fn mention_full(&self, rows: &[Admitted]) {
        let full = rows
            .iter()
            .filter(|row| row.more == Some(true) && row.active >= row.max_concurrent);
        let mut memory = self.memory();
        for row in full {
            self.shared.metrics.at_capacity();
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

enum Admission {
    Rows(Token, Vec<Admitted>),
    /// There is something, and others hold it.
    Contended,
    Nothing,
}
