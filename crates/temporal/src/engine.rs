//! The contract with the engine room, one method after the other.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use stationmaster_core::engine::{
    Close, Engine, EngineUnavailable, Identity, Obstacle, OpenRun, Origin, Page, RunState, StartOutcome,
    StartRequest, Told,
};
use stationmaster_core::id::ExecutionId;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::Code;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeNamespaceRequest, DescribeNamespaceResponse, RequestCancelWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
};
use tokio::time::Instant;
use tracing::Instrument;

use crate::bond::Place;
use crate::config::{ConfigError, TemporalConfig};
use crate::dispatch;
use crate::link::{CallError, Link, Rpc};
use crate::outcome::{Verdict, is_throttled, judge, known};
use crate::run::{Found, named};
use crate::sweep::Sweeps;

/// How many runs are asked about at the same time.
pub(crate) const PARALLEL_CALLS: usize = 16;
const REASON_LIMIT: usize = 1_000;

/// Executions on a Temporal cluster.
pub struct TemporalEngine {
    pub(crate) link: Link,
    pub(crate) namespace: String,
    pub(crate) identity: String,
    rpc_timeout: Duration,
    pub(crate) sweeps: Sweeps,
}

impl TemporalEngine {
    /// An engine for the configured cluster. Nothing is sent yet: a cluster that is away shows in the first call.
    pub fn new(config: &TemporalConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            link: Link::new(config, place(config))?,
            namespace: config.namespace.clone(),
            identity: config.identity.clone(),
            rpc_timeout: config.rpc_timeout,
            sweeps: Sweeps::default(),
        })
    }

    /// When a call that begins now has to end.
    pub(crate) fn rpc_ends_at(&self) -> Instant {
        Instant::now() + self.rpc_timeout
    }

    /// Sends one request, with as much time as any call has.
    pub(crate) async fn ask<Q: Clone, A>(&self, message: Q, rpc: impl Rpc<Q, A>) -> Result<A, CallError> {
        self.link.call(self.rpc_ends_at(), message, rpc).await
    }

    async fn try_start(&self, request: &StartRequest, deadline: Duration) -> StartOutcome {
        let ends_at = Instant::now() + deadline;
        let message = match dispatch::message(request, &self.namespace, &self.identity) {
            Ok(message) => message,
            Err(error) => {
                return StartOutcome::Refused {
                    message: error.to_string(),
                };
            }
        };
        let rpc = WorkflowService::start_workflow_execution;
        let error = match self.link.call(ends_at, message, rpc).await {
            Ok(answer) if answer.status() == WorkflowExecutionStatus::Running => {
                return StartOutcome::Running {
                    run_id: answer.run_id,
                };
            }
            // A repeat of the request that started the run succeeds even after the run has closed.
            Ok(answer) => {
                return self
                    .existing(request.execution_id, Some(answer.run_id), ends_at)
                    .await;
            }
            Err(error) => error,
        };
        match judge(&error) {
            Verdict::Exists { run_id } => self.existing(request.execution_id, run_id, ends_at).await,
            Verdict::Refused => StartOutcome::Refused {
                message: error.to_string(),
            },
            Verdict::Unavailable => StartOutcome::Unavailable {
                message: error.to_string(),
            },
            Verdict::InDoubt => StartOutcome::InDoubt {
                message: error.to_string(),
            },
        }
    }

    /// The outcome of a start that found its run in existence.
    async fn existing(
        &self,
        execution: ExecutionId,
        run_id: Option<String>,
        ends_at: Instant,
    ) -> StartOutcome {
        let state = match self.run_of(execution, ends_at).await {
            Ok(Found::Strange) => {
                return StartOutcome::Refused {
                    message: format!(
                        "Temporal has a run under {} that was not started by Stationmaster",
                        execution.workflow_id()
                    ),
                };
            }
            Ok(Found::State(state)) => Ok(state),
            Err(error) => Err(error),
        };
        match (state, run_id) {
            (Ok(RunState::Closed(close)), _) => StartOutcome::Closed(close),
            // A run that cannot be asked about now was there a moment ago, and whoever looks later will see more.
            (Ok(RunState::Running { run_id }), _) | (Ok(RunState::NotFound) | Err(_), Some(run_id)) => {
                StartOutcome::Running { run_id }
            }
            (Ok(RunState::NotFound), None) => StartOutcome::InDoubt {
                message: "Temporal says that the run exists and does not know it".to_owned(),
            },
            (Err(error), None) => StartOutcome::InDoubt {
                message: error.to_string(),
            },
        }
    }

    async fn describe_all(&self, executions: &[ExecutionId]) -> Result<Vec<RunState>, CallError> {
        let states: Vec<RunState> = stream::iter(executions.iter().copied())
            .map(|execution| self.run_state(execution, self.rpc_ends_at()))
            .buffered(PARALLEL_CALLS)
            .try_collect()
            .await?;
        if states.iter().any(|state| matches!(state, RunState::NotFound)) {
            // That somebody does not know a run means something only if he should.
            self.link.prove_again(self.rpc_ends_at()).await?;
        }
        Ok(states)
    }

    /// Is it there, and may we do more than look? A key that may only read would have every start turned away.
    async fn check_rights(&self) -> Result<(), CallError> {
        self.describe_namespace(self.rpc_ends_at()).await?;
        let nothing = "stationmaster-looks-whether-it-may-act";
        let ends_at = self.rpc_ends_at();
        self.end_run(nothing, "", "", "there is no such run", ends_at)
            .await
    }

    async fn request_cancel(&self, execution: ExecutionId, reason: &str) -> Result<(), CallError> {
        let message = RequestCancelWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_execution: Some(named(&execution.workflow_id(), "")),
            identity: self.identity.clone(),
            // The same in every try, so that a run is asked once.
            request_id: format!("cancel-{execution}"),
            reason: reason_within_limit(reason),
            ..RequestCancelWorkflowExecutionRequest::default()
        };
        let rpc = WorkflowService::request_cancel_workflow_execution;
        known(self.ask(message, rpc).await).map(drop)
    }

    /// Ends a run: this one (`run_id`), or the newest of a chain (`first_run_id`). One that is gone is no error.
    pub(crate) async fn end_run(
        &self,
        workflow_id: &str,
        run_id: &str,
        first_run_id: &str,
        reason: &str,
        ends_at: Instant,
    ) -> Result<(), CallError> {
        let message = TerminateWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            workflow_execution: Some(named(workflow_id, run_id)),
            identity: self.identity.clone(),
            reason: reason_within_limit(reason),
            first_execution_run_id: first_run_id.to_owned(),
            ..TerminateWorkflowExecutionRequest::default()
        };
        let rpc = WorkflowService::terminate_workflow_execution;
        match known(self.link.call(ends_at, message, rpc).await) {
            Err(error) if !is_other_chain(&error) => Err(error),
            _ => Ok(()),
        }
    }

    async fn terminate_run(&self, run: &OpenRun, reason: &str) -> Result<(), CallError> {
        let (workflow_id, ends_at) = (run.execution_id.workflow_id(), self.rpc_ends_at());
        self.end_run(&workflow_id, &run.run_id, "", reason, ends_at).await
    }

    pub(crate) async fn describe_namespace(
        &self,
        ends_at: Instant,
    ) -> Result<DescribeNamespaceResponse, CallError> {
        let message = DescribeNamespaceRequest {
            namespace: self.namespace.clone(),
            ..DescribeNamespaceRequest::default()
        };
        let rpc = WorkflowService::describe_namespace;
        self.link.call(ends_at, message, rpc).await
    }
}

impl Engine for TemporalEngine {
    fn name(&self) -> &'static str {
        "temporal"
    }

    fn start<'a>(&'a self, request: &'a StartRequest, deadline: Duration) -> BoxFuture<'a, StartOutcome> {
        let span = tracing::info_span!("temporal:start_workflow", execution_id = %request.execution_id);
        self.try_start(request, deadline).instrument(span).boxed()
    }

    fn describe<'a>(&'a self, executions: &'a [ExecutionId]) -> Told<'a, Vec<RunState>> {
        self.describe_all(executions).map(available).boxed()
    }

    fn cancel<'a>(&'a self, execution: ExecutionId, reason: &'a str) -> Told<'a, ()> {
        self.request_cancel(execution, reason).map(available).boxed()
    }

    fn terminate<'a>(&'a self, run: &'a OpenRun, reason: &'a str) -> Told<'a, ()> {
        self.terminate_run(run, reason).map(available).boxed()
    }

    fn closed_since(&self, since: Timestamp) -> Told<'_, (Vec<Close>, Timestamp)> {
        self.sweep(since).map(available).boxed()
    }

    fn open_runs(&self, page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>> {
        self.list_open(page).map(available).boxed()
    }

    fn origins<'a>(&'a self, runs: &'a [OpenRun]) -> Told<'a, Vec<Option<Origin>>> {
        stream::iter(runs)
            .map(|run| self.origin_of(run))
            .buffered(PARALLEL_CALLS)
            .try_collect()
            .map(available)
            .boxed()
    }

    fn obstacle(&self, execution: ExecutionId) -> Told<'_, Option<Obstacle>> {
        self.obstacle_of(execution).map(available).boxed()
    }

    fn is_polled<'a>(&'a self, task_queue: &'a str) -> Told<'a, bool> {
        self.has_pollers(task_queue, self.rpc_ends_at())
            .map(available)
            .boxed()
    }

    fn check(&self) -> Told<'_, ()> {
        self.check_rights().map(available).boxed()
    }

    fn identity(&self) -> Told<'_, Identity> {
        self.link.identity(self.rpc_ends_at()).map(available).boxed()
    }

    fn bind_to(&self, identity: Option<&Identity>) {
        self.link.bind_to(identity);
    }
}

pub(crate) fn available<T>(answer: Result<T, CallError>) -> Result<T, EngineUnavailable> {
    answer.map_err(|error| {
        let reason = error.to_string();
        if is_throttled(&error) {
            EngineUnavailable::Throttled(reason)
        } else {
            EngineUnavailable::Away(reason)
        }
    })
}

fn place(config: &TemporalConfig) -> Place {
    Place {
        address: config.address.clone(),
        namespace: config.namespace.clone(),
    }
}

/// The newest run is of another chain than the one that was to be ended.
fn is_other_chain(error: &CallError) -> bool {
    matches!(error, CallError::Answered(status)
        if matches!(status.code(), Code::FailedPrecondition | Code::InvalidArgument) && status.message().to_lowercase().contains("chain"))
}

/// A reason of the length that Temporal takes.
fn reason_within_limit(reason: &str) -> String {
    reason[..reason.floor_char_boundary(REASON_LIMIT)].to_owned()
}
