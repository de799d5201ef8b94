//! Operations: what servers do to everything that matches, while nobody waits for it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

words! {
    /// What an operation does: the operation of this API that began it.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum OperationKind {
        /// Cancels items.
        CancelQueue = "cancel_queue",
        /// Puts items back into the queue.
        RetryQueue = "retry_queue",
        /// Changes the priority of items.
        PrioritiseQueue = "prioritise_queue",
        /// Tries failures again.
        RetryFailures = "retry_failures",
        /// Sets failures aside.
        SetFailuresAside = "set_failures_aside",
        /// Cancels what still waits of a workflow that fails.
        CancelFailures = "cancel_failures",
        /// Puts dead letters back into the inbox.
        ReplaySignals = "replay_signals",
    }

    /// How an operation stands.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum OperationStatus {
        /// No server has begun with it.
        Pending = "PENDING",
        /// A server works on it.
        Running = "RUNNING",
        /// It is done.
        Completed = "COMPLETED",
        /// It could not go on; `error` tells why.
        Failed = "FAILED",
        /// Somebody ended it; what was done stays done.
        Cancelled = "CANCELLED",
    }
}

impl OperationKind {
    /// Under which path it is asked for.
    #[must_use]
    pub fn path(self) -> [&'static str; 2] {
        match self {
            Self::CancelQueue => ["queue", "cancel"],
            Self::RetryQueue => ["queue", "retry"],
            Self::PrioritiseQueue => ["queue", "priority"],
            Self::RetryFailures => ["failures", "retry"],
            Self::SetFailuresAside => ["failures", "set-aside"],
            Self::CancelFailures => ["failures", "cancel"],
            Self::ReplaySignals => ["signals", "replay"],
        }
    }
}

impl OperationStatus {
    /// Is it over?
    #[must_use]
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

/// Something that servers do to everything that matches, call by call, while nobody waits for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "rows", derive(sqlx::FromRow))]
pub struct Operation {
    /// Which one it is. Wherever it is asked for, its beginning is enough, from four digits on.
    pub id: Uuid,
    /// What it does.
    pub kind: OperationKind,
    /// What was asked for, by ids, bound to `as_of`.
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value))]
    pub filter: serde_json::Value,
    /// Of which workspaces; none: of all.
    pub workspaces: Option<Vec<Uuid>>,
    /// How it stands.
    pub status: OperationStatus,
    /// When what matches was looked at. What came later is not touched.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub as_of: Timestamp,
    /// How many matched then.
    pub total: i64,
    /// There were more than were counted.
    pub total_is_least: bool,
    /// How many were changed; when a server was lost in between, those that do not match any more count.
    pub done: i64,
    /// How many of those counted were not changed, because something else had happened to them or there was nothing to change; none while it is
    /// not over, or when not all were counted.
    pub unchanged: Option<i64>,
    /// When it was asked for.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::At"))]
    pub created_at: Timestamp,
    /// Who asked for it.
    pub created_by: String,
    /// When a server began with it.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub started_at: Option<Timestamp>,
    /// The server that worked on it last.
    pub server: Option<String>,
    /// When it was over.
    #[cfg_attr(feature = "rows", sqlx(try_from = "crate::columns::MaybeAt"))]
    pub ended_at: Option<Timestamp>,
    /// Who cancelled it.
    pub ended_by: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// Which operations; every field that is given must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
pub struct OperationQuery {
    /// In this status, written in any case; the API takes several, with commas between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub status: Option<OperationStatus>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(inline))]
    pub kind: Option<OperationKind>,
    /// How many at most; 50 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500))]
    pub limit: Option<u32>,
    /// Where the last page ended: its `next_cursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(max_length = 512))]
    pub cursor: Option<String>,
}
