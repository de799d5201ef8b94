//! Ask for a workflow to run, once or many times.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{Enqueue, Reference};
use uuid::Uuid;

use super::super::Context;
use super::super::arguments::{duration, json_given};
use super::super::names::{self, reference};
use super::super::times::future;
use crate::failure::Refusal;
use crate::output::counted;

/// Items of one statement: large enough to be fast, small enough for the bar to move.
const BATCH: usize = 500;

/// What to run, for whom, when.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// For whom
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workspace: Reference,
    /// What
    #[arg(long, value_name = "NAME", value_parser = reference)]
    workflow: Reference,
    /// With what, as JSON; {} when left out
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    input: Option<String>,
    /// The file that holds the input; - for the standard input
    #[arg(long, value_name = "FILE")]
    input_file: Option<String>,
    /// Higher goes first within the workspace
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,
    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = future, allow_hyphen_values = true, conflicts_with = "after")]
    at: Option<Timestamp>,
    /// Not before this much time has passed, by this machine's clock
    #[arg(long = "in", id = "after", value_name = "DURATION", value_parser = duration)]
    after: Option<Duration>,
    /// A repeat with the same key and the same request gives the first item
    #[arg(long, conflicts_with = "count")]
    key: Option<String>,
    /// So many items, all alike
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: Option<u64>,
}

impl AddArgs {
    fn request(self) -> Result<Enqueue<Reference>> {
        let later = |wait| {
            let at = Timestamp::now().checked_add(wait);
            at.map_err(|_| Refusal::usage("that is too far away", "Give a shorter --in"))
        };
        Ok(Enqueue {
            input: json_given("the input", self.input, self.input_file.as_deref())?,
            priority: self.priority,
            run_at: self
                .at
                .map_or_else(|| self.after.map(later).transpose(), |at| Ok(Some(at)))?,
            idempotency_key: self.key,
            ..Enqueue::new(self.workspace, self.workflow)
        })
    }
}

#[derive(Serialize)]
struct Added {
    id: Uuid,
    /// False: the same request was made before, and this is its item.
    created: bool,
}

pub(super) async fn run(args: AddArgs, context: &Context) -> Result<()> {
    let count = args.count;
    // What is wrong with the arguments is told before the database is needed.
    let request = args.request()?;
    let client = context.client().await?;
    let workspace = names::workspace(&client, &request.workspace_id).await?;
    let workflow = names::workflow(&client, Some(workspace), &request.workflow_definition_id).await?;
    let request = request.with_ids(workspace, workflow);
    match count {
        None => one(request, &client, context).await,
        Some(count) => many(&request, count, &client, context).await,
    }
}

async fn one(request: Enqueue, client: &Client, context: &Context) -> Result<()> {
    let enqueued = client.enqueue(&request).await?;
    let added = Added {
        id: enqueued.id,
        created: !enqueued.duplicate,
    };
    context.print(&added, |added| {
        let said = if added.created {
            "Enqueued"
        } else {
            "The same request was made before: item"
        };
        format!("{said} {}.", added.id)
    })
}

async fn many(request: &Enqueue, count: u64, client: &Client, context: &Context) -> Result<()> {
    let count = usize::try_from(count)?;
    let bar = context.format.progress(count as u64, "Enqueuing");
    let mut ids = Vec::with_capacity(count);
    while ids.len() < count {
        let batch = vec![request.clone(); BATCH.min(count - ids.len())];
        let answers = client.enqueue_all(batch).await.inspect_err(|_| {
            bar.abandon();
            if !ids.is_empty() {
                context.hint(&format!(
                    "{} items were enqueued before this went wrong.",
                    ids.len()
                ));
            }
        })?;
        ids.extend(answers.into_iter().map(|enqueued| enqueued.id));
        bar.set_position(ids.len() as u64);
    }
    bar.finish_and_clear();
    let words = format!("Enqueued {}.", counted(count, "item"));
    context.say(&json!({ "count": count, "ids": ids }), words)
}
