//! `stationmaster operations`: what servers do to everything that matches, while nobody waits for it.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use stationmaster_client::Client;
use stationmaster_client::wire::{Operation, OperationKind, OperationQuery, OperationStatus};
use tokio::time::sleep;

use super::arguments::{text, word_of};
use super::pages::{Asked, Newest};
use super::{Context, typed};
use crate::failure::{Kind, Refusal};
use crate::output::{
    Column, Described, cell, column, counted, id, in_details, in_wide, long, maybe, minor, status, time,
    told, word,
};

/// Between two looks at an operation that somebody waits for.
const LOOK: Duration = Duration::from_millis(500);

/// What to do with operations.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The operations there are, newest first
    List(ListArgs),
    /// One operation: what it does, and how far it is
    Show(One),
    /// Wait until operations have ended; a bad end is a failure
    Wait {
        /// The operations: their ids, or the first digits of them
        #[arg(value_name = "ID", required = true, value_parser = text)]
        ids: Vec<String>,
    },
    /// End an operation; what it has done stays done
    Cancel(One),
}

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The operation: its id, or the first digits of it
    #[arg(value_parser = text)]
    id: String,
}

/// Which operations.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<OperationStatus>(STATUSES), ignore_case = true)]
    status: Vec<OperationStatus>,
    #[command(flatten)]
    part: Newest,
}

const STATUSES: [&str; 5] = ["pending", "running", "completed", "failed", "cancelled"];

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::List(args) => {
            let newest = |one: &Operation, other: &Operation| other.id.cmp(&one.id);
            let asked = Asked::of_each(
                OperationQuery::default(),
                &args.status,
                |query, status| query.status = Some(status),
                newest,
            );
            context
                .list_asked(&client, args.part, &asked, Client::operations)
                .await
        }
        Command::Show(one) => context.show(&client.operation(&one.id).await?),
        Command::Wait { ids } => wait(&ids, &client, context).await,
        Command::Cancel(one) => {
            let id = client.operation(&one.id).await?.id;
            let ended = client.cancel_operation(id).await?;
            let done = counted(u64::try_from(ended.done)?, noun(ended.kind));
            let words =
                format!("Operation {id} is cancelled; it had changed {done}, and those stay changed.");
            context.say(&ended, words)
        }
    }
}

async fn wait(ids: &[String], client: &Client, context: &Context) -> Result<()> {
    let mut ended = Vec::new();
    for id in ids {
        let mut now = client.operation(id).await?;
        let bar = if now.total_is_least {
            context.format.progress_uncounted(doing(now.kind))
        } else {
            let total = u64::try_from(now.total)?;
            context.format.progress(total, doing(now.kind))
        };
        while !now.status.has_ended() {
            bar.set_position(u64::try_from(now.done)?);
            sleep(LOOK).await;
            now = client.operation(&now.id.to_string()).await?;
        }
        bar.finish_and_clear();
        ended.push(now);
    }
    context.print(&ended, |ended| {
        let lines: Vec<String> = ended.iter().map(sentence).collect();
        lines.join("\n")
    })?;
    match ended.iter().find(|one| one.status != OperationStatus::Completed) {
        None => Ok(()),
        Some(one) => {
            let message = format!("operation {} is {}", one.id, word(&one.status));
            let show = typed::beside(&format!("operations show {}", one.id));
            let advice = format!("See why: {show}");
            Err(Refusal::new(Kind::Failed, message, advice).into())
        }
    }
}

/// How one has ended.
fn sentence(operation: &Operation) -> String {
    let done = counted(
        u64::try_from(operation.done).unwrap_or_default(),
        noun(operation.kind),
    );
    let left = match operation.unchanged {
        Some(left) if left > 0 => format!("; {left} had changed meanwhile, or needed no change"),
        _ => String::new(),
    };
    format!(
        "Operation {} is {}: changed {done}{left}.",
        operation.id,
        word(&operation.status)
    )
}

fn noun(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::CancelQueue
        | OperationKind::RetryQueue
        | OperationKind::PrioritiseQueue
        | OperationKind::CancelFailures => "item",
        OperationKind::RetryFailures | OperationKind::SetFailuresAside => "failure",
        OperationKind::ReplaySignals => "signal",
    }
}

fn doing(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::CancelQueue | OperationKind::CancelFailures => "Cancelling",
        OperationKind::RetryQueue | OperationKind::RetryFailures => "Retrying",
        OperationKind::PrioritiseQueue => "Changing",
        OperationKind::SetFailuresAside => "Setting aside",
        OperationKind::ReplaySignals => "Replaying",
    }
}

impl Described for Operation {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |one| one.id),
        column("KIND", |one| cell(word(&one.kind))),
        column("STATUS", |one| status(&word(&one.status))),
        column("DONE", |one| cell(one.done)),
        column("OF", |one| {
            let is_open = !one.status.has_ended();
            let least = if one.total_is_least && is_open {
                "over "
            } else {
                ""
            };
            cell(format!("{least}{}", one.total))
        }),
        in_details(column("UNCHANGED", |one| maybe(one.unchanged))),
        time("BEGUN", |one| Some(one.created_at)),
        minor(column("BY", |one| cell(&one.created_by))),
        in_details(time("STARTED", |one| one.started_at)),
        in_wide(column("SERVER", |one| maybe(one.server.as_ref()))),
        minor(time("ENDED", |one| one.ended_at)),
        in_details(column("CANCELLED BY", |one| maybe(one.ended_by.as_ref()))),
        in_details(time("AS OF", |one| Some(one.as_of))),
        in_details(told("FILTER", |one| Some(one.filter.to_string()))),
        long("ERROR", |one| one.error.as_deref()),
    ];
}
