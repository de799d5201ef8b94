//! What an engine must offer so that dispatchers can run on it, and what their runs are given. `temporal` and `embedded` both keep
//! it.
//!
//! An engine knows nothing of leases. It makes the run of one tenure the only one under the dispatcher's id, passes news on to
//! it, and ends runs by their run id, never by their name alone. What a run remembers is [`state`]; what it does to the world, it
//! does through the [`Desk`], which is fenced.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Page, Reach, Told};
use crate::db;
use crate::id::{DispatcherId, Epoch, ServerId};

pub mod state;

use state::{Announcement, Registration, Status};

/// One owner's time with one dispatcher: what every act of it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tenure {
    /// Which dispatcher.
    pub dispatcher_id: DispatcherId,
    /// Its project.
    pub project: String,
    /// Its task queue.
    pub task_queue: String,
    /// Who owns it.
    #[serde(rename = "serverId")]
    pub owner: ServerId,
    /// Under which epoch.
    pub epoch: Epoch,
}

/// Everything an engine needs to start a dispatcher's run.
#[derive(Debug, Clone)]
pub struct RunRequest {
    /// Whose run it is.
    pub tenure: Tenure,
    /// Which start under this epoch it is: a repeat of the same one finds the run of the first.
    pub attempt: u32,
    /// How often it checks itself.
    pub check_interval: Duration,
    /// The most servers that one check evicts.
    pub evict_batch: usize,
    /// Continue as new after this many events of history.
    pub continue_after: u32,
}

/// A run of ours: the dispatcher and the engine's id of its first run. A run that continued as new keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Which dispatcher.
    pub dispatcher_id: DispatcherId,
    /// The first run of the tenure.
    pub run_id: String,
}

/// A run that an engine holds open under an id that begins like a dispatcher's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRun {
    /// Its name on the engine: a dispatcher's id, or one that looks like it.
    pub workflow_id: String,
    /// The run; a destructive act names it.
    pub run_id: String,
    /// The epoch that it was started under, when it says so: ours do.
    pub epoch: Option<Epoch>,
    /// The server that it was started by, when it says so.
    pub server_id: Option<ServerId>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
}

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// It runs.
    Running,
    /// It has ended, or another has taken its name.
    Gone,
}

/// An engine for dispatchers. Every call is bounded in time by the engine itself; `deadline` bounds a start.
pub trait DispatcherEngine: Send + Sync + 'static {
    /// What it is called on record; the same as the [`Engine`](super::Engine) beside it.
    fn name(&self) -> &'static str;

    /// Whose runs it tells of.
    fn reach(&self) -> Reach;

    /// The task queue that this process polls for runs. Nobody else polls it, so a zombie gets no task of a newer owner.
    fn task_queue(&self) -> String;

    /// From now on runs of this process may work, through this desk.
    fn open(&self, desk: Arc<dyn Desk>);

    /// Stops working on runs. They are not ended.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Makes the run of this tenure the only one under the dispatcher's id: whatever runs there is terminated first. Answers the
    /// run id. A repeat of the same request finds the same run.
    fn replace<'a>(&'a self, request: &'a RunRequest, deadline: Duration) -> Told<'a, String>;

    /// Does this run still run?
    fn state<'a>(&'a self, run: &'a Run) -> Told<'a, RunState>;

    /// Tells a run that there is something in the inbox. A run that is gone is no error.
    fn announce<'a>(&'a self, run: &'a Run, news: Announcement) -> Told<'a, ()>;

    /// Tells whatever run the dispatcher has that a server stands by. No run is no error.
    fn register<'a>(&'a self, dispatcher: &'a DispatcherId, server: Registration) -> Told<'a, ()>;

    /// Tells whatever run the dispatcher has that a server leaves. No run is no error.
    fn leave<'a>(&'a self, dispatcher: &'a DispatcherId, server: ServerId) -> Told<'a, ()>;

    /// Ends a run of ours, and no other. A run that is gone is no error.
    fn end<'a>(&'a self, run: &'a Run, reason: &'a str) -> Told<'a, ()>;

    /// Ends exactly this run, whoever started it. A run that is gone is no error.
    fn terminate<'a>(&'a self, run: &'a OpenRun, reason: &'a str) -> Told<'a, ()>;

    /// The open runs whose names begin like a dispatcher's, page by page.
    fn open_runs(&self, page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>>;

    /// What the dispatcher's run tells of itself; `None` when there is no run that answers here.
    fn status<'a>(&'a self, dispatcher: &'a DispatcherId) -> Told<'a, Option<Status>>;
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// This process may not act now: its lease is about to end, or has. It may be renewed.
    #[error("this server does not hold the dispatcher now")]
    NotNow,
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// What a look into the inbox came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routed {
    /// Became queue items.
    pub routed: u64,
    /// Became dead letters.
    pub dead: u64,
    /// The inbox was not emptied.
    pub more: bool,
    /// Another epoch owns the dispatcher: this run is over.
    pub superseded: bool,
}

/// What a self-check saw.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checked {
    /// Another epoch owns the dispatcher: this run is over.
    pub superseded: bool,
    /// The servers that stand by.
    pub registered: Vec<Registration>,
    /// Those of them that were not heard of for too long.
    pub silent: Vec<ServerId>,
}

/// What an eviction came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evicted {
    /// Another epoch owns the dispatcher: this run is over.
    pub superseded: bool,
    /// Who was evicted.
    pub servers: Vec<ServerId>,
}

/// What an act of a desk comes to.
pub type Acted<'a, T> = BoxFuture<'a, Result<T, DeskError>>;

/// What a dispatcher's run may do to the world, whichever engine it runs on. Every act is fenced twice: by this process's own
/// monotonic clock before it is sent, and by the epoch in the statement that writes.
pub trait Desk: Send + Sync + 'static {
    /// Routes what waits in the inbox, until it is empty or the look has lasted long enough.
    fn route<'a>(&'a self, tenure: &'a Tenure) -> BoxFuture<'a, Result<Routed, DeskError>>;

    /// Looks whether the run is still the owner's, who stands by, and who was not heard of.
    fn check<'a>(&'a self, tenure: &'a Tenure) -> BoxFuture<'a, Result<Checked, DeskError>>;

    /// Takes silent servers off the list.
    fn evict<'a>(
        &'a self,
        tenure: &'a Tenure,
        servers: &'a [ServerId],
    ) -> BoxFuture<'a, Result<Evicted, DeskError>>;
}
