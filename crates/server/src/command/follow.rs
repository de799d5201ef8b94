//! `stationmaster executions watch`: the life of one execution, step by step, until it has ended.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use stationmaster_client::wire::{
    Execution, ExecutionStatus, ItemStatus, Noun, QueueItem, QueueItemDetails, Reference, Step,
};
use stationmaster_client::{Client, Error};
use uuid::Uuid;

use super::arguments::duration;
use super::inspection::by;
use super::names::{self, reference};
use super::watch::Pulse;
use super::{Context, typed};
use crate::failure::{Kind, Refusal};
use crate::output::{Format, printable, word};

/// What to follow.
#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// The execution, or its item, which may wait still
    #[arg(value_parser = reference)]
    id: Reference,
    /// Look again after this long at the latest
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    every: Duration,
}

/// Prints each step as it comes. A bad end is a failure, so that a script may go on only after a good one.
pub(super) async fn run(args: &FollowArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let id = match names::one(&client, Noun::Execution, None, &args.id).await {
        Ok(id) => id,
        Err(unknown) => names::one(&client, Noun::Item, None, &args.id)
            .await
            .map_err(|_| unknown)?,
    };
    let first = look(&client, id).await?;
    let mut pulse = Pulse::new(&client, Some(first.workspace_id), args.every);
    let mut told = 0;
    loop {
        // The state first: whatever ends in between has its last step in the history then.
        let seen = look(&client, id).await?;
        let steps = client.queue_history(seen.item_id).await?.items;
        for step in steps.iter().skip(told) {
            put(step, context.format)?;
        }
        told = told.max(steps.len());
        if let Some(end) = seen.end {
            return end;
        }
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = pulse.next() => {}
        }
    }
}

/// How it is now.
struct Seen {
    item_id: Uuid,
    workspace_id: Uuid,
    /// How it ended; nothing while it has not.
    end: Option<Result<()>>,
}

/// Looks at an execution. What waits for its first start has none yet, and is known by its item.
async fn look(client: &Client, id: Uuid) -> Result<Seen> {
    let missing = match client.execution(id).await {
        Ok(execution) => {
            return Ok(Seen {
                item_id: execution.queue_item_id,
                workspace_id: execution.workspace_id,
                end: end(&execution),
            });
        }
        Err(missing @ Error::NotFound(_)) => missing,
        Err(error) => return Err(error.into()),
    };
    match client.queue_item(id).await {
        Ok(QueueItemDetails { item, .. }) => Ok(Seen {
            item_id: item.id,
            workspace_id: item.workspace_id,
            end: end_of_item(&item),
        }),
        Err(Error::NotFound(_)) => Err(missing.into()),
        Err(error) => Err(error.into()),
    }
}

fn put(step: &Step, format: Format) -> Result<()> {
    let line = match format {
        Format::Json => serde_json::to_string(step)?,
        Format::People => {
            let at = step.at.strftime("%Y-%m-%dT%H:%M:%SZ");
            let detail = step.detail.as_deref().unwrap_or_default();
            let by = by(step.server.as_deref(), &step.actor);
            printable(&format!("{at}  {}  {by}  {detail}", step.event))
                .trim_end()
                .to_owned()
        }
    };
    writeln!(io::stdout().lock(), "{line}")?;
    Ok(())
}

/// How it ended; nothing while it has not.
fn end(execution: &Execution) -> Option<Result<()>> {
    match execution.status {
        ExecutionStatus::Pending | ExecutionStatus::Starting | ExecutionStatus::Running => None,
        ExecutionStatus::Completed => Some(Ok(())),
        status => Some(Err(badly("execution", execution.id, &word(&status)))),
    }
}

/// The same of an item that was never started.
fn end_of_item(item: &QueueItem) -> Option<Result<()>> {
    match item.status {
        ItemStatus::Pending | ItemStatus::Claimed | ItemStatus::Dispatched => None,
        status => Some(Err(badly("item", item.id, &word(&status)))),
    }
}

fn badly(noun: &str, id: Uuid, status: &str) -> anyhow::Error {
    let list = if noun == "item" { "queue" } else { "executions" };
    let show = typed::beside(&format!("{list} show {id}"));
    Refusal::new(
        Kind::Failed,
        format!("{noun} {id} is {status}"),
        format!("See why: {show}"),
    )
    .into()
}
