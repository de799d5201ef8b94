//! Why a run does not go on: nobody polls its task queue, or its workflow task fails again and again.

use std::time::{Duration, SystemTime};

use stationmaster_core::engine::Obstacle;
use stationmaster_core::id::ExecutionId;
use temporalio_client::grpc::WorkflowService;
use temporalio_common::protos::temporal::api::enums::v1::{TaskQueueType, WorkflowExecutionStatus};
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    DescribeTaskQueueRequest, GetWorkflowExecutionHistoryReverseRequest,
};
use tokio::time::Instant;

use crate::engine::TemporalEngine;
use crate::link::CallError;
use crate::payload;
use crate::run::named;

/// Temporal lists who has polled within minutes, also those who left since. A worker that is there polls at least once a minute.
const POLLED_WITHIN: Duration = Duration::from_mins(2);
/// How far back the failure of a workflow task is looked for.
const EVENTS: i32 = 20;

impl TemporalEngine {
    /// Whether a worker polls this queue for workflow tasks.
    pub(crate) async fn has_pollers(&self, task_queue: &str, ends_at: Instant) -> Result<bool, CallError> {
        let message = DescribeTaskQueueRequest {
            namespace: self.namespace.clone(),
            task_queue: Some(TaskQueue {
                name: task_queue.to_owned(),
                ..TaskQueue::default()
            }),
            task_queue_type: TaskQueueType::Workflow.into(),
            ..DescribeTaskQueueRequest::default()
        };
        let rpc = WorkflowService::describe_task_queue;
        let answer = self.link.call(ends_at, message, rpc).await?;
        let is_recent = |seconds: i64| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
            now - seconds <= i64::try_from(POLLED_WITHIN.as_secs()).unwrap_or(i64::MAX)
        };
        Ok(answer
            .pollers
            .iter()
            // One that does not tell when it came is believed.
            .any(|poller| poller.last_access_time.is_none_or(|at| is_recent(at.seconds))))
    }

    /// What keeps the newest run of an execution from going on.
    pub(crate) async fn obstacle_of(&self, execution: ExecutionId) -> Result<Option<Obstacle>, CallError> {
        let ends_at = self.rpc_ends_at();
        let workflow_id = execution.workflow_id();
        let Some(run) = self.described(&workflow_id, "", ends_at).await? else {
            return Ok(None);
        };
        let info = run.workflow_execution_info.unwrap_or_default();
        let Some(task) = run.pending_workflow_task else {
            // It waits for something else: an activity, a timer, a signal.
            return Ok(None);
        };
        if info.status() != WorkflowExecutionStatus::Running {
            return Ok(None);
        }
        if !self.has_pollers(&info.task_queue, ends_at).await? {
            return Ok(Some(Obstacle::NoWorker {
                task_queue: info.task_queue,
            }));
        }
        if task.attempt < 2 {
            return Ok(None);
        }
        let run_id = info.execution.map(|run| run.run_id).unwrap_or_default();
        let message = self.last_task_failure(&workflow_id, &run_id, ends_at).await?;
        Ok(Some(Obstacle::TaskFails {
            message,
            attempts: task.attempt,
        }))
    }

    /// Temporal keeps the first failure of a row of equal ones.
    async fn last_task_failure(
        &self,
        workflow_id: &str,
        run_id: &str,
        ends_at: Instant,
    ) -> Result<String, CallError> {
        let message = GetWorkflowExecutionHistoryReverseRequest {
            namespace: self.namespace.clone(),
            execution: Some(named(workflow_id, run_id)),
            maximum_page_size: EVENTS,
            ..GetWorkflowExecutionHistoryReverseRequest::default()
        };
        let rpc = WorkflowService::get_workflow_execution_history_reverse;
        let answer = self.link.call(ends_at, message, rpc).await?;
        let events = answer.history.map(|history| history.events).unwrap_or_default();
        let found = events.into_iter().find_map(|event| match event.attributes? {
            Attributes::WorkflowTaskFailedEventAttributes(failed) => {
                let failure = failed
                    .failure
                    .as_ref()
                    .map(|failure| payload::text(&failure.message));
                let cause = failed.cause().as_str_name().to_owned();
                Some(failure.filter(|message| !message.is_empty()).unwrap_or(cause))
            }
            Attributes::WorkflowTaskTimedOutEventAttributes(_) => {
                Some("the worker took it and did not answer in time".to_owned())
            }
            _ => None,
        });
        Ok(found.unwrap_or_else(|| "Temporal does not tell why".to_owned()))
    }
}
