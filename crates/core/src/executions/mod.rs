//! The executions lane: a queue of requests becomes runs on an engine, never more at once than a workspace's limit.
//!
//! ```text
//! enqueue -> [queue_pending] -> claim -> [active STARTING] -> start -> settle -> [active RUNNING] -> close -> [finished]
//!                  ^                            |    (refused, unavailable)            |
//!                  +---------- release ---------+                                      |
//!                  +---------- recover (the holder is gone; the engine is asked first) +
//! ```
//!
//! Reading order: [`enqueue`], `claim`, `load`, `start`, `settle`, `finish`, `close`, then the passes that mend: `recover`,
//! `reconcile`, `housekeeping`; then what people do: [`operate`], [`bulk`], and what they see: [`inspect`], [`browse`]; and
//! [`exclusive`], the mode in which one server works at a time.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::capacity::LowWater;
use crate::db::{self, Database};
use crate::engine::Engine;
use crate::engine::breaker::Breaker;
use crate::id::{ExecutionId, Token};
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::presence::Presence;
use crate::retry::Backoff;
use crate::words::words;

pub mod browse;
pub mod bulk;
mod cancel;
mod claim;
pub mod claim_statements;
mod close;
pub mod enqueue;
pub mod exclusive;
mod finish;
mod housekeeping;
pub mod inspect;
mod lane;
mod load;
mod lost;
pub mod operate;
mod reconcile;
mod recover;
mod settle;
mod start;

pub(crate) use cancel::Cancels;
pub(crate) use close::{LocalCloses, SharedCloses};
pub(crate) use exclusive::Turns;
pub(crate) use housekeeping::Housekeeping;
pub(crate) use lane::ExecutionsLane;
pub(crate) use reconcile::Reconcile;
pub(crate) use recover::{Prober, Recover, Renew};

words! {
    /// How an item of the queue stands.
    pub enum ItemStatus {
        /// It waits.
        Pending = "PENDING",
        /// A server is starting it.
        Claimed = "CLAIMED",
        /// Its execution was started.
        Dispatched = "DISPATCHED",
        /// It cannot be started.
        Failed = "FAILED",
        /// Somebody cancelled it before it was started.
        Cancelled = "CANCELLED",
    }

    /// How an execution stands.
    pub enum ExecutionStatus {
        /// Between two tries to start it.
        Pending = "PENDING",
        /// A server is starting it; it holds a slot.
        Starting = "STARTING",
        /// The engine runs it; it holds a slot.
        Running = "RUNNING",
        /// It returned a result.
        Completed = "COMPLETED",
        /// It failed, or could not be started.
        Failed = "FAILED",
        /// It was cancelled.
        Cancelled = "CANCELLED",
        /// It was terminated.
        Terminated = "TERMINATED",
        /// It ran out of time.
        TimedOut = "TIMED_OUT",
    }

    /// Why this program ended an execution, when it was not the engine that did.
    pub enum EndReason {
        /// The engine refused to start it, as often as it may.
        Refused = "refused",
        /// Too many servers were lost while they started it.
        Quarantined = "quarantined",
        /// Its workspace was deleted.
        WorkspaceGone = "workspace_gone",
        /// Its definition was deleted.
        DefinitionGone = "definition_gone",
        /// Its version was deleted.
        VersionGone = "version_gone",
        /// The engine does not know its run any more.
        EngineLost = "engine_lost",
        /// The engine's word of its end had been lost, and was found.
        Reconciled = "reconciled",
        /// Somebody said how it ended.
        CompletedByRequest = "completed_by_request",
    }

    /// Where an item stands while it waits.
    pub enum Stage {
        /// It can be claimed.
        Ready = "ready",
        /// Its time has not come.
        Later = "later",
        /// Its definition is paused.
        Parked = "parked",
    }

    /// What an item waits for when it is not ready; of what was given back, also the event in its history.
    pub enum WaitsFor {
        /// The time that its request named.
        Schedule = "schedule",
        /// Another try, after the engine refused.
        Backoff = "backoff",
        /// It was claimed and not sent.
        Released = "released",
        /// Its server was shut down.
        HandedOver = "handed_over",
        /// Its server was lost.
        Recovered = "recovered",
    }
}

impl EndReason {
    /// Why an item fails without ever having been started.
    pub const NOT_STARTED: [Self; 5] = [
        Self::Refused,
        Self::Quarantined,
        Self::WorkspaceGone,
        Self::DefinitionGone,
        Self::VersionGone,
    ];
}

/// How the lane behaves. Validated by whoever makes it; the defaults are the product's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Look for work this often even when nobody says that there is any.
    pub poll_interval: Duration,
    /// The most that one claim takes.
    pub batch_size: usize,
    /// Starts that the engine may refuse before an item fails for good.
    pub max_attempts: u32,
    /// Times that a server may be lost with an item in its hands before the item is put aside.
    pub max_recoveries: u32,
    /// How long a claim holds unless it is renewed.
    pub claim_lease: Duration,
    /// How long one start may take.
    pub start_timeout: Duration,
    /// How many starts are under way at once.
    pub start_concurrency: usize,
    /// Waits between tries that the engine refused.
    pub retry: Backoff,
    /// The task queue of definitions that name none.
    pub task_queue: String,
    /// The workflow type of definitions that name none.
    pub workflow_type: String,
    /// How long finished rows are kept.
    pub retention: Duration,
    /// How often our rows and the engine's runs are compared.
    pub reconcile_interval: Duration,
    /// How often the engine is asked which runs have closed.
    pub close_interval: Duration,
    /// One server at a time, in turns; `None`: all of them at once.
    pub exclusive: Option<exclusive::Exclusive>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(5),
            batch_size: 1000,
            max_attempts: 3,
            max_recoveries: 10,
            claim_lease: Duration::from_secs(30),
            start_timeout: Duration::from_secs(10),
            start_concurrency: 64,
            retry: Backoff {
                base: Duration::from_secs(1),
                cap: Duration::from_mins(1),
            },
            task_queue: "stationmaster".to_owned(),
            workflow_type: "stationmaster-workflow".to_owned(),
            retention: Duration::from_hours(7 * 24),
            reconcile_interval: Duration::from_secs(30),
            close_interval: Duration::from_millis(250),
            exclusive: None,
        }
    }
}

/// What the tasks of this lane share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) presence: Presence,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) bells: Bells,
    pub(crate) in_flight: InFlight,
    pub(crate) low_water: Arc<Mutex<LowWater>>,
    /// Held by a claim while it has workspaces locked, and by a settlement that found them so.
    pub(crate) gate: Arc<tokio::sync::Mutex<()>>,
    /// The last claim saw only a few workspaces: claims and settlements would meet at them all the time, and whoever was
    /// served last would always be the one found locked. So they take turns.
    pub(crate) few: Arc<AtomicBool>,
    pub(crate) stop: CancellationToken,
}

impl Shared {
    /// The virtual time below which no workspace enters.
    pub(crate) fn floor(&self) -> f64 {
        self.low_water
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .floor()
    }

    /// Who acts, in words for histories: this server.
    pub(crate) fn actor(&self) -> String {
        self.presence.id().to_string()
    }
}

/// Gives back what a leaving server still holds, until it is done or the caller's patience is.
pub(crate) async fn hand_over(
    shared: &Shared,
    held: &[(ExecutionId, Token, String)],
) -> Result<usize, db::Error> {
    let (ids, tokens): (Vec<ExecutionId>, Vec<Token>) =
        held.iter().map(|(id, token, _)| (*id, *token)).unzip();
    let row = || settle::Release {
        wait: Duration::ZERO,
        attempts: 0,
        recoveries: 0,
        event: WaitsFor::HandedOver,
        detail: "the server was shut down".to_owned(),
    };
    let rows: Vec<settle::Release> = held.iter().map(|_| row()).collect();
    let mut done = 0;
    // A capacity row in other hands is free again in milliseconds.
    for _ in 0..50 {
        done += settle::give_back(shared, &ids, &tokens, &rows).await?;
        if done >= held.len() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(done)
}

/// The claims in this server's hands, for the renewer.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<ExecutionId, (Token, Instant)>>>);

impl InFlight {
    /// A claim is in our hands for as long as the answer lives: whatever becomes of it, a claim that nobody works on is
    /// not renewed, and its lease brings it back.
    pub(crate) fn take(&self, execution: ExecutionId, token: Token) -> Hold {
        self.lock().insert(execution, (token, Instant::now()));
        Hold {
            in_flight: self.clone(),
            execution,
            token,
        }
    }

    /// Claims that have been held for longer than `age`.
    pub(crate) fn older_than(&self, age: Duration) -> (Vec<ExecutionId>, Vec<Token>) {
        let map = self.lock();
        map.iter()
            .filter(|(_, (_, since))| since.elapsed() >= age)
            .map(|(id, (token, _))| (*id, *token))
            .unzip()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ExecutionId, (Token, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim in our hands; dropping it lets go.
#[derive(Debug)]
pub(crate) struct Hold {
    in_flight: InFlight,
    execution: ExecutionId,
    token: Token,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut map = self.in_flight.lock();
        // By now the execution may be in our hands again, under a later claim.
        if map
            .get(&self.execution)
            .is_some_and(|(token, _)| *token == self.token)
        {
            map.remove(&self.execution);
        }
    }
}
