//! Executions: asking for them, looking at them, ending them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Order, Reference};

/// A request to run a workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Enqueue<Id = Uuid> {
    /// For whom.
    #[serde(alias = "workspace")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workspace_id: Id,
    /// What.
    #[serde(alias = "workflow")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workflow_definition_id: Id,
    /// With what; any JSON, `{}` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub input: Option<Box<RawValue>>,
    /// Higher goes first within the workspace.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = 0))]
    pub priority: i32,
    /// Not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_at: Option<Timestamp>,
    /// A repeat with the same key and the same request gives the first item. The header `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub idempotency_key: Option<String>,
    /// The caller's trace context (W3C `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub traceparent: Option<String>,
    /// The caller's own reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub correlation_id: Option<String>,
}

with_ids! {
    Enqueue { workspace_id: To, workflow_definition_id: To }
    input, priority, run_at, idempotency_key, traceparent, correlation_id
}

impl Enqueue<Reference> {
    /// A request by names, with nothing special about it.
    #[must_use]
    pub fn named(workspace: impl Into<Reference>, workflow: impl Into<Reference>) -> Self {
        Self::new(workspace.into(), workflow.into())
    }
}

impl<Id> Enqueue<Id> {
    /// A request with nothing special about it.
    #[must_use]
    pub fn new(workspace_id: Id, workflow_definition_id: Id) -> Self {
        Self {
            workspace_id,
            workflow_definition_id,
            input: None,
            priority: 0,
            run_at: None,
            idempotency_key: None,
            traceparent: None,
            correlation_id: None,
        }
    }
}

/// What became of a request to run a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Enqueued {
    /// The queue item. The execution gets its own id when the item is admitted.
    pub id: Uuid,
    /// The same request was made before under the same key, and this is its item.
    pub duplicate: bool,
}

/// Many requests at once, all or none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkEnqueue<Id = Uuid> {
    /// The requests.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<super::asked::Enqueue>, min_items = 1, max_items = 1000))]
    pub items: Vec<Enqueue<Id>>,
}

/// What became of many requests, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkEnqueued {
    /// One answer for each request.
    pub items: Vec<Enqueued>,
}

words! {
    /// Where an execution stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum ExecutionStatus {
        /// Between two tries to start.
        Pending = "PENDING",
        /// Holds a slot; the engine is being asked.
        Starting = "STARTING",
        /// Holds a slot and runs.
        Running = "RUNNING",
        /// Ended well.
        Completed = "COMPLETED",
        /// Ended badly.
        Failed = "FAILED",
        /// Ended because somebody wanted it to.
        Cancelled = "CANCELLED",
        /// Ended by force.
        Terminated = "TERMINATED",
        /// Took too long.
        TimedOut = "TIMED_OUT",
    }
}

/// An execution.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Execution {
    /// Its id; the engine knows it as `execution-<id>`.
    pub id: Uuid,
    /// The item that asked for it.
    pub queue_item_id: Uuid,
    /// Whose it is.
    pub workspace_id: Uuid,
    /// Its name; none when the workspace is gone.
    pub workspace: Option<String>,
    /// What it runs.
    pub workflow_definition_id: Uuid,
    /// Its name; none when the workflow is gone.
    pub workflow: Option<String>,
    /// Which version of it.
    pub workflow_definition_version_id: Option<Uuid>,
    /// Where it stands.
    pub status: ExecutionStatus,
    /// When it was claimed last.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub claimed_at: Option<Timestamp>,
    /// When the engine started it.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub completed_at: Option<Timestamp>,
    /// When its run closed, by the engine's clock; `completed_at` is when that was recorded.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub closed_at: Option<Timestamp>,
    /// When a retry followed it, which runs under an id of its own.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub superseded_at: Option<Timestamp>,
    /// Where it runs.
    pub engine: Option<String>,
    /// The engine's own id of it; of the last run, when it continued in several.
    pub run_id: Option<String>,
    /// Why it ended as it did, when the engine did not say.
    pub reason: Option<String>,
    /// Starts that the engine refused.
    pub attempts: i32,
    /// Servers that were lost with it in their hands.
    pub recoveries: i32,
    /// What was asked.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub input: Option<Box<RawValue>>,
    /// What came of it.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub output: Option<Box<RawValue>>,
    /// What came of it was too large to be kept here, and `output` is none: it is to be had of the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeOmitted"))]
    pub output_omitted: Option<OmittedOutput>,
    /// What went wrong.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub error: Option<Box<RawValue>>,
    /// What keeps its run from going on, as its engine says when it is asked for one execution; absent: nothing that the engine knows of,
    /// or whoever answers has no engine to ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "rows", sqlx(skip))]
    pub obstacle: Option<Obstacle>,
}

words! {
    /// Where a node of a run stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum NodeState {
        /// It is done.
        Finished = "finished",
        /// It is the one that the run is at.
        UnderWay = "under_way",
        /// The run failed there.
        Failed = "failed",
        /// The run has not come to it.
        Ahead = "ahead",
    }
}

/// The graph that an execution runs, and where each node stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionNodes {
    /// The graph; none when its version is gone.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub graph: Option<Box<RawValue>>,
    /// Its nodes, in the order in which they run.
    pub nodes: Vec<NodeStanding>,
}

/// Where a node of a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NodeStanding {
    /// Its id within the graph.
    pub id: String,
    /// What kind of step it is.
    pub kind: String,
    /// Where it stands; absent where that is not known: other engines than the embedded one do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<NodeState>,
    /// Until when it waits, when it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// An output that stayed with the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OmittedOutput {
    /// Its size in bytes.
    pub size: u64,
    /// How it is encoded there, such as `json/plain`.
    pub encoding: String,
}

/// What keeps a run from going on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Obstacle {
    /// No worker polls its task queue.
    NoWorker {
        /// Which one.
        task_queue: String,
    },
    /// Its workflow task keeps failing.
    TaskFails {
        /// Why.
        message: String,
        /// How often it was tried.
        attempts: i32,
    },
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoWorker { task_queue } => write!(formatter, "no worker polls task queue {task_queue}"),
            Self::TaskFails { message, attempts } => write!(
                formatter,
                "its workflow task keeps failing: {message} ({attempts} tries)"
            ),
        }
    }
}

/// Which executions; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ExecutionQuery {
    /// Of this workspace; several with commas between them.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workflow_definition_id: Option<Reference>,
    /// In this status, written in any case; the API takes several, with commas between them. What ended badly and was followed by a retry is left
    /// out, unless `superseded` asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<Vec<ExecutionStatus>>, inline, style = Form, explode = false))]
    pub status: Option<ExecutionStatus>,
    /// With a status: what ended so and was followed by a retry too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<bool>,
    /// Ended at this time or later. A status of what has not ended yet is listed whatever the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_after: Option<Timestamp>,
    /// Ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_before: Option<Timestamp>,
    /// With this text in the input or in the error, in whatever case. At most 5,000 executions are searched for a page: it
    /// may come back with fewer than asked for and a `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 200))]
    pub search: Option<String>,
    /// Which come first, by when they were asked for; the newest when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub order: Option<Order>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

/// Which executions are counted; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct ExecutionCountQuery {
    /// Of this workspace; several with commas between them.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workflow_definition_id: Option<Reference>,
    /// Ended at this time or later; what has not ended is counted whatever the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_after: Option<Timestamp>,
    /// Ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_before: Option<Timestamp>,
}

/// How many executions are in each status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutionCounts {
    /// One for each status there is; of what ended badly, what no retry has followed.
    pub items: Vec<ExecutionCount>,
}

/// How many executions are in a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct ExecutionCount {
    /// The status.
    pub status: ExecutionStatus,
    /// So many of those that were looked at: the newest 10,000 of a kind, or 1,000 of what ended well.
    pub count: i64,
    /// There were as many as are looked at, so there may be more.
    pub more: bool,
}

/// How an execution ended, told by somebody who knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Complete {
    /// How it ended.
    pub status: CompleteStatus,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub output: Option<Box<RawValue>>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub error: Option<Box<RawValue>>,
    /// Free the slot at once, by this word alone. Its run is not ended first: servers find it open later, and end it. For an engine that
    /// does not answer.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(default = false))]
    pub force: bool,
}

/// A wish that a run be ended by force.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Terminate {
    /// Why, for the history and the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1000))]
    pub reason: Option<String>,
}

words! {
    /// How an execution can end.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum CompleteStatus {
        /// Well.
        Completed = "COMPLETED",
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
