//! `stationmaster workflows`: workflow definitions and their versions.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::SignedDuration;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    ItemStatus, NewVersion, QueueQuery, Reference, Workflow, WorkflowChange, WorkflowQuery,
};
use stationmaster_core::graph::Graph;
use stationmaster_core::names::fold;
use uuid::Uuid;

use super::Context;
use super::arguments::{Caution, already_there, duration, id, read, text};
use super::names::{self, reference};
use super::pages::{InOrder, Part, listed};
use crate::failure::Refusal;
use crate::output::{
    Column, Described, cell, column, id as id_column, in_details, in_table, in_wide, maybe, minor, named,
    printable, status, time,
};

/// What to do with workflows.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workflow, with its first version when a graph is given
    Create(CreateArgs),
    /// The workflows there are
    List {
        /// Only of this workspace
        #[arg(long, value_name = "NAME", value_parser = reference)]
        workspace: Option<Reference>,
        #[command(flatten)]
        part: InOrder,
    },
    /// One workflow
    Show(One),
    /// Change a workflow
    Set {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        change: Change,
    },
    /// Choose the version that new items get
    Publish {
        #[command(flatten)]
        one: One,
        /// The number of the version
        #[arg(value_parser = clap::value_parser!(i32).range(1..))]
        version: i32,
    },
    /// Add a version; unless another one was published, new items get it
    AddVersion {
        #[command(flatten)]
        one: One,
        /// The file that holds the graph as JSON; - for the standard input
        #[arg(long, value_name = "FILE")]
        graph: String,
    },
    /// Start nothing more of a workflow; what runs goes on
    Pause(One),
    /// Start again
    Resume(One),
    /// Delete a workflow and its versions; what waits fails, what runs goes on to its end
    Delete {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        caution: Caution,
    },
}

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The workflow
    #[arg(value_parser = reference)]
    id: Reference,
}

impl One {
    async fn meant(&self, client: &Client) -> Result<Uuid> {
        names::workflow(client, None, &self.id).await
    }
}

/// A new workflow.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(value_parser = text)]
    name: String,
    /// Whose it is
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Reference,
    /// Its id; a new one when left out
    #[arg(long, value_parser = id::<Uuid>)]
    id: Option<Uuid>,
    #[command(flatten)]
    how: How,
    /// The file that holds the graph of its first version as JSON; - for the standard input
    #[arg(long, value_name = "FILE")]
    graph: Option<String>,
}

/// How it is run.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct How {
    /// The task queue that its workers poll; the setting `executions.task_queue` when left out
    #[arg(long, value_name = "NAME", value_parser = text)]
    task_queue: Option<String>,
    /// The workflow type that its workers register; the setting `executions.workflow_type` when left out
    #[arg(long, value_name = "NAME", value_parser = text)]
    workflow_type: Option<String>,
    /// Starts that may be refused; the setting `executions.max_attempts` when left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=1_000))]
    max_attempts: Option<i32>,
    /// How long a run may take, like 90s, 15m or 2h; then it ends `TIMED_OUT`. For ever when left out
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    run_timeout: Option<Duration>,
}

/// What to change; at least one of them.
#[derive(Debug, Args)]
#[group(required = true, multiple = true, args = ["name", "task_queue", "workflow_type", "max_attempts", "run_timeout", "no_run_timeout"])]
pub(crate) struct Change {
    /// What people call it
    #[arg(long, value_parser = text)]
    name: Option<String>,
    #[command(flatten)]
    how: How,
    /// Let runs take as long as they take
    #[arg(long, conflicts_with = "run_timeout")]
    no_run_timeout: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::Create(args) => create(args, &client, context).await,
        Command::List { workspace, part } => {
            let workspace = names::workspace_asked(&client, workspace.as_ref()).await?;
            let query = WorkflowQuery {
                workspace_id: workspace.map(Reference::from),
                ..WorkflowQuery::default()
            };
            context.list(&client, part, query, Client::workflows).await
        }
        Command::Show(one) => context.show(&client.workflow(one.meant(&client).await?).await?),
        Command::Set { one, change } => {
            let change = |workspace| {
                let mut asked = change.how.change(workspace, change.name);
                if change.no_run_timeout {
                    asked.run_timeout = Some(None);
                }
                asked
            };
            say(
                "Changed",
                &alter(one.meant(&client).await?, change, &client).await?,
                context,
            )
        }
        Command::Publish { one, version } => {
            let change = |workspace| WorkflowChange {
                published_version: Some(version),
                ..WorkflowChange::of(workspace)
            };
            say(
                "Published",
                &alter(one.meant(&client).await?, change, &client).await?,
                context,
            )
        }
        Command::AddVersion { one, graph } => {
            let id = one.meant(&client).await?;
            add_version(id, &graph, &client, context).await
        }
        Command::Pause(one) => {
            let id = one.meant(&client).await?;
            say("Paused", &client.pause_workflow(id).await?, context)
        }
        Command::Resume(one) => {
            let id = one.meant(&client).await?;
            say("Resumed", &client.resume_workflow(id).await?, context)
        }
        Command::Delete { one, caution } => {
            let id = one.meant(&client).await?;
            delete(id, caution, &client, context).await
        }
    }
}

fn say(what: &str, workflow: &Workflow, context: &Context) -> Result<()> {
    context.print(workflow, |workflow| sentence(what, workflow))
}

impl How {
    fn change(self, workspace: Uuid, name: Option<String>) -> WorkflowChange {
        WorkflowChange {
            name,
            task_queue: self.task_queue,
            workflow_type: self.workflow_type,
            max_attempts: self.max_attempts,
            run_timeout: self.run_timeout.map(|time| Some(time.as_secs_f64())),
            ..WorkflowChange::of(workspace)
        }
    }
}

async fn create(args: CreateArgs, client: &Client, context: &Context) -> Result<()> {
    let id = args.id.unwrap_or_else(Uuid::now_v7);
    let workspace = names::workspace(client, &args.workspace).await?;
    let named = format!("{workspace}.{}", fold(&args.name));
    for known in [args.id.map(Reference::from), Some(named.into())] {
        if let Some(known) = known
            && let Ok(there) = client.workflow(known).await
        {
            let name = format!("{}.{}", there.workspace, there.name);
            return Err(already_there("workflow", &name).into());
        }
    }
    // Looked at before anything is stored, so that a bad graph leaves no workflow behind.
    let graph = args.graph.as_deref().map(version).transpose()?;
    if let Some(graph) = &graph {
        client.check_graph(graph).await?;
    }
    let change = args.how.change(workspace, Some(args.name));
    client.put_workflow(id, &change, None).await?;
    if let Some(graph) = &graph {
        client.add_version(id, graph, None).await?;
    }
    let made = client.workflow(id).await?;
    say("Created", &made, context)?;
    if graph.is_none() {
        let name = format!("{}.{}", made.workspace, made.name);
        context.hint(&format!(
            "It cannot run yet. Add a version: stationmaster workflows add-version {name} --graph FILE"
        ));
    }
    Ok(())
}

/// Changes a workflow that is there; one that is not would be made.
async fn alter(id: Uuid, change: impl FnOnce(Uuid) -> WorkflowChange, client: &Client) -> Result<Workflow> {
    let workspace = client.workflow(id).await?.workspace_id;
    Ok(client.put_workflow(id, &change(workspace), None).await?)
}

/// The version that a file holds.
fn version(path: &str) -> Result<NewVersion> {
    let graph = read(path)?;
    let unusable = |error: String| Refusal::usage(error, "Mend the graph; nothing was stored");
    Graph::parse(&graph).map_err(|error| unusable(error.to_string()))?;
    let workflow = serde_json::from_str(&graph).map_err(|error| unusable(error.to_string()))?;
    Ok(NewVersion { workflow })
}

#[derive(Serialize)]
struct AddedVersion {
    id: Uuid,
    workflow_definition_id: Uuid,
    version: i32,
    /// The version that new items get now.
    current_version: Option<i32>,
}

async fn add_version(id: Uuid, graph: &str, client: &Client, context: &Context) -> Result<()> {
    let made = client.add_version(id, &version(graph)?, None).await?;
    let version = made.version;
    let current_version = client.workflow(id).await?.current_version;
    let added = AddedVersion {
        id: made.id,
        workflow_definition_id: id,
        version,
        current_version,
    };
    context.print(&added, |added| match added.current_version {
        Some(current) if current != version => {
            format!("Added version {version}. New items still get version {current}, which was published.")
        }
        _ => format!("Added version {version}. New items get it."),
    })
}

#[derive(Serialize)]
struct Deletion {
    deleted: bool,
    workflow: Workflow,
    /// Items that wait, counted up to 1,000.
    waiting: usize,
}

async fn delete(id: Uuid, caution: Caution, client: &Client, context: &Context) -> Result<()> {
    const MOST: u32 = 1_000;
    let workflow = client.workflow(id).await?;
    let query = QueueQuery {
        workflow_definition_id: Some(id.into()),
        status: Some(ItemStatus::Pending),
        ..QueueQuery::default()
    };
    let waiting = listed(client, &Part::first(MOST), query, Client::queue).await?;
    let waiting = waiting.rows.len();
    let more = if waiting < MOST as usize { "" } else { " or more" };
    let what = format!("workflow {} ({id}) with its versions", printable(&workflow.name));
    let then = format!("waiting items fail: {waiting}{more}");
    let done = caution.delete(&what, &then, client.delete_workflow(id)).await?;
    let answer = Deletion {
        deleted: !caution.dry_run,
        workflow,
        waiting,
    };
    context.say(&answer, done)
}

fn sentence(what: &str, workflow: &Workflow) -> String {
    let Workflow {
        id,
        paused,
        current_version,
        ..
    } = workflow;
    let name = printable(&workflow.name);
    let version =
        current_version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
    let paused = if *paused { ", paused" } else { "" };
    format!("{what} workflow {name} ({id}): {version}{paused}.")
}

fn state(workflow: &Workflow) -> &'static str {
    if workflow.paused { "paused" } else { "open" }
}

impl Described for Workflow {
    const COLUMNS: &'static [Column<Self>] = &[
        column("NAME", |workflow| cell(&workflow.name)),
        id_column("ID", |workflow| workflow.id),
        in_details(column("STATE", |workflow| status(state(workflow)))),
        named("WORKSPACE", |workflow| {
            (Some(workflow.workspace.as_str()), workflow.workspace_id)
        }),
        column("VERSION", |workflow| maybe(workflow.current_version)),
        in_details(column("PUBLISHED", |workflow| {
            let published = workflow.published_version;
            published.map_or_else(|| cell("the newest"), cell)
        })),
        minor(column("TASK QUEUE", |workflow| {
            maybe(workflow.task_queue.as_ref())
        })),
        in_wide(column("WORKFLOW TYPE", |workflow| {
            maybe(workflow.workflow_type.as_ref())
        })),
        in_details(column("MAX ATTEMPTS", |workflow| maybe(workflow.max_attempts))),
        in_details(column("RUN TIMEOUT", |workflow| {
            maybe(workflow.run_timeout.and_then(span))
        })),
        in_details(column("NODES IN ORDER", |workflow| maybe(nodes(workflow)))),
        in_table(column("STATE", |workflow| status(state(workflow)))),
        minor(time("CREATED", |workflow| Some(workflow.created_at))),
        in_details(time("CHANGED", |workflow| Some(workflow.updated_at))),
    ];
}

/// A time as people write it.
fn span(seconds: f64) -> Option<String> {
    let span = SignedDuration::try_from_secs_f64(seconds).ok()?;
    Some(format!("{span:#}"))
}

fn nodes(workflow: &Workflow) -> Option<String> {
    let graph = Graph::parse(workflow.graph.as_deref()?.get()).ok()?;
    let nodes = graph.nodes().iter();
    let nodes: Vec<String> = nodes.map(|node| format!("{} ({})", node.id, node.kind)).collect();
    Some(nodes.join(", "))
}
