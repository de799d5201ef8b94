//! `stationmaster queue`: what waits to run.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect::{self, Item};
use stationmaster_core::executions::operate;
use stationmaster_core::id::ItemId;

use super::Context;
use super::arguments::id;
use super::inspection::{Page, names};
use crate::output::{age, cell, maybe, short, status, table};

mod add;
pub(super) mod cancel;
mod retry;
mod show;

/// What to do with the queue.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask for a workflow to run
    Add(add::AddArgs),
    /// The items there are, newest first
    List(ListArgs),
    /// One item: why it waits, who is in its way, and its history
    Show {
        /// The item
        #[arg(value_parser = id::<ItemId>)]
        id: ItemId,
    },
    /// Cancel an item: at once when it waits, through the engine when it runs
    Cancel(cancel::CancelArgs),
    /// Put an item that ended badly back into the queue
    Retry {
        /// The item
        #[arg(value_parser = id::<ItemId>)]
        id: ItemId,
    },
    /// Put everything back that ended badly and matches
    RetryAll(retry::RetryAllArgs),
    /// Change the priority of an item that waits
    Priority {
        /// The item
        #[arg(value_parser = id::<ItemId>)]
        id: ItemId,
        /// Higher goes first within the workspace
        #[arg(allow_negative_numbers = true)]
        priority: i32,
    },
}

/// Which items.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    page: Page,
    /// Only in this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Claimed,
    Dispatched,
    Failed,
    Cancelled,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Claimed => "CLAIMED",
            Self::Dispatched => "DISPATCHED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Add(args) => add::run(args, context).await,
        Command::List(args) => list(&args, &context.database().await?, context).await,
        Command::Show { id } => show::run(id, &context.database().await?, context).await,
        Command::Cancel(args) => cancel::cancel(&args, &context.database().await?, context).await,
        Command::Retry { id } => retry::one(id, &context.database().await?, context).await,
        Command::RetryAll(args) => retry::all(args, &context.database().await?, context).await,
        Command::Priority { id, priority } => {
            set_priority(id, priority, &context.database().await?, context).await
        }
    }
}

async fn list(args: &ListArgs, database: &Database, context: &Context) -> Result<()> {
    let items = inspect::items(database, &args.page.filter(args.status.map(Status::as_str))).await?;
    let names = names(
        database,
        items.iter().map(|item| item.workflow_definition_id),
        context.format,
    )
    .await?;
    context.format.print(&items[..], |items| {
        let header = [
            "ID",
            "STATUS",
            "WORKFLOW",
            "PRIORITY",
            "AGE",
            "NOT BEFORE",
            "TRIES",
            "LAST ERROR",
        ];
        table(
            &header,
            items
                .iter()
                .map(|item| row(item, &names[&item.workflow_definition_id])),
        )
    })?;
    args.page
        .say_where_it_ends(items.len(), items.last().map(|item| item.id.0), context.format);
    Ok(())
}

fn row(item: &Item, workflow: &str) -> Vec<Cell> {
    vec![
        cell(item.id),
        status(&item.status),
        cell(workflow),
        cell(item.priority),
        cell(age(item.created_at)),
        maybe(item.run_at.map(age)),
        cell(item.attempt_count),
        short(item.last_error.as_deref()),
    ]
}

#[derive(Serialize)]
struct Prioritised {
    id: ItemId,
    priority: i32,
}

async fn set_priority(id: ItemId, priority: i32, database: &Database, context: &Context) -> Result<()> {
    if inspect::item(database, id).await?.is_none() {
        return Err(operate::Error::NotFound(id.0).into());
    }
    operate::set_priority(database, id, priority, &Context::actor()).await?;
    context.format.print(&Prioritised { id, priority }, |_| {
        format!("Item {id} has priority {priority}.")
    })
}
