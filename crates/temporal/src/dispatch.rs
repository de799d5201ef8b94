//! What a start sends. Pure.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use stationmaster_core::engine::StartRequest;
use stationmaster_core::id::{DefinitionId, ExecutionId, VersionId, WorkspaceId};
use temporalio_common::protos::temporal::api::common::v1::{Header, Payloads, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;

use crate::{ours, payload};

/// The one argument of the workflow.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dispatch<'a> {
    execution_id: ExecutionId,
    workspace_id: WorkspaceId,
    workflow_definition_id: DefinitionId,
    workflow_version_id: VersionId,
    node_ids: Vec<&'a str>,
    input: &'a RawValue,
}

/// The same message in every try of the same execution: workflow id and request id come from the execution id.
pub(crate) fn message(
    request: &StartRequest,
    namespace: &str,
    identity: &str,
) -> Result<StartWorkflowExecutionRequest, serde_json::Error> {
    let dispatch = serde_json::to_vec(&Dispatch {
        execution_id: request.execution_id,
        workspace_id: request.workspace_id,
        workflow_definition_id: request.definition_id,
        workflow_version_id: request.version_id,
        node_ids: request.graph.node_ids().collect(),
        input: &request.input,
    })?;
    Ok(StartWorkflowExecutionRequest {
        namespace: namespace.to_owned(),
        workflow_id: request.execution_id.workflow_id(),
        request_id: request.execution_id.to_string(),
        workflow_id_reuse_policy: WorkflowIdReusePolicy::RejectDuplicate.into(),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::Fail.into(),
        workflow_type: Some(WorkflowType {
            name: request.workflow_type.clone(),
        }),
        task_queue: Some(TaskQueue {
            name: request.task_queue.clone(),
            ..TaskQueue::default()
        }),
        input: Some(Payloads {
            payloads: vec![payload::from_json(dispatch)],
        }),
        memo: Some(ours::mark(request.execution_id, request.workspace_id)),
        header: request.traceparent.as_deref().map(trace_header),
        identity: identity.to_owned(),
        // Of the whole chain: a worker that continues as new or retries gains no time by it.
        workflow_execution_timeout: request.run_timeout.and_then(|time| time.try_into().ok()),
        ..StartWorkflowExecutionRequest::default()
    })
}

/// The trace context twice: under its own name for whoever wants to read it, and as the carrier in which Temporal's
/// SDKs pass it on between each other.
fn trace_header(traceparent: &str) -> Header {
    let plain = json!(traceparent).to_string();
    let carrier = json!({ "traceparent": traceparent }).to_string();
    Header {
        fields: HashMap::from([
            ("traceparent".to_owned(), payload::from_json(plain.into_bytes())),
            (
                "_tracer-data".to_owned(),
                payload::from_json(carrier.into_bytes()),
            ),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stationmaster_core::graph::Graph;
    use stationmaster_core::id::Token;

    use super::*;

    fn request() -> StartRequest {
        let graph = r#"{"nodes": [{"id": "b"}, {"id": "a"}], "edges": [{"from": "a", "to": "b"}]}"#;
        StartRequest {
            execution_id: ExecutionId::new(),
            token: Token(1),
            again: false,
            workspace_id: WorkspaceId::new(),
            definition_id: DefinitionId::new(),
            version_id: VersionId::new(),
            workflow_type: "type".to_owned(),
            task_queue: "queue".to_owned(),
            graph: Arc::new(Graph::parse(graph).unwrap()),
            input: RawValue::from_string(r#"{"z": 1.10,  "a": 12345678901234567890}"#.to_owned()).unwrap(),
            traceparent: Some("00-trace-span-01".to_owned()),
            run_timeout: None,
        }
    }

    #[test]
    fn every_try_sends_the_same_message_under_the_same_ids() {
        let request = request();
        let first = message(&request, "default", "me").unwrap();
        assert_eq!(first.workflow_id, request.execution_id.workflow_id());
        assert_eq!(first.request_id, request.execution_id.to_string());
        assert_eq!(first, message(&request, "default", "me").unwrap());
    }

    #[test]
    fn the_argument_holds_ids_nodes_in_order_and_the_input_verbatim() {
        let request = request();
        let sent = message(&request, "default", "me")
            .unwrap()
            .input
            .unwrap()
            .payloads;
        let expected = format!(
            r#"{{"executionId":"{}","workspaceId":"{}","workflowDefinitionId":"{}","workflowVersionId":"{}","nodeIds":["a","b"],"input":{}}}"#,
            request.execution_id,
            request.workspace_id,
            request.definition_id,
            request.version_id,
            request.input.get(),
        );
        assert_eq!(String::from_utf8(sent[0].data.clone()).unwrap(), expected);
        assert_eq!(sent.len(), 1);
    }

    #[test]
    fn the_trace_context_travels_in_the_header() {
        let header = message(&request(), "default", "me").unwrap().header.unwrap();
        assert_eq!(header.fields["traceparent"].data, br#""00-trace-span-01""#);
        assert_eq!(
            header.fields["_tracer-data"].data,
            br#"{"traceparent":"00-trace-span-01"}"#
        );
        let without = StartRequest {
            traceparent: None,
            ..request()
        };
        assert_eq!(message(&without, "default", "me").unwrap().header, None);
    }
}
