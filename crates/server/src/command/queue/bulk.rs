//! Retry and cancel everything that matches a filter, after a look at how much it is; and retry one item.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    BulkAnswer, BulkCancel, BulkRetry, CancellableStatus, Reference, RetriableStatus,
};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::{Caution, instant, word_of};
use super::super::names::{self, reference};
use crate::output::counted;

/// What to put back; every filter that is given must match.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only count what would be put back")))]
pub(crate) struct RetryAllArgs {
    /// Only of this workspace
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Option<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only what ended in this status
    #[arg(long, value_parser = word_of::<RetriableStatus>(["failed", "cancelled", "terminated", "timed_out"]), ignore_case = true)]
    status: Option<RetriableStatus>,
    /// Only what ended for this reason, such as refused or quarantined
    #[arg(long)]
    reason: Option<String>,
    /// Only what ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    ended_after: Option<Timestamp>,
    /// Only what ended before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    ended_before: Option<Timestamp>,
    #[command(flatten)]
    caution: Caution,
}

/// What to cancel, and how.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only count what would be cancelled")))]
pub(crate) struct CancelAllArgs {
    #[command(flatten)]
    which: Cancellable,
    /// Why, for the history
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    caution: Caution,
}

/// Every filter that is given must match, and at least one must be given: neither a note nor a consent is one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Cancellable {
    /// Only of this workspace
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Option<Reference>,
    /// Only of this workflow
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Option<Reference>,
    /// Only in this status
    #[arg(long, value_parser = word_of::<CancellableStatus>(super::STATUSES[..3].to_vec()), ignore_case = true)]
    status: Option<CancellableStatus>,
    /// Only what was enqueued at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    created_after: Option<Timestamp>,
    /// Only what was enqueued before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    created_before: Option<Timestamp>,
}

/// Items that matched, counted up to 100,000, and those of them that were cancelled, or asked of their engine.
#[derive(Serialize)]
struct Cancelled {
    matching: u64,
    cancelled: u64,
}

pub(super) async fn retry_one(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    client.retry(id).await?;
    let words = format!("Item {id} is back in the queue.");
    context.say(&json!({ "id": id, "retried": true }), words)
}

impl RetryAllArgs {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let client = context.client().await?;
        let workspace = names::workspace_asked(&client, self.workspace.as_ref()).await?;
        let workflow = names::workflow_asked(&client, workspace, self.workflow.as_ref()).await?;
        let request = |dry_run| BulkRetry {
            workspace_id: workspace,
            workflow_definition_id: workflow,
            status: self.status,
            reason: self.reason.clone(),
            ended_after: self.ended_after,
            ended_before: self.ended_before,
            dry_run,
        };
        let call = async |dry_run| client.retry_all(&request(dry_run), None).await;
        let question = |items: &str| format!("Put {items} back into the queue?");
        let (matching, retried) = bulk(&self.caution, "Retrying", question, call, context).await?;
        let words = match retried {
            None => format!("Matching: {}; nothing was put back.", counted(matching, "item")),
            Some(retried) => format!("Back in the queue: {}.", counted(retried, "item")),
        };
        let answer = json!({ "matching": matching, "retried": retried.unwrap_or_default() });
        context.say(&answer, words)
    }
}

impl CancelAllArgs {
    pub(super) async fn run(self, context: &Context) -> Result<()> {
        let which = &self.which;
        let client = context.client().await?;
        let workspace = names::workspace_asked(&client, which.workspace.as_ref()).await?;
        let workflow = names::workflow_asked(&client, workspace, which.workflow.as_ref()).await?;
        let request = |dry_run| BulkCancel {
            workspace_id: workspace,
            workflow_definition_id: workflow,
            status: which.status,
            created_after: which.created_after,
            created_before: which.created_before,
            reason: self.reason.clone(),
            dry_run,
        };
        let call = async |dry_run| client.cancel_all(&request(dry_run), None).await;
        let question = |items: &str| format!("Cancel {items}?");
        let (matching, cancelled) = bulk(&self.caution, "Cancelling", question, call, context).await?;
        let answer = Cancelled {
            matching,
            cancelled: cancelled.unwrap_or_default(),
        };
        context.print(&answer, |_| match cancelled {
            None => format!("Matching: {}; nothing was cancelled.", counted(matching, "item")),
            Some(cancelled) => {
                let items = counted(cancelled, "item");
                format!("Cancelled: {items}, or as soon as their runs have closed.")
            }
        })
    }
}

/// Counts, asks, and does it; answers how many match, and to how many it was done, if it was. One call does some of it; calls
/// follow while there is more and something is done.
async fn bulk(
    caution: &Caution,
    what: &'static str,
    question: impl FnOnce(&str) -> String,
    call: impl AsyncFn(bool) -> stationmaster_client::Result<BulkAnswer>,
    context: &Context,
) -> Result<(u64, Option<u64>)> {
    let matching = call(true).await?.items;
    if caution.dry_run || matching == 0 {
        return Ok((matching, None));
    }
    Context::confirm(&question(&counted(matching, "item")), caution.yes)?;
    let bar = context.format.progress(matching, what);
    let mut done = 0;
    loop {
        let answer = call(false).await.inspect_err(|_| bar.abandon())?;
        done += answer.items;
        bar.set_position(done);
        if !answer.more || answer.items == 0 {
            bar.finish_and_clear();
            return Ok((matching, Some(done)));
        }
    }
}
