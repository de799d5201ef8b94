//! Failures: what needs a person, whatever it comes from, by what it has in common.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Reference;

words! {
    /// What it is that failed.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum FailureKind {
        /// An item whose execution could not be started.
        Start = "start",
        /// An execution that ended `FAILED`, `TERMINATED` or `TIMED_OUT`.
        Execution = "execution",
        /// An occurrence of an alarm that no target accepted.
        Occurrence = "occurrence",
        /// A signal that could not be routed: a dead letter.
        Signal = "signal",
    }
}

words! {
    /// In which order groups are told.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum FailureOrder {
        /// The one with the newest failure first.
        #[default]
        Last = "last",
        /// The one whose first failure is the newest first: what is new.
        First = "first",
        /// The largest first.
        Count = "count",
    }
}

/// Failures of one kind, in one workspace, of one workflow (alarm, signal), with one message but for its numbers, ids and times.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct FailureGroup {
    /// Its id, 15 hexadecimal digits. Wherever it is asked for, its beginning is enough, from four digits on.
    pub id: String,
    /// What failed.
    pub kind: FailureKind,
    /// Whose; none for signals of a project that belongs to nobody.
    pub workspace_id: Option<Uuid>,
    /// The name of the workspace, while there is one.
    pub workspace: Option<String>,
    /// What was to run; none for alarms and signals.
    pub workflow_definition_id: Option<Uuid>,
    /// The name of the workflow, while there is one.
    pub workflow: Option<String>,
    /// The alarm, when occurrences failed.
    pub alarm_id: Option<Uuid>,
    /// The name of the alarm, when it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<String>,
    /// How many there are; counted up to 10,000, and 10,001 when there are more.
    pub count: i64,
    /// When the first ended.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub first_at: Timestamp,
    /// When the last ended.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub last_at: Timestamp,
    /// What went wrong with the last.
    pub message: String,
    /// The item of the last, when it has one.
    pub queue_item_id: Option<Uuid>,
    /// The execution of the last, when it has one.
    pub execution_id: Option<Uuid>,
    /// The nominal instant of the last, when it is an occurrence.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub scheduled_for: Option<Timestamp>,
    /// The last signal, when it is one.
    pub signal_id: Option<String>,
    /// How many ended in each of the last 24 hours, the oldest first, when it was asked for; of very many only the newest 10,000 are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "rows", sqlx(skip))]
    pub trend: Option<Vec<i64>>,
}

/// One failure.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Failure {
    /// Its group.
    pub group_id: String,
    /// What failed.
    pub kind: FailureKind,
    /// Whose; none for a signal of a project that belongs to nobody.
    pub workspace_id: Option<Uuid>,
    /// The name of the workspace, while there is one.
    pub workspace: Option<String>,
    /// What was to run; none for alarms and signals.
    pub workflow_definition_id: Option<Uuid>,
    /// The name of the workflow, while there is one.
    pub workflow: Option<String>,
    /// When it ended.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub at: Timestamp,
    /// What went wrong.
    pub message: String,
    /// The item, when it has one.
    pub queue_item_id: Option<Uuid>,
    /// The execution, when it has one.
    pub execution_id: Option<Uuid>,
    /// The alarm, when it is an occurrence.
    pub alarm_id: Option<Uuid>,
    /// The name of the alarm, when it was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alarm: Option<String>,
    /// The nominal instant, when it is an occurrence.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub scheduled_for: Option<Timestamp>,
    /// The signal, when it is one.
    pub signal_id: Option<String>,
    /// When somebody set it aside.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub set_aside_at: Option<Timestamp>,
    /// Who set it aside.
    pub set_aside_by: Option<String>,
    /// What they wrote.
    pub note: Option<String>,
}

/// Which failures; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct FailureQuery {
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workspace_id: Option<Reference>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(value_type = Option<String>))]
    pub workflow_definition_id: Option<Reference>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub kind: Option<FailureKind>,
    /// Groups in which something ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Timestamp>,
    /// Groups in which something ended before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
    /// With this text in the message of the last, in whatever case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(min_length = 1, max_length = 200))]
    pub search: Option<String>,
    /// In which order; the newest failure first when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub order: Option<FailureOrder>,
    /// Tell of each group how many ended in each of the last 24 hours, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<bool>,
    /// How many groups at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}

/// Retries failures that match, or sets them aside, or stops trying what fails like them; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "Id: Deserialize<'de>"))]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BulkFailures<Id = Uuid> {
    /// Of this group, or of the only one whose id begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 4, max_length = 15))]
    pub group: Option<String>,
    /// Of this workspace.
    #[serde(default, alias = "workspace", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workspace_id: Option<Id>,
    /// Of this workflow.
    #[serde(default, alias = "workflow", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub workflow_definition_id: Option<Id>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// Ended at this time or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_after: Option<Timestamp>,
    /// Ended before this time: the `as_of` of a dry run, so that nothing is touched that it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Timestamp>,
    /// What to write down beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 1000))]
    pub note: Option<String>,
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
    BulkFailures { workspace_id: Option<To>, workflow_definition_id: Option<To> }
    group, kind, ended_after, before, note, after, all, dry_run
}
