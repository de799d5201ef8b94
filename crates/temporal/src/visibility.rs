//! The store that lists many runs: which have closed, and which are open.
//!
//! A run never has to be asked whether it is still open: a list costs what is on it.

use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use stationmaster_core::engine::{CloseStatus, OpenRun, Page};
use stationmaster_core::id::ExecutionId;
use temporalio_client::grpc::WorkflowService;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    CountWorkflowExecutionsRequest, ListWorkflowExecutionsRequest,
};

use crate::engine::{PARALLEL_CALLS, TemporalEngine};
use crate::link::CallError;
use crate::{close, ours};

const PAGE_SIZE: i32 = 1_000;
/// With more closes than this to list, a shorter stretch of time is listed.
const ROW_LIMIT: usize = 10_000;

const OPEN: &str = r#"WorkflowId STARTS_WITH "execution-" AND ExecutionStatus = "Running""#;

/// A run that the store lists as closed.
#[derive(Debug, Clone)]
pub(crate) struct ClosedRun {
    pub(crate) execution_id: ExecutionId,
    pub(crate) run_id: String,
    pub(crate) status: CloseStatus,
    pub(crate) closed_at: Timestamp,
    /// Whether it bears our mark; of one without it is not known whose it is.
    pub(crate) is_marked: bool,
}

impl TemporalEngine {
    /// One page of our open runs.
    pub(crate) async fn list_open(&self, page: Option<Vec<u8>>) -> Result<Page<OpenRun>, CallError> {
        let page = self.list_as(OPEN, page, open_run).await?;
        let asked = page.rows.into_iter().map(|(run, is_marked)| async move {
            let is_ours = is_marked || self.is_run_ours(run.execution_id, &run.run_id).await?;
            Ok(is_ours.then_some(run))
        });
        let rows: Vec<Option<OpenRun>> = stream::iter(asked).buffered(PARALLEL_CALLS).try_collect().await?;
        Ok(Page {
            rows: rows.into_iter().flatten().collect(),
            next: page.next,
        })
    }

    /// One page of a list, of what can be read of it.
    pub(crate) async fn list_as<T>(
        &self,
        query: &str,
        page: Option<Vec<u8>>,
        read: fn(WorkflowExecutionInfo) -> Option<T>,
    ) -> Result<Page<T>, CallError> {
        let (infos, next) = self.list_page(query.to_owned(), page.unwrap_or_default()).await?;
        Ok(Page {
            rows: infos.into_iter().filter_map(read).collect(),
            next: (!next.is_empty()).then_some(next),
        })
    }

    /// All closes since `since`; or, after a long absence, those of a first stretch of that time, and its end. A
    /// stretch is at least as long as `shortest`.
    pub(crate) async fn list_closed(
        &self,
        since: Timestamp,
        shortest: SignedDuration,
    ) -> Result<(Vec<ClosedRun>, Option<Timestamp>), CallError> {
        let mut runs = Vec::new();
        if self.list_closed_until(since, None, ROW_LIMIT, &mut runs).await? {
            return Ok((runs, None));
        }
        let newest = runs.iter().map(|run| run.closed_at).max().unwrap_or(since);
        let until = self.end_of_stretch(since, newest, shortest).await?;
        runs.clear();
        self.list_closed_until(since, until, usize::MAX, &mut runs)
            .await?;
        Ok((runs, until))
    }

    /// Where a stretch from `since` ends that holds no more closes than should be listed at once; `None` when even
    /// all of it is not longer than the shortest.
    async fn end_of_stretch(
        &self,
        since: Timestamp,
        newest: Timestamp,
        shortest: SignedDuration,
    ) -> Result<Option<Timestamp>, CallError> {
        let mut stretch = newest.duration_since(since);
        while stretch > shortest {
            stretch = (stretch / 2).max(shortest);
            let until = since.saturating_add(stretch).unwrap_or(newest);
            if stretch == shortest || self.count_closed(since, until).await? <= ROW_LIMIT {
                return Ok(Some(until));
            }
        }
        Ok(None)
    }

    /// Whether the list came to its end within `limit` rows.
    async fn list_closed_until(
        &self,
        since: Timestamp,
        until: Option<Timestamp>,
        limit: usize,
        runs: &mut Vec<ClosedRun>,
    ) -> Result<bool, CallError> {
        let query = closed_between(since, until);
        let mut token = Vec::new();
        while runs.len() < limit {
            let (infos, next) = self.list_page(query.clone(), token).await?;
            runs.extend(infos.into_iter().filter_map(closed_run));
            if next.is_empty() {
                return Ok(true);
            }
            token = next;
        }
        Ok(false)
    }

    async fn list_page(
        &self,
        query: String,
        next_page_token: Vec<u8>,
    ) -> Result<(Vec<WorkflowExecutionInfo>, Vec<u8>), CallError> {
        let message = ListWorkflowExecutionsRequest {
            namespace: self.namespace.clone(),
            page_size: PAGE_SIZE,
            next_page_token,
            query,
        };
        let page = self
            .ask(message, WorkflowService::list_workflow_executions)
            .await?;
        Ok((page.executions, page.next_page_token))
    }

    async fn count_closed(&self, since: Timestamp, until: Timestamp) -> Result<usize, CallError> {
        let message = CountWorkflowExecutionsRequest {
            namespace: self.namespace.clone(),
            query: closed_between(since, Some(until)),
        };
        let counted = self
            .ask(message, WorkflowService::count_workflow_executions)
            .await?;
        Ok(usize::try_from(counted.count).unwrap_or_default())
    }
}

/// The filter for closes of our executions. A run that continued as new has closed, but its execution goes on.
fn closed_between(since: Timestamp, until: Option<Timestamp>) -> String {
    let since = since.max(Timestamp::UNIX_EPOCH);
    let until = until
        .map(|until| format!(r#" AND CloseTime < "{until}""#))
        .unwrap_or_default();
    format!(
        r#"WorkflowId STARTS_WITH "execution-" AND CloseTime >= "{since}"{until} AND ExecutionStatus IN ("Completed", "Failed", "Canceled", "Terminated", "TimedOut")"#
    )
}

fn closed_run(info: WorkflowExecutionInfo) -> Option<ClosedRun> {
    let status = close::status(info.status())?;
    let closed_at = info.close_time?;
    let execution_id = execution_id(&info)?;
    let is_marked = ours::is_marked(&info, execution_id);
    Some(ClosedRun {
        execution_id,
        run_id: info.execution?.run_id,
        is_marked,
        status,
        closed_at: Timestamp::new(closed_at.seconds, closed_at.nanos).ok()?,
    })
}

fn open_run(info: WorkflowExecutionInfo) -> Option<(OpenRun, bool)> {
    let execution_id = execution_id(&info)?;
    let is_marked = ours::is_marked(&info, execution_id);
    let run = OpenRun {
        execution_id,
        run_id: info.execution?.run_id,
    };
    Some((run, is_marked))
}

fn execution_id(info: &WorkflowExecutionInfo) -> Option<ExecutionId> {
    ExecutionId::from_workflow_id(&info.execution.as_ref()?.workflow_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn the_filter_names_the_time_in_a_form_that_the_store_reads() {
        let since = "2026-11-15T03:24:45.255415Z".parse().unwrap();
        let filter = closed_between(since, Some(at(1_800_000_000)));
        assert!(
            filter.contains(r#"CloseTime >= "2026-11-15T03:24:45.255415Z""#),
            "{filter}"
        );
        assert!(
            filter.contains(r#"CloseTime < "2027-01-15T08:00:00Z""#),
            "{filter}"
        );
        assert!(closed_between(Timestamp::MIN, None).contains(r#">= "1970-01-01T00:00:00Z""#));
    }
}
