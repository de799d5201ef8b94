//! Executions and the queue.

use reqwest::Method;
use serde::Serialize;
use uuid::Uuid;

use crate::Client;
use crate::error::Result;
use crate::wire::{
    BulkAnswer, BulkCancel, BulkEnqueue, BulkEnqueued, BulkPriority, BulkRetry, Cancel, Cancelled, Complete,
    EndStray, Enqueue, Enqueued, Execution, ExecutionCount, ExecutionCountQuery, ExecutionCounts,
    ExecutionNodes, ExecutionQuery, History, ItemCount, ItemCounts, Page, PageQuery, QueueCountQuery,
    QueueItem, QueueItemChange, QueueItemDetails, QueueQuery, Stray, Terminate, Waits, WaitsQuery,
};

impl Client {
    /// Asks for a workflow to run, once for the key of the request; without one, once for this call.
    pub async fn enqueue<Id: Serialize + Sync>(&self, request: &Enqueue<Id>) -> Result<Enqueued> {
        let mut call = self.post(&["executions"]);
        if request.idempotency_key.is_some() {
            call = call.named_by_its_body();
        }
        call.json(request).send().await
    }

    /// Asks for many at once, all or none.
    pub async fn enqueue_all<Id: Serialize + Sync>(
        &self,
        requests: Vec<Enqueue<Id>>,
    ) -> Result<Vec<Enqueued>> {
        let request = BulkEnqueue { items: requests };
        let answer: BulkEnqueued = self.ask(&["executions", "bulk"], &request).await?;
        Ok(answer.items)
    }

    /// Executions, newest first.
    pub async fn executions(&self, query: &ExecutionQuery) -> Result<Page<Execution>> {
        self.read(&["executions"], query).await
    }

    /// How many executions are in each status.
    pub async fn execution_counts(&self, query: &ExecutionCountQuery) -> Result<Vec<ExecutionCount>> {
        let counts: ExecutionCounts = self.read(&["executions", "counts"], query).await?;
        Ok(counts.items)
    }

    /// One execution.
    pub async fn execution(&self, id: Uuid) -> Result<Execution> {
        self.get(&["executions", &id.to_string()]).send().await
    }

    /// Where each node of an execution's graph stands.
    pub async fn execution_nodes(&self, id: Uuid) -> Result<ExecutionNodes> {
        self.get(&["executions", &id.to_string(), "nodes"]).send().await
    }

    /// The life of an execution's item.
    pub async fn execution_history(&self, id: Uuid) -> Result<History> {
        self.get(&["executions", &id.to_string(), "history"]).send().await
    }

    /// Ends the run of an active execution and records this end. When its status is not this one, the run has not ended yet: the slot is
    /// free when it has.
    pub async fn complete(&self, id: Uuid, end: &Complete) -> Result<Execution> {
        self.ask(&["executions", &id.to_string(), "complete"], end).await
    }

    /// Ends the run of an execution by force; no worker is needed. Answers the execution as it is then.
    pub async fn terminate(&self, id: Uuid, why: &Terminate) -> Result<Execution> {
        self.ask(&["executions", &id.to_string(), "terminate"], why).await
    }

    /// Runs that the engine holds open and that no row tells of.
    pub async fn strays(&self, query: &PageQuery) -> Result<Page<Stray>> {
        self.read(&["executions", "strays"], query).await
    }

    /// Ends such a run, by its run id; a server does that as soon as it can.
    pub async fn end_stray(&self, execution: Uuid, end: &EndStray) -> Result<Stray> {
        self.ask(&["executions", "strays", &execution.to_string(), "end"], end)
            .await
    }

    /// Cancels an execution.
    pub async fn cancel_execution(&self, id: Uuid, why: &Cancel) -> Result<Cancelled> {
        self.ask(&["executions", &id.to_string(), "cancel"], why).await
    }

    /// Items of the queue, newest first.
    pub async fn queue(&self, query: &QueueQuery) -> Result<Page<QueueItem>> {
        self.read(&["queue"], query).await
    }

    /// How many items are in each status.
    pub async fn queue_counts(&self, query: &QueueCountQuery) -> Result<Vec<ItemCount>> {
        let counts: ItemCounts = self.read(&["queue", "counts"], query).await?;
        Ok(counts.items)
    }

    /// One item, and why it waits.
    pub async fn queue_item(&self, id: Uuid) -> Result<QueueItemDetails> {
        self.get(&["queue", &id.to_string()]).send().await
    }

    /// Why several items wait: those of them that do.
    pub async fn waits(&self, items: &[Uuid]) -> Result<Waits> {
        let ids: Vec<String> = items.iter().map(Uuid::to_string).collect();
        let query = WaitsQuery { ids: ids.join(",") };
        self.read(&["queue", "waits"], &query).await
    }

    /// The life of an item.
    pub async fn queue_history(&self, id: Uuid) -> Result<History> {
        self.get(&["queue", &id.to_string(), "history"]).send().await
    }

    /// Changes an item that waits.
    pub async fn change_queue_item(&self, id: Uuid, change: &QueueItemChange) -> Result<QueueItem> {
        self.change(Method::PATCH, &["queue", &id.to_string()], change, None)
            .await
    }

    /// Cancels an item.
    pub async fn cancel(&self, id: Uuid, why: &Cancel) -> Result<Cancelled> {
        self.ask(&["queue", &id.to_string(), "cancel"], why).await
    }

    /// Puts an item that ended badly back into the queue.
    pub async fn retry(&self, id: Uuid) -> Result<QueueItem> {
        self.post(&["queue", &id.to_string(), "retry"]).send().await
    }

    /// Puts everything back that ended badly and matches. Once for its key; without one, once for this call.
    pub async fn retry_all<Id: Serialize + Sync>(
        &self,
        filter: &BulkRetry<Id>,
        key: Option<&str>,
    ) -> Result<BulkAnswer> {
        self.ask_once(&["queue", "retry"], key, filter).await
    }

    /// Cancels everything that waits or runs and matches. Once for its key; without one, once for this call.
    pub async fn cancel_all<Id: Serialize + Sync>(
        &self,
        filter: &BulkCancel<Id>,
        key: Option<&str>,
    ) -> Result<BulkAnswer> {
        self.ask_once(&["queue", "cancel"], key, filter).await
    }

    /// Changes the priority of everything that waits and matches. Once for its key; without one, once for this call.
    pub async fn set_priorities(&self, filter: &BulkPriority, key: Option<&str>) -> Result<BulkAnswer> {
        self.ask_once(&["queue", "priority"], key, filter).await
    }
}
