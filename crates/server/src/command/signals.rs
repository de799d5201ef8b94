//! `stationmaster signals`: events that came in.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::words::UnknownWord;
use stationmaster_client::wire::{BulkReplay, NewSignal, Signal, SignalQuery, SignalStatus};
use stationmaster_core::signals::{DEFAULT_TASK_QUEUE, DeadReason};

use super::Context;
use super::arguments::{json, read, text};
use super::inspection::json_cell;
use super::pages::{listed, say_where_it_ends};
use crate::output::{age, cell, counted, fields, maybe, moment, short, status, table, word};

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
    },
    /// The dead letters: signals that could not be routed, with the reason
    Dead(DeadArgs),
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
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE")]
    before: Option<String>,
}

/// Which signals, in which status.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    page: Page,
    /// Only in this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
}

/// Which dead letters.
#[derive(Debug, Args)]
pub(crate) struct DeadArgs {
    #[command(flatten)]
    page: Page,
}

/// Which dead letters to put back.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// One signal
    #[arg(required_unless_present = "all", conflicts_with_all = ["all", "project", "task_queue", "name", "reason", "dry_run"])]
    id: Option<String>,
    /// All dead letters that match
    #[arg(long)]
    all: bool,
    /// Only of this project
    #[arg(long, value_parser = text, requires = "all")]
    project: Option<String>,
    /// Only of this task queue
    #[arg(long, value_name = "NAME", value_parser = text, requires = "all")]
    task_queue: Option<String>,
    /// Only with this name
    #[arg(long, value_parser = text, requires = "all")]
    name: Option<String>,
    /// Only those put aside for this reason
    #[arg(long, value_parser = reason, requires = "all")]
    reason: Option<String>,
    /// Only say how many would be put back
    #[arg(long, requires = "all")]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Routed,
    Dead,
}

impl From<Status> for SignalStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Routed => Self::Routed,
            Status::Dead => Self::Dead,
        }
    }
}

fn reason(text: &str) -> Result<String, UnknownWord> {
    text.parse::<DeadReason>().map(|reason| reason.to_string())
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Send(args) => send_one(args, context).await,
        Command::List(args) => {
            let status = args.status.map(SignalStatus::from);
            list(args.page, status, &context.client().await?, context).await
        }
        Command::Dead(args) => {
            let status = Some(SignalStatus::Dead);
            list(args.page, status, &context.client().await?, context).await
        }
        Command::Show { id } => {
            let shown = context.client().await?.signal(&id).await?;
            context.format.print(&shown, for_people)
        }
        Command::Replay(args) => put_back(args, context).await,
    }
}

#[derive(Serialize)]
struct Acknowledged {
    id: String,
    /// False: it was sent before.
    created: bool,
}

async fn send_one(args: SendArgs, context: &Context) -> Result<()> {
    let payload = match (args.payload, args.payload_file) {
        (Some(payload), _) => Some(payload),
        (None, Some(path)) => Some(read(&path)?),
        (None, None) => None,
    };
    let signal = NewSignal {
        id: args.id,
        task_queue: Some(args.task_queue),
        payload: payload.map(|text| json("the payload", &text)).transpose()?,
        correlation_id: args.correlation_id,
        ..NewSignal::new(&args.project, &args.name)
    };
    let sent = context.client().await?.send_signal(&signal).await?;
    let answer = Acknowledged {
        id: sent.id,
        created: !sent.duplicate,
    };
    context.format.print(&answer, |answer| {
        if answer.created {
            format!("Sent {}.", answer.id)
        } else {
            format!("The same signal was sent before: {}.", answer.id)
        }
    })
}

async fn list(page: Page, status: Option<SignalStatus>, client: &Client, context: &Context) -> Result<()> {
    let query = SignalQuery {
        project: page.project,
        task_queue: page.task_queue,
        name: page.name,
        status,
        ..SignalQuery::default()
    };
    let signals = listed(page.limit, page.before.as_deref(), async |limit, cursor| {
        let query = SignalQuery {
            limit,
            cursor,
            ..query.clone()
        };
        client.signals(&query).await
    })
    .await?;
    context.format.print(&signals.rows[..], |signals| {
        let header = [
            "ID",
            "STATUS",
            "PROJECT",
            "TASK QUEUE",
            "NAME",
            "AGE",
            "EXECUTION",
            "REASON",
            "DETAIL",
        ];
        table(&header, signals.iter().map(row))
    })?;
    say_where_it_ends("--before", signals.next.as_deref(), context.format);
    Ok(())
}

fn row(signal: &Signal) -> Vec<Cell> {
    vec![
        cell(&signal.id),
        status(&word(&signal.status)),
        cell(&signal.project),
        cell(&signal.task_queue),
        cell(&signal.name),
        cell(age(signal.received_at)),
        maybe(signal.execution_id),
        maybe(signal.reason.as_ref()),
        short(signal.detail.as_deref()),
    ]
}

fn for_people(signal: &Signal) -> String {
    fields([
        ("ID", cell(&signal.id)),
        ("STATUS", status(&word(&signal.status))),
        ("PROJECT", cell(&signal.project)),
        ("TASK QUEUE", cell(&signal.task_queue)),
        ("NAME", cell(&signal.name)),
        (
            "RECEIVED",
            cell(format!("{} from {}", moment(signal.received_at), signal.sent_by)),
        ),
        ("SETTLED", maybe(signal.settled_at.map(moment))),
        ("BY", cell(&signal.dispatcher_id)),
        ("EPOCH", maybe(signal.epoch)),
        ("ITEM", maybe(signal.queue_item_id)),
        ("EXECUTION", maybe(signal.execution_id)),
        ("REASON", maybe(signal.reason.as_ref())),
        ("DETAIL", maybe(signal.detail.as_ref())),
        ("REPLAYED", cell(signal.replays)),
        ("CORRELATION ID", maybe(signal.correlation_id.as_ref())),
        ("PAYLOAD", json_cell(signal.payload.as_deref())),
    ])
}

#[derive(Serialize)]
struct Replayed {
    matching: u64,
    replayed: u64,
}

/// One call puts some back; calls follow while there is more. What dies again meanwhile is not put back once more.
async fn replay_at_most(dead: u64, which: &BulkReplay, client: &Client) -> Result<u64> {
    let mut done = 0;
    while done < dead {
        let answer = client.replay_all(which, None).await?;
        done += answer.items;
        if !answer.more {
            break;
        }
    }
    Ok(done)
}

async fn put_back(args: ReplayArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    if let Some(id) = args.id {
        client.replay_signal(&id).await?;
        let one = Replayed {
            matching: 1,
            replayed: 1,
        };
        return context
            .format
            .print(&one, |_| "One signal is back in the inbox.".to_owned());
    }
    let mut which = BulkReplay {
        workspace_id: None,
        project: args.project,
        task_queue: args.task_queue,
        name: args.name,
        reason: args.reason,
        dry_run: true,
    };
    let matching = client.replay_all(&which, None).await?.items;
    which.dry_run = false;
    let answer = if args.dry_run {
        Replayed {
            matching,
            replayed: 0,
        }
    } else {
        let replayed = replay_at_most(matching, &which, &client).await?;
        Replayed {
            matching: replayed,
            replayed,
        }
    };
    context.format.print(&answer, |answer| match answer.replayed {
        _ if args.dry_run => {
            let signals = counted(answer.matching, "signal");
            format!("{signals} would go back into the inbox.")
        }
        1 => "One signal is back in the inbox.".to_owned(),
        count => format!("{} are back in the inbox.", counted(count, "signal")),
    })
}
