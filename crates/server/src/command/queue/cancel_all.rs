//! Cancel everything that waits or runs and matches a filter, after a look at how much it is.

use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{BulkCancel, CancellableStatus};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::{id, instant};
use super::retry::in_parts;
use crate::output::counted;

/// What to cancel; every filter that is given must match, and at least one must be given.
#[derive(Debug, Args)]
#[group(required = true, multiple = true, args = ["workspace", "workflow", "status", "created_after", "created_before"])]
pub(crate) struct CancelAllArgs {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workspace: Option<Uuid>,
    /// Only of this workflow
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workflow: Option<Uuid>,
    /// Only in this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
    /// Only what was enqueued at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    created_after: Option<Timestamp>,
    /// Only what was enqueued before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    created_before: Option<Timestamp>,
    /// Why, for the history
    #[arg(long)]
    reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Only count what would be cancelled
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Claimed,
    Dispatched,
}

impl From<Status> for CancellableStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Claimed => Self::Claimed,
            Status::Dispatched => Self::Dispatched,
        }
    }
}

#[derive(Serialize)]
struct Cancelled {
    /// Items that matched, counted up to 100,000.
    matching: u64,
    /// Cancelled, or asked of their engine.
    cancelled: u64,
}

pub(super) async fn run(args: CancelAllArgs, client: &Client, context: &Context) -> Result<()> {
    let mut request = BulkCancel {
        workspace_id: args.workspace,
        workflow_definition_id: args.workflow,
        status: args.status.map(CancellableStatus::from),
        created_after: args.created_after,
        created_before: args.created_before,
        reason: args.reason,
        dry_run: true,
    };
    let matching = client.cancel_all(&request, None).await?.items;
    if args.dry_run || matching == 0 {
        let answer = Cancelled {
            matching,
            cancelled: 0,
        };
        return context.format.print(&answer, |_| {
            format!("Matching: {}; nothing was cancelled.", counted(matching, "item"))
        });
    }
    Context::confirm(&format!("Cancel {}?", counted(matching, "item")), args.yes)?;
    let bar = context.format.progress(matching, "Cancelling");
    request.dry_run = false;
    let cancelled = in_parts(&bar, async || client.cancel_all(&request, None).await).await?;
    bar.finish_and_clear();
    let answer = Cancelled { matching, cancelled };
    context.format.print(&answer, |_| {
        format!(
            "Cancelled: {}, or as soon as their runs have closed.",
            counted(cancelled, "item")
        )
    })
}
