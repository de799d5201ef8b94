//! `stationmaster workflows`: workflow definitions and their versions.

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    ItemStatus, NewVersion, QueueQuery, Workflow, WorkflowChange, WorkflowQuery,
};
use stationmaster_core::graph::Graph;
use uuid::Uuid;

use super::Context;
use super::arguments::{Deletion, id, read, text};
use super::pages::{listed, say_where_it_ends};
use crate::failure::{Kind, Refusal};
use crate::output::{age, cell, fields, maybe, moment, printable, status, table};

/// What to do with workflows.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workflow, with its first version when a graph is given
    Create(CreateArgs),
    /// The workflows there are
    List {
        /// Only of this workspace
        #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
        workspace: Option<Uuid>,
        /// At most so many
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
    },
    /// One workflow
    Show {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Change a workflow
    Set {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
        #[command(flatten)]
        change: Change,
    },
    /// Choose the version that new items get
    Publish {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
        /// The number of the version
        #[arg(value_parser = clap::value_parser!(i32).range(1..))]
        version: i32,
    },
    /// Add a version; unless another one was published, new items get it
    AddVersion {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
        /// The file that holds the graph as JSON; - for the standard input
        #[arg(long, value_name = "FILE")]
        graph: String,
    },
    /// Start nothing more of a workflow; what runs goes on
    Pause {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Start again
    Resume {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Delete a workflow and its versions; what waits fails, what runs goes on to its end
    Delete {
        /// The workflow
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
        #[command(flatten)]
        deletion: Deletion,
    },
}

/// A new workflow.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(value_parser = text)]
    name: String,
    /// Whose it is
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workspace: Uuid,
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
}

/// What to change; at least one of them.
#[derive(Debug, Args)]
#[group(required = true, multiple = true, args = ["name", "task_queue", "workflow_type", "max_attempts"])]
pub(crate) struct Change {
    /// What people call it
    #[arg(long, value_parser = text)]
    name: Option<String>,
    #[command(flatten)]
    how: How,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::Create(args) => create(args, &client, context).await,
        Command::List {
            workspace,
            limit,
            after,
        } => list(workspace, limit, after, &client, context).await,
        Command::Show { id } => {
            let workflow = client.workflow(id).await?;
            context.format.print(&workflow, details)
        }
        Command::Set { id, change } => {
            let Change { name, how } = change;
            alter(
                id,
                |workspace| workflow_change(workspace, name, how),
                "Changed",
                &client,
                context,
            )
            .await
        }
        Command::Publish { id, version } => {
            let change = |workspace| WorkflowChange {
                published_version: Some(version),
                ..WorkflowChange::of(workspace)
            };
            alter(id, change, "Published", &client, context).await
        }
        Command::AddVersion { id, graph } => add_version(id, &graph, &client, context).await,
        Command::Pause { id } => pause(id, true, "Paused", &client, context).await,
        Command::Resume { id } => pause(id, false, "Resumed", &client, context).await,
        Command::Delete { id, deletion } => delete(id, &deletion, &client, context).await,
    }
}

async fn pause(id: Uuid, paused: bool, what: &str, client: &Client, context: &Context) -> Result<()> {
    let workflow = if paused {
        client.pause_workflow(id).await?
    } else {
        client.resume_workflow(id).await?
    };
    context
        .format
        .print(&workflow, |workflow| sentence(what, workflow))
}

fn workflow_change(workspace: Uuid, name: Option<String>, how: How) -> WorkflowChange {
    let How {
        task_queue,
        workflow_type,
        max_attempts,
    } = how;
    WorkflowChange {
        name,
        task_queue,
        workflow_type,
        max_attempts,
        ..WorkflowChange::of(workspace)
    }
}

async fn create(args: CreateArgs, client: &Client, context: &Context) -> Result<()> {
    let id = args.id.unwrap_or_else(Uuid::now_v7);
    if args.id.is_some() && client.workflow(id).await.is_ok() {
        let advice = format!("Change it: stationmaster workflows set {id}");
        return Err(Refusal::new(
            Kind::Conflict,
            format!("there is a workflow {id} already"),
            advice,
        )
        .into());
    }
    // Looked at before anything is stored, so that a bad graph leaves no workflow behind.
    let graph = args.graph.as_deref().map(version).transpose()?;
    let change = workflow_change(args.workspace, Some(args.name), args.how);
    client.put_workflow(id, &change, None).await?;
    if let Some(graph) = &graph {
        client.add_version(id, graph, None).await?;
    }
    let workflow = client.workflow(id).await?;
    context
        .format
        .print(&workflow, |workflow| sentence("Created", workflow))?;
    if graph.is_none() {
        context.format.hint(&format!(
            "It cannot run yet. Add a version: stationmaster workflows add-version {id} --graph FILE"
        ));
    }
    Ok(())
}

async fn list(
    workspace: Option<Uuid>,
    limit: u32,
    after: Option<String>,
    client: &Client,
    context: &Context,
) -> Result<()> {
    let workflows = listed(limit, after.as_deref(), async |limit, cursor| {
        let query = WorkflowQuery {
            workspace_id: workspace,
            limit,
            cursor,
        };
        client.workflows(&query).await
    })
    .await?;
    context.format.print(&workflows.rows[..], |workflows| {
        let header = ["ID", "NAME", "VERSION", "TASK QUEUE", "STATE", "AGE"];
        table(&header, workflows.iter().map(row))
    })?;
    say_where_it_ends("--after", workflows.next.as_deref(), context.format);
    Ok(())
}

/// Changes a workflow that is there; one that is not would be made.
async fn alter(
    id: Uuid,
    change: impl FnOnce(Uuid) -> WorkflowChange,
    what: &str,
    client: &Client,
    context: &Context,
) -> Result<()> {
    let workspace = client.workflow(id).await?.workspace_id;
    let workflow = client.put_workflow(id, &change(workspace), None).await?;
    context
        .format
        .print(&workflow, |workflow| sentence(what, workflow))
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
    context.format.print(&added, |added| match added.current_version {
        Some(current) if current != version => {
            format!("Added version {version}. New items still get version {current}, which was published.")
        }
        _ => format!("Added version {version}. New items get it."),
    })
}

#[derive(Serialize)]
struct Answer {
    deleted: bool,
    workflow: Workflow,
    /// Items that wait, counted up to 1,000.
    waiting: usize,
}

async fn delete(id: Uuid, deletion: &Deletion, client: &Client, context: &Context) -> Result<()> {
    let workflow = client.workflow(id).await?;
    let waiting = listed(1_000, None, async |limit, cursor| {
        let query = QueueQuery {
            workflow_definition_id: Some(id),
            status: Some(ItemStatus::Pending),
            limit,
            cursor,
            ..QueueQuery::default()
        };
        client.queue(&query).await
    })
    .await?;
    let waiting = waiting.rows.len();
    let count = if waiting < 1_000 {
        waiting.to_string()
    } else {
        "1000 or more".to_owned()
    };
    let what = format!("workflow {} ({id}) with its versions", printable(&workflow.name));
    let then = format!("waiting items fail: {count}");
    if !deletion.dry_run {
        Context::confirm(&format!("Delete {what}? Then {then}."), deletion.yes)?;
        client.delete_workflow(id).await?;
    }
    let answer = Answer {
        deleted: !deletion.dry_run,
        workflow,
        waiting,
    };
    context.format.print(&answer, |answer| {
        if answer.deleted {
            format!("Deleted {what}.")
        } else {
            format!("Would delete {what}. Then {then}.")
        }
    })
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

fn row(workflow: &Workflow) -> Vec<Cell> {
    vec![
        cell(workflow.id),
        cell(&workflow.name),
        maybe(workflow.current_version),
        maybe(workflow.task_queue.as_ref()),
        status(state(workflow)),
        cell(age(workflow.created_at)),
    ]
}

fn details(workflow: &Workflow) -> String {
    let graph = workflow
        .graph
        .as_deref()
        .and_then(|graph| Graph::parse(graph.get()).ok());
    let nodes = graph.map(|graph| {
        let nodes: Vec<String> = graph
            .nodes()
            .iter()
            .map(|node| format!("{} ({})", node.id, node.kind))
            .collect();
        nodes.join(", ")
    });
    fields([
        ("ID", cell(workflow.id)),
        ("NAME", cell(&workflow.name)),
        ("STATE", status(state(workflow))),
        ("WORKSPACE", cell(workflow.workspace_id)),
        ("VERSION", maybe(workflow.current_version)),
        (
            "PUBLISHED",
            workflow
                .published_version
                .map_or_else(|| cell("the newest"), cell),
        ),
        ("TASK QUEUE", maybe(workflow.task_queue.as_ref())),
        ("WORKFLOW TYPE", maybe(workflow.workflow_type.as_ref())),
        ("MAX ATTEMPTS", maybe(workflow.max_attempts)),
        ("NODES IN ORDER", maybe(nodes)),
        ("CREATED", cell(moment(workflow.created_at))),
        ("CHANGED", cell(moment(workflow.updated_at))),
    ])
}
