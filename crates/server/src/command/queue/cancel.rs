//! Cancel, by the id of an item or of its execution: `queue cancel` and `executions cancel` are the same.

use anyhow::Result;
use clap::Args;
use stationmaster_client::wire::{Cancel, CancelledHow, Noun, Reference};
use stationmaster_client::{Client, Error};

use super::super::Context;
use super::super::names::{self, reference};

/// What to cancel, and why.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The item or its execution
    #[arg(value_parser = reference)]
    id: Reference,
    /// Why, for the history
    #[arg(long, value_name = "TEXT", alias = "reason")]
    note: Option<String>,
}

pub(in crate::command) async fn cancel(args: &CancelArgs, client: &Client, context: &Context) -> Result<()> {
    let id = match names::one(client, Noun::Item, None, &args.id).await {
        Ok(id) => id,
        // An execution that follows a retry has an id of its own.
        Err(unknown) => names::one(client, Noun::Execution, None, &args.id)
            .await
            .map_err(|_| unknown)?,
    };
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
