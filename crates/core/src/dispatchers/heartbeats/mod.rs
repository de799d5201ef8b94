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

/// Everything that was found in the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Heartbeats of ours.
    pub heartbeats: Vec<Heartbeat>,
    /// What lies beside them and cannot be read as one.
    pub unread: Vec<Unread>,
}

/// Something in the place of a heartbeat that is none of ours: an older deployment's, or somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unread {
    /// Whose it is, by its name.
    pub dispatcher_id: DispatcherId,
    /// What is written there. It is removed only while it says the same: whoever wrote it may still be at work.
    pub text: String,
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

/// What a store answers.
pub type Answered<'a, T> = BoxFuture<'a, Result<T, Unavailable>>;

/// Where heartbeats are kept. Every call is bounded in time.
pub trait Heartbeats: Send + Sync + 'static {
    /// Writes the heartbeats of these tenures, and leaves alone where there is one of a newer epoch. Answers how many were written.
    fn beat<'a>(&'a self, tenures: &'a [Tenure]) -> BoxFuture<'a, Result<usize, Unavailable>>;

    /// Is the store there?
    fn check(&self) -> BoxFuture<'_, Result<(), Unavailable>>;

    /// Every heartbeat there is, and what lies beside them.
    fn list(&self) -> BoxFuture<'_, Result<Found, Unavailable>>;

    /// Removes the heartbeat of exactly this epoch and server. `false`: it is not there any more.
    fn remove<'a>(
        &'a self,
        dispatcher: &'a DispatcherId,
        epoch: Epoch,
        server: ServerId,
    ) -> BoxFuture<'a, Result<bool, Unavailable>>;

    /// Removes what is no heartbeat of ours, while it is as it was found. `false`: it is not there any more, or says something else.
    fn remove_unread<'a>(&'a self, found: &'a Unread) -> BoxFuture<'a, Result<bool, Unavailable>>;
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
        let to_write: Vec<Tenure> = held
            .iter()
            .filter(|tenure| due || !self.written.contains(tenure))
            .cloned()
            .collect();
        if !to_write.is_empty() {
            let answer = self.context.heartbeats.beat(&to_write).await;
            self.context.health.note(&answer);
            // What is missing has a heartbeat of a newer epoch: somebody else owns it.
            for _ in answer.unwrap_or(to_write.len())..to_write.len() {
                self.context.metrics.stale_write("heartbeat");
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
