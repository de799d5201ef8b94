//! Whose run it is. Anybody may start a workflow under the id of an execution; what it does and how it ends says nothing of ours.
//!
//! The request that began a run tells, for certain: its id is the execution's own. Lists do not hold it, so what is started bears a
//! mark, a line of its memo, which they do hold. Only a run without the mark (a worker that continued as new need not pass it on) is
//! asked about.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::json;
use stationmaster_core::engine::{OpenRun, Origin};
use stationmaster_core::id::{ExecutionId, WorkspaceId};
use temporalio_common::protos::temporal::api::common::v1::Memo;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::DescribeWorkflowExecutionResponse;
use tokio::time::Instant;

use crate::engine::TemporalEngine;
use crate::link::CallError;
use crate::payload;

const MARK: &str = "stationmasterExecutionId";
const WORKSPACE: &str = "stationmasterWorkspaceId";

/// The memo of what is started for this execution: its mark, and its workspace, for whoever finds the run and has lost the row.
pub(crate) fn mark(execution: ExecutionId, workspace: WorkspaceId) -> Memo {
    let workspace = json!(workspace.to_string()).to_string().into_bytes();
    Memo {
        fields: HashMap::from([
            (MARK.to_owned(), payload::from_json(mark_value(execution))),
            (WORKSPACE.to_owned(), payload::from_json(workspace)),
        ]),
    }
}

/// The workspace that a run was started for, when its memo tells.
fn workspace_of(run: &WorkflowExecutionInfo) -> Option<WorkspaceId> {
    let value = run.memo.as_ref()?.fields.get(WORKSPACE)?;
    let text: String = serde_json::from_slice(&value.data).ok()?;
    text.parse().ok().map(WorkspaceId)
}

/// Whether a listed run bears our mark.
pub(crate) fn is_marked(run: &WorkflowExecutionInfo, execution: ExecutionId) -> bool {
    let mark = run.memo.as_ref().and_then(|memo| memo.fields.get(MARK));
    mark.is_some_and(|mark| mark.data == mark_value(execution))
}

fn mark_value(execution: ExecutionId) -> Vec<u8> {
    json!(execution.to_string()).to_string().into_bytes()
}

impl TemporalEngine {
    /// Where a run comes from; `None`: it is not open any more.
    pub(crate) async fn origin_of(&self, run: &OpenRun) -> Result<Option<Origin>, CallError> {
        let (workflow_id, ends_at) = (run.execution_id.workflow_id(), self.rpc_ends_at());
        let described = self.described(&workflow_id, &run.run_id, ends_at).await?;
        let info = described.and_then(|described| described.workflow_execution_info);
        let Some(info) = info.filter(|info| info.status() == WorkflowExecutionStatus::Running) else {
            return Ok(None);
        };
        let mut workspace_id = workspace_of(&info);
        if workspace_id.is_none() && !info.first_run_id.is_empty() {
            // A worker that continued as new need not pass the memo on; the first run of the chain has it.
            let first = self.described(&workflow_id, &info.first_run_id, ends_at).await?;
            let first = first.and_then(|first| first.workflow_execution_info);
            workspace_id = first.as_ref().and_then(workspace_of);
        }
        let started_at = info
            .start_time
            .and_then(|at| Timestamp::new(at.seconds, at.nanos).ok());
        Ok(Some(Origin {
            workspace_id,
            started_at,
        }))
    }

    /// Whether a listed run is of a chain that our own request began. One that is no longer kept cannot tell, and is believed.
    pub(crate) async fn is_run_ours(&self, execution: ExecutionId, run_id: &str) -> Result<bool, CallError> {
        let ends_at = self.rpc_ends_at();
        match self.described(&execution.workflow_id(), run_id, ends_at).await? {
            Some(run) => self.is_ours(execution, &run, ends_at).await,
            None => Ok(true),
        }
    }

    /// Whether the chain of runs that this one belongs to began with our own request. A server that does not tell is believed.
    pub(crate) async fn is_ours(
        &self,
        execution: ExecutionId,
        run: &DescribeWorkflowExecutionResponse,
        ends_at: Instant,
    ) -> Result<bool, CallError> {
        match began_by(run, execution) {
            Some(true) | None => return Ok(true),
            Some(false) => {}
        }
        // A run that was continued, retried or reset was begun by Temporal itself; the first of its chain tells.
        let info = run.workflow_execution_info.as_ref();
        let first = info.map(|info| info.first_run_id.as_str()).unwrap_or_default();
        let run_id = info.and_then(|info| info.execution.as_ref());
        if first.is_empty() || run_id.is_some_and(|run| run.run_id == first) {
            return Ok(false);
        }
        let first = self.described(&execution.workflow_id(), first, ends_at).await?;
        Ok(first
            .and_then(|first| began_by(&first, execution))
            .unwrap_or(true))
    }
}

/// Whether a run was begun by our own request; `None`: that is not told.
fn began_by(run: &DescribeWorkflowExecutionResponse, execution: ExecutionId) -> Option<bool> {
    let requests = &run.workflow_extended_info.as_ref()?.request_id_infos;
    if requests.is_empty() {
        return None;
    }
    Some(requests.contains_key(&execution.to_string()))
}
