//! `stationmaster queue`: what waits to run.

use std::cmp::Ordering;

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    ExecutionQuery, ExecutionStatus, ItemStatus, Noun, QueueItem, QueueItemChange, QueueOrder, QueueQuery,
    Reference,
};
use uuid::Uuid;

use super::arguments::word_of;
use super::inspection::{Page, json_cell};
use super::names::{self, reference};
use super::pages::Asked;
use super::times::past;
use super::watch::WatchArgs;
use super::{Context, typed};
use crate::output::{
    Column, Described, cell, column, id, in_details, in_table, in_wide, long, maybe, minor, moment, named,
    status, time, word,
};

mod add;
mod bulk;
pub(super) mod cancel;
mod show;

pub(super) use bulk::CANCELS;

/// What to do with the queue.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask for a workflow to run
    Add(add::AddArgs),
    /// The items there are, newest first
    ///
    /// `--sort enqueued` begins with the oldest of all, and `--sort next` tells what goes next in a workspace.
    List(ListArgs),
    /// One item: why it waits, who is in its way, and its history
    Show(show::ShowArgs),
    /// Cancel an item: at once when it waits, through the engine when it runs
    Cancel(cancel::CancelArgs),
    /// Put an item that ended badly back into the queue
    Retry(One),
    /// Put everything back that ended badly and matches
    RetryAll(bulk::RetryAllArgs),
    /// Cancel everything that waits or runs and matches
    CancelAll(bulk::CancelAllArgs),
    /// Change the priority of everything that waits and matches
    PriorityAll(bulk::PriorityAllArgs),
    /// Change the priority of an item that waits
    Priority {
        #[command(flatten)]
        one: One,
        /// Higher goes first within the workspace
        #[arg(allow_negative_numbers = true)]
        priority: i32,
    },
}

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The item
    #[arg(value_parser = reference)]
    id: Reference,
}

impl One {
    async fn meant(&self, client: &Client) -> Result<Uuid> {
        names::one(client, Noun::Item, None, &self.id).await
    }
}

/// Which items.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    page: Page,
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<ItemStatus>(STATUSES), ignore_case = true)]
    status: Vec<ItemStatus>,
    /// Only what was enqueued at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    created_after: Option<Timestamp>,
    /// Only what was enqueued before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    created_before: Option<Timestamp>,
    #[command(flatten)]
    watch: WatchArgs,
}

const STATUSES: [&str; 5] = ["pending", "claimed", "dispatched", "failed", "cancelled"];

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Add(args) => add::run(args, context).await,
        Command::List(args) => list(args, context).await,
        Command::Show(args) => {
            let client = context.client().await?;
            show::run(args.meant(&client).await?, &client, context).await
        }
        Command::Cancel(args) => cancel::cancel(&args, &context.client().await?, context).await,
        Command::Retry(one) => {
            let client = context.client().await?;
            bulk::retry_one(one.meant(&client).await?, &client, context).await
        }
        Command::RetryAll(args) => args.run(context).await,
        Command::CancelAll(args) => args.run(context).await,
        Command::PriorityAll(args) => args.run(context).await,
        Command::Priority { one, priority } => set_priority(&one, priority, context).await,
    }
}

async fn list(args: ListArgs, context: &Context) -> Result<()> {
    let (client, mut page) = (context.client().await?, args.page);
    let places = names::places(&client, &page.workspace, page.workflow.as_ref()).await?;
    // What the server can sort by is sorted whole, and not only what is shown.
    let order = match page.part.sorted_by() {
        Some("enqueued" | "id") => QueueOrder::Oldest,
        Some("next") => QueueOrder::Next,
        _ => QueueOrder::Newest,
    };
    if order == QueueOrder::Next {
        page.part = page.part.unsorted();
    }
    let query = QueueQuery {
        order: Some(order).filter(|order| *order != QueueOrder::Newest),
        created_after: args.created_after,
        created_before: args.created_before,
        search: page.search,
        ..QueueQuery::default()
    };
    let first: fn(&QueueItem, &QueueItem) -> Ordering = match order {
        QueueOrder::Oldest => |one, other| one.id.cmp(&other.id),
        QueueOrder::Newest | QueueOrder::Next => |one, other| other.id.cmp(&one.id),
    };
    let asked = Asked::of_each(
        query,
        &args.status,
        |query, status| query.status = Some(status),
        first,
    );
    let asked = asked.within(&places, |query, place| {
        query.workspace_id = place.workspace.map(Reference::from);
        query.workflow_definition_id = place.workflow.map(Reference::from);
    });
    let (watch, workspace) = (args.watch, names::only_workspace(&places));
    watch
        .list(context, &client, workspace, page.part, &asked, Client::queue)
        .await?;
    if args.status.contains(&ItemStatus::Failed) {
        tell_failed_runs(context, &client, &places, &page.workspace, page.workflow.as_ref()).await?;
    }
    Ok(())
}

/// Of items only the start fails. Whoever asks for what failed may well mean runs, whose items are dispatched.
async fn tell_failed_runs(
    context: &Context,
    client: &Client,
    places: &[names::Place],
    workspaces: &[Reference],
    workflow: Option<&Reference>,
) -> Result<()> {
    for place in places {
        let query = ExecutionQuery {
            workspace_id: place.workspace.map(Reference::from),
            workflow_definition_id: place.workflow.map(Reference::from),
            status: Some(ExecutionStatus::Failed),
            limit: Some(1),
            ..ExecutionQuery::default()
        };
        if client.executions(&query).await?.items.is_empty() {
            continue;
        }
        let workspaces = workspaces.iter().map(|name| format!(" --workspace {name}"));
        let workflow = workflow.map(|name| format!(" --workflow {name}"));
        let filters = workspaces.chain(workflow).collect::<String>();
        let [runs, causes] = ["executions list --status failed", "failures"]
            .map(|command| typed::beside(&format!("{command}{filters}")));
        context.hint(&format!(
            "Runs have failed too: an item that was started stays DISPATCHED, and its outcome is that of its run.\n\
             See them: {runs}\nBy their causes: {causes}"
        ));
        return Ok(());
    }
    Ok(())
}

impl Described for QueueItem {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |item| item.id),
        column("STATUS", |item| status(&word(&item.status))),
        column("OUTCOME", |item| {
            item.outcome
                .map_or_else(|| maybe(None::<&str>), |outcome| status(&word(&outcome)))
        }),
        in_table(column("WAITS FOR", |item| maybe(item.waits_for))),
        named("WORKSPACE", |item| (item.workspace.as_deref(), item.workspace_id)),
        named("WORKFLOW", |item| {
            (item.workflow.as_deref(), item.workflow_definition_id)
        }),
        in_wide(column("EXECUTION", |item| maybe(item.execution_id))),
        minor(column("PRIORITY", |item| cell(item.priority))),
        in_table(time("ENQUEUED", |item| Some(item.created_at))),
        minor(time("NOT BEFORE", |item| item.run_at)),
        in_details(column("ENQUEUED", |item| {
            cell(format!("{} by {}", moment(item.created_at), item.enqueued_by))
        })),
        in_details(time("CLAIMED", |item| item.claimed_at)),
        in_wide(time("DISPATCHED", |item| item.dispatched_at)),
        minor(in_table(column("TRIES", |item| cell(item.attempt_count)))),
        in_details(column("REFUSED STARTS", |item| cell(item.attempt_count))),
        in_details(column("LOST SERVERS", |item| cell(item.recovery_count))),
        long("LAST ERROR", |item| item.last_error.as_deref()),
        in_details(column("KEY", |item| maybe(item.idempotency_key.as_ref()))),
        in_details(column("CORRELATION ID", |item| {
            maybe(item.correlation_id.as_ref())
        })),
        in_details(column("INPUT", |item| json_cell(item.input.as_deref()))),
    ];
}

async fn set_priority(one: &One, priority: i32, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let id = one.meant(&client).await?;
    client
        .change_queue_item(id, &QueueItemChange { priority })
        .await?;
    let words = format!("Item {id} has priority {priority}.");
    context.say(&json!({ "id": id, "priority": priority }), words)
}
