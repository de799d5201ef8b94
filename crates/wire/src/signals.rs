//! Signals, the triggers that they meet, and the dispatchers that route them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::Reference;

/// A signal to be sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NewSignal {
    /// The sender's own id of it: a repeat with the same id and the same signal sends nothing. A new one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub id: Option<String>,
    /// The project that it is for.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub project: String,
    /// The task queue of the project; `default` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub task_queue: Option<String>,
    /// Its name: triggers go by it.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: String,
    /// What it carries; any JSON, `{}` when left out. Becomes the input of the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload: Option<Box<RawValue>>,
    /// The sender's own reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub correlation_id: Option<String>,
    /// The sender's trace context (W3C `traceparent`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub traceparent: Option<String>,
}

impl NewSignal {
    /// A signal with nothing special about it.
    #[must_use]
    pub fn new(project: &str, name: &str) -> Self {
        Self {
            id: None,
            project: project.to_owned(),
            task_queue: None,
            name: name.to_owned(),
            payload: None,
            correlation_id: None,
            traceparent: None,
        }
    }
}

/// What became of a signal that was sent. It is committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignalSent {
    /// Its id.
    pub id: String,
    /// The same signal was sent before under the same id.
    pub duplicate: bool,
}

/// Many signals at once, all or none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkSend {
    /// The signals.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 1000))]
    pub items: Vec<NewSignal>,
}

/// What became of many signals, in their order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkSent {
    /// One for each.
    pub items: Vec<SignalSent>,
}

/// Puts every dead letter back that matches; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "Id: Deserialize<'de>"))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkReplay<Id = Uuid> {
    /// Of projects of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workspace_id: Option<Id>,
    /// Of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub project: Option<String>,
    /// Of this task queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub task_queue: Option<String>,
    /// With this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 200))]
    pub name: Option<String>,
    /// Put aside for this reason, such as `unknown_signal` or `invalid_payload`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 100))]
    pub reason: Option<String>,
    /// Put aside before this time: the `as_of` of a dry run, so that nothing is touched that it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
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
    BulkReplay { workspace_id: Option<To> }
    project, task_queue, name, reason, before, after, all, dry_run
}

words! {
    /// How a signal stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum SignalStatus {
        /// Waits to be routed.
        Pending = "PENDING",
        /// Became a queue item.
        Routed = "ROUTED",
        /// A dead letter: it was put aside, with a reason.
        Dead = "DEAD",
    }
}

/// A signal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Signal {
    /// The sender's id of it.
    pub id: String,
    /// The project.
    pub project: String,
    /// The task queue.
    pub task_queue: String,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub status: SignalStatus,
    /// The execution that it led to, once there is one.
    pub execution_id: Option<Uuid>,
    /// The queue item that it became.
    pub queue_item_id: Option<Uuid>,
    /// When it came in.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub received_at: Timestamp,
    /// When it was routed or put aside.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub settled_at: Option<Timestamp>,
    /// Why it was put aside: a word.
    pub reason: Option<String>,
    /// Why it was put aside: a sentence.
    pub detail: Option<String>,
    /// The sender's own reference.
    pub correlation_id: Option<String>,
    /// Who sent it.
    pub sent_by: String,
    /// Who routes it.
    pub dispatcher_id: String,
    /// The epoch of the dispatcher that settled it.
    pub epoch: Option<i64>,
    /// How often it was put back into the inbox.
    pub replays: i32,
    /// What it carries.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub payload: Option<Box<RawValue>>,
}

/// Which signals; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct SignalQuery {
    /// Of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub project: Option<String>,
    /// Of this task queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub task_queue: Option<String>,
    /// With this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub name: Option<String>,
    /// In this status; `DEAD` for dead letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub status: Option<SignalStatus>,
    /// Received at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_after: Option<Timestamp>,
    /// Received before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_before: Option<Timestamp>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 2048))]
    pub cursor: Option<String>,
}

/// The rule that a signal's name leads to a workflow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Trigger {
    /// The project.
    pub project: String,
    /// The task queue; none: every one that has no trigger of its own for the name.
    pub task_queue: Option<String>,
    /// The name of the signal.
    pub name: String,
    /// What it starts.
    pub workflow_definition_id: Uuid,
    /// Its name; none when the workflow is gone.
    pub workflow: Option<String>,
    /// Whose project it is.
    pub workspace_id: Uuid,
    /// Its name; none when the workspace is gone.
    pub workspace: Option<String>,
    /// What the payload must look like, as a JSON schema.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeJson"))]
    pub payload_schema: Option<Box<RawValue>>,
    /// The priority of the items.
    pub priority: i32,
    /// When it was made.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub updated_at: Timestamp,
}

/// What a trigger is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerChange<Id = Uuid> {
    /// What it starts.
    #[serde(alias = "workflow")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub workflow_definition_id: Id,
    /// What the payload must look like, as a JSON schema; `null`: anything, as for a new trigger when left out.
    #[serde(
        default,
        deserialize_with = "super::double",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub payload_schema: Option<Option<Box<RawValue>>>,
    /// The priority of the items; higher goes first within the workspace. A new trigger has 0 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

with_ids! {
    TriggerChange { workflow_definition_id: To }
    payload_schema, priority
}

/// Which triggers; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct TriggerQuery {
    /// Of projects of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Of this project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 200))]
    pub project: Option<String>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 4096))]
    pub cursor: Option<String>,
}

/// Which trigger of a project and name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct TriggerPlace {
    /// Of this task queue; that of every queue when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 200))]
    pub task_queue: Option<String>,
}

/// In which project a signal is: needed only where several have one of the same id.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct SignalPlace {
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 200))]
    pub project: Option<String>,
}
