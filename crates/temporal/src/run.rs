//! One run: whether it goes on, and how it ended.

use std::time::Duration;

use jiff::Timestamp;
use stationmaster_core::engine::{CloseStatus, RunState};
use stationmaster_core::id::ExecutionId;
use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::{Code, Status};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::enums::v1::HistoryEventFilterType;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse, GetWorkflowExecutionHistoryRequest,
};
use tokio::time::{Instant, sleep};

use crate::close::{self, Ending};
use crate::engine::TemporalEngine;
use crate::link::CallError;
use crate::outcome::known;

/// How often a history is asked for when the server answers with a fault of its own.
const HISTORY_TRIES: u32 = 3;
const HISTORY_PAUSE: Duration = Duration::from_millis(50);

impl TemporalEngine {
    /// The newest run under this id; `None`: Temporal knows none.
    pub(crate) async fn newest_run(
        &self,
        workflow_id: &str,
        ends_at: Instant,
    ) -> Result<Option<WorkflowExecutionInfo>, CallError> {
        let described = self.described(workflow_id, "", ends_at).await?;
        Ok(described.map(|described| described.workflow_execution_info.unwrap_or_default()))
    }

    pub(crate) async fn described(
        &self,
        workflow_id: &str,
        run_id: &str,
        ends_at: Instant,
    ) -> Result<Option<DescribeWorkflowExecutionResponse>, CallError> {
        let message = DescribeWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            execution: Some(named(workflow_id, run_id)),
        };
        let rpc = WorkflowService::describe_workflow_execution;
        known(self.link.call(ends_at, message, rpc).await)
    }

    /// What Temporal knows of an execution. Without a run id it answers for the newest run, so an execution that
    /// continued as new is followed. A stranger's run under our id is none of ours.
    pub(crate) async fn run_state(
        &self,
        execution: ExecutionId,
        ends_at: Instant,
    ) -> Result<RunState, CallError> {
        Ok(match self.run_of(execution, ends_at).await? {
            Found::State(state) => state,
            Found::Strange => RunState::NotFound,
        })
    }

    /// The same as [`Self::run_state`], telling a stranger's run from none.
    pub(crate) async fn run_of(&self, execution: ExecutionId, ends_at: Instant) -> Result<Found, CallError> {
        let Some(described) = self.described(&execution.workflow_id(), "", ends_at).await? else {
            return Ok(Found::State(RunState::NotFound));
        };
        if !self.is_ours(execution, &described, ends_at).await? {
            return Ok(Found::Strange);
        }
        let info = described.workflow_execution_info.unwrap_or_default();
        self.state_of(execution, &info, ends_at).await.map(Found::State)
    }

    async fn state_of(
        &self,
        execution: ExecutionId,
        info: &WorkflowExecutionInfo,
        ends_at: Instant,
    ) -> Result<RunState, CallError> {
        let run_id = info
            .execution
            .as_ref()
            .map(|execution| execution.run_id.clone())
            .unwrap_or_default();
        let Some(status) = close::status(info.status()) else {
            return Ok(RunState::Running { run_id });
        };
        let closed_at = info
            .close_time
            .and_then(|time| Timestamp::new(time.seconds, time.nanos).ok());
        let ending = self.end_of(execution, &run_id, status, ends_at).await?;
        match ending.of_run(&run_id, closed_at) {
            Ending::Closed(close) => Ok(RunState::Closed(close)),
            Ending::GoesOn => Ok(RunState::Running { run_id }),
        }
    }

    /// How a run that closed with `status` ended.
    ///
    /// A history that cannot be read for good does not hide the end, or one broken run would hold up all others.
    pub(crate) async fn end_of(
        &self,
        execution: ExecutionId,
        run_id: &str,
        status: CloseStatus,
        ends_at: Instant,
    ) -> Result<Ending, CallError> {
        let mut tries = 1;
        loop {
            let fault = match self.last_event(execution, run_id, ends_at).await {
                Ok(Some(event)) => return Ok(close::read(execution, status, event)),
                Ok(None) => return Ok(close::without_history(execution, status, "it is empty")),
                Err(CallError::Answered(fault)) if is_fault_of_the_history(&fault) => fault,
                Err(error) => return Err(error),
            };
            if tries == HISTORY_TRIES || !is_worth_a_repeat(&fault) {
                return Ok(close::without_history(execution, status, fault.message()));
            }
            tries += 1;
            sleep(HISTORY_PAUSE).await;
        }
    }

    async fn last_event(
        &self,
        execution: ExecutionId,
        run_id: &str,
        ends_at: Instant,
    ) -> Result<Option<HistoryEvent>, CallError> {
        let message = GetWorkflowExecutionHistoryRequest {
            namespace: self.namespace.clone(),
            execution: Some(named(&execution.workflow_id(), run_id)),
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            skip_archival: true,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let rpc = WorkflowService::get_workflow_execution_history;
        let answer = self.link.call(ends_at, message, rpc).await?;
        Ok(answer
            .history
            .and_then(|history| history.events.into_iter().next_back()))
    }
}

/// What is found under the id of an execution.
pub(crate) enum Found {
    State(RunState),
    /// A run that somebody else has begun.
    Strange,
}

/// A run by its id; the newest one when `run_id` is empty.
pub(crate) fn named(workflow_id: &str, run_id: &str) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: workflow_id.to_owned(),
        run_id: run_id.to_owned(),
    }
}

/// Whether an answer speaks of this one history, and not of the server, its load, or our rights.
fn is_fault_of_the_history(status: &Status) -> bool {
    std::error::Error::source(status).is_none()
        && matches!(
            status.code(),
            Code::NotFound
                | Code::InvalidArgument
                | Code::FailedPrecondition
                | Code::OutOfRange
                | Code::Unimplemented
                | Code::Internal
                | Code::DataLoss
                | Code::Unknown
        )
}

fn is_worth_a_repeat(status: &Status) -> bool {
    matches!(status.code(), Code::Internal | Code::Unknown)
}
