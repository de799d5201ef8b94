//! `stationmaster plans`: how much each plan allows.

use anyhow::Result;
use clap::Subcommand;
use stationmaster_client::wire::{Plan, PlanChange};

use super::Context;
use super::arguments::text;
use super::pages::Sorting;
use crate::output::{Column, Described, cell, column};

/// What to do with plans.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The plans there are
    List(Sorting),
    /// Make a plan or change it; the limits of its workspaces follow at once
    Set {
        /// The plan
        #[arg(value_parser = text)]
        name: String,
        /// Executions at once for each workspace of the plan
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..))]
        limit: i32,
        /// Its share when there is not enough for all; a plan that is there keeps its own, a new one has 1
        #[arg(long, value_parser = weight)]
        weight: Option<f64>,
    },
}

fn weight(text: &str) -> Result<f64, String> {
    let weight: Option<f64> = text
        .parse()
        .ok()
        .filter(|weight: &f64| (0.000_001..=1_000_000.0).contains(weight));
    weight.ok_or_else(|| "not a weight: give a number from 0.000001 to 1000000".to_owned())
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let client = context.client().await?;
    match command {
        Command::List(sorting) => context.show_all(client.plans().await?, &sorting),
        Command::Set { name, limit, weight } => {
            let change = PlanChange {
                max_concurrent: limit,
                weight,
            };
            let plan = client.put_plan(&name, &change, None).await?;
            context.print(&plan, |plan| {
                format!(
                    "Plan {} allows {} executions at once, with weight {}.",
                    plan.name, plan.max_concurrent, plan.weight
                )
            })
        }
    }
}

impl Described for Plan {
    const COLUMNS: &'static [Column<Self>] = &[
        column("NAME", |plan| cell(&plan.name)),
        column("LIMIT", |plan| cell(plan.max_concurrent)),
        column("WEIGHT", |plan| cell(plan.weight)),
    ];
}
