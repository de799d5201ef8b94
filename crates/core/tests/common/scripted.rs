//! An engine that does what a test tells it: a stand-in for a service of its own that all servers share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use stationmaster_core::engine::{
    Close, CloseStatus, Engine, EngineUnavailable, OpenRun, Origin, Page, RunState, StartOutcome,
    StartRequest, Told,
};
use stationmaster_core::id::{ExecutionId, WorkspaceId};
use tokio::sync::watch;

/// How it answers a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Runs it.
    Willing,
    /// Refuses it for good.
    Refuses,
    /// Is away: nothing is answered, not even questions.
    Away,
    /// Runs it, but the answer is lost; questions are answered.
    LosesTheAnswer,
    /// Loses the request; questions are answered.
    LosesTheRequest,
    /// Runs it, and asks for fewer lists.
    ThrottlesLists,
    /// Falls over.
    Panics,
}

#[derive(Default)]
struct State {
    /// Every start that was asked for, also those that were not carried out.
    asked: Vec<ExecutionId>,
    /// Starts that made a run: one for each, ever.
    begun: Vec<ExecutionId>,
    runs: HashMap<ExecutionId, Option<CloseStatus>>,
    cancels: Vec<ExecutionId>,
    terminations: Vec<ExecutionId>,
    repeats_closes: bool,
    /// What it says of where runs come from.
    workspace: Option<WorkspaceId>,
}

/// See the module.
pub(crate) struct ScriptedEngine {
    mood: Mutex<Mood>,
    held: watch::Sender<bool>,
    state: Mutex<State>,
}

impl ScriptedEngine {
    pub(crate) fn new(mood: Mood) -> Arc<Self> {
        Arc::new(Self {
            mood: Mutex::new(mood),
            held: watch::Sender::new(false),
            state: Mutex::default(),
        })
    }

    pub(crate) fn feel(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// From now on starts hang, after they have been asked for and before anything is done.
    pub(crate) fn hold(&self) {
        self.held.send_replace(true);
    }

    pub(crate) fn let_go(&self) {
        self.held.send_replace(false);
    }

    /// How often starts of this execution were asked for.
    pub(crate) fn asked(&self, execution: ExecutionId) -> usize {
        self.state().asked.iter().filter(|id| **id == execution).count()
    }

    pub(crate) fn asked_in_all(&self) -> usize {
        self.state().asked.len()
    }

    /// How many runs this execution ever had.
    pub(crate) fn begun(&self, execution: ExecutionId) -> usize {
        self.state().begun.iter().filter(|id| **id == execution).count()
    }

    pub(crate) fn cancels(&self, execution: ExecutionId) -> usize {
        self.state().cancels.iter().filter(|id| **id == execution).count()
    }

    pub(crate) fn terminations(&self, execution: ExecutionId) -> usize {
        self.state()
            .terminations
            .iter()
            .filter(|id| **id == execution)
            .count()
    }

    /// Ends a run.
    pub(crate) fn close(&self, execution: ExecutionId, status: CloseStatus) {
        if let Some(run) = self.state().runs.get_mut(&execution) {
            run.get_or_insert(status);
        }
    }

    /// From now on it tells every close twice in one answer, as of an execution that had two runs.
    pub(crate) fn repeat_closes(&self) {
        self.state().repeats_closes = true;
    }

    /// A run vanishes, as one past its retention.
    pub(crate) fn forget(&self, execution: ExecutionId) {
        self.state().runs.remove(&execution);
    }

    /// From now on it says of every run that is open that it was started for this workspace.
    pub(crate) fn tell_workspace(&self, workspace: WorkspaceId) {
        self.state().workspace = Some(workspace);
    }

    /// A run that was begun by somebody before.
    pub(crate) fn begin(&self, execution: ExecutionId) {
        let mut state = self.state();
        state.runs.insert(execution, None);
        state.begun.push(execution);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    fn there(&self) -> Result<(), EngineUnavailable> {
        if self.mood() == Mood::Away {
            Err(EngineUnavailable::Away("away".to_owned()))
        } else {
            Ok(())
        }
    }

    fn lists(&self) -> Result<(), EngineUnavailable> {
        if self.mood() == Mood::ThrottlesLists {
            return Err(EngineUnavailable::Throttled("too many lists".to_owned()));
        }
        self.there()
    }

    fn run(&self, execution: ExecutionId) -> StartOutcome {
        let mut state = self.state();
        match state.runs.get(&execution) {
            Some(Some(status)) => StartOutcome::Closed(close_of(execution, *status)),
            Some(None) => StartOutcome::Running {
                run_id: run_id(execution),
            },
            None => {
                state.runs.insert(execution, None);
                state.begun.push(execution);
                StartOutcome::Running {
                    run_id: run_id(execution),
                }
            }
        }
    }
}

fn run_id(execution: ExecutionId) -> String {
    format!("run-of-{execution}")
}

/// When every run closes, by this engine's clock.
pub(crate) const CLOSED_AT: Timestamp = Timestamp::UNIX_EPOCH;

fn close_of(execution_id: ExecutionId, status: CloseStatus) -> Close {
    Close {
        execution_id,
        token: None,
        holder: None,
        run_id: Some(format!("last-{}", run_id(execution_id))),
        closed_at: Some(CLOSED_AT),
        output_omitted: None,
        status,
        output: None,
        error: None,
    }
}

impl Engine for ScriptedEngine {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn start<'a>(&'a self, request: &'a StartRequest, _deadline: Duration) -> BoxFuture<'a, StartOutcome> {
        async move {
            self.state().asked.push(request.execution_id);
            let _ = self.held.subscribe().wait_for(|held| !held).await;
            match self.mood() {
                Mood::Willing | Mood::ThrottlesLists => self.run(request.execution_id),
                Mood::Refuses => StartOutcome::Refused {
                    message: "refused as told".to_owned(),
                },
                Mood::Away => StartOutcome::Unavailable {
                    message: "away".to_owned(),
                },
                Mood::LosesTheAnswer => {
                    self.run(request.execution_id);
                    StartOutcome::InDoubt {
                        message: "the answer was lost".to_owned(),
                    }
                }
                Mood::LosesTheRequest => StartOutcome::InDoubt {
                    message: "the request was lost".to_owned(),
                },
                Mood::Panics => panic!("as told"),
            }
        }
        .boxed()
    }

    fn describe<'a>(&'a self, executions: &'a [ExecutionId]) -> Told<'a, Vec<RunState>> {
        async move {
            self.there()?;
            let state = self.state();
            let describe = |execution: &ExecutionId| match state.runs.get(execution) {
                Some(Some(status)) => RunState::Closed(close_of(*execution, *status)),
                Some(None) => RunState::Running {
                    run_id: run_id(*execution),
                },
                None => RunState::NotFound,
            };
            Ok(executions.iter().map(describe).collect())
        }
        .boxed()
    }

    fn cancel<'a>(&'a self, execution: ExecutionId, _reason: &'a str) -> Told<'a, ()> {
        async move {
            self.there()?;
            self.state().cancels.push(execution);
            self.close(execution, CloseStatus::Cancelled);
            Ok(())
        }
        .boxed()
    }

    fn terminate<'a>(&'a self, run: &'a OpenRun, _reason: &'a str) -> Told<'a, ()> {
        async move {
            self.there()?;
            self.state().terminations.push(run.execution_id);
            self.close(run.execution_id, CloseStatus::Terminated);
            Ok(())
        }
        .boxed()
    }

    fn closed_since(&self, _since: Timestamp) -> Told<'_, (Vec<Close>, Timestamp)> {
        async move {
            self.lists()?;
            let state = self.state();
            let times = if state.repeats_closes { 2 } else { 1 };
            let closes = state
                .runs
                .iter()
                .filter_map(|(id, status)| Some(close_of(*id, (*status)?)))
                .flat_map(|close| vec![close; times]);
            Ok((closes.collect(), Timestamp::now()))
        }
        .boxed()
    }

    fn open_runs(&self, _page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>> {
        async move {
            self.lists()?;
            let state = self.state();
            let open = state.runs.iter().filter(|(_, status)| status.is_none());
            let rows = open
                .map(|(id, _)| OpenRun {
                    execution_id: *id,
                    run_id: run_id(*id),
                })
                .collect();
            Ok(Page { rows, next: None })
        }
        .boxed()
    }

    fn origins<'a>(&'a self, runs: &'a [OpenRun]) -> Told<'a, Vec<Option<Origin>>> {
        async move {
            self.there()?;
            let state = self.state();
            let origin = |run: &OpenRun| {
                let is_open = matches!(state.runs.get(&run.execution_id), Some(None));
                is_open.then_some(Origin {
                    workspace_id: state.workspace,
                    started_at: Some(CLOSED_AT),
                })
            };
            Ok(runs.iter().map(origin).collect())
        }
        .boxed()
    }

    fn check(&self) -> Told<'_, ()> {
        async move { self.there() }.boxed()
    }
}
