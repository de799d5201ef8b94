//! `stationmaster executions`: what runs or has run.

use std::cmp::Ordering;

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Complete, CompleteStatus, Execution, ExecutionQuery, ExecutionStatus, Noun, Order, Reference, Step,
    Terminate,
};

use super::Context;
use super::arguments::{Caution, has_ended, json, json_given, word_of};
use super::follow::{self, FollowArgs};
use super::inspection::{Page, history, json_cell};
use super::names::{self, reference};
use super::pages::{Asked, Sorting};
use super::queue::cancel::{CancelArgs, cancel};
use super::strays;
use super::times::past;
use super::watch::WatchArgs;
use crate::failure::Refusal;
use crate::output::{
    Column, Described, cell, column, details, fields, id, in_details, in_table, in_wide, long, maybe, minor,
    named, status, time, told, word,
};

/// What to do with executions.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The executions there are, newest first
    ///
    /// `--sort id` begins with the oldest of all.
    List(ListArgs),
    /// One execution, with its history
    Show {
        /// The execution
        #[arg(value_parser = reference)]
        id: Reference,
    },
    /// Print each step of an execution as it comes, until it has ended; exit code 1 when it ended badly
    Watch(FollowArgs),
    /// Cancel an execution: at once when it waits, through the engine when it runs
    Cancel(CancelArgs),
    /// End the run of an execution by force and free its slot; no worker is needed
    Terminate(TerminateArgs),
    /// End the run of an active execution, record how it ended by your own word, and free its slot
    Complete(CompleteArgs),
    /// Runs that the engine holds open and that no row tells of: lost with a failover, or younger than a restored backup
    Strays {
        #[command(flatten)]
        sorting: Sorting,
    },
    /// End a run that no row tells of, after a look at it
    EndStray(strays::EndArgs),
}

/// Which executions.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    page: Page,
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<ExecutionStatus>(STATUSES), ignore_case = true)]
    status: Vec<ExecutionStatus>,
    /// Only what ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_after: Option<Timestamp>,
    /// Only what ended before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    ended_before: Option<Timestamp>,
    #[command(flatten)]
    watch: WatchArgs,
}

const STATUSES: [&str; 8] = [
    "pending",
    "starting",
    "running",
    "completed",
    "failed",
    "cancelled",
    "terminated",
    "timed_out",
];

/// How it ended.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be ended")))]
pub(crate) struct CompleteArgs {
    /// The execution
    #[arg(value_parser = reference)]
    id: Reference,
    /// How it ended; completed when left out, failed when there is an error
    #[arg(long, value_parser = word_of::<CompleteStatus>(STATUSES[3..].to_vec()), ignore_case = true)]
    status: Option<CompleteStatus>,
    /// Its result, as JSON
    #[arg(long, value_name = "JSON")]
    output: Option<String>,
    /// What went wrong, in words
    #[arg(long, value_name = "MESSAGE")]
    error: Option<String>,
    /// Free the slot at once, by your word alone: for an engine that does not answer. Servers end the run when they find it
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    caution: Caution,
}

/// What to end, and why.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be ended")))]
pub(crate) struct TerminateArgs {
    /// The execution
    #[arg(value_parser = reference)]
    id: Reference,
    /// Why, for the history and the engine
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    caution: Caution,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::List(args) => list(args, context).await,
        Command::Show { id } => show(&id, &context.client().await?, context).await,
        Command::Watch(args) => follow::run(&args, context).await,
        Command::Cancel(args) => cancel(&args, &context.client().await?, context).await,
        Command::Terminate(args) => terminate(args, context).await,
        Command::Complete(args) => complete(args, context).await,
        Command::Strays { sorting } => strays::list(&sorting, context).await,
        Command::EndStray(args) => strays::end(args, context).await,
    }
}

async fn list(args: ListArgs, context: &Context) -> Result<()> {
    let (client, page) = (context.client().await?, args.page);
    let places = names::places(&client, &page.workspace, page.workflow.as_ref()).await?;
    // What the server can sort by is sorted whole, and not only what is shown.
    let order = match page.part.sorted_by() {
        Some("id") => Order::Oldest,
        _ => Order::Newest,
    };
    let query = ExecutionQuery {
        order: Some(order).filter(|order| *order != Order::Newest),
        completed_after: args.ended_after,
        completed_before: args.ended_before,
        search: page.search,
        ..ExecutionQuery::default()
    };
    let first: fn(&Execution, &Execution) -> Ordering = match order {
        Order::Newest => |one, other| other.id.cmp(&one.id),
        Order::Oldest => |one, other| one.id.cmp(&other.id),
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
        .list(context, &client, workspace, page.part, &asked, Client::executions)
        .await
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    execution: Execution,
    history: Vec<Step>,
}

async fn show(id: &Reference, client: &Client, context: &Context) -> Result<()> {
    let id = names::one(client, Noun::Execution, None, id).await?;
    let execution = client.execution(id).await?;
    let history = client.queue_history(execution.queue_item_id).await?.items;
    context.print(&Shown { execution, history }, |shown| {
        let details = fields(details(&shown.execution));
        format!("{details}\n\n{}", self::history(&shown.history))
    })
}

impl Described for Execution {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |execution| execution.id),
        column("STATUS", |execution| status(&word(&execution.status))),
        in_details(long("REASON", |execution| execution.reason.as_deref())),
        in_details(column("OBSTACLE", |execution| maybe(execution.obstacle.as_ref()))),
        in_wide(column("QUEUE ITEM", |execution| cell(execution.queue_item_id))),
        named("WORKSPACE", |execution| {
            (execution.workspace.as_deref(), execution.workspace_id)
        }),
        named("WORKFLOW", |execution| {
            (execution.workflow.as_deref(), execution.workflow_definition_id)
        }),
        in_details(column("VERSION ID", |execution| {
            maybe(execution.workflow_definition_version_id)
        })),
        in_wide(column("ENGINE", |execution| maybe(execution.engine.as_ref()))),
        in_wide(column("RUN", |execution| maybe(execution.run_id.as_ref()))),
        in_details(time("CLAIMED", |execution| execution.claimed_at)),
        time("STARTED", |execution| execution.started_at),
        time("ENDED", |execution| execution.completed_at),
        in_details(time("CLOSED BY ENGINE", |execution| execution.closed_at)),
        minor(in_table(column("TRIES", |execution| cell(execution.attempts)))),
        in_table(told("WHY", why)),
        in_details(column("REFUSED STARTS", |execution| cell(execution.attempts))),
        in_details(column("LOST SERVERS", |execution| cell(execution.recoveries))),
        in_details(column("INPUT", |execution| json_cell(execution.input.as_deref()))),
        in_details(column("OUTPUT", |execution| {
            json_cell(execution.output.as_deref())
        })),
        in_details(column("OUTPUT LEFT", |execution| {
            maybe(
                execution
                    .output_omitted
                    .as_ref()
                    .map(|left| format!("{} bytes of {} are with the engine", left.size, left.encoding)),
            )
        })),
        in_details(column("ERROR", |execution| json_cell(execution.error.as_deref()))),
    ];
}

/// Why it ended as it did: the words of its error, and else the reason on record.
fn why(execution: &Execution) -> Option<String> {
    let error = execution.error.as_deref().map(RawValue::get);
    let told = error.and_then(|error| serde_json::from_str::<serde_json::Value>(error).ok());
    let message = told.as_ref().and_then(|error| error["message"].as_str());
    message.or(execution.reason.as_deref()).map(str::to_owned)
}

/// What is wrong with the arguments is told before the database is needed.
async fn complete(args: CompleteArgs, context: &Context) -> Result<()> {
    let usual = match args.error {
        Some(_) => CompleteStatus::Failed,
        None => CompleteStatus::Completed,
    };
    let status = args.status.unwrap_or(usual);
    if status == CompleteStatus::Completed && args.error.is_some() {
        let message = "what completed has no error";
        return Err(Refusal::usage(message, "Leave out --error, or give another --status").into());
    }
    let error = args
        .error
        .map(|message| serde_json::json!({ "message": message }));
    let error = error.map(|error| json("the error", &error.to_string()));
    let completion = Complete {
        status,
        output: json_given("the output", args.output, None)?,
        error: error.transpose()?,
        force: args.force,
    };
    let client = context.client().await?;
    let id = names::one(&client, Noun::Execution, None, &args.id).await?;
    let question = format!(
        "End the run of execution {id} and record it as {}? What it is at is not finished and nothing is undone.",
        word(&status)
    );
    let now = client.execution(id).await?;
    if now.completed_at.is_some() && word(&now.status) != word(&status) {
        return Err(has_ended(&format!("execution {id}"), &word(&now.status)).into());
    }
    if !args.caution.agreed(&question)? {
        return would_end(&now, &word(&status), context);
    }
    let execution = client.complete(id, &completion).await?;
    say_ended(&execution, context)
}

/// What a dry run says.
fn would_end(execution: &Execution, status: &str, context: &Context) -> Result<()> {
    let (id, now) = (execution.id, word(&execution.status));
    let words = format!("Execution {id} is {now}; its run would be ended, and it would be {status}.");
    context.say(
        &serde_json::json!({ "id": id, "status": execution.status }),
        words,
    )
}

async fn terminate(args: TerminateArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let id = names::one(&client, Noun::Execution, None, &args.id).await?;
    let question = format!(
        "End the run of execution {id} by force? What it is at is not finished and nothing is undone."
    );
    let now = client.execution(id).await?;
    if now.completed_at.is_some() {
        return Err(has_ended(&format!("execution {id}"), &word(&now.status)).into());
    }
    if !args.caution.agreed(&question)? {
        return would_end(&now, "TERMINATED", context);
    }
    let why = Terminate { reason: args.note };
    say_ended(&client.terminate(id, &why).await?, context)
}

/// How it ended, or that it has not yet.
fn say_ended(execution: &Execution, context: &Context) -> Result<()> {
    let (id, status) = (execution.id, execution.status);
    let words = if execution.completed_at.is_some() {
        format!("Execution {id} is {}.", word(&status))
    } else {
        format!(
            "Execution {id} is {} still: a server ends its run as soon as it can, and its slot is free then.",
            word(&status)
        )
    };
    context.say(&serde_json::json!({ "id": id, "status": status }), words)
}
