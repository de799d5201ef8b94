//! Admit: pending items become STARTING executions, within the limits, in one short transaction.
//!
//! Exact (I3): the capacity rows are locked and read in one statement, and a later statement takes no more than what
//! was free under that lock. Fair: lowest virtual time first, shared by weight. Flat: only workspaces that are ready
//! *and* have room are in the index that is looked at, and each is read from its remembered head.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use parking_lot::Mutex;
use tracing::Instrument as _;

use super::ExecutionsContext;
use crate::capacity::{Demand, share};
use crate::db::{self, Read as _, statement, within};
use crate::id::{DefinitionId, EngineId, ExecutionId, ItemId, ServerId, Token, VersionId, WorkspaceId};

/// Hints taken in at once.
const HINTS: i64 = 2_000;
/// Fewer workspaces than this, and claims and settlements take turns.
const FEW: usize = 16;
/// Even when a single workspace could fill a batch, several share it.
const FEWEST_LOCKED: i64 = 16;

/// What an admission came to.
pub(super) enum Admitted {
    Rows(Token, Vec<AdmittedRow>),
    /// There is something, and others hold it.
    Contended,
    Nothing,
}

/// An admission that failed, at a point where it may have been committed when its token is known.
pub(super) struct Uncertain {
    pub(super) error: db::Error,
    pub(super) token: Option<Token>,
}

#[derive(sqlx::FromRow)]
struct Room {
    workspace_id: WorkspaceId,
    free: i32,
    weight: f64,
    virtual_time: f64,
}

impl Room {
    fn demand(&self) -> Demand {
        Demand {
            free: u32::try_from(self.free).unwrap_or_default(),
            weight: self.weight,
            virtual_time: self.virtual_time,
        }
    }
}

#[derive(sqlx::FromRow)]
pub(super) struct AdmittedRow {
    pub(super) workspace_id: WorkspaceId,
    /// How the workspace stands, in the rows that say so.
    pub(super) active: Option<i32>,
    pub(super) max_concurrent: Option<i32>,
    pub(super) more: Option<bool>,
    /// What was admitted, in the rows that say that. No execution id: the first try, under the item's own.
    pub(super) execution_id: Option<ExecutionId>,
    pub(super) item_id: Option<ItemId>,
    pub(super) workflow_definition_id: Option<DefinitionId>,
    pub(super) workflow_definition_version_id: Option<VersionId>,
    pub(super) attempts: Option<i32>,
    /// When its time was to come; none: at once.
    pub(super) run_at: Option<jiff_sqlx::Timestamp>,
}

#[derive(Default)]
struct Memory {
    /// The lowest hint to look at.
    hints_from: i64,
    /// Items that a workspace could have taken in the last claims, on average.
    appetite: f64,
}

/// Makes admissions.
pub(super) struct Admission {
    context: ExecutionsContext,
    memory: Mutex<Memory>,
}

impl Admission {
    pub(super) fn new(context: ExecutionsContext) -> Self {
        Self {
            context,
            memory: Mutex::default(),
        }
    }

    /// Admits at most `room` items.
    pub(super) async fn admit(&self, holder: ServerId, room: usize) -> Result<Admitted, Uncertain> {
        let mut token = None;
        let admission = self.in_transaction(holder, room, &mut token);
        let admitted = within(admission).await;
        admitted.map_err(|error| Uncertain { error, token })
    }

    async fn in_transaction(
        &self,
        holder: ServerId,
        room: usize,
        known_token: &mut Option<Token>,
    ) -> Result<Admitted, db::Error> {
        let Some(engine) = self.context.contact.engine_id() else {
            return Ok(Admitted::Nothing);
        };
        let (from, floor) = {
            let low_water = self.context.low_water.lock();
            (low_water.from(), low_water.floor())
        };
        // A settlement of ours that found a workspace locked by this claim waits for its turn.
        let _turn = self.context.capacity_turn.lock().await;
        let hints_from = self.memory.lock().hints_from;
        let mut transaction = self.context.database.begin().await?;
        let (last, seen, used, staying, token, reached): (Option<i64>, i64, i64, i64, Token, f64) =
            sqlx::query_as(statement!("capacity/absorb_hints"))
                .bind(hints_from)
                .bind(HINTS)
                .bind(floor)
                .fetch_one(&mut *transaction)
                .await?;
        *known_token = Some(token);
        self.context.low_water.lock().served(reached);
        // Thousands of hints that stay, for workspaces that somebody keeps locked or for items that are taken later, must not hide those
        // behind them.
        self.memory.lock().hints_from = if seen == HINTS && used - staying < seen {
            last.unwrap_or_default() + 1
        } else {
            0
        };
        if used > 0 {
            self.context.attention.worked();
        }
        let looked_at = Instant::now();
        let rooms: Vec<Room> = sqlx::query_as(statement!("capacity/lock_eligible"))
            .bind(from)
            .bind(self.workspaces_to_lock(room))
            .bind(engine)
            .fetch_all(&mut *transaction)
            .instrument(tracing::debug_span!("step:check_capacity"))
            .await?;
        self.context.low_water.lock().looked(
            from,
            looked_at.elapsed(),
            rooms.first().map(|room| room.virtual_time),
        );
        self.context
            .few_workspaces
            .store(rooms.len() < FEW, Ordering::Relaxed);
        if rooms.is_empty() {
            transaction.commit().await?;
            let contended = used < seen || self.may_serve(engine).await?;
            return Ok(if contended {
                Admitted::Contended
            } else {
                Admitted::Nothing
            });
        }
        let demands: Vec<Demand> = rooms.iter().map(Room::demand).collect();
        let shares = share(u32::try_from(room).unwrap_or(u32::MAX), &demands);
        let (workspaces, takes): (Vec<WorkspaceId>, Vec<i32>) = rooms
            .iter()
            .zip(&shares)
            .filter(|(_, share)| **share > 0)
            .map(|(room, share)| (room.workspace_id, i32::try_from(*share).unwrap_or(i32::MAX)))
            .unzip();
        let rows: Vec<AdmittedRow> = sqlx::query_as(statement!("executions/admit"))
            .bind(workspaces)
            .bind(takes)
            .bind(holder)
            .bind(self.context.settings.claim_lease.as_secs_f64())
            .bind(token)
            .bind(self.context.engine.name())
            .bind(engine)
            .fetch_all(&mut *transaction)
            .await?;
        transaction.commit().await?;
        self.context.attention.worked();
        let clocks = rooms
            .iter()
            .zip(&shares)
            .map(|(room, share)| room.virtual_time + f64::from(*share) / room.weight);
        if let Some(behind) = clocks.min_by(f64::total_cmp) {
            self.context.low_water.lock().served(behind);
        }
        self.remember_appetite(&rooms, &rows);
        Ok(Admitted::Rows(token, rows))
    }

    /// As many workspaces as it takes to fill the batch and a few more, judging by the last claims: a workspace that is
    /// locked here cannot be settled there.
    fn workspaces_to_lock(&self, room: usize) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "small numbers"
        )]
        let wanted = (2.0 * room as f64 / self.memory.lock().appetite.max(0.5)) as i64;
        wanted.clamp(
            FEWEST_LOCKED,
            i64::try_from(room).unwrap_or(i64::MAX).max(FEWEST_LOCKED),
        )
    }

    /// A workspace that had more to give could have filled all its free slots; another gave what it had.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn remember_appetite(&self, rooms: &[Room], rows: &[AdmittedRow]) {
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
        let mut memory = self.memory.lock();
        memory.appetite = 0.5 * memory.appetite + 0.5 * each;
    }

    /// Is there something that could be served, if only others let go of it?
    async fn may_serve(&self, engine: EngineId) -> Result<bool, db::Error> {
        let query = sqlx::query_as(statement!("engines/may_serve")).bind(engine);
        let (is_anybody_eligible, is_current): (bool, bool) = query.one(&self.context.database).await?;
        if !is_current {
            self.context.contact.superseded();
        }
        Ok(is_anybody_eligible && is_current)
    }
}
