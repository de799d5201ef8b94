//! The executions lane: a queue of requests becomes runs on an engine, never more at once than a workspace's limit.
//!
//! ```text
//! enqueue -> [queue_pending] -> claim -> [active STARTING] -> start -> settle -> [active RUNNING] -> close -> [finished]
//!                  ^                            |    (refused, unavailable)            |
//!                  +---------- release ---------+                                      |
//!                  +---------- recover (the holder is gone; the engine is asked first) +
//! ```
//!
//! Reading order: [`enqueue`], `claim` (the loop), `admit` (its transaction), `load`, `start`, `settle`, `finish`, `close`, then the
//! passes that mend: `recover`, `reconcile` with [`strays`], `housekeeping`; then what people do: [`operate`], [`bulk`], and what they see:
//! [`inspect`], [`browse`]; [`exclusive`], the mode in which one server works at a time; and `assembly`, which puts the lane together
//! on what its tasks share, `context`.

use std::time::Duration;

use crate::retry::Backoff;
use crate::words;

mod admit;
mod assembly;
pub mod browse;
pub mod bulk;
mod busy;
mod cancel;
mod claim;
mod close;
mod context;
mod end;
pub mod enqueue;
pub mod exclusive;
mod finish;
pub mod gather;
mod housekeeping;
pub mod inspect;
mod lane;
mod load;
mod lost;
pub mod measure;
pub mod nodes;
pub mod operate;
mod reconcile;
mod recover;
mod settle;
mod start;
pub mod strays;
pub mod workers;

pub(crate) use assembly::Executions;
use context::{ExecutionsContext, Hold};
pub(crate) use finish::end_lost;
pub use stationmaster_wire::{ExecutionStatus, ItemStatus};

words! {
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
        /// Its run had ended, was reset on the engine, and ended anew.
        Reset = "reset",
        /// Somebody had its run ended by force.
        TerminatedByRequest = "terminated_by_request",
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
