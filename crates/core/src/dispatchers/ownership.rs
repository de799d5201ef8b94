//! Ownership: the leases that this server holds on dispatchers, what it may believe of them, and the pass that takes and keeps them.
//!
//! A dispatcher is taken only when its lease ran out or was handed over; then its epoch grows. The end of a lease is kept on the
//! monotonic clock, counted from *before* the statement was sent and a tenth earlier, so an owner that cannot renew stops acting
//! before anybody else may begin. A healthy second server takes nothing: it registers and stands by.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::Instrument as _;

use super::assembly::{DispatchersContext, hand_over_all};
use super::{DispatcherId, Epoch, Tenure};
use crate::columns::Span;
use crate::db::{self, Read as _, column, statement};
use crate::id::ServerId;
use crate::observe::trace;
use crate::task::{Next, Pass};
use crate::words;

/// The most that one round takes.
const TAKE: i64 = 100;
/// A round is never longer away than this, so that what is handed over does not wait for its next owner.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// The same while there is nothing to hand over; the first signal rings.
const NONE_YET: Duration = Duration::from_secs(5);
const SHORTEST_WAIT: Duration = Duration::from_millis(20);

words! {
    /// How a dispatcher came to its owner.
    pub(super) enum Kind {
        /// Nobody had it before.
        Fresh = "fresh",
        /// Its owner had handed it over.
        Handover = "handover",
        /// Its owner's lease had run out.
        Takeover = "takeover",
        /// It rested, and a signal came.
        Woken = "woken",
    }
}

/// What a process may believe of a tenure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is time left on its lease.
    Holds,
    /// There is none, as far as it knows; the lease may still be renewed.
    Lapsed,
    /// It is not the owner any more.
    Lost,
}

/// A dispatcher in this server's hands.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) tenure: Tenure,
    until: Instant,
    pub(super) kind: Kind,
    /// How long nobody had owned it when it was taken.
    pub(super) vacant_for: Duration,
    pub(super) taken_at: Instant,
    /// When signals were last seen to wait for it.
    pub(super) busy_at: Instant,
    /// The first run of this tenure, once the engine has it.
    pub(super) run: Option<String>,
    /// Which start of a run it is.
    pub(super) attempt: u32,
    /// Starts that failed in a row, and when to try again.
    pub(super) failures: u32,
    pub(super) not_before: Option<Instant>,
    pub(super) problem: Option<String>,
    /// Somebody wishes that it be removed.
    pub(super) unwanted: bool,
}

/// The leases of this server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ownership(Arc<Mutex<BTreeMap<DispatcherId, Held>>>);

impl Ownership {
    /// What this process may believe of a tenure.
    pub(super) fn standing(&self, tenure: &Tenure) -> Standing {
        if self.holds(tenure) {
            return Standing::Holds;
        }
        match self.0.lock().get(&tenure.dispatcher_id) {
            Some(held) if held.tenure == *tenure => Standing::Lapsed,
            _ => Standing::Lost,
        }
    }

    /// May this process act for this tenure now?
    pub(super) fn holds(&self, tenure: &Tenure) -> bool {
        self.time_left(tenure).is_some()
    }

    /// For how long this process may act for this tenure.
    pub(super) fn time_left(&self, tenure: &Tenure) -> Option<Duration> {
        let map = self.0.lock();
        let held = map.get(&tenure.dispatcher_id)?;
        let left = held.until.checked_duration_since(Instant::now())?;
        (held.tenure == *tenure && !left.is_zero()).then_some(left)
    }

    /// Everything that is held, with time left.
    pub(super) fn held(&self) -> Vec<Held> {
        let now = Instant::now();
        self.0
            .lock()
            .values()
            .filter(|held| held.until > now)
            .cloned()
            .collect()
    }

    /// Changes what is remembered of a tenure that is still held.
    pub(super) fn note(&self, tenure: &Tenure, change: impl FnOnce(&mut Held)) {
        let mut map = self.0.lock();
        if let Some(held) = map.get_mut(&tenure.dispatcher_id)
            && held.tenure == *tenure
        {
            change(held);
        }
    }

    pub(super) fn forget(&self, tenure: &Tenure) {
        let mut map = self.0.lock();
        if map
            .get(&tenure.dispatcher_id)
            .is_some_and(|held| held.tenure == *tenure)
        {
            map.remove(&tenure.dispatcher_id);
        }
    }

    fn put(&self, held: Held) {
        self.0.lock().insert(held.tenure.dispatcher_id.clone(), held);
    }

    /// Every tenure in memory, whether or not there is time left.
    fn all(&self) -> Vec<Tenure> {
        self.0.lock().values().map(|held| held.tenure.clone()).collect()
    }
}

/// Renews what is held, registers where this server stands by, takes what nobody owns.
pub(super) struct Keep {
    pub(super) context: DispatchersContext,
    pub(super) renewed_at: Option<Instant>,
    /// Everything was handed over, because somebody wishes that this server takes no work.
    pub(super) gave_up: bool,
}

/// What there is to do.
#[derive(sqlx::FromRow)]
struct Look {
    dispatchers: i64,
    unregistered: bool,
    vacant: bool,
    /// In how many seconds the next lease of another server runs out.
    next_vacancy: Option<f64>,
}

#[derive(sqlx::FromRow)]
struct Taken {
    id: DispatcherId,
    project: String,
    task_queue: String,
    epoch: Epoch,
    former_owner: Option<ServerId>,
    kind: Kind,
    #[sqlx(try_from = "Span")]
    vacant_for: Duration,
}

impl Pass for Keep {
    fn name(&self) -> &'static str {
        "ownership of dispatchers"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let context = &self.context;
        // Told whatever becomes of this round: leases run out by themselves, and a server that is cut off must not tell of what others have by now.
        context.metrics.dispatchers.active(context.ownership.held().len());
        let Some(server) = context.presence.holder() else {
            // A server that lapsed comes back under a new id; what it owned under the old one is not its own any more.
            return Ok(Next::After(SHORTEST_WAIT));
        };
        if context.presence.is_draining() {
            // Once is enough: it takes none until it is wished otherwise.
            if !std::mem::replace(&mut self.gave_up, true) {
                hand_over_all(context, "its server takes no more work").await;
                context.metrics.dispatchers.active(0);
            }
            return Ok(Next::After(LONGEST_WAIT));
        }
        self.gave_up = false;
        let lease = context.settings.lease;
        if self.renewed_at.is_none_or(|at| at.elapsed() >= lease / 4) {
            self.renew(server).await?;
            self.renewed_at = Some(Instant::now());
        }
        let look: Look = sqlx::query_as(statement!("dispatchers/look"))
            .bind(server)
            .one(&context.database)
            .await?;
        if look.unregistered {
            self.register(server).await?;
        }
        // A server that cannot reach the engine leaves dispatchers to those who can.
        if look.vacant && context.contact.breaker.is_closed() {
            let round = tracing::debug_span!("flow:take_dispatchers");
            self.take(server).instrument(round).await?;
        }
        let active = context.ownership.held().len();
        context.metrics.dispatchers.active(active);
        let vacancy = look
            .next_vacancy
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let longest = if look.dispatchers == 0 {
            NONE_YET
        } else {
            LONGEST_WAIT
        };
        let wait = (lease / 5).min(longest);
        Ok(Next::After(vacancy.unwrap_or(wait).min(wait).max(SHORTEST_WAIT)))
    }
}

impl Keep {
    /// The end of a lease as this process may believe it.
    fn until(&self, asked_at: Instant) -> Instant {
        asked_at + self.context.settings.lease.mul_f64(0.9)
    }

    async fn renew(&self, server: ServerId) -> Result<(), db::Error> {
        let context = &self.context;
        let tenures = context.ownership.all();
        if tenures.is_empty() {
            return Ok(());
        }
        let asked_at = Instant::now();
        let query = sqlx::query_as(statement!("dispatchers/renew"))
            .bind(server)
            .bind(column(&tenures, |tenure| tenure.dispatcher_id.0.as_str()))
            .bind(column(&tenures, |tenure| tenure.epoch))
            .bind(context.settings.lease.as_secs_f64());
        let kept: Vec<(DispatcherId, bool)> = query.all(&context.database.keepers()).await?;
        let kept: HashMap<DispatcherId, bool> = kept.into_iter().collect();
        if kept.values().any(|unwanted| *unwanted) {
            context.bells.runs.ring();
        }
        for tenure in &tenures {
            let unwanted = kept.get(&tenure.dispatcher_id);
            if let Some(unwanted) = unwanted.filter(|_| tenure.owner == server) {
                context.ownership.note(tenure, |held| {
                    held.until = self.until(asked_at);
                    held.unwanted = *unwanted;
                });
            } else {
                context.ownership.forget(tenure);
                context.metrics.stale_write("lease");
                tracing::warn!(dispatcher = %tenure.dispatcher_id, epoch = tenure.epoch.0, "Lost a dispatcher: its lease had run out");
            }
        }
        Ok(())
    }

    async fn register(&self, server: ServerId) -> Result<(), db::Error> {
        let context = &self.context;
        let query = sqlx::query_scalar(statement!("dispatchers/register"))
            .bind(server)
            .bind(context.engine.task_queue());
        let new: Vec<DispatcherId> = query.all(&context.database).await?;
        if !new.is_empty() {
            context.newcomers.lock().extend(new);
            context.bells.runs.ring();
        }
        Ok(())
    }

    async fn take(&self, server: ServerId) -> Result<(), db::Error> {
        let context = &self.context;
        let asked_at = Instant::now();
        let query = sqlx::query_as(statement!("dispatchers/take"))
            .bind(server)
            .bind(context.settings.lease.as_secs_f64())
            .bind(TAKE)
            .bind(context.engine.name())
            .bind(trace::own());
        let taken: Vec<Taken> = query.all(&context.database).await?;
        for row in &taken {
            let kind = row.kind;
            tracing::info!(
                dispatcher = %row.id, epoch = row.epoch.0, former = row.former_owner.map(|id| id.to_string()),
                vacant_for = row.vacant_for.as_secs_f64(), "Dispatcher {}", if kind == Kind::Fresh { "started" } else { "taken over" }
            );
            context.ownership.put(Held {
                tenure: Tenure {
                    dispatcher_id: row.id.clone(),
                    project: row.project.clone(),
                    task_queue: row.task_queue.clone(),
                    owner: server,
                    epoch: row.epoch,
                },
                until: self.until(asked_at),
                kind,
                vacant_for: row.vacant_for,
                taken_at: asked_at,
                busy_at: asked_at,
                run: None,
                attempt: 0,
                failures: 0,
                not_before: None,
                problem: None,
                unwanted: false,
            });
        }
        if !taken.is_empty() {
            context.bells.runs.ring();
            context.bells.beat.ring();
        }
        Ok(())
    }
}
