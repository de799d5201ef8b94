//! `stationmaster workflows`: workflow definitions and their versions.

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_core::catalogue::{self, Definition, DefinitionChange};
use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect;
use stationmaster_core::graph::Graph;
use stationmaster_core::id::{DefinitionId, VersionId, WorkspaceId};

use super::Context;
use super::arguments::{Deletion, id, is_full, read, text};
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
        #[arg(long, value_name = "ID", value_parser = id::<WorkspaceId>)]
        workspace: Option<WorkspaceId>,
        /// At most so many
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=10_000))]
        limit: i64,
        /// Only those after this one: where the last page ended
        #[arg(long, value_name = "ID", value_parser = id::<DefinitionId>)]
        after: Option<DefinitionId>,
    },
    /// One workflow
    Show {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
    },
    /// Change a workflow
    Set {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
        #[command(flatten)]
        change: Change,
    },
    /// Choose the version that new items get
    Publish {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
        /// The number of the version
        #[arg(value_parser = clap::value_parser!(i32).range(1..))]
        version: i32,
    },
    /// Add a version; unless another one was published, new items get it
    AddVersion {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
        /// The file that holds the graph as JSON; - for the standard input
        #[arg(long, value_name = "FILE")]
        graph: String,
    },
    /// Start nothing more of a workflow; what runs goes on
    Pause {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
    },
    /// Start again
    Resume {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
    },
    /// Delete a workflow and its versions; what waits fails, what runs goes on to its end
    Delete {
        /// The workflow
        #[arg(value_parser = id::<DefinitionId>)]
        id: DefinitionId,
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
    #[arg(long, value_name = "ID", value_parser = id::<WorkspaceId>)]
    workspace: WorkspaceId,
    /// Its id; a new one when left out
    #[arg(long, value_parser = id::<DefinitionId>)]
    id: Option<DefinitionId>,
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
    let database = context.database().await?;
    match command {
        Command::Create(args) => create(args, &database, context).await,
        Command::List {
            workspace,
            limit,
            after,
        } => list(workspace, limit, after, &database, context).await,
        Command::Show { id } => {
            let definition = catalogue::definition(&database, id).await?;
            context.format.print(&definition, details)
        }
        Command::Set { id, change } => {
            alter(
                id,
                definition_change(change.name, change.how),
                "Changed",
                &database,
                context,
            )
            .await
        }
        Command::Publish { id, version } => {
            let change = DefinitionChange {
                published_version: Some(version),
                ..DefinitionChange::default()
            };
            alter(id, change, "Published", &database, context).await
        }
        Command::AddVersion { id, graph } => add_version(id, &graph, &database, context).await,
        Command::Pause { id } => alter(id, paused(true), "Paused", &database, context).await,
        Command::Resume { id } => alter(id, paused(false), "Resumed", &database, context).await,
        Command::Delete { id, deletion } => delete(id, &deletion, &database, context).await,
    }
}

fn paused(paused: bool) -> DefinitionChange {
    DefinitionChange {
        paused: Some(paused),
        ..DefinitionChange::default()
    }
}

fn definition_change(name: Option<String>, how: How) -> DefinitionChange {
    let How {
        task_queue,
        workflow_type,
        max_attempts,
    } = how;
    DefinitionChange {
        name,
        task_queue,
        workflow_type,
        max_attempts,
        ..DefinitionChange::default()
    }
}

async fn create(args: CreateArgs, database: &Database, context: &Context) -> Result<()> {
    let id = args.id.unwrap_or_else(DefinitionId::new);
    if args.id.is_some() && catalogue::definition(database, id).await.is_ok() {
        let advice = format!("Change it: stationmaster workflows set {id}");
        return Err(Refusal::new(
            Kind::Conflict,
            format!("there is a workflow {id} already"),
            advice,
        )
        .into());
    }
    let graph = args.graph.as_deref().map(read).transpose()?;
    // Looked at before anything is stored, so that a bad graph leaves no workflow behind.
    if let Some(graph) = &graph {
        Graph::parse(graph).map_err(catalogue::Error::Graph)?;
    }
    let change = definition_change(Some(args.name), args.how);
    catalogue::put_definition(database, id, args.workspace, change).await?;
    if let Some(graph) = &graph {
        catalogue::add_version(database, id, graph).await?;
    }
    let definition = catalogue::definition(database, id).await?;
    context
        .format
        .print(&definition, |definition| sentence("Created", definition))?;
    if graph.is_none() {
        context.format.hint(&format!(
            "It cannot run yet. Add a version: stationmaster workflows add-version {id} --graph FILE"
        ));
    }
    Ok(())
}

async fn list(
    workspace: Option<WorkspaceId>,
    limit: i64,
    after: Option<DefinitionId>,
    database: &Database,
    context: &Context,
) -> Result<()> {
    let definitions = catalogue::definitions(database, workspace, after, limit).await?;
    context.format.print(&definitions[..], |definitions| {
        let header = ["ID", "NAME", "VERSION", "TASK QUEUE", "STATE", "AGE"];
        table(&header, definitions.iter().map(row))
    })?;
    if let Some(last) = definitions.last().filter(|_| is_full(definitions.len(), limit)) {
        context
            .format
            .hint(&format!("There may be more: --after {}", last.id));
    }
    Ok(())
}

/// Changes a workflow that is there; the core would make one that is not.
async fn alter(
    id: DefinitionId,
    change: DefinitionChange,
    what: &str,
    database: &Database,
    context: &Context,
) -> Result<()> {
    let workspace = catalogue::definition(database, id).await?.workspace_id;
    let definition = catalogue::put_definition(database, id, workspace, change).await?;
    context
        .format
        .print(&definition, |definition| sentence(what, definition))
}

#[derive(Serialize)]
struct AddedVersion {
    id: VersionId,
    workflow_definition_id: DefinitionId,
    version: i32,
    /// The version that new items get now.
    current_version: Option<i32>,
}

async fn add_version(id: DefinitionId, graph: &str, database: &Database, context: &Context) -> Result<()> {
    let graph = read(graph)?;
    let (version_id, version) = catalogue::add_version(database, id, &graph).await?;
    let current_version = catalogue::definition(database, id).await?.current_version;
    let added = AddedVersion {
        id: version_id,
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
    workflow: Definition,
    /// Items that wait, counted up to 1,000.
    waiting: usize,
}

async fn delete(id: DefinitionId, deletion: &Deletion, database: &Database, context: &Context) -> Result<()> {
    let workflow = catalogue::definition(database, id).await?;
    let filter = inspect::Filter {
        definition: Some(id),
        status: Some("PENDING".to_owned()),
        limit: 1_000,
        ..inspect::Filter::default()
    };
    let waiting = inspect::items(database, &filter).await?.len();
    let count = if waiting < 1_000 {
        waiting.to_string()
    } else {
        "1000 or more".to_owned()
    };
    let what = format!("workflow {} ({id}) with its versions", printable(&workflow.name));
    let then = format!("{count} waiting items fail");
    if !deletion.dry_run {
        Context::confirm(&format!("Delete {what}? Then {then}."), deletion.yes)?;
        catalogue::delete_definition(database, id).await?;
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

fn sentence(what: &str, definition: &Definition) -> String {
    let Definition {
        id,
        paused,
        current_version,
        ..
    } = definition;
    let name = printable(&definition.name);
    let version =
        current_version.map_or_else(|| "no version".to_owned(), |version| format!("version {version}"));
    let paused = if *paused { ", paused" } else { "" };
    format!("{what} workflow {name} ({id}): {version}{paused}.")
}

fn state(definition: &Definition) -> &'static str {
    if definition.paused { "paused" } else { "open" }
}

fn row(definition: &Definition) -> Vec<Cell> {
    vec![
        cell(definition.id),
        cell(&definition.name),
        maybe(definition.current_version),
        maybe(definition.task_queue.as_ref()),
        status(state(definition)),
        cell(age(definition.created_at)),
    ]
}

fn details(definition: &Definition) -> String {
    let graph = definition
        .graph
        .as_deref()
        .and_then(|graph| Graph::parse(graph).ok());
    let nodes = graph.map(|graph| {
        let nodes: Vec<String> = graph
            .nodes()
            .iter()
            .map(|node| format!("{} ({})", node.id, node.kind))
            .collect();
        nodes.join(", ")
    });
    fields([
        ("ID", cell(definition.id)),
        ("NAME", cell(&definition.name)),
        ("STATE", status(state(definition))),
        ("WORKSPACE", cell(definition.workspace_id)),
        ("VERSION", maybe(definition.current_version)),
        (
            "PUBLISHED",
            definition
                .published_version
                .map_or_else(|| cell("the newest"), cell),
        ),
        ("TASK QUEUE", maybe(definition.task_queue.as_ref())),
        ("WORKFLOW TYPE", maybe(definition.workflow_type.as_ref())),
        ("MAX ATTEMPTS", maybe(definition.max_attempts)),
        ("NODES IN ORDER", maybe(nodes)),
        ("CREATED", cell(moment(definition.created_at))),
        ("CHANGED", cell(moment(definition.updated_at))),
    ])
}
