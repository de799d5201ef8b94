//! What Stationmaster says, one module a noun: the shapes and words of its API, each defined once.
//!
//! The core reads rows straight into the shapes that people are shown (feature `rows`) and takes requests as they are, the server
//! describes both (feature `openapi`), and the client carries them. What a shape is made of, what of a request can be and who may
//! see it is decided elsewhere: this crate holds no rule.
//!
//! Fields that may be added later are no breaking change: readers skip what they do not know. In requests an unknown field is an
//! error, so that a typing mistake is not silently dropped.

#[macro_use]
pub mod words;
#[macro_use]
mod names;

mod alarms;
mod audit;
mod bulk;
#[cfg(feature = "rows")]
pub mod columns;
mod dispatchers;
mod doctor;
mod events;
mod executions;
mod failures;
mod history;
mod locks;
mod occurrences;
mod operations;
mod overview;
mod page;
mod plans;
mod problem;
mod queue;
mod servers;
mod signals;
mod strays;
mod tokens;
mod views;
mod waiting;
mod workflows;
mod workspaces;

pub use alarms::{Alarm, AlarmChange, AlarmKind, AlarmStatus, Dst, Misfire, NewAlarm, Overlap};
pub use audit::{AuditEntry, AuditQuery};
pub use bulk::BulkAnswer;
pub use dispatchers::{
    Dispatcher, DispatcherAct, DispatcherDeed, DispatcherEvent, DispatcherFinding, DispatcherQuery,
    DispatcherServer, DispatcherState, Reconcile, Reconciled,
};
pub use doctor::{Examination, Finding, Severity};
pub use events::{Event, EventQuery, Hello, Reset};
pub use executions::{
    BulkEnqueue, BulkEnqueued, Complete, CompleteStatus, Enqueue, Enqueued, Execution, ExecutionCount,
    ExecutionCountQuery, ExecutionCounts, ExecutionNodes, ExecutionQuery, ExecutionStatus, NodeStanding,
    NodeState, Obstacle, OmittedOutput, Terminate,
};
pub use failures::{BulkFailures, Failure, FailureGroup, FailureKind, FailureOrder, FailureQuery};
pub use history::{HistoryChart, HistoryPoint, HistoryQuery, Spread};
pub use locks::{
    Acquired, ExtendLock, Lock, LockExtended, LockQuery, LockRequest, Locks, Taken, UnlockAnswer,
};
pub use names::{NameFound, NameQuery, NamesFound, Noun, Reference, asked};
pub use occurrences::{
    AlarmDetails, AlarmEvent, AlarmMade, AlarmQuery, Backfill, BackfillItem, Backfilled, Calendar,
    CalendarAlarm, CalendarNote, CalendarQuery, CalendarStep, FiredByHand, NextFires, NextQuery, Occurrence,
    OccurrenceQuery, OccurrenceStatus, Upcoming,
};
pub use operations::{Operation, OperationKind, OperationQuery, OperationStatus};
pub use overview::{HeldWorkflow, Minute, Numbers, Overview, OverviewQuery};
pub use page::{Order, Page, PageQuery};
pub use plans::{Plan, PlanChange, Plans};
pub use problem::{FieldError, Problem};
pub use queue::{
    BulkCancel, BulkPriority, BulkRetry, Cancel, CancellableStatus, Cancelled, CancelledHow, History,
    ItemCount, ItemCounts, ItemStatus, QueueCountQuery, QueueItem, QueueItemChange, QueueItemDetails,
    QueueOrder, QueueQuery, RetriableStatus, StatusOf, Step,
};
pub use servers::{Drain, OpenBreaker, Server, ServerEnd, ServerQuery, Servers};
pub use signals::{
    BulkReplay, BulkSend, BulkSent, NewSignal, Signal, SignalPlace, SignalQuery, SignalSent, SignalStatus,
    Trigger, TriggerChange, TriggerPlace, TriggerQuery,
};
pub use strays::{EndStray, Stray};
pub use tokens::{NewToken, Role, Token, TokenMade};
pub use views::{NewView, View, Views};
pub use waiting::{ExpectedStart, ItemWait, SlotHolder, Waiting, WaitingReason, Waits, WaitsQuery};
pub use workflows::{
    GraphChecked, NewVersion, Version, VersionMade, Workflow, WorkflowChange, WorkflowQuery,
};
pub use workspaces::{Backlog, BacklogOfWorkflow, Workspace, WorkspaceChange};

/// Tells a field that is left out from one that is `null`: the outer `None` is the former.
#[expect(
    clippy::option_option,
    reason = "left out, null and given are three things on the wire"
)]
pub(crate) fn double<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: serde::Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    serde::Deserialize::deserialize(deserializer).map(Some)
}
