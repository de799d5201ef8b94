//! The queue: what waits, why, and what people do about it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{ExecutionStatus, ExpectedStart, Obstacle, Reference, SlotHolder, Waiting, WaitingReason};

words! {
    /// Where an item stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum ItemStatus {
        /// Waits.
        Pending = "PENDING",
        /// A server has it and is starting its execution.
        Claimed = "CLAIMED",
        /// Its execution was started; how that went is the execution's to tell.
        Dispatched = "DISPATCHED",
        /// It will not be started any more.
        Failed = "FAILED",
        /// Somebody did not want it any more.
        Cancelled = "CANCELLED",
    }
}

/// An item of the queue.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct QueueItem {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub workspace_id: Uuid,
    /// Its name; none when the workspace is gone.
    pub workspace: Option<String>,
    /// What it runs.
    pub workflow_definition_id: Uuid,
    /// Its name; none when the workflow is gone.
    pub workflow: Option<String>,
    /// Its execution, once there is one.
    pub execution_id: Option<Uuid>,
    /// Where it stands.
    pub status: ItemStatus,
    /// Higher goes first within the workspace.
    pub priority: i32,
    /// Not before.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub run_at: Option<Timestamp>,
    /// Starts that the engine refused.
    pub attempt_count: i32,
    /// Servers that were lost with it in their hands.
    pub recovery_count: i32,
    /// When it was enqueued.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// When it was claimed last.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub claimed_at: Option<Timestamp>,
    /// When its execution was started.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub dispatched_at: Option<Timestamp>,
    /// What went wrong last, with its start or with its execution.
    pub last_error: Option<String>,
    /// How its execution ended, once it has.
    pub outcome: Option<ExecutionStatus>,
    /// What it waits for: the first obstacle on its way; none when it does not wait.
    pub waits_for: Option<WaitingReason>,
    /// The caller's key.
    pub idempotency_key: Option<String>,
    /// The caller's reference.
    pub correlation_id: Option<String>,
    /// Who enqueued it.
    pub enqueued_by: String,
    /// What was asked.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub input: Option<Box<RawValue>>,
}

/// An item, and why it waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueItemDetails {
    /// The item.
    pub item: QueueItem,
    /// Why it waits: the first of `reasons`; absent when it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    /// Everything that stands in its way, in the order in which it falls away; empty when it does not wait.
    #[serde(default)]
    pub reasons: Vec<Waiting>,
    /// Its place in the workspace's queue, from 1, counted up to 10,001; absent when it does not wait, or not in line yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<i64>,
    /// Who holds the slots of its workspace, the longest first, at most twenty; empty when it does not wait.
    #[serde(default)]
    pub holders: Vec<SlotHolder>,
    /// When it is expected to start; absent where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<ExpectedStart>,
    /// What keeps its run from going on, when it runs and its engine knows; see the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
}

/// Which items; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct QueueQuery {
    /// Of this workspace; several with commas between them.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workflow_definition_id: Option<Reference>,
    /// In this status, written in any case; the API takes several, with commas between them. FAILED are items whose start failed for good: an
    /// item whose run failed is DISPATCHED and has the `outcome` FAILED. See those by `/v1/executions?status=failed` or `/v1/failures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<ItemStatus>>, inline, style = Form, explode = false))]
    pub status: Option<ItemStatus>,
    /// Enqueued at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Timestamp>,
    /// Enqueued before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
    /// With this text in the input or in the last error, in whatever case. At most 5,000 items are searched for a page: it
    /// may come back with fewer than asked for and a `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 200))]
    pub search: Option<String>,
    /// Which come first; the newest when left out. `next` is for one workspace, and tells what is ready there in the order in which it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub order: Option<QueueOrder>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

words! {
    /// Which items come first.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum QueueOrder {
        /// The newest.
        #[default]
        Newest = "newest",
        /// The oldest.
        Oldest = "oldest",
        /// What goes next in its workspace: by priority, then by age.
        Next = "next",
    }
}

/// Which items are counted; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct QueueCountQuery {
    /// Of this workspace; several with commas between them.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workflow_definition_id: Option<Reference>,
    /// Enqueued at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Timestamp>,
    /// Enqueued before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
}

/// How many items are in each status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ItemCounts {
    /// One for each status there is.
    pub items: Vec<ItemCount>,
}

/// How many items are in a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct ItemCount {
    /// The status.
    pub status: ItemStatus,
    /// So many of those that were looked at: the newest 10,000 of a kind, or 1,000 of what ended well.
    pub count: i64,
    /// There were as many as are looked at, so there may be more.
    pub more: bool,
}

/// What to change of an item that waits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueueItemChange {
    /// Higher goes first within the workspace.
    pub priority: i32,
}

/// A wish to cancel.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cancel {
    /// Why, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1000))]
    pub reason: Option<String>,
}

/// What came of a cancel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cancelled {
    /// What was to be cancelled.
    pub id: Uuid,
    /// How far it got.
    pub result: CancelledHow,
}

/// How far a cancel got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CancelledHow {
    /// It waited; now it is cancelled.
    Cancelled,
    /// It holds a slot: the engine is asked, and the slot is free when the run has closed.
    Requested,
}

/// The life of an item, oldest step first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct History {
    /// The steps.
    pub items: Vec<Step>,
}

/// One step in the life of an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Step {
    /// When.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// What.
    pub event: String,
    /// Who: a server, the engine, the reconciler, a token, or a person.
    pub actor: String,
    /// The name of that server, when it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Which execution, when it was about one.
    pub execution_id: Option<Uuid>,
    /// More words.
    pub detail: Option<String>,
}

/// Retries everything that ended badly and matches; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "Id: Deserialize<'de>"))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkRetry<Id = Uuid> {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workspace_id: Option<Id>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workflow_definition_id: Option<Id>,
    /// That ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RetriableStatus>,
    /// Whose status is meant; that of either when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_of: Option<StatusOf>,
    /// For this reason, such as `refused` or `quarantined`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 100))]
    pub end_reason: Option<String>,
    /// Ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_after: Option<Timestamp>,
    /// Ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Timestamp>,
    /// Where the answer before ended: its `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 100))]
    pub after: Option<String>,
    /// Everything: needed where no filter narrows it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub all: bool,
    /// Only count what matches.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub dry_run: bool,
}

with_ids! {
    BulkRetry { workspace_id: Option<To>, workflow_definition_id: Option<To> }
    status, status_of, end_reason, ended_after, ended_before, after, all, dry_run
}

words! {
    /// Whose status a retry goes by.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum StatusOf {
        /// The item's: one that FAILED could not be started.
        Item = "item",
        /// The execution's: one that waited until it was cancelled has none.
        Execution = "execution",
    }
}

words! {
    /// How something can have ended that can be retried.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum RetriableStatus {
        /// Badly.
        Failed = "FAILED",
        /// Because somebody wanted it to.
        Cancelled = "CANCELLED",
        /// By force.
        Terminated = "TERMINATED",
        /// By its deadline.
        TimedOut = "TIMED_OUT",
    }
}

/// Cancels everything that waits or runs and matches; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "Id: Deserialize<'de>"))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkCancel<Id = Uuid> {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workspace_id: Option<Id>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workflow_definition_id: Option<Id>,
    /// In this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CancellableStatus>,
    /// Enqueued at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Timestamp>,
    /// Enqueued before this time, and not put back by a retry since: the `as_of` of a dry run, so that nothing is touched that it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
    /// Why, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1000))]
    pub reason: Option<String>,
    /// Where the answer before ended: its `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 100))]
    pub after: Option<String>,
    /// Everything: needed where no filter narrows it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub all: bool,
    /// Only count what matches.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub dry_run: bool,
}

with_ids! {
    BulkCancel { workspace_id: Option<To>, workflow_definition_id: Option<To> }
    status, created_after, created_before, reason, after, all, dry_run
}

words! {
    /// In which status something can be cancelled.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum CancellableStatus {
        /// Waits.
        Pending = "PENDING",
        /// Is being started.
        Claimed = "CLAIMED",
        /// Runs.
        Dispatched = "DISPATCHED",
    }
}

/// Changes the priority of everything that waits and matches; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "Id: Deserialize<'de>"))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkPriority<Id = Uuid> {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workspace_id: Option<Id>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workflow_definition_id: Option<Id>,
    /// Enqueued at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_after: Option<Timestamp>,
    /// Enqueued before this time, and not put back by a retry since: the `as_of` of a dry run, so that nothing is touched that it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_before: Option<Timestamp>,
    /// Higher goes first within the workspace.
    pub priority: i32,
    /// Where the answer before ended: its `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 100))]
    pub after: Option<String>,
    /// Everything: needed where no filter narrows it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub all: bool,
    /// Only count what matches.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub dry_run: bool,
}

with_ids! {
    BulkPriority { workspace_id: Option<To>, workflow_definition_id: Option<To> }
    created_after, created_before, priority, after, all, dry_run
}
