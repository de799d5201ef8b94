//! Retry: one item, or everything that ended badly and matches a filter.

use anyhow::Result;
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{BulkAnswer, BulkRetry, RetriableStatus};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::{id, instant};
use crate::output::counted;

/// What to put back; every filter that is given must match.
#[derive(Debug, Args)]
pub(crate) struct RetryAllArgs {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workspace: Option<Uuid>,
    /// Only of this workflow
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workflow: Option<Uuid>,
    /// Only what ended in this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
    /// Only what ended for this reason, such as refused or quarantined
    #[arg(long)]
    reason: Option<String>,
    /// Only what ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    ended_after: Option<Timestamp>,
    /// Only what ended before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    ended_before: Option<Timestamp>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Only count what would be put back
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Status {
    Failed,
    Cancelled,
    Terminated,
    TimedOut,
}

impl From<Status> for RetriableStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
            Status::Terminated => Self::Terminated,
            Status::TimedOut => Self::TimedOut,
        }
    }
}

#[derive(Serialize)]
struct Retried {
    /// Items that matched, counted up to 100,000.
    matching: u64,
    retried: u64,
}

#[derive(Serialize)]
struct Answer {
    id: Uuid,
    retried: bool,
}

pub(super) async fn one(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    client.retry(id).await?;
    context.format.print(&Answer { id, retried: true }, |_| {
        format!("Item {id} is back in the queue.")
    })
}

pub(super) async fn all(args: RetryAllArgs, client: &Client, context: &Context) -> Result<()> {
    let mut request = BulkRetry {
        workspace_id: args.workspace,
        workflow_definition_id: args.workflow,
        status: args.status.map(RetriableStatus::from),
        reason: args.reason,
        ended_after: args.ended_after,
        ended_before: args.ended_before,
        dry_run: true,
    };
    let matching = client.retry_all(&request, None).await?.items;
    if args.dry_run || matching == 0 {
        let answer = Retried { matching, retried: 0 };
        return context.format.print(&answer, |_| {
            format!("Matching: {}; nothing was put back.", counted(matching, "item"))
        });
    }
    Context::confirm(
        &format!("Put {} back into the queue?", counted(matching, "item")),
        args.yes,
    )?;
    let bar = context.format.progress(matching, "Retrying");
    request.dry_run = false;
    let retried = in_parts(&bar, async || client.retry_all(&request, None).await).await?;
    bar.finish_and_clear();
    context.format.print(&Retried { matching, retried }, |_| {
        format!("Back in the queue: {}.", counted(retried, "item"))
    })
}

/// One call does some of it; calls follow while there is more and something is done.
pub(super) async fn in_parts(
    bar: &ProgressBar,
    part: impl AsyncFn() -> stationmaster_client::Result<BulkAnswer>,
) -> Result<u64> {
    let mut done = 0;
    loop {
        let answer = part().await.inspect_err(|_| bar.abandon())?;
        done += answer.items;
        bar.set_position(done);
        if !answer.more || answer.items == 0 {
            return Ok(done);
        }
    }
}
