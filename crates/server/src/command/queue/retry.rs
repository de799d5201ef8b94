//! Retry: one item, or everything that ended badly and matches a filter.

use anyhow::Result;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_core::db::Database;
use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::operate::{self, Filter};
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};

use super::super::Context;
use super::super::arguments::{id, instant};

/// What to put back; every filter that is given must match.
#[derive(Debug, Args)]
pub(crate) struct RetryAllArgs {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<WorkspaceId>)]
    workspace: Option<WorkspaceId>,
    /// Only of this workflow
    #[arg(long, value_name = "ID", value_parser = id::<DefinitionId>)]
    workflow: Option<DefinitionId>,
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

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Failed => CloseStatus::Failed.as_str(),
            Self::Cancelled => CloseStatus::Cancelled.as_str(),
            Self::Terminated => CloseStatus::Terminated.as_str(),
            Self::TimedOut => CloseStatus::TimedOut.as_str(),
        }
    }
}

#[derive(Serialize)]
struct Retried {
    matching: usize,
    retried: usize,
}

#[derive(Serialize)]
struct Answer {
    id: ItemId,
    retried: bool,
}

pub(super) async fn one(id: ItemId, database: &Database, context: &Context) -> Result<()> {
    operate::retry(database, id, &Context::actor()).await?;
    context.format.print(&Answer { id, retried: true }, |_| {
        format!("Item {id} is back in the queue.")
    })
}

pub(super) async fn all(args: RetryAllArgs, database: &Database, context: &Context) -> Result<()> {
    let filter = Filter {
        workspace: args.workspace,
        definition: args.workflow,
        status: args.status.map(|status| status.as_str().to_owned()),
        reason: args.reason,
        after: args.ended_after,
        before: args.ended_before,
        ..Filter::default()
    };
    let matching = operate::count_matching(database, &filter).await?;
    if args.dry_run || matching == 0 {
        let answer = Retried { matching, retried: 0 };
        return context.format.print(&answer, |_| {
            format!("{matching} items match; nothing was put back.")
        });
    }
    Context::confirm(&format!("Put {matching} items back into the queue?"), args.yes)?;
    let bar = context.format.progress(matching as u64, "Retrying");
    let retried = operate::retry_matching(database, &filter, &Context::actor(), |done| {
        bar.set_position(done as u64);
    })
    .await?;
    bar.finish_and_clear();
    context.format.print(&Retried { matching, retried }, |_| {
        format!("{retried} items are back in the queue.")
    })
}
