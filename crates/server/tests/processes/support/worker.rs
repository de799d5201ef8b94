//! A worker without an SDK: it takes the workflow tasks of a namespace and answers them all alike.

use std::time::Duration;

use temporalio_client::grpc::WorkflowService;
use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::command::v1::command::Attributes;
use temporalio_common::protos::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, CompleteWorkflowExecutionCommandAttributes,
};
use temporalio_common::protos::temporal::api::common::v1::{Payload, Payloads};
use temporalio_common::protos::temporal::api::enums::v1::{CommandType, EventType};
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    PollWorkflowTaskQueueRequest, PollWorkflowTaskQueueResponse, RespondWorkflowTaskCompletedRequest,
};
use tokio::task::JoinSet;

use super::Temporal;

const POLLERS: usize = 8;

/// What the worker does with a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    /// Completes it after a while, with the output `{"trains":3}`.
    CompleteAfter(Duration),
    /// Lets it run until somebody asks to cancel it.
    UntilCancelled,
}

/// Works until it is dropped.
pub(crate) struct Worker {
    _pollers: JoinSet<()>,
}

impl Worker {
    pub(crate) fn start(temporal: &Temporal, work: Work) -> Self {
        let mut pollers = JoinSet::new();
        for _ in 0..POLLERS {
            pollers.spawn(poll(temporal.service(), temporal.namespace.clone(), work));
        }
        Self { _pollers: pollers }
    }
}

async fn poll(mut service: Box<dyn WorkflowService>, namespace: String, work: Work) {
    loop {
        let message = PollWorkflowTaskQueueRequest {
            namespace: namespace.clone(),
            task_queue: Some(TaskQueue {
                name: namespace.clone(),
                ..TaskQueue::default()
            }),
            identity: "a test".to_owned(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let Ok(task) = service.poll_workflow_task_queue(message.into_request()).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let task = task.into_inner();
        if task.task_token.is_empty() {
            continue;
        }
        let answer = RespondWorkflowTaskCompletedRequest {
            namespace: namespace.clone(),
            identity: "a test".to_owned(),
            commands: commands(&task, work).await,
            task_token: task.task_token,
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        // A task that went stale meanwhile comes again.
        let _ = service
            .respond_workflow_task_completed(answer.into_request())
            .await;
    }
}

async fn commands(task: &PollWorkflowTaskQueueResponse, work: Work) -> Vec<Command> {
    match work {
        Work::CompleteAfter(time) => {
            tokio::time::sleep(time).await;
            let metadata = [("encoding".to_owned(), b"json/plain".to_vec())].into();
            let payload = Payload {
                metadata,
                data: br#"{"trains":3}"#.to_vec(),
                ..Payload::default()
            };
            let completed = CompleteWorkflowExecutionCommandAttributes {
                result: Some(Payloads {
                    payloads: vec![payload],
                }),
            };
            vec![command(
                CommandType::CompleteWorkflowExecution,
                Attributes::CompleteWorkflowExecutionCommandAttributes(completed),
            )]
        }
        Work::UntilCancelled => {
            let history = task
                .history
                .as_ref()
                .map(|history| &history.events[..])
                .unwrap_or_default();
            let asked = history
                .iter()
                .any(|event| event.event_type() == EventType::WorkflowExecutionCancelRequested);
            let cancelled = CancelWorkflowExecutionCommandAttributes::default();
            let cancel = command(
                CommandType::CancelWorkflowExecution,
                Attributes::CancelWorkflowExecutionCommandAttributes(cancelled),
            );
            if asked { vec![cancel] } else { Vec::new() }
        }
    }
}

fn command(kind: CommandType, attributes: Attributes) -> Command {
    Command {
        command_type: kind.into(),
        attributes: Some(attributes),
        ..Command::default()
    }
}
