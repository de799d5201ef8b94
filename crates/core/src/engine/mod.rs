//! Engines: where executions and dispatchers run. The one room in which this program meets what runs things.
//!
//! What a new engine must bring:
//!
//! * [`Engine`], for executions: start under an id that was committed before, describe, cancel, terminate, tell what has closed
//!   and what is open, and answer whether it is there ([`executions`]).
//! * [`DispatcherEngine`](dispatchers::DispatcherEngine), for the runs of dispatchers: make one run the only one of its name, pass news
//!   on, end by run id ([`dispatchers`]). What such a run does to the world it does through the [`Desk`](dispatchers::Desk) that it is
//!   given.
//! * A name of its own, the same in both, and its [`Reach`]. An engine that lives inside a server adds its name to `LOCAL`: the
//!   statements that look after what a lost server held are given that list.
//! * Its [`Identity`], when it is a service of its own: what tells it from every other one, wherever it is found ([`record`]).
//! * A choice in the server's configuration and wiring.
//!
//! It need not bring a breaker: [`breaker`] stands before every engine, and one prober for each server asks whether it is back.
//!
//! Engines know neither leases, nor limits, nor the inbox of signals, nor the modules `executions`, `dispatchers` and `signals`.

use futures::future::BoxFuture;

pub mod breaker;
mod contact;
pub mod dispatchers;
pub mod embedded;
pub mod executions;
pub mod record;

pub(crate) use contact::{Contact, Prober, Recognised};
pub use record::{Identity, OtherEngine};
/// How a run ended; the status of its execution from then on.
pub use stationmaster_wire::CompleteStatus as CloseStatus;
/// What keeps a run from going on.
pub use stationmaster_wire::Obstacle;
/// An output that stayed with the engine.
pub use stationmaster_wire::OmittedOutput;

pub use executions::{Close, Engine, OpenRun, Origin, RunState, StartOutcome, StartRequest};

/// The engines whose runs live inside the server that started them and end with it.
pub(crate) const LOCAL: [&str; 1] = [embedded::NAME];

/// A page of something, and where the next one starts.
#[derive(Debug)]
pub struct Page<T> {
    /// What is on this page.
    pub rows: Vec<T>,
    /// Pass it back to read on; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// What is on all pages.
pub(crate) async fn all_pages<'a, T>(
    read: impl Fn(Option<Vec<u8>>) -> Told<'a, Page<T>>,
) -> Result<Vec<T>, EngineUnavailable> {
    let mut all = Vec::new();
    let mut next = None;
    loop {
        let page = read(next).await?;
        all.extend(page.rows);
        next = page.next;
        if next.is_none() {
            return Ok(all);
        }
    }
}

/// The engine did not answer, or answered that it cannot now. Always worth another try later.
#[derive(Debug, thiserror::Error)]
pub enum EngineUnavailable {
    /// Nothing can be had of it.
    #[error("the engine is unavailable: {0}")]
    Away(String),
    /// It is there and asks for fewer calls of this kind; others may well be answered.
    #[error("the engine asks for fewer calls: {0}")]
    Throttled(String),
}

impl EngineUnavailable {
    /// What the engine or the connection said.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Away(reason) | Self::Throttled(reason) => reason,
        }
    }
}

/// What an engine tells, once it has answered.
pub type Told<'a, T> = BoxFuture<'a, Result<T, EngineUnavailable>>;

/// Whose runs an engine tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A service of its own: every server sees every run, and one server watches for all.
    Shared,
    /// It lives inside this process: each server sees, watches and looks after only the runs it started itself.
    Local,
}
