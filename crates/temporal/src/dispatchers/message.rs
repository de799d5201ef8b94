//! What is sent for dispatchers, and what is read from memos. Pure.

use std::collections::HashMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stationmaster_core::engine::dispatchers::RunRequest;
use stationmaster_core::engine::dispatchers::state::Registration;
use stationmaster_core::id::ServerId;
use stationmaster_core::id::{DispatcherId, Epoch};
use temporalio_common::protos::temporal::api::common::v1::{Memo, Payload, Payloads, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    SignalWithStartWorkflowExecutionRequest, SignalWorkflowExecutionRequest,
};

use super::workflow::{Input, REGISTER, WORKFLOW_TYPE};
use crate::payload;
use crate::run::named;

const EPOCH: &str = "epoch";
const SERVER: &str = "serverId";
const ATTEMPT: &str = "attempt";

/// The same in every try of the same start.
pub(super) fn request_id(request: &RunRequest) -> String {
    let tenure = &request.tenure;
    format!("{}:{}:{}", tenure.dispatcher_id, tenure.epoch.0, request.attempt)
}

/// Terminates what runs under the dispatcher's id and starts the run of this tenure, in one call.
pub(super) fn start(
    request: &RunRequest,
    namespace: &str,
    identity: &str,
    task_queue: &str,
) -> Result<SignalWithStartWorkflowExecutionRequest, serde_json::Error> {
    let tenure = &request.tenure;
    let owner = Registration {
        server_id: tenure.owner,
        task_queue: task_queue.to_owned(),
    };
    let memo = HashMap::from([
        (EPOCH.to_owned(), encoded(&tenure.epoch)?),
        (SERVER.to_owned(), encoded(&tenure.owner)?),
        (ATTEMPT.to_owned(), encoded(&request.attempt)?),
    ]);
    Ok(SignalWithStartWorkflowExecutionRequest {
        namespace: namespace.to_owned(),
        workflow_id: tenure.dispatcher_id.0.clone(),
        workflow_type: Some(WorkflowType {
            name: WORKFLOW_TYPE.to_owned(),
        }),
        task_queue: Some(TaskQueue {
            name: task_queue.to_owned(),
            ..TaskQueue::default()
        }),
        input: Some(Payloads {
            payloads: vec![encoded(&Input::of(request))?],
        }),
        identity: identity.to_owned(),
        request_id: request_id(request),
        workflow_id_reuse_policy: WorkflowIdReusePolicy::AllowDuplicate.into(),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::TerminateExisting.into(),
        signal_name: REGISTER.to_owned(),
        signal_input: Some(Payloads {
            payloads: vec![encoded(&owner)?],
        }),
        memo: Some(Memo { fields: memo }),
        ..SignalWithStartWorkflowExecutionRequest::default()
    })
}

/// A signal to whatever run the dispatcher has.
pub(super) fn signal<T: Serialize>(
    dispatcher: &DispatcherId,
    name: &str,
    value: &T,
    namespace: &str,
    identity: &str,
) -> SignalWorkflowExecutionRequest {
    SignalWorkflowExecutionRequest {
        namespace: namespace.to_owned(),
        workflow_execution: Some(named(&dispatcher.0, "")),
        signal_name: name.to_owned(),
        input: encoded(value).ok().map(|payload| Payloads {
            payloads: vec![payload],
        }),
        identity: identity.to_owned(),
        request_id: uuid::Uuid::now_v7().to_string(),
        ..SignalWorkflowExecutionRequest::default()
    }
}

fn encoded<T: Serialize>(value: &T) -> Result<Payload, serde_json::Error> {
    serde_json::to_vec(value).map(payload::from_json)
}

/// The epoch, the server and the attempt that a run was started under, as far as it tells.
pub(super) fn read_memo(info: &WorkflowExecutionInfo) -> (Option<Epoch>, Option<ServerId>, Option<u32>) {
    (field(info, EPOCH), field(info, SERVER), field(info, ATTEMPT))
}

fn field<T: DeserializeOwned>(info: &WorkflowExecutionInfo, name: &str) -> Option<T> {
    let payload = info.memo.as_ref()?.fields.get(name)?;
    serde_json::from_slice(&payload.data).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stationmaster_core::engine::dispatchers::Tenure;

    use super::*;

    fn request() -> RunRequest {
        RunRequest {
            tenure: Tenure {
                dispatcher_id: DispatcherId::of("shop", "default"),
                project: "shop".to_owned(),
                task_queue: "default".to_owned(),
                owner: ServerId::new(),
                epoch: Epoch(7),
            },
            attempt: 0,
            check_interval: Duration::from_secs(10),
            evict_batch: 50,
            continue_after: 4_000,
        }
    }

    #[test]
    fn a_start_replaces_whatever_runs_under_the_same_id_and_names_owner_and_epoch() {
        let request = request();
        let sent = start(&request, "default", "me", "mine").unwrap();
        assert_eq!(sent.workflow_id, "dispatcher-shop-default");
        assert_eq!(sent.request_id, "dispatcher-shop-default:7:0");
        assert_eq!(
            sent.workflow_id_conflict_policy(),
            WorkflowIdConflictPolicy::TerminateExisting
        );
        assert_eq!(sent.task_queue.as_ref().unwrap().name, "mine");
        let input: serde_json::Value =
            serde_json::from_slice(&sent.input.as_ref().unwrap().payloads[0].data).unwrap();
        assert_eq!(input["epoch"], 7);
        assert_eq!(input["serverId"], request.tenure.owner.to_string());
        assert_eq!(input["dispatcherId"], "dispatcher-shop-default");
        let info = WorkflowExecutionInfo {
            memo: sent.memo,
            ..WorkflowExecutionInfo::default()
        };
        assert_eq!(
            read_memo(&info),
            (Some(Epoch(7)), Some(request.tenure.owner), Some(0))
        );
    }

    #[test]
    fn a_run_of_somebody_else_tells_no_epoch() {
        assert_eq!(read_memo(&WorkflowExecutionInfo::default()), (None, None, None));
    }
}
