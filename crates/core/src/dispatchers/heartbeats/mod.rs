//! Heartbeats: written by the owning process itself, so that they end with it. They tell the supervisor what to look at, and are
//! never the fence: whether a dispatcher may be taken over, and whether a run may be ended, is decided by the leases in
//! PostgreSQL. A store that is away, was restarted or flushed makes dispatchers look silent, never dead.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::assembly::DispatchersContext;
use super::{DispatcherId, Epoch, Tenure};
use crate::db;
use crate::id::ServerId;
use crate::task::{Next, Pass};

pub(super) mod postgres;
pub mod redis;

/// A look at the clock at least this often, so that the pulse of the task shows.
const BEAT: Duration = Duration::from_secs(5);

/// A heartbeat as it was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, sqlx::FromRow)]
pub struct Heartbeat {
    /// Which dispatcher.
    pub dispatcher_id: DispatcherId,
    /// Its project.
    pub project: String,
    /// Its task queue.
    pub task_queue: String,
    /// Who wrote it.
    pub server_id: ServerId,
    /// Under which epoch.
    pub epoch: Epoch,
    /// How long ago, by the store's own clock.
    #[serde(skip)]
    #[sqlx(try_from = "crate::columns::Span")]
    pub age: Duration,
}

/// The store did not answer, or answered what cannot be understood.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the heartbeats in {store} cannot be reached: {reason}")]
pub struct Unavailable {
    /// PostgreSQL or Redis.
    pub store: &'static str,
    /// What it said.
    pub reason: String,
}

/// Whether a heartbeat was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// It was written.
    Written,
    /// A newer epoch has one there: this owner is not the owner any more.
    Superseded,
}

/// What a store answers.
pub type Answered<'a, T> = BoxFuture<'a, Result<T, Unavailable>>;

/// Where heartbeats are kept. Every call is bounded in time.
pub trait Heartbeats: Send + Sync + 'static {
    /// Writes a heartbeat, unless there is one of a newer epoch.
    fn beat<'a>(&'a self, tenure: &'a Tenure) -> BoxFuture<'a, Result<Beat, Unavailable>>;

    /// Is the store there?
    fn check(&self) -> BoxFuture<'_, Result<(), Unavailable>>;

    /// Every heartbeat there is.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Heartbeat>, Unavailable>>;

    /// Removes the heartbeat of exactly this epoch and server. `false`: it is not there any more.
    fn remove<'a>(
        &'a self,
        dispatcher: &'a DispatcherId,
        epoch: Epoch,
        server: ServerId,
    ) -> BoxFuture<'a, Result<bool, Unavailable>>;
}

/// What is known of the store, for readiness.
#[derive(Debug, Clone, Default)]
pub(super) struct Health(Arc<Mutex<Option<String>>>);

impl Health {
    pub(super) fn problem(&self) -> Option<String> {
        self.0.lock().clone()
    }

    /// Notes an answer of the store; says so when it went away or came back.
    pub(super) fn note<T>(&self, answer: &Result<T, Unavailable>) {
        let now = answer.as_ref().err().map(ToString::to_string);
        let before = std::mem::replace(&mut *self.0.lock(), now.clone());
        match (before, now) {
            (None, Some(problem)) => {
                tracing::error!(
                    problem,
                    "Heartbeats cannot be kept; dispatchers go on under their leases"
                );
            }
            (Some(_), None) => tracing::info!("Heartbeats are kept again"),
            _ => {}
        }
    }
}

/// Writes the heartbeats of what this server owns.
pub(super) struct Beats {
    context: DispatchersContext,
    last: Option<Instant>,
    /// How many dispatchers had one at the last round; a new one does not wait.
    written: Vec<Tenure>,
}

impl Beats {
    pub(super) fn new(context: DispatchersContext) -> Self {
        Self {
            context,
            last: None,
            written: Vec::new(),
        }
    }
}

impl Pass for Beats {
    fn name(&self) -> &'static str {
        "heartbeats of dispatchers"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let interval = self.context.settings.heartbeat_interval;
        let due = self.last.is_none_or(|at| at.elapsed() >= interval);
        let held: Vec<Tenure> = self
            .context
            .ownership
            .held()
            .into_iter()
            .map(|held| held.tenure)
            .collect();
        for tenure in held.iter().filter(|tenure| due || !self.written.contains(tenure)) {
            let answer = self.context.heartbeats.beat(tenure).await;
            self.context.health.note(&answer);
            match answer {
                Ok(Beat::Written) => {}
                Ok(Beat::Superseded) => self.context.metrics.stale_write("heartbeat"),
                // The rest would have to wait as long; they are tried at the next round.
                Err(_) => break,
            }
        }
        if due && held.is_empty() {
            // Whoever stands by needs the store as soon as it takes over, so it should say before that it is away.
            let answer = self.context.heartbeats.check().await;
            self.context.health.note(&answer);
        }
        if due {
            self.last = Some(Instant::now());
        }
        self.written = held;
        let left = self
            .last
            .map_or(Duration::ZERO, |at| interval.saturating_sub(at.elapsed()));
        Ok(Next::After(left.clamp(Duration::from_millis(10), BEAT)))
    }
}
