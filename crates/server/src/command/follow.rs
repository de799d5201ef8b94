//! `stationmaster executions watch`: the life of one execution, step by step, until it has ended.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use stationmaster_client::wire::{Execution, ExecutionStatus, Noun, Reference, Step};

use super::Context;
use super::arguments::duration;
use super::names::{self, reference};
use super::watch::Pulse;
use crate::failure::{Kind, Refusal};
use crate::output::{Format, printable, word};

/// What to follow.
#[derive(Debug, Args)]
pub(crate) struct FollowArgs {
    /// The execution
    #[arg(value_parser = reference)]
    id: Reference,
    /// Look again after this long at the latest
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    every: Duration,
}

/// Prints each step as it comes. A bad end is a failure, so that a script may go on only after a good one.
pub(super) async fn run(args: &FollowArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let id = names::one(&client, Noun::Execution, None, &args.id).await?;
    let first = client.execution(id).await?;
    let mut pulse = Pulse::new(&client, Some(first.workspace_id), args.every);
    let mut told = 0;
    loop {
        // The state first: whatever ends in between has its last step in the history then.
        let execution = client.execution(id).await?;
        let steps = client.queue_history(execution.queue_item_id).await?.items;
        for step in steps.iter().skip(told) {
            put(step, context.format)?;
        }
        told = told.max(steps.len());
        if let Some(end) = end(&execution) {
            return end;
        }
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = pulse.next() => {}
        }
    }
}

fn put(step: &Step, format: Format) -> Result<()> {
    let line = match format {
        Format::Json => serde_json::to_string(step)?,
        Format::People => {
            let at = step.at.strftime("%Y-%m-%dT%H:%M:%SZ");
            let detail = step.detail.as_deref().unwrap_or_default();
            printable(&format!("{at}  {}  {}  {detail}", step.event, step.actor))
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
        status => {
            let message = format!("execution {} is {}", execution.id, word(&status));
            let advice = format!("See why: stationmaster executions show {}", execution.id);
            Some(Err(Refusal::new(Kind::Failed, message, advice).into()))
        }
    }
}
