//! Dispatchers on the embedded engine: a run is a task inside the owning server, with the same contract.
//!
//! It ends with its process, so nothing of it is ever left behind; its state is small and begins anew with the next owner, and
//! the signals are in the inbox.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::NAME;
use crate::engine::dispatchers::state::{Announcement, Registration, State, Status};
use crate::engine::dispatchers::{
    Desk, DeskError, DispatcherEngine, OpenRun, Run, RunRequest, RunState, Tenure,
};
use crate::engine::{EngineUnavailable, Page, Reach, Told};
use crate::id::{DispatcherId, ServerId};
use crate::retry::Backoff;
use crate::task::{Bell, chain};

const AGAIN: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(5),
};

/// See the module.
#[derive(Clone)]
pub struct EmbeddedDispatchers {
    inner: Arc<Inner>,
}

struct Inner {
    /// Of this process: nobody else may be asked about its runs.
    process: Uuid,
    desk: OnceLock<Arc<dyn Desk>>,
    runs: Mutex<HashMap<DispatcherId, Handle>>,
}

#[derive(Clone)]
struct Handle {
    run_id: String,
    tenure: Tenure,
    state: Arc<Mutex<State>>,
    bell: Bell,
    cancel: CancellationToken,
}

impl Default for EmbeddedDispatchers {
    fn default() -> Self {
        Self::new()
    }
}

impl EmbeddedDispatchers {
    /// An engine without a run.
    #[must_use]
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                process: Uuid::now_v7(),
                desk: OnceLock::new(),
                runs: Mutex::default(),
            }),
        }
    }

    fn begin(&self, request: &RunRequest) -> Result<String, EngineUnavailable> {
        let desk = self
            .inner
            .desk
            .get()
            .ok_or_else(|| EngineUnavailable::Away("it is not open yet".to_owned()))?;
        let run_id = format!("{}:{}", request.tenure.epoch.0, request.attempt);
        let mut runs = self.inner.runs.lock();
        if let Some(former) = runs.get(&request.tenure.dispatcher_id) {
            if former.run_id == run_id && !former.cancel.is_cancelled() {
                return Ok(run_id);
            }
            former.cancel.cancel();
        }
        let handle = Handle {
            run_id: run_id.clone(),
            tenure: request.tenure.clone(),
            state: Arc::new(Mutex::new(State::begin())),
            bell: Bell::default(),
            cancel: CancellationToken::new(),
        };
        runs.insert(request.tenure.dispatcher_id.clone(), handle.clone());
        let work = Work {
            desk: Arc::clone(desk),
            handle,
            check_interval: request.check_interval,
            evict_batch: request.evict_batch,
        };
        tokio::spawn(work.run());
        Ok(run_id)
    }

    fn find(&self, dispatcher: &DispatcherId) -> Option<Handle> {
        let runs = self.inner.runs.lock();
        let handle = runs.get(dispatcher).filter(|run| !run.cancel.is_cancelled());
        handle.cloned()
    }

    fn of(&self, run: &Run) -> Option<Handle> {
        self.find(&run.dispatcher_id)
            .filter(|handle| handle.run_id == run.run_id)
    }
}

/// Why a run goes on or does not.
enum Turn {
    Go,
    Superseded,
}

/// One run at work.
struct Work {
    desk: Arc<dyn Desk>,
    handle: Handle,
    check_interval: Duration,
    evict_batch: usize,
}

impl Work {
    async fn run(self) {
        // However it ends, also by a panic, whoever asks learns that it is over, and it is started anew.
        let _over = self.handle.cancel.clone().drop_guard();
        let mut checked = None::<Instant>;
        let mut failures = 0;
        loop {
            let turn = tokio::select! {
                () = self.handle.cancel.cancelled() => return,
                turn = self.turn(&mut checked) => turn,
            };
            let wait = match turn {
                Ok(Turn::Go) => {
                    failures = 0;
                    let due = checked.map_or(Duration::ZERO, |at| {
                        self.check_interval.saturating_sub(at.elapsed())
                    });
                    if self.handle.state.lock().wants_to_route() {
                        Duration::ZERO
                    } else {
                        due
                    }
                }
                Ok(Turn::Superseded) => {
                    self.handle.cancel.cancel();
                    return;
                }
                Err(error) => {
                    failures += 1;
                    if failures == 1 {
                        tracing::warn!(dispatcher = %self.handle.tenure.dispatcher_id, error = chain(&error), "A dispatcher could not work; trying on");
                    }
                    AGAIN.wait(failures).max(AGAIN.base)
                }
            };
            tokio::select! {
                () = self.handle.cancel.cancelled() => return,
                () = self.handle.bell.rung(), if failures == 0 => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn turn(&self, checked: &mut Option<Instant>) -> Result<Turn, DeskError> {
        let tenure = &self.handle.tenure;
        if self.handle.state.lock().wants_to_route() {
            self.handle.state.lock().begin_to_route();
            let routed = self.desk.route(tenure).await.inspect_err(|_| {
                // What was announced is still there.
                self.handle.state.lock().has_routed(0, 0, true);
            })?;
            self.handle
                .state
                .lock()
                .has_routed(routed.routed, routed.dead, routed.more);
            if routed.superseded {
                return Ok(Turn::Superseded);
            }
        }
        if checked.is_none_or(|at| at.elapsed() >= self.check_interval) {
            let seen = self.desk.check(tenure).await?;
            *checked = Some(Instant::now());
            if seen.superseded {
                return Ok(Turn::Superseded);
            }
            let due =
                self.handle
                    .state
                    .lock()
                    .check(tenure.owner, seen.registered, &seen.silent, self.evict_batch);
            if !due.is_empty() {
                let evicted = self.desk.evict(tenure, &due).await?;
                self.handle.state.lock().evict(&evicted.servers);
                if evicted.superseded {
                    return Ok(Turn::Superseded);
                }
            }
        }
        Ok(Turn::Go)
    }
}

fn done() -> Told<'static, ()> {
    async { Ok(()) }.boxed()
}

impl DispatcherEngine for EmbeddedDispatchers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> Reach {
        Reach::Local
    }

    fn task_queue(&self) -> String {
        format!("{NAME}-{}", self.inner.process)
    }

    fn open(&self, desk: Arc<dyn Desk>) {
        // A second desk would be the same one.
        let _ = self.inner.desk.set(desk);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        for (_, run) in self.inner.runs.lock().drain() {
            run.cancel.cancel();
        }
        async {}.boxed()
    }

    fn replace<'a>(&'a self, request: &'a RunRequest, _deadline: Duration) -> Told<'a, String> {
        let begun = self.begin(request);
        async move { begun }.boxed()
    }

    fn state<'a>(&'a self, run: &'a Run) -> Told<'a, RunState> {
        let state = if self.of(run).is_some() {
            RunState::Running
        } else {
            RunState::Gone
        };
        async move { Ok(state) }.boxed()
    }

    fn announce<'a>(&'a self, run: &'a Run, news: Announcement) -> Told<'a, ()> {
        if let Some(handle) = self.of(run) {
            handle.state.lock().announce(news);
            handle.bell.ring();
        }
        done()
    }

    fn register<'a>(&'a self, dispatcher: &'a DispatcherId, server: Registration) -> Told<'a, ()> {
        if let Some(handle) = self.find(dispatcher) {
            handle.state.lock().register(server);
        }
        done()
    }

    fn leave<'a>(&'a self, dispatcher: &'a DispatcherId, server: ServerId) -> Told<'a, ()> {
        if let Some(handle) = self.find(dispatcher) {
            handle.state.lock().leave(server);
        }
        done()
    }

    fn end<'a>(&'a self, run: &'a Run, _reason: &'a str) -> Told<'a, ()> {
        if let Some(handle) = self.of(run) {
            handle.cancel.cancel();
        }
        done()
    }

    fn terminate<'a>(&'a self, run: &'a OpenRun, _reason: &'a str) -> Told<'a, ()> {
        let found = self.find(&DispatcherId(run.workflow_id.clone()));
        if let Some(handle) = found.filter(|handle| handle.run_id == run.run_id) {
            handle.cancel.cancel();
        }
        done()
    }

    fn open_runs(&self, _page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>> {
        let runs = self.inner.runs.lock();
        let open = runs.values().filter(|run| !run.cancel.is_cancelled());
        let rows = open
            .map(|run| OpenRun {
                workflow_id: run.tenure.dispatcher_id.0.clone(),
                run_id: run.run_id.clone(),
                epoch: Some(run.tenure.epoch),
                server_id: Some(run.tenure.owner),
                started_at: None,
            })
            .collect();
        async move { Ok(Page { rows, next: None }) }.boxed()
    }

    fn status<'a>(&'a self, dispatcher: &'a DispatcherId) -> Told<'a, Option<Status>> {
        let status = self
            .find(dispatcher)
            .map(|handle| handle.state.lock().status(&handle.tenure));
        async move { Ok(status) }.boxed()
    }
}
