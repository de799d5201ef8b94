//! A worker without an SDK: it takes one workflow task and answers with the commands that the test gives it.

use stationmaster_core::engine::StartRequest;
use temporalio_client::tonic::IntoRequest;
use temporalio_client::{Connection, ConnectionOptions, Url, grpc::WorkflowService};
use temporalio_common::protos::temporal::api::command::v1::command::Attributes;
use temporalio_common::protos::temporal::api::command::v1::{
    CancelWorkflowExecutionCommandAttributes, Command, CompleteWorkflowExecutionCommandAttributes,
    ContinueAsNewWorkflowExecutionCommandAttributes, FailWorkflowExecutionCommandAttributes,
};
use temporalio_common::protos::temporal::api::common::v1::{
    Payload, Payloads, WorkflowExecution, WorkflowType,
};
use temporalio_common::protos::temporal::api::enums::v1::CommandType;
use temporalio_common::protos::temporal::api::failure::v1::failure::FailureInfo;
use temporalio_common::protos::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    GetWorkflowExecutionHistoryRequest, PollWorkflowTaskQueueRequest, RespondWorkflowTaskCompletedRequest,
};

pub(crate) struct Puppet {
    connection: Connection,
}

impl Puppet {
    pub(crate) async fn on(address: &str) -> Self {
        let target: Url = format!("http://{address}").parse().unwrap();
        Self {
            connection: Connection::connect(ConnectionOptions::new(target).build())
                .await
                .unwrap(),
        }
    }

    /// The server's own interface, for what an engine never does.
    pub(crate) fn service(&self) -> Box<dyn WorkflowService> {
        self.connection.workflow_service()
    }

    pub(crate) async fn complete(&self, request: &StartRequest, encoding: &str, result: &[u8]) {
        let completed = CompleteWorkflowExecutionCommandAttributes {
            result: Some(payloads(encoding, result)),
        };
        let attributes = Attributes::CompleteWorkflowExecutionCommandAttributes(completed);
        self.answer(request, CommandType::CompleteWorkflowExecution, attributes)
            .await;
    }

    pub(crate) async fn fail(&self, request: &StartRequest, kind: &str, message: &str) {
        let info = ApplicationFailureInfo {
            r#type: kind.to_owned(),
            ..ApplicationFailureInfo::default()
        };
        let failure = Failure {
            message: message.to_owned(),
            failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
            ..Failure::default()
        };
        let failed = FailWorkflowExecutionCommandAttributes {
            failure: Some(failure),
        };
        let attributes = Attributes::FailWorkflowExecutionCommandAttributes(failed);
        self.answer(request, CommandType::FailWorkflowExecution, attributes)
            .await;
    }

    pub(crate) async fn agree_to_cancel(&self, request: &StartRequest) {
        let cancelled = CancelWorkflowExecutionCommandAttributes::default();
        let attributes = Attributes::CancelWorkflowExecutionCommandAttributes(cancelled);
        self.answer(request, CommandType::CancelWorkflowExecution, attributes)
            .await;
    }

    pub(crate) async fn continue_as_new(&self, request: &StartRequest) {
        let continued = ContinueAsNewWorkflowExecutionCommandAttributes {
            workflow_type: Some(WorkflowType {
                name: request.workflow_type.clone(),
            }),
            task_queue: Some(queue(request)),
            ..ContinueAsNewWorkflowExecutionCommandAttributes::default()
        };
        let attributes = Attributes::ContinueAsNewWorkflowExecutionCommandAttributes(continued);
        self.answer(request, CommandType::ContinueAsNewWorkflowExecution, attributes)
            .await;
    }

    async fn answer(&self, request: &StartRequest, kind: CommandType, attributes: Attributes) {
        let command = Command {
            command_type: kind.into(),
            attributes: Some(attributes),
            ..Command::default()
        };
        self.answer_with(request, vec![command]).await;
    }

    /// Takes the waiting workflow task of a request's queue and answers it.
    pub(crate) async fn answer_with(&self, request: &StartRequest, commands: Vec<Command>) {
        let poll = PollWorkflowTaskQueueRequest {
            namespace: "default".to_owned(),
            task_queue: Some(queue(request)),
            identity: "puppet".to_owned(),
            ..PollWorkflowTaskQueueRequest::default()
        };
        let task = self
            .service()
            .poll_workflow_task_queue(poll.into_request())
            .await
            .unwrap()
            .into_inner();
        assert!(
            !task.task_token.is_empty(),
            "no workflow task on {}",
            request.task_queue
        );
        let answer = RespondWorkflowTaskCompletedRequest {
            namespace: "default".to_owned(),
            task_token: task.task_token,
            identity: "puppet".to_owned(),
            commands,
            ..RespondWorkflowTaskCompletedRequest::default()
        };
        self.service()
            .respond_workflow_task_completed(answer.into_request())
            .await
            .unwrap();
    }

    pub(crate) async fn history(&self, request: &StartRequest) -> Vec<HistoryEvent> {
        let message = GetWorkflowExecutionHistoryRequest {
            namespace: "default".to_owned(),
            execution: Some(run(request, "")),
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let answer = self
            .service()
            .get_workflow_execution_history(message.into_request())
            .await
            .unwrap()
            .into_inner();
        answer.history.unwrap().events
    }
}

pub(crate) fn run(request: &StartRequest, run_id: &str) -> WorkflowExecution {
    WorkflowExecution {
        workflow_id: request.execution_id.workflow_id(),
        run_id: run_id.to_owned(),
    }
}

pub(crate) fn queue(request: &StartRequest) -> TaskQueue {
    TaskQueue {
        name: request.task_queue.clone(),
        ..TaskQueue::default()
    }
}

fn payloads(encoding: &str, data: &[u8]) -> Payloads {
    let metadata = [("encoding".to_owned(), encoding.as_bytes().to_vec())].into();
    Payloads {
        payloads: vec![Payload {
            metadata,
            data: data.to_vec(),
            ..Payload::default()
        }],
    }
}
