//! `stationmaster workspaces`: tenants, their plans and limits.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{PageQuery, Reference, WorkflowQuery, Workspace, WorkspaceChange};
use uuid::Uuid;

use super::Context;
use super::arguments::{Caution, already_there, id, text};
use super::names::{self, reference};
use super::pages::{InOrder, Part, listed};
use crate::output::{
    Column, Described, cell, column, counted, id as id_column, in_details, in_table, in_wide, maybe, minor,
    printable, status, time,
};

/// What to do with workspaces.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workspace
    Create(CreateArgs),
    /// The workspaces there are, with how much of their limits is used
    List(InOrder),
    /// One workspace
    Show(One),
    /// Change a workspace
    Set {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        change: Change,
    },
    /// Start nothing more for a workspace; what runs goes on
    Pause(One),
    /// Start again
    Resume(One),
    /// Delete a workspace and its workflows; what waits fails, what runs goes on to its end
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
    /// The workspace
    #[arg(value_parser = reference)]
    id: Reference,
}

impl One {
    async fn meant(&self, client: &Client) -> Result<Uuid> {
        names::workspace(client, &self.id).await
    }
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
    limit: Option<i32>,
    /// No limit of its own: the plan's holds
    #[arg(long, conflicts_with = "limit")]
    no_limit: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::Create(args) => say("Created", &create(args, &client).await?, context),
        Command::List(part) => {
            let query = PageQuery::default();
            context.list(&client, part, query, Client::workspaces).await
        }
        Command::Show(one) => context.show(&client.workspace(one.meant(&client).await?).await?),
        Command::Set { one, change } => {
            let id = one.meant(&client).await?;
            say("Changed", &alter(id, change, &client).await?, context)
        }
        Command::Pause(one) => {
            let id = one.meant(&client).await?;
            say("Paused", &client.pause_workspace(id).await?, context)
        }
        Command::Resume(one) => {
            let id = one.meant(&client).await?;
            say("Resumed", &client.resume_workspace(id).await?, context)
        }
        Command::Delete { one, caution } => {
            let id = one.meant(&client).await?;
            delete(id, caution, &client, context).await
        }
    }
}

fn say(what: &str, workspace: &Workspace, context: &Context) -> Result<()> {
    context.print(workspace, |workspace| sentence(what, workspace))
}

async fn create(args: CreateArgs, client: &Client) -> Result<Workspace> {
    let id = args.id.unwrap_or_else(Uuid::now_v7);
    for known in [args.id.map(Reference::from), Some(args.name.as_str().into())] {
        if let Some(known) = known
            && let Ok(there) = client.workspace(known).await
        {
            return Err(already_there("workspace", &there.name).into());
        }
    }
    let change = WorkspaceChange {
        name: Some(args.name),
        plan: args.plan,
        max_concurrent: args.limit.map(Some),
        paused: None,
    };
    Ok(client.put_workspace(id, &change, None).await?)
}

/// Changes a workspace that is there; one that is not would be made.
async fn alter(id: Uuid, change: Change, client: &Client) -> Result<Workspace> {
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
    client.workspace(id).await?;
    Ok(client.put_workspace(id, &change, None).await?)
}

#[derive(Serialize)]
struct Deletion {
    deleted: bool,
    workspace: Workspace,
    workflows: usize,
}

async fn delete(id: Uuid, caution: Caution, client: &Client, context: &Context) -> Result<()> {
    let workspace = client.workspace(id).await?;
    let query = WorkflowQuery {
        workspace_id: Some(id.into()),
        ..WorkflowQuery::default()
    };
    let workflows = listed(client, &Part::first(10_000), query, Client::workflows).await?;
    let workflows = workflows.rows.len();
    let name = printable(&workspace.name);
    let what = format!("workspace {name} ({id}) with {}", counted(workflows, "workflow"));
    let (ready, active) = (ready(&workspace), workspace.active);
    let run = match active {
        1 => "1 execution runs to its end".to_owned(),
        many => format!("{many} executions run to their end"),
    };
    let then = format!("everything that waits fails (ready now: {ready}), and {run}");
    let done = caution.delete(&what, &then, client.delete_workspace(id)).await?;
    let answer = Deletion {
        deleted: !caution.dry_run,
        workspace,
        workflows,
    };
    context.say(&answer, done)
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

impl Described for Workspace {
    const COLUMNS: &'static [Column<Self>] = &[
        column("NAME", |workspace| cell(&workspace.name)),
        id_column("ID", |workspace| workspace.id),
        in_details(column("STATE", |workspace| status(state(workspace)))),
        column("PLAN", |workspace| cell(&workspace.plan)),
        in_details(column("LIMIT", |workspace| cell(workspace.limit))),
        in_wide(column("OWN LIMIT", |workspace| maybe(workspace.max_concurrent))),
        in_wide(column("WEIGHT", |workspace| cell(workspace.weight))),
        in_details(column("SLOTS IN USE", |workspace| cell(workspace.active))),
        in_details(column("READY ITEMS", |workspace| cell(ready(workspace)))),
        in_table(column("SLOTS", |workspace| {
            cell(format!("{}/{}", workspace.active, workspace.limit))
        })),
        in_table(column("READY", |workspace| cell(ready(workspace)))),
        in_table(column("STATE", |workspace| status(state(workspace)))),
        minor(time("CREATED", |workspace| Some(workspace.created_at))),
        in_details(time("CHANGED", |workspace| Some(workspace.updated_at))),
    ];
}

fn state(workspace: &Workspace) -> &'static str {
    if workspace.paused { "paused" } else { "open" }
}

/// The core stops counting there.
fn ready(workspace: &Workspace) -> String {
    if workspace.ready > 10_000 {
        "more than 10000".to_owned()
    } else {
        workspace.ready.to_string()
    }
}
