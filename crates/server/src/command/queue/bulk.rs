//! Retry, cancel and change the priority of everything that matches a filter, after a look at how much it is; and retry one item.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    BulkCancel, BulkPriority, BulkRetry, CancellableStatus, OperationKind, Reference, RetriableStatus,
    StatusOf,
};
use stationmaster_core::executions::EndReason;
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::word_of;
use super::super::bulk::{self, How, Words, each};
use super::super::names::{self, reference};
use super::super::times::past;

/// What to put back, and how.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be put back")))]
pub(crate) struct RetryAllArgs {
    #[command(flatten)]
    which: Retriable,
    #[command(flatten)]
    how: How,
}

/// Every filter that is given must match, and at least one must be given.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Retriable {
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    workspace: Vec<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only what ended in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<RetriableStatus>(["failed", "cancelled", "terminated", "timed_out"]), ignore_case = true)]
    status: Vec<RetriableStatus>,
    /// Whose status is meant: the item's, which FAILED when it could not be started, or the execution's; either when left out
    #[arg(long, value_parser = word_of::<StatusOf>(["item", "execution"]), ignore_case = true, requires = "status")]
    status_of: Option<StatusOf>,
    /// Only what ended for this reason; several with commas, or repeated
    #[arg(long, value_name = "REASON", value_delimiter = ',', value_parser = word_of::<EndReason>(END_REASONS), ignore_case = true)]
    end_reason: Vec<EndReason>,
    /// Only what ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_after: Option<Timestamp>,
    /// Only what ended before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_before: Option<Timestamp>,
    /// Everything that ended badly
    #[arg(long)]
    all: bool,
}

const END_REASONS: [&str; 8] = [
    "refused",
    "quarantined",
    "workspace_gone",
    "definition_gone",
    "version_gone",
    "engine_lost",
    "reconciled",
    "completed_by_request",
];

/// What to cancel, and how.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be cancelled")))]
pub(crate) struct CancelAllArgs {
    #[command(flatten)]
    which: Cancellable,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    how: How,
}

/// Every filter that is given must match, and at least one must be given: neither a note nor a consent is one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Cancellable {
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    workspace: Vec<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<CancellableStatus>(super::STATUSES[..3].to_vec()), ignore_case = true)]
    status: Vec<CancellableStatus>,
    /// Only what was enqueued at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    created_after: Option<Timestamp>,
    /// Only what was enqueued before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    created_before: Option<Timestamp>,
    /// Everything that waits or runs
    #[arg(long)]
    all: bool,
}

/// Which priority, and of what.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be changed")))]
pub(crate) struct PriorityAllArgs {
    /// Higher goes first within the workspace
    #[arg(allow_negative_numbers = true)]
    priority: i32,
    #[command(flatten)]
    which: Waiting,
    #[command(flatten)]
    how: How,
}

/// Every filter that is given must match, and at least one must be given.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Waiting {
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    workspace: Vec<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only what was enqueued at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    created_after: Option<Timestamp>,
    /// Only what was enqueued before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    created_before: Option<Timestamp>,
    /// Everything that waits
    #[arg(long)]
    all: bool,
}

pub(super) async fn retry_one(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    client.retry(id).await?;
    let words = format!("Item {id} is back in the queue.");
    context.say(&json!({ "id": id, "retried": true }), words)
}

impl RetryAllArgs {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let (which, client) = (&self.which, context.client().await?);
        let mut parts = Vec::new();
        for place in names::places(&client, &which.workspace, which.workflow.as_ref()).await? {
            for status in each(&which.status) {
                let reasons = each(&which.end_reason).into_iter();
                parts.extend(reasons.map(|reason| (place, status, reason)));
            }
        }
        let request = |step: bulk::Step| {
            let (place, status, reason) = parts[step.part];
            BulkRetry {
                workspace_id: place.workspace,
                workflow_definition_id: place.workflow,
                status,
                status_of: which.status_of,
                end_reason: reason.map(|reason| reason.to_string()),
                ended_after: which.ended_after,
                ended_before: step.before(which.ended_before),
                after: step.after,
                all: which.all,
                dry_run: step.dry_run,
            }
        };
        let words = Words {
            doing: "Retrying",
            noun: "item",
            done: "retried",
            question: |items| format!("Put {items} back into the queue? Each runs again from its beginning."),
            sentence: |items| format!("Back in the queue: {items}."),
        };
        let what = (OperationKind::RetryQueue, self.how);
        bulk::run(what, &words, parts.len(), request, (&client, context)).await
    }
}

impl CancelAllArgs {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let (which, client) = (&self.which, context.client().await?);
        let mut parts = Vec::new();
        for place in names::places(&client, &which.workspace, which.workflow.as_ref()).await? {
            parts.extend(each(&which.status).into_iter().map(|status| (place, status)));
        }
        let request = |step: bulk::Step| {
            let (place, status) = parts[step.part];
            BulkCancel {
                workspace_id: place.workspace,
                workflow_definition_id: place.workflow,
                status,
                created_after: which.created_after,
                created_before: step.before(which.created_before),
                reason: self.note.clone(),
                after: step.after,
                all: which.all,
                dry_run: step.dry_run,
            }
        };
        let what = (OperationKind::CancelQueue, self.how);
        bulk::run(what, &CANCELS, parts.len(), request, (&client, context)).await
    }
}

/// How cancels of many are told.
pub(in super::super) const CANCELS: Words = Words {
    doing: "Cancelling",
    noun: "item",
    done: "cancelled",
    question: |items| {
        format!(
            "Cancel {items}? What waits is over at once; of what runs, the engine is asked, and its slot is free when it has closed."
        )
    },
    sentence: |items| format!("Cancelled: {items}, or as soon as their runs have closed."),
};

impl PriorityAllArgs {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let (which, client) = (&self.which, context.client().await?);
        let places = names::places(&client, &which.workspace, which.workflow.as_ref()).await?;
        let request = |step: bulk::Step| {
            let place = places[step.part];
            BulkPriority {
                workspace_id: place.workspace,
                workflow_definition_id: place.workflow,
                created_after: which.created_after,
                created_before: step.before(which.created_before),
                priority: self.priority,
                after: step.after,
                all: which.all,
                dry_run: step.dry_run,
            }
        };
        let words = Words {
            doing: "Changing",
            noun: "item",
            done: "changed",
            question: |items| {
                format!("Change the priority of {items}? Their order in the queue changes with it.")
            },
            sentence: |items| {
                format!("Changed: {items}; those that had this priority already are not counted.")
            },
        };
        let what = (OperationKind::PrioritiseQueue, self.how);
        bulk::run(what, &words, places.len(), request, (&client, context)).await
    }
}
