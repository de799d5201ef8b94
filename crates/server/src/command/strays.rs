//! `stationmaster executions strays` and `end-stray`: runs that the engine holds open and that no row tells of.

use anyhow::Result;
use clap::Args;
use futures::TryStreamExt as _;
use stationmaster_client::Client;
use stationmaster_client::wire::{EndStray, Stray};

use super::Context;
use super::arguments::{Caution, text};
use super::pages::Sorting;
use crate::failure::{Kind, Refusal};
use crate::output::{Column, Described, cell, column, id, in_details, maybe, minor, named, time};

/// Which stray to end, and why.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be ended")))]
pub(crate) struct EndArgs {
    /// The execution that the run was started for: its id, its name on the engine (execution-...), or the beginning of either
    #[arg(value_parser = text)]
    execution: String,
    /// Only if it is this run
    #[arg(long, value_name = "RUN", value_parser = text)]
    run: Option<String>,
    /// Why, for the audit and the engine
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    caution: Caution,
}

impl Described for Stray {
    const COLUMNS: &'static [Column<Self>] = &[
        id("EXECUTION", |stray| stray.execution_id),
        named("WORKSPACE", |stray| {
            (stray.workspace.as_deref(), stray.workspace_id)
        }),
        column("RUN", |stray| cell(&stray.run_id)),
        time("STARTED", |stray| stray.started_at),
        time("FOUND", |stray| Some(stray.found_at)),
        minor(time("TO BE ENDED", |stray| stray.end_requested_at)),
        in_details(column("BY", |stray| maybe(stray.end_requested_by.as_ref()))),
    ];
}

pub(super) async fn list(sorting: &Sorting, context: &Context) -> Result<()> {
    let found = all(&context.client().await?).await?;
    context.show_all(found, sorting)
}

async fn all(client: &Client) -> Result<Vec<Stray>> {
    Ok(client.all_strays().try_collect().await?)
}

pub(super) async fn end(args: EndArgs, context: &Context) -> Result<()> {
    let client = context.client().await?;
    let stray = meant(&args, all(&client).await?)?;
    let (execution, run) = (stray.execution_id, &stray.run_id);
    let question = format!(
        "End run {run} of execution {execution} on the engine? What it is at is not finished and nothing is undone."
    );
    if !args.caution.agreed(&question)? {
        let words = format!("Run {run} of execution {execution} would be ended.");
        return context.say(&stray, words);
    }
    let end = EndStray {
        run_id: run.clone(),
        reason: args.note,
    };
    let asked = client.end_stray(execution, &end).await?;
    let words = format!("Run {run} of execution {execution} is ended by a server as soon as it can.");
    context.say(&asked, words)
}

/// The one that the arguments mean.
fn meant(args: &EndArgs, strays: Vec<Stray>) -> Result<Stray> {
    let named = args.execution.trim_start_matches("execution-").to_lowercase();
    let mut found: Vec<Stray> = strays
        .into_iter()
        .filter(|stray| stray.execution_id.to_string().starts_with(&named))
        .filter(|stray| args.run.as_ref().is_none_or(|run| *run == stray.run_id))
        .collect();
    let advice = "See which there are: stationmaster executions strays";
    match (found.pop(), found.len()) {
        (Some(stray), 0) => Ok(stray),
        (None, _) => {
            let message = format!(
                "no run is known of execution {} that no row tells of",
                args.execution
            );
            Err(Refusal::new(Kind::NotFound, message, advice).into())
        }
        (Some(_), _) => {
            let message = format!("several runs are meant by {}", args.execution);
            Err(Refusal::new(Kind::Conflict, message, advice).into())
        }
    }
}
