//! `stationmaster signals`: events that came in.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::words::UnknownWord;
use stationmaster_client::wire::{BulkReplay, NewSignal, OperationKind, Signal, SignalQuery, SignalStatus};
use stationmaster_core::signals::{DEFAULT_TASK_QUEUE, DeadReason};

use super::Context;
use super::arguments::{json_given, text, word_of};
use super::bulk::{self, How, Words};
use super::inspection::json_cell;
use super::pages::{Asked, Newest};
use super::times::past;
use crate::output::{
    Column, Described, cell, column, in_details, in_table, long, maybe, minor, moment, status, time, word,
};

/// What to do with signals.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a signal; it is in the inbox when this returns
    Send(SendArgs),
    /// The signals there are, newest first
    List(ListArgs),
    /// One signal, and what became of it
    Show {
        /// The signal
        id: String,
        /// Its project; needed only where several have one of this id
        #[arg(long, value_parser = text)]
        project: Option<String>,
    },
    /// The dead letters: signals that could not be routed, with the reason
    Dead(Page),
    /// Put dead letters back into the inbox: one, or all that match
    Replay(ReplayArgs),
}

/// A signal.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The project that it is for
    #[arg(value_parser = text)]
    project: String,
    /// Its name: triggers go by it
    #[arg(value_parser = text)]
    name: String,
    /// The task queue of the project
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TASK_QUEUE, value_parser = text)]
    task_queue: String,
    /// What it carries, as JSON; {} when left out
    #[arg(long, value_name = "JSON", conflicts_with = "payload_file")]
    payload: Option<String>,
    /// The file that holds the payload; - for the standard input
    #[arg(long, value_name = "FILE")]
    payload_file: Option<String>,
    /// Its id: a repeat with the same id sends nothing; a new one when left out
    #[arg(long, value_parser = text)]
    id: Option<String>,
    /// Your own reference; carried through to the execution
    #[arg(long, value_name = "TEXT", value_parser = text)]
    correlation_id: Option<String>,
}

/// Which signals.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Only of this project
    #[arg(long, value_parser = text)]
    project: Option<String>,
    /// Only of this task queue
    #[arg(long, value_name = "NAME", value_parser = text)]
    task_queue: Option<String>,
    /// Only with this name
    #[arg(long, value_parser = text)]
    name: Option<String>,
    /// Only what came in at this time or later
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    since: Option<Timestamp>,
    /// Only what came in before this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    until: Option<Timestamp>,
    #[command(flatten)]
    part: Newest,
}

/// Which signals, in which status.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    page: Page,
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<SignalStatus>(["pending", "routed", "dead"]), ignore_case = true)]
    status: Vec<SignalStatus>,
}

/// Which dead letters to put back.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be put back").requires("all")))]
pub(crate) struct ReplayArgs {
    /// One signal
    #[arg(required_unless_present = "all", conflicts_with_all = ["all", "task_queue", "name", "dead_reason", "dry_run"])]
    id: Option<String>,
    /// All dead letters that match
    #[arg(long)]
    all: bool,
    /// Only of this project; of one signal, where several projects have one of its id
    #[arg(long, value_parser = text)]
    project: Option<String>,
    /// Only of this task queue
    #[arg(long, value_name = "NAME", value_parser = text, requires = "all")]
    task_queue: Option<String>,
    /// Only with this name
    #[arg(long, value_parser = text, requires = "all")]
    name: Option<String>,
    /// Only those put aside for this reason
    #[arg(long, value_name = "REASON", value_parser = reason, requires = "all")]
    dead_reason: Option<String>,
    #[command(flatten)]
    how: How,
}

fn reason(text: &str) -> Result<String, UnknownWord> {
    text.parse::<DeadReason>().map(|reason| reason.to_string())
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Send(args) => send_one(args, context).await,
        Command::List(args) => list(args.page, &args.status, context).await,
        Command::Dead(page) => list(page, &[SignalStatus::Dead], context).await,
        Command::Show { id, project } => {
            let client = context.client().await?;
            context.show(&match project {
                Some(project) => client.signal_of(&project, &id).await?,
                None => client.signal(&id).await?,
            })
        }
        Command::Replay(args) => put_back(args, context).await,
    }
}

async fn send_one(args: SendArgs, context: &Context) -> Result<()> {
    let signal = NewSignal {
        id: args.id,
        task_queue: Some(args.task_queue),
        payload: json_given("the payload", args.payload, args.payload_file.as_deref())?,
        correlation_id: args.correlation_id,
        ..NewSignal::new(&args.project, &args.name)
    };
    let sent = context.client().await?.send_signal(&signal).await?;
    context.print(&sent, |sent| {
        if sent.duplicate {
            format!("The same signal was sent before: {}.", sent.id)
        } else {
            format!("Sent {}.", sent.id)
        }
    })
}

async fn list(page: Page, statuses: &[SignalStatus], context: &Context) -> Result<()> {
    let query = SignalQuery {
        project: page.project,
        task_queue: page.task_queue,
        name: page.name,
        received_after: page.since,
        received_before: page.until,
        ..SignalQuery::default()
    };
    let client = context.client().await?;
    let newest = |one: &Signal, other: &Signal| other.received_at.cmp(&one.received_at);
    let asked = Asked::of_each(
        query,
        statuses,
        |query, status| query.status = Some(status),
        newest,
    );
    context
        .list_asked(&client, page.part, &asked, Client::signals)
        .await
}

impl Described for Signal {
    const COLUMNS: &'static [Column<Self>] = &[
        column("ID", |signal| cell(&signal.id)),
        column("STATUS", |signal| status(&word(&signal.status))),
        column("PROJECT", |signal| cell(&signal.project)),
        minor(column("TASK QUEUE", |signal| cell(&signal.task_queue))),
        column("NAME", |signal| cell(&signal.name)),
        in_table(time("RECEIVED", |signal| Some(signal.received_at))),
        in_details(column("RECEIVED", |signal| {
            cell(format!("{} from {}", moment(signal.received_at), signal.sent_by))
        })),
        in_details(time("SETTLED", |signal| signal.settled_at)),
        in_details(column("BY", |signal| cell(&signal.dispatcher_id))),
        in_details(column("EPOCH", |signal| maybe(signal.epoch))),
        in_details(column("ITEM", |signal| maybe(signal.queue_item_id))),
        minor(column("EXECUTION", |signal| maybe(signal.execution_id))),
        column("REASON", |signal| maybe(signal.reason.as_ref())),
        long("DETAIL", |signal| signal.detail.as_deref()),
        in_details(column("REPLAYED", |signal| cell(signal.replays))),
        in_details(column("CORRELATION ID", |signal| {
            maybe(signal.correlation_id.as_ref())
        })),
        in_details(column("PAYLOAD", |signal| json_cell(signal.payload.as_deref()))),
    ];
}

async fn put_back(args: ReplayArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    if let Some(id) = &args.id {
        match &args.project {
            Some(project) => client.replay_signal_of(project, id).await?,
            None => client.replay_signal(id).await?,
        };
        let words = "One signal is back in the inbox.".to_owned();
        return context.say(&json!({ "matching": 1, "replayed": 1 }), words);
    }
    let request = |step: bulk::Step| -> BulkReplay {
        BulkReplay {
            workspace_id: None,
            project: args.project.clone(),
            task_queue: args.task_queue.clone(),
            name: args.name.clone(),
            reason: args.dead_reason.clone(),
            before: step.as_of,
            after: step.after,
            all: true,
            dry_run: step.dry_run,
        }
    };
    let words = Words {
        doing: "Replaying",
        noun: "signal",
        done: "replayed",
        question: |signals| {
            format!(
                "Put {signals} back into the inbox? Each is routed by the trigger of its name, as there is now."
            )
        },
        sentence: |signals| format!("Back in the inbox: {signals}."),
    };
    let what = (OperationKind::ReplaySignals, args.how);
    bulk::run(what, &words, 1, request, (&client, context)).await
}
