//! Cancel, by the id of an item or of its execution: `queue cancel` and `executions cancel` are the same.

use anyhow::Result;
use clap::Args;
use stationmaster_client::wire::{Cancel, CancelledHow};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::id;

/// What to cancel, and why.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The item or its execution
    #[arg(value_parser = id::<Uuid>)]
    id: Uuid,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", alias = "reason")]
    note: Option<String>,
}

pub(in crate::command) async fn cancel(args: &CancelArgs, client: &Client, context: &Context) -> Result<()> {
    let id = args.id;
    let why = Cancel {
        reason: args.note.clone(),
    };
    let cancelled = match client.cancel(id, &why).await {
        Err(Error::NotFound(_)) => client.cancel_execution(id, &why).await,
        other => other,
    }?;
    context.print(&cancelled, |cancelled| match cancelled.result {
        CancelledHow::Cancelled => format!("Cancelled {id}."),
        CancelledHow::Requested => format!(
            "{id} runs: its engine is asked to cancel it, and its slot is free when the run has closed."
        ),
    })
}
