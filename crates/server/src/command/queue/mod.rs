//! `stationmaster queue`: what waits to run.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::Cell;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{ItemStatus, QueueItem, QueueItemChange, QueueQuery};
use uuid::Uuid;

use super::Context;
use super::arguments::{id, instant};
use super::inspection::{Page, names};
use super::pages::listed;
use super::watch::{View, WatchArgs};
use crate::output::{age, cell, maybe, short, status, table, word};

mod add;
pub(super) mod cancel;
mod cancel_all;
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
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Cancel an item: at once when it waits, through the engine when it runs
    Cancel(cancel::CancelArgs),
    /// Put an item that ended badly back into the queue
    Retry {
        /// The item
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Put everything back that ended badly and matches
    RetryAll(retry::RetryAllArgs),
    /// Cancel everything that waits or runs and matches
    CancelAll(cancel_all::CancelAllArgs),
    /// Change the priority of an item that waits
    Priority {
        /// The item
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
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
    /// Only what was enqueued at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    created_after: Option<Timestamp>,
    /// Only what was enqueued before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    created_before: Option<Timestamp>,
    #[command(flatten)]
    watch: WatchArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Claimed,
    Dispatched,
    Failed,
    Cancelled,
}

impl From<Status> for ItemStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Claimed => Self::Claimed,
            Status::Dispatched => Self::Dispatched,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Add(args) => add::run(args, context).await,
        Command::List(args) => list(&args, &context.client().await?, context).await,
        Command::Show { id } => show::run(id, &context.client().await?, context).await,
        Command::Cancel(args) => cancel::cancel(&args, &context.client().await?, context).await,
        Command::Retry { id } => retry::one(id, &context.client().await?, context).await,
        Command::RetryAll(args) => retry::all(args, &context.client().await?, context).await,
        Command::CancelAll(args) => cancel_all::run(args, &context.client().await?, context).await,
        Command::Priority { id, priority } => {
            set_priority(id, priority, &context.client().await?, context).await
        }
    }
}

async fn list(args: &ListArgs, client: &Client, context: &Context) -> Result<()> {
    let query = QueueQuery {
        workspace_id: args.page.workspace,
        workflow_definition_id: args.page.workflow,
        status: args.status.map(ItemStatus::from),
        created_after: args.created_after,
        created_before: args.created_before,
        search: args.page.search.clone(),
        ..QueueQuery::default()
    };
    let draw = async || view(args, &query, client, context).await;
    let watch = &args.watch;
    watch
        .show(client, args.page.workspace, context.format, draw)
        .await
}

async fn view(args: &ListArgs, query: &QueueQuery, client: &Client, context: &Context) -> Result<View> {
    let again = args.watch.watch;
    let items = listed(
        args.page.limit,
        args.page.before.as_deref(),
        async |limit, cursor| {
            let query = QueueQuery {
                limit,
                cursor,
                ..query.clone()
            };
            client.queue(&query).await
        },
    )
    .await?;
    let workflows = items.rows.iter().map(|item| item.workflow_definition_id);
    let names = names(client, workflows, context.format).await?;
    let text = context.format.view(&items.rows[..], again, |items| {
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
    Ok(View {
        text,
        next: items.next,
    })
}

fn row(item: &QueueItem, workflow: &str) -> Vec<Cell> {
    vec![
        cell(item.id),
        status(&word(&item.status)),
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
    id: Uuid,
    priority: i32,
}

async fn set_priority(id: Uuid, priority: i32, client: &Client, context: &Context) -> Result<()> {
    let change = QueueItemChange { priority };
    client.change_queue_item(id, &change).await?;
    context.format.print(&Prioritised { id, priority }, |_| {
        format!("Item {id} has priority {priority}.")
    })
}
