//! What an engine must offer so that executions can run on it. `temporal` and `embedded` both keep it.
//!
//! An engine knows nothing of queues, limits or claims. It starts a run under an id that was committed before, says what it
//! knows of a run, and reports which runs have closed. What may happen is a value: an engine that refuses, is away, or leaves
//! us in doubt answers with [`StartOutcome`], never with a panic and never with `Err`.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::{CloseStatus, Identity, Obstacle, OmittedOutput, Page, Reach, Told};
use crate::graph::Graph;
use crate::id::{DefinitionId, ExecutionId, ServerId, Token, VersionId, WorkspaceId};

/// Everything an engine needs to start one execution.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The id of the run, fixed before the first try. See [`ExecutionId::workflow_id`].
    pub execution_id: ExecutionId,
    /// The token of the claim under which this try is made. An engine that lives in our own database fences with it.
    pub token: Token,
    /// An earlier try, under the same id, may have started the run.
    pub again: bool,
    /// The workspace whose slot the run holds.
    pub workspace_id: WorkspaceId,
    /// The definition to run.
    pub definition_id: DefinitionId,
    /// The version of it that was resolved at enqueue.
    pub version_id: VersionId,
    /// The workflow type that workers register.
    pub workflow_type: String,
    /// The task queue that workers poll.
    pub task_queue: String,
    /// The version's graph, validated; [`Graph::node_ids`] is in topological order.
    pub graph: Arc<Graph>,
    /// What the caller enqueued, verbatim; `null` for an engine that does not read it.
    pub input: Box<RawValue>,
    /// The enqueuer's trace context (`traceparent`), passed on to the run.
    pub traceparent: Option<String>,
    /// How long the run may take; `None`: for ever.
    pub run_timeout: Option<Duration>,
}

/// What came of a try to start.
#[derive(Debug)]
pub enum StartOutcome {
    /// The run exists now: started by this try or by an earlier one under the same id.
    Running {
        /// The engine's own id of the run.
        run_id: String,
    },
    /// The run exists and has already closed.
    Closed(Close),
    /// The target refused for good (invalid argument, not found, permission). Counts as an attempt.
    Refused {
        /// What the engine said.
        message: String,
    },
    /// The request certainly did not start anything: the engine is away or overloaded. Spends no attempt.
    Unavailable {
        /// What the engine or the connection said.
        message: String,
    },
    /// The request may or may not have started a run. Ask with [`Engine::describe`], then decide.
    InDoubt {
        /// What the engine or the connection said.
        message: String,
    },
}

/// What an engine knows of one run.
#[derive(Debug)]
pub enum RunState {
    /// It runs.
    Running {
        /// The engine's own id of the run.
        run_id: String,
    },
    /// It has ended.
    Closed(Close),
    /// The engine does not know it (never started, or past its retention).
    NotFound,
}

/// The end of a run.
#[derive(Debug, Clone)]
pub struct Close {
    /// Which execution.
    pub execution_id: ExecutionId,
    /// Accept this end only under this claim; `None` when the engine's word holds whoever the holder is.
    pub token: Option<Token>,
    /// And only in the hands of this server; `None` with no token.
    pub holder: Option<ServerId>,
    /// The run that ended, when the engine tells: of an execution that continued in several runs, the last.
    pub run_id: Option<String>,
    /// When it ended, by the engine's clock.
    pub closed_at: Option<Timestamp>,
    /// How it ended.
    pub status: CloseStatus,
    /// The result, as JSON, when there is one.
    pub output: Option<Box<RawValue>>,
    /// The result was too large to be passed on and stays with the engine.
    pub output_omitted: Option<OmittedOutput>,
    /// The failure, as a JSON object with at least `message`, when there is one.
    pub error: Option<Box<RawValue>>,
}

/// A run that an engine holds open.
#[derive(Debug, Clone)]
pub struct OpenRun {
    /// Which execution.
    pub execution_id: ExecutionId,
    /// The engine's own id of the run; a destructive act names it.
    pub run_id: String,
}

/// What a run that is open tells of itself.
#[derive(Debug, Clone)]
pub struct Origin {
    /// For which workspace it was started; `None`: it does not tell.
    pub workspace_id: Option<WorkspaceId>,
    /// When it was started, by the engine's clock.
    pub started_at: Option<Timestamp>,
}

/// An engine. Every call is bounded in time by the engine itself; `deadline` bounds a start.
pub trait Engine: Send + Sync + 'static {
    /// What it is called on record: in the rows of what it runs.
    fn name(&self) -> &'static str;

    /// Whose runs it tells of.
    fn reach(&self) -> Reach {
        Reach::Shared
    }

    /// Who it is, whatever it is bound to. By its name alone, when there can be no other.
    fn identity(&self) -> Told<'_, Identity> {
        let identity = Identity {
            key: self.name().to_owned(),
            place: self.name().to_owned(),
        };
        async { Ok(identity) }.boxed()
    }

    /// From now on every other call reaches this engine or none: an address may lead to another one tomorrow. `None`: nothing is
    /// sent until it is known which one it should be.
    fn bind_to(&self, _identity: Option<&Identity>) {}

    /// Does it read the input of what it starts?
    fn reads_input(&self) -> bool {
        true
    }

    /// Starts a run, or finds that it was started before.
    fn start<'a>(&'a self, request: &'a StartRequest, deadline: Duration) -> BoxFuture<'a, StartOutcome>;

    /// What the engine knows of these executions, in the order asked.
    fn describe<'a>(&'a self, executions: &'a [ExecutionId]) -> Told<'a, Vec<RunState>>;

    /// Asks a run to cancel itself. A run that is unknown or has closed is no error.
    fn cancel<'a>(&'a self, execution: ExecutionId, reason: &'a str) -> Told<'a, ()>;

    /// Ends a run at once, only if it is still the run `run_id`. A run that is unknown or has closed is no error.
    fn terminate<'a>(&'a self, run: &'a OpenRun, reason: &'a str) -> Told<'a, ()>;

    /// Runs that closed at or after `since`, oldest first or unordered, with at least everything that has become
    /// visible since the last call. The second value is the `since` for the next call. Repeats are harmless. A local
    /// engine waits until there is something to tell.
    fn closed_since(&self, since: Timestamp) -> Told<'_, (Vec<Close>, Timestamp)>;

    /// The executions that the engine holds open, page by page.
    fn open_runs(&self, page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>>;

    /// Where these runs come from, in the order asked; `None`: it is not open any more. Asked about runs that no row tells of: an engine
    /// inside our own database has none.
    fn origins<'a>(&'a self, runs: &'a [OpenRun]) -> Told<'a, Vec<Option<Origin>>> {
        async { Ok(vec![None; runs.len()]) }.boxed()
    }

    /// What keeps a run from going on, as far as the engine knows; `None`: nothing that it knows of. Asked when a person looks.
    fn obstacle(&self, _execution: ExecutionId) -> Told<'_, Option<Obstacle>> {
        async { Ok(None) }.boxed()
    }

    /// Does anybody poll this task queue? An engine without workers needs nobody.
    fn is_polled<'a>(&'a self, _task_queue: &'a str) -> Told<'a, bool> {
        async { Ok(true) }.boxed()
    }

    /// Is the engine there and willing? Cheap; the circuit breaker asks before it closes again.
    fn check(&self) -> Told<'_, ()>;

    /// This server leaves: runs that live inside it stop where they are, without an end. Another server goes on with them.
    fn abandon_runs(&self) {}
}
