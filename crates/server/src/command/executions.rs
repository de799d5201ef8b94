//! `stationmaster executions`: what runs or has run.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::Cell;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Complete, CompleteStatus, Execution, ExecutionQuery, ExecutionStatus, Step,
};
use uuid::Uuid;

use super::Context;
use super::arguments::{id, instant, json};
use super::follow::{self, FollowArgs};
use super::inspection::{Page, history, json_cell, names};
use super::pages::listed;
use super::queue::cancel::{CancelArgs, cancel};
use super::watch::{View, WatchArgs};
use crate::failure::Refusal;
use crate::output::{age, cell, fields, maybe, moment, short, status, table, word};

/// What to do with executions.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The executions there are, newest first
    List(ListArgs),
    /// One execution, with its history
    Show {
        /// The execution
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Print each step of an execution as it comes, until it has ended; exit code 1 when it ended badly
    Watch(FollowArgs),
    /// Cancel an execution: at once when it waits, through the engine when it runs
    Cancel(CancelArgs),
    /// End an active execution by your own word and free its slot; the engine is not asked
    Complete(CompleteArgs),
}

/// Which executions.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    page: Page,
    /// Only in this status
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<Status>,
    /// Only what ended at this time or later
    #[arg(long, value_name = "TIME", value_parser = instant)]
    ended_after: Option<Timestamp>,
    /// Only what ended before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    ended_before: Option<Timestamp>,
    #[command(flatten)]
    watch: WatchArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Status {
    Pending,
    Starting,
    Running,
    Completed,
    Failed,
    Cancelled,
    Terminated,
    TimedOut,
}

impl From<Status> for ExecutionStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Starting => Self::Starting,
            Status::Running => Self::Running,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Cancelled => Self::Cancelled,
            Status::Terminated => Self::Terminated,
            Status::TimedOut => Self::TimedOut,
        }
    }
}

/// How it ended.
#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The execution
    #[arg(value_parser = id::<Uuid>)]
    id: Uuid,
    /// How it ended; completed when left out, failed when there is an error
    #[arg(long, value_enum, ignore_case = true)]
    status: Option<End>,
    /// Its result, as JSON
    #[arg(long, value_name = "JSON")]
    output: Option<String>,
    /// What went wrong, in words
    #[arg(long, value_name = "MESSAGE")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum End {
    Completed,
    Failed,
    Cancelled,
    Terminated,
    TimedOut,
}

impl From<End> for CompleteStatus {
    fn from(end: End) -> Self {
        match end {
            End::Completed => Self::Completed,
            End::Failed => Self::Failed,
            End::Cancelled => Self::Cancelled,
            End::Terminated => Self::Terminated,
            End::TimedOut => Self::TimedOut,
        }
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::List(args) => list(&args, &context.client().await?, context).await,
        Command::Show { id } => show(id, &context.client().await?, context).await,
        Command::Watch(args) => follow::run(&args, context).await,
        Command::Cancel(args) => cancel(&args, &context.client().await?, context).await,
        Command::Complete(args) => complete(args, context).await,
    }
}

async fn list(args: &ListArgs, client: &Client, context: &Context) -> Result<()> {
    let query = ExecutionQuery {
        workspace_id: args.page.workspace,
        workflow_definition_id: args.page.workflow,
        status: args.status.map(ExecutionStatus::from),
        completed_after: args.ended_after,
        completed_before: args.ended_before,
        search: args.page.search.clone(),
        ..ExecutionQuery::default()
    };
    let draw = async || view(args, &query, client, context).await;
    let watch = &args.watch;
    watch
        .show(client, args.page.workspace, context.format, draw)
        .await
}

async fn view(args: &ListArgs, query: &ExecutionQuery, client: &Client, context: &Context) -> Result<View> {
    let again = args.watch.watch;
    let executions = listed(
        args.page.limit,
        args.page.before.as_deref(),
        async |limit, cursor| {
            let query = ExecutionQuery {
                limit,
                cursor,
                ..query.clone()
            };
            client.executions(&query).await
        },
    )
    .await?;
    let workflows = executions
        .rows
        .iter()
        .map(|execution| execution.workflow_definition_id);
    let names = names(client, workflows, context.format).await?;
    let text = context.format.view(&executions.rows[..], again, |executions| {
        let header = ["ID", "STATUS", "WORKFLOW", "STARTED", "ENDED", "TRIES", "REASON"];
        table(
            &header,
            executions
                .iter()
                .map(|execution| row(execution, &names[&execution.workflow_definition_id])),
        )
    })?;
    Ok(View {
        text,
        next: executions.next,
    })
}

fn row(execution: &Execution, workflow: &str) -> Vec<Cell> {
    vec![
        cell(execution.id),
        status(&word(&execution.status)),
        cell(workflow),
        maybe(execution.started_at.map(age)),
        maybe(execution.completed_at.map(age)),
        cell(execution.attempts),
        short(execution.reason.as_deref()),
    ]
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    execution: Execution,
    history: Vec<Step>,
}

async fn show(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    let execution = client.execution(id).await?;
    let history = client.queue_history(execution.queue_item_id).await?.items;
    context.format.print(&Shown { execution, history }, |shown| {
        format!(
            "{}\n\n{}",
            details(&shown.execution),
            self::history(&shown.history)
        )
    })
}

fn details(execution: &Execution) -> String {
    fields([
        ("ID", cell(execution.id)),
        ("STATUS", status(&word(&execution.status))),
        ("REASON", maybe(execution.reason.as_ref())),
        ("QUEUE ITEM", cell(execution.queue_item_id)),
        ("WORKSPACE", cell(execution.workspace_id)),
        ("WORKFLOW", cell(execution.workflow_definition_id)),
        ("VERSION ID", maybe(execution.workflow_definition_version_id)),
        ("ENGINE", maybe(execution.engine.as_ref())),
        ("RUN", maybe(execution.run_id.as_ref())),
        ("CLAIMED", maybe(execution.claimed_at.map(moment))),
        ("STARTED", maybe(execution.started_at.map(moment))),
        ("ENDED", maybe(execution.completed_at.map(moment))),
        ("REFUSED STARTS", cell(execution.attempts)),
        ("LOST SERVERS", cell(execution.recoveries)),
        ("INPUT", json_cell(execution.input.as_deref())),
        ("OUTPUT", json_cell(execution.output.as_deref())),
        ("ERROR", json_cell(execution.error.as_deref())),
    ])
}

#[derive(Serialize)]
struct Completed {
    id: Uuid,
    status: CompleteStatus,
}

/// What is wrong with the arguments is told before the database is needed.
async fn complete(args: CompleteArgs, context: &Context) -> Result<()> {
    let end = args.status.unwrap_or(if args.error.is_some() {
        End::Failed
    } else {
        End::Completed
    });
    if end == End::Completed && args.error.is_some() {
        let message = "what completed has no error";
        return Err(Refusal::usage(message, "Leave out --error, or give another --status").into());
    }
    let status = CompleteStatus::from(end);
    let error = args
        .error
        .map(|message| serde_json::json!({ "message": message }).to_string());
    let completion = Complete {
        status,
        output: args
            .output
            .map(|output| json("the output", &output))
            .transpose()?,
        error: error.map(|error| json("the error", &error)).transpose()?,
    };
    context.client().await?.complete(args.id, &completion).await?;
    let completed = Completed { id: args.id, status };
    context.format.print(&completed, |completed| {
        format!("Execution {} is {}.", completed.id, word(&completed.status))
    })
}
