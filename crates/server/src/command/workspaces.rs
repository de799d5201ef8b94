//! `stationmaster workspaces`: tenants, their plans and limits.

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{PageQuery, WorkflowQuery, Workspace, WorkspaceChange};
use uuid::Uuid;

use super::Context;
use super::arguments::{Deletion, id, text};
use super::pages::{listed, say_where_it_ends};
use crate::failure::{Kind, Refusal};
use crate::output::{age, cell, counted, fields, maybe, moment, printable, status, table};

/// What to do with workspaces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workspace
    Create(CreateArgs),
    /// The workspaces there are, with how much of their limits is used
    List {
        /// At most so many
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
    },
    /// One workspace
    Show {
        /// The workspace
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Change a workspace
    Set {
        /// The workspace
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
        #[command(flatten)]
        change: Change,
    },
    /// Start nothing more for a workspace; what runs goes on
    Pause {
        /// The workspace
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Start again
    Resume {
        /// The workspace
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
    },
    /// Delete a workspace and its workflows; what waits fails, what runs goes on to its end
    Delete {
        /// The workspace
        #[arg(value_parser = id::<Uuid>)]
        id: Uuid,
        #[command(flatten)]
        deletion: Deletion,
    },
}

/// A new workspace.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What people call it
    #[arg(value_parser = text)]
    name: String,
    /// Its id; a new one when left out
    #[arg(long, value_parser = id::<Uuid>)]
    id: Option<Uuid>,
    /// Its plan; FREE when left out
    #[arg(long)]
    plan: Option<String>,
    /// A limit of its own, before the plan's
    #[arg(long, value_parser = clap::value_parser!(i32).range(0..))]
    limit: Option<i32>,
}

/// What to change; at least one of them.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Change {
    /// What people call it
    #[arg(long, value_parser = text)]
    name: Option<String>,
    /// Its plan
    #[arg(long)]
    plan: Option<String>,
    /// A limit of its own, before the plan's
    #[arg(long, value_parser = clap::value_parser!(i32).range(0..))]
    limit: Option<i32>,
    /// No limit of its own: the plan's holds
    #[arg(long, conflicts_with = "limit")]
    no_limit: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::Create(args) => create(args, &client, context).await,
        Command::List { limit, after } => list(limit, after, &client, context).await,
        Command::Show { id } => {
            let workspace = client.workspace(id).await?;
            context.format.print(&workspace, details)
        }
        Command::Set { id, change } => {
            let max_concurrent = if change.no_limit {
                Some(None)
            } else {
                change.limit.map(Some)
            };
            let change = WorkspaceChange {
                name: change.name,
                plan: change.plan,
                max_concurrent,
                ..WorkspaceChange::default()
            };
            alter(id, change, "Changed", &client, context).await
        }
        Command::Pause { id } => pause(id, true, "Paused", &client, context).await,
        Command::Resume { id } => pause(id, false, "Resumed", &client, context).await,
        Command::Delete { id, deletion } => delete(id, &deletion, &client, context).await,
    }
}

async fn pause(id: Uuid, paused: bool, what: &str, client: &Client, context: &Context) -> Result<()> {
    let workspace = if paused {
        client.pause_workspace(id).await?
    } else {
        client.resume_workspace(id).await?
    };
    context
        .format
        .print(&workspace, |workspace| sentence(what, workspace))
}

async fn create(args: CreateArgs, client: &Client, context: &Context) -> Result<()> {
    let id = args.id.unwrap_or_else(Uuid::now_v7);
    if args.id.is_some() && client.workspace(id).await.is_ok() {
        let advice = format!("Change it: stationmaster workspaces set {id}");
        return Err(Refusal::new(
            Kind::Conflict,
            format!("there is a workspace {id} already"),
            advice,
        )
        .into());
    }
    let change = WorkspaceChange {
        name: Some(args.name),
        plan: args.plan,
        max_concurrent: args.limit.map(Some),
        paused: None,
    };
    let workspace = client.put_workspace(id, &change, None).await?;
    context
        .format
        .print(&workspace, |workspace| sentence("Created", workspace))
}

async fn list(limit: u32, after: Option<String>, client: &Client, context: &Context) -> Result<()> {
    let workspaces = listed(limit, after.as_deref(), async |limit, cursor| {
        client.workspaces(&PageQuery { limit, cursor }).await
    })
    .await?;
    context.format.print(&workspaces.rows[..], |workspaces| {
        let header = ["ID", "NAME", "PLAN", "SLOTS", "READY", "STATE", "AGE"];
        table(&header, workspaces.iter().map(row))
    })?;
    say_where_it_ends("--after", workspaces.next.as_deref(), context.format);
    Ok(())
}

/// Changes a workspace that is there; one that is not would be made.
async fn alter(
    id: Uuid,
    change: WorkspaceChange,
    what: &str,
    client: &Client,
    context: &Context,
) -> Result<()> {
    client.workspace(id).await?;
    let workspace = client.put_workspace(id, &change, None).await?;
    context
        .format
        .print(&workspace, |workspace| sentence(what, workspace))
}

#[derive(Serialize)]
struct Answer {
    deleted: bool,
    workspace: Workspace,
    workflows: usize,
}

async fn delete(id: Uuid, deletion: &Deletion, client: &Client, context: &Context) -> Result<()> {
    let workspace = client.workspace(id).await?;
    let workflows = listed(10_000, None, async |limit, cursor| {
        let query = WorkflowQuery {
            workspace_id: Some(id),
            limit,
            cursor,
        };
        client.workflows(&query).await
    })
    .await?;
    let workflows = workflows.rows.len();
    let what = format!(
        "workspace {} ({id}) with {}",
        printable(&workspace.name),
        counted(workflows, "workflow")
    );
    let then = format!(
        "{} items fail, {} executions run to their end",
        ready(&workspace),
        workspace.active
    );
    if !deletion.dry_run {
        Context::confirm(&format!("Delete {what}? Then {then}."), deletion.yes)?;
        client.delete_workspace(id).await?;
    }
    let answer = Answer {
        deleted: !deletion.dry_run,
        workspace,
        workflows,
    };
    context.format.print(&answer, |answer| {
        if answer.deleted {
            format!("Deleted {what}.")
        } else {
            format!("Would delete {what}. Then {then}.")
        }
    })
}

fn sentence(what: &str, workspace: &Workspace) -> String {
    let Workspace {
        id,
        plan,
        limit,
        paused,
        ..
    } = workspace;
    let (name, plan) = (printable(&workspace.name), printable(plan));
    let paused = if *paused { ", paused" } else { "" };
    format!("{what} workspace {name} ({id}): plan {plan}, {limit} at once{paused}.")
}

fn state(workspace: &Workspace) -> &'static str {
    if workspace.paused { "paused" } else { "open" }
}

fn row(workspace: &Workspace) -> Vec<Cell> {
    vec![
        cell(workspace.id),
        cell(&workspace.name),
        cell(&workspace.plan),
        cell(format!("{}/{}", workspace.active, workspace.limit)),
        cell(ready(workspace)),
        status(state(workspace)),
        cell(age(workspace.created_at)),
    ]
}

/// The core stops counting there.
fn ready(workspace: &Workspace) -> String {
    if workspace.ready > 10_000 {
        "more than 10000".to_owned()
    } else {
        workspace.ready.to_string()
    }
}

fn details(workspace: &Workspace) -> String {
    fields([
        ("ID", cell(workspace.id)),
        ("NAME", cell(&workspace.name)),
        ("STATE", status(state(workspace))),
        ("PLAN", cell(&workspace.plan)),
        ("LIMIT", cell(workspace.limit)),
        ("OWN LIMIT", maybe(workspace.max_concurrent)),
        ("WEIGHT", cell(workspace.weight)),
        ("SLOTS IN USE", cell(workspace.active)),
        ("READY ITEMS", cell(ready(workspace))),
        ("CREATED", cell(moment(workspace.created_at))),
        ("CHANGED", cell(moment(workspace.updated_at))),
    ])
}
