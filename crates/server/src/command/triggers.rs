//! `stationmaster triggers`: which workflow a signal's name leads to.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{Reference, Trigger, TriggerChange, TriggerPlace, TriggerQuery};

use super::Context;
use super::arguments::{Caution, json_given, text};
use super::names::{self, reference};
use super::pages::{Part, Sorting, listed};
use crate::failure::{Kind, Refusal};
use crate::output::{Column, Described, cell, column, maybe, minor, named, printable, time};

/// What to do with triggers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a trigger or change it
    Set(SetArgs),
    /// The triggers there are
    List {
        /// Only of this project
        #[arg(long, value_parser = text)]
        project: Option<String>,
        /// Only of projects of this workspace
        #[arg(long, value_name = "NAME", value_parser = reference)]
        workspace: Option<Reference>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        #[command(flatten)]
        sorting: Sorting,
    },
    /// Remove a trigger; signals of its name become dead letters from then on
    #[command(mut_arg("dry_run", |flag| flag.help("Only say what would be removed")))]
    Remove {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        caution: Caution,
    },
}

/// Which trigger.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The project
    #[arg(value_parser = text)]
    project: String,
    /// The name of the signal
    #[arg(value_parser = text)]
    name: String,
    /// Only for signals of this task queue; for every one that has no trigger of its own when left out
    #[arg(long, value_name = "NAME", value_parser = text)]
    task_queue: Option<String>,
}

impl Which {
    fn place(&self) -> TriggerPlace {
        TriggerPlace {
            task_queue: self.task_queue.clone(),
        }
    }
}

/// A rule.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// What it starts
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Reference,
    /// The file that holds the JSON schema of the payload; - for the standard input. A trigger that is there keeps its own when left out
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,
    /// Take any payload
    #[arg(long, conflicts_with = "schema")]
    no_schema: bool,
    /// The priority of the items; higher goes first within the workspace. A trigger that is there keeps its own when left out, a new one has 0
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
}

#[derive(Serialize)]
struct Removal {
    project: String,
    task_queue: Option<String>,
    name: String,
    removed: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Set(args) => set(args, context).await,
        Command::List {
            project,
            workspace,
            limit,
            sorting,
        } => {
            let client = context.client().await?;
            let workspace = names::workspace_asked(&client, workspace.as_ref()).await?;
            let query = TriggerQuery {
                workspace_id: workspace.map(Reference::from),
                project,
                ..TriggerQuery::default()
            };
            let found = listed(&client, &Part::first(limit), query, Client::triggers).await?;
            context.show_all(found.rows, &sorting)?;
            if found.next.is_some() {
                context.hint("There are more: give a larger --limit, or a --project");
            }
            Ok(())
        }
        Command::Remove { which, caution } => remove(which, caution, &context.client().await?, context).await,
    }
}

async fn remove(which: Which, caution: Caution, client: &Client, context: &Context) -> Result<()> {
    let query = TriggerQuery {
        project: Some(which.project.clone()),
        ..TriggerQuery::default()
    };
    let there = listed(client, &Part::first(10_000), query, Client::triggers)
        .await?
        .rows;
    let named = || there.iter().filter(|one| one.name == which.name);
    let queues: Vec<&str> = named().filter_map(|one| one.task_queue.as_deref()).collect();
    let there = named().find(|one| one.task_queue == which.task_queue);
    let signals = format!("signals {:?} of project {:?}", which.name, which.project);
    let Some(there) = there else {
        let (message, advice) = match (&queues[..], &which.task_queue) {
            ([], _) | (_, Some(_)) => (
                format!("there is no trigger for {signals}"),
                "See which there are: stationmaster triggers list".to_owned(),
            ),
            (queues, None) => (
                format!("there is no trigger for {signals} of every task queue"),
                format!(
                    "There is one for a task queue: give --task-queue {}",
                    printable(queues[0])
                ),
            ),
        };
        return Err(Refusal::new(Kind::NotFound, message, advice).into());
    };
    let leads = printable(there.workflow.as_deref().unwrap_or("a workflow that is gone"));
    let question =
        format!("Remove the trigger that leads {signals} to {leads}? They become dead letters from then on.");
    let removed = caution.agreed(&question)?;
    let words = if removed {
        client
            .delete_trigger(&which.project, &which.name, &which.place())
            .await?;
        format!(
            "Signals {:?} of project {:?} start nothing any more.",
            which.name, which.project
        )
    } else {
        format!("Would remove the trigger that leads {signals} to {leads}: they would become dead letters.")
    };
    let answer = Removal {
        project: which.project,
        task_queue: which.task_queue,
        name: which.name,
        removed,
    };
    context.say(&answer, words)
}

async fn set(args: SetArgs, context: &Context) -> Result<()> {
    let schema = json_given("the schema", None, args.schema.as_deref())?;
    let (which, client) = (args.which, context.client().await?);
    let change = TriggerChange {
        workflow_definition_id: names::workflow(&client, None, &args.workflow).await?,
        payload_schema: if args.no_schema {
            Some(None)
        } else {
            schema.map(Some)
        },
        priority: args.priority,
    };
    let set = client
        .put_trigger(&which.project, &which.name, &which.place(), &change)
        .await?;
    context.print(&set, |set| {
        format!(
            "Signals {:?} of project {:?} start workflow {}.",
            set.name,
            set.project,
            set.workflow
                .clone()
                .unwrap_or_else(|| set.workflow_definition_id.to_string())
        )
    })
}

impl Described for Trigger {
    const COLUMNS: &'static [Column<Self>] = &[
        column("PROJECT", |trigger| cell(&trigger.project)),
        column("TASK QUEUE", |trigger| {
            cell(trigger.task_queue.as_deref().unwrap_or("(every)"))
        }),
        column("SIGNAL", |trigger| cell(&trigger.name)),
        named("WORKSPACE", |trigger| {
            (trigger.workspace.as_deref(), trigger.workspace_id)
        }),
        named("WORKFLOW", |trigger| {
            (trigger.workflow.as_deref(), trigger.workflow_definition_id)
        }),
        minor(column("SCHEMA", |trigger| {
            maybe(trigger.payload_schema.as_ref().map(|_| "yes"))
        })),
        minor(column("PRIORITY", |trigger| cell(trigger.priority))),
        minor(time("CHANGED", |trigger| Some(trigger.updated_at))),
    ];
}
