//! Cancel, by the id of an item or of its execution: `queue cancel` and `executions cancel` are the same.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use stationmaster_client::wire::{Cancel, CancelledHow, ItemStatus, Noun, Reference};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::{Caution, has_ended};
use super::super::names::{self, reference};
use crate::output::word;

/// What to cancel, and why.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be cancelled")))]
pub(crate) struct CancelArgs {
    /// The item or its execution
    #[arg(value_parser = reference)]
    id: Reference,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    caution: Caution,
}

/// How it is now, an item or an execution that has an id of its own, and whether it has ended.
async fn status_of(id: Uuid, client: &Client) -> Result<(String, bool)> {
    let item = match client.queue_item(id).await {
        Err(Error::NotFound(_)) => None,
        other => Some(other?.item),
    };
    match item {
        Some(item) if item.status != ItemStatus::Dispatched => {
            let ended = matches!(item.status, ItemStatus::Failed | ItemStatus::Cancelled);
            Ok((word(&item.status), ended))
        }
        // How it went is its execution's to tell.
        item => {
            let execution = item.and_then(|item| item.execution_id).unwrap_or(id);
            let execution = client.execution(execution).await?;
            Ok((word(&execution.status), execution.completed_at.is_some()))
        }
    }
}

pub(in crate::command) async fn cancel(args: &CancelArgs, client: &Client, context: &Context) -> Result<()> {
    let id = match names::one(client, Noun::Item, None, &args.id).await {
        Ok(id) => id,
        // An execution that follows a retry has an id of its own.
        Err(unknown) => names::one(client, Noun::Execution, None, &args.id)
            .await
            .map_err(|_| unknown)?,
    };
    let (status, ended) = status_of(id, client).await?;
    if ended {
        return Err(has_ended(&id.to_string(), &status).into());
    }
    let question = format!(
        "{id} is {status}. Cancel it? What waits is over at once; of what runs, the engine is asked. A retry begins from the beginning."
    );
    if !args.caution.agreed(&question)? {
        let words = format!(
            "{id} is {status}; it would be cancelled: at once when it waits, through the engine when it runs."
        );
        return context.say(&json!({ "id": id, "status": status, "result": null }), words);
    }
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
