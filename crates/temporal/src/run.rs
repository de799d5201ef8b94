//! One run: whether it goes on, and how it ended.

use std::time::Duration;

use stationmaster_core::engine::{CloseStatus, RunState};
use stationmaster_core::id::ExecutionId;
use temporalio_client::tonic::{Code, Status};
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::enums::v1::HistoryEventFilterType;
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeWorkflowExecutionRequest, GetWorkflowExecutionHistoryRequest,
};
use tokio::time::{Instant, sleep};

use crate::close::{self, Ending};
use crate::engine::TemporalEngine;
use crate::link::CallError;
use crate::outcome::is_unknown_run;

/// How often a history is asked for when the server answers with a fault of its own.
const HISTORY_TRIES: u32 = 3;
const HISTORY_PAUSE: Duration = Duration::from_millis(50);

impl TemporalEngine {
    /// What Temporal knows of an execution. Without a run id it answers for the newest run, so an execution that
    /// continued as new is followed.
    pub(crate) async fn run_state(
        &self,
        execution: ExecutionId,
        ends_at: Instant,
    ) -> Result<RunState, CallError> {
        let message = DescribeWorkflowExecutionRequest {
            namespace: self.namespace.clone(),
            execution: Some(named(execution, "")),
        };
        let described = self
            .link
            .call(ends_at, message, |service, request| {
                service.describe_workflow_execution(request)
            })
            .await;
        let info = match described {
            Ok(described) => described.workflow_execution_info.unwrap_or_default(),
            Err(error) if is_unknown_run(&error) => return Ok(RunState::NotFound),
            Err(error) => return Err(error),
        };
        let run_id = info
            .execution
            .as_ref()
            .map(|execution| execution.run_id.clone())
            .unwrap_or_default();
        let Some(status) = close::status(info.status()) else {
            return Ok(RunState::Running { run_id });
        };
        match self.end_of(execution, &run_id, status, ends_at).await? {
            Ending::Closed(close) => Ok(RunState::Closed(close)),
            Ending::TakenOver => Ok(RunState::Running { run_id }),
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
            execution: Some(named(execution, run_id)),
            history_event_filter_type: HistoryEventFilterType::CloseEvent.into(),
            skip_archival: true,
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let answer = self
            .link
            .call(ends_at, message, |service, request| {
                service.get_workflow_execution_history(request)
            })
            .await?;
        Ok(answer
            .history
            .and_then(|history| history.events.into_iter().next_back()))
    }
}

/// The engine's name for a run of an execution; the newest one when `run_id` is empty.
pub(crate) fn named(execution: ExecutionId, run_id: &str) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: execution.workflow_id(),
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
