//! Executions on the embedded engine: begun within the start, watched in memory, told when they are over.
//!
//! A run is durable without being written down at first: its claim is committed before it begins, and when its server is lost
//! another claims it again under the same execution id.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::NAME;
use super::nodes::{KNOWN, unknown};
use super::run::{Progress, Run, run_at_once};
use crate::db::Database;
use crate::engine::{Close, Engine, OpenRun, Page, Reach, RunState, StartOutcome, StartRequest, Told};
use crate::id::{ExecutionId, ServerId, Token};
use crate::presence::Presence;
use crate::task::Bell;
use crate::wake;
use crate::wake::guard::Guard;

/// Connections to each target that are kept open unused.
const IDLE: usize = 8;

/// See the module.
pub struct EmbeddedEngine {
    inner: Arc<Inner>,
}

/// What the engine and its runs share.
pub(super) struct Inner {
    pub(super) database: Database,
    pub(super) presence: Presence,
    pub(super) runs: Mutex<HashMap<ExecutionId, Handle>>,
    pub(super) closes: Mutex<Vec<Close>>,
    pub(super) closed: Bell,
    pub(super) http: wake::Client,
}

pub(super) struct Handle {
    pub(super) token: Token,
    /// Under which id of this server it was begun: past that lease it is not ours any more.
    holder: ServerId,
    cancel: CancellationToken,
}

impl EmbeddedEngine {
    /// An engine that runs what this server claims, and calls public addresses only.
    pub fn new(database: Database, presence: Presence) -> Result<Self, reqwest::Error> {
        Self::guarded(database, presence, Guard::default())
    }

    /// The same; its nodes may call what the guard lets through.
    pub fn guarded(database: Database, presence: Presence, targets: Guard) -> Result<Self, reqwest::Error> {
        let http = wake::Client::new(targets, IDLE)?;
        let inner = Inner {
            database,
            presence,
            runs: Mutex::default(),
            closes: Mutex::default(),
            closed: Bell::default(),
            http,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    async fn begin(&self, request: &StartRequest) -> StartOutcome {
        if let Some(node) = request
            .graph
            .nodes()
            .iter()
            .find(|node| !KNOWN.contains(&node.kind.as_str()))
        {
            return StartOutcome::Refused {
                message: format!("{} (node {:?})", unknown(&node.kind), node.id),
            };
        }
        if let Some(close) = run_at_once(request) {
            return StartOutcome::Closed(close);
        }
        let Some(holder) = self.inner.presence.holder() else {
            return StartOutcome::Unavailable {
                message: "this server's lease has run out".to_owned(),
            };
        };
        let progress = match Progress::of(&self.inner.database, request).await {
            Ok(progress) => progress,
            Err(error) => {
                return StartOutcome::Unavailable {
                    message: error.to_string(),
                };
            }
        };
        let cancel = CancellationToken::new();
        let handle = Handle {
            token: request.token,
            holder,
            cancel: cancel.clone(),
        };
        if let Some(former) = self.inner.runs.lock().insert(request.execution_id, handle) {
            former.cancel.cancel();
        }
        let run = Run {
            inner: Arc::clone(&self.inner),
            request: request.clone(),
            holder,
            cancel,
        };
        tokio::spawn(run.run(progress));
        StartOutcome::Running {
            run_id: holder.to_string(),
        }
    }
}

impl Engine for EmbeddedEngine {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> Reach {
        Reach::Local
    }

    /// The nodes that run here take what they need from the graph.
    fn reads_input(&self) -> bool {
        false
    }

    fn start<'a>(&'a self, request: &'a StartRequest, _deadline: Duration) -> BoxFuture<'a, StartOutcome> {
        self.begin(request).boxed()
    }

    fn describe<'a>(&'a self, executions: &'a [ExecutionId]) -> Told<'a, Vec<RunState>> {
        let run_id = self.inner.presence.id().to_string();
        let runs = self.inner.runs.lock();
        let state = |id| {
            if runs.get(id).is_some_and(|run| self.inner.presence.is(run.holder)) {
                RunState::Running {
                    run_id: run_id.clone(),
                }
            } else {
                RunState::NotFound
            }
        };
        let states = executions.iter().map(state).collect();
        async move { Ok(states) }.boxed()
    }

    fn cancel<'a>(&'a self, execution: ExecutionId, _reason: &'a str) -> Told<'a, ()> {
        if let Some(handle) = self.inner.runs.lock().get(&execution) {
            handle.cancel.cancel();
        }
        async { Ok(()) }.boxed()
    }

    /// Without a word of its end: whoever ends it knows.
    fn terminate<'a>(&'a self, run: &'a OpenRun, _reason: &'a str) -> Told<'a, ()> {
        if let Some(handle) = self.inner.runs.lock().remove(&run.execution_id) {
            handle.cancel.cancel();
        }
        async { Ok(()) }.boxed()
    }

    fn closed_since(&self, _since: Timestamp) -> Told<'_, (Vec<Close>, Timestamp)> {
        async {
            loop {
                let closes = std::mem::take(&mut *self.inner.closes.lock());
                if !closes.is_empty() {
                    return Ok((closes, Timestamp::now()));
                }
                self.inner.closed.rung().await;
            }
        }
        .boxed()
    }

    fn open_runs(&self, _page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>> {
        let run_id = self.inner.presence.id().to_string();
        let rows = self
            .inner
            .runs
            .lock()
            .keys()
            .map(|id| OpenRun {
                execution_id: *id,
                run_id: run_id.clone(),
            })
            .collect();
        async move { Ok(Page { rows, next: None }) }.boxed()
    }

    fn check(&self) -> Told<'_, ()> {
        async { Ok(()) }.boxed()
    }

    fn abandon_runs(&self) {
        for (_, handle) in self.inner.runs.lock().drain() {
            handle.cancel.cancel();
        }
    }
}
