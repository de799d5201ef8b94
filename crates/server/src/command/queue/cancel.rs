//! Cancel, by the id of an item or of its execution: `queue cancel` and `executions cancel` are the same.

use anyhow::Result;
use clap::Args;
use stationmaster_client::wire::CancelledHow;
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::id;
use super::super::backend::Backend;

/// What to cancel, and why.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The item or its execution
    #[arg(value_parser = id::<Uuid>)]
    id: Uuid,
    /// Why, for the history
    #[arg(long)]
    reason: Option<String>,
}

pub(in crate::command) async fn cancel(
    args: &CancelArgs,
    backend: &Backend,
    context: &Context,
) -> Result<()> {
    let id = args.id;
    let cancelled = backend.cancel(id, args.reason.clone()).await?;
    context
        .format
        .print(&cancelled, |cancelled| match cancelled.result {
            CancelledHow::Cancelled => format!("Cancelled {id}."),
            CancelledHow::Requested => format!(
                "{id} runs: its engine is asked to cancel it, and its slot is free when the run has closed."
            ),
        })
}
