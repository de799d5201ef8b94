//! `stationmaster bench alarms`.

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use stationmaster_bench::alarms::burst::{self, Burst};
use stationmaster_bench::alarms::claim_cost;
use stationmaster_bench::scenario::Progress as _;

use std::time::Duration;

use super::{Bar, private_postgres, table};
use crate::command::Context;
use crate::config::Config;

/// Which scenarios, and of what size.
#[derive(Debug, Args)]
pub(crate) struct AlarmsArgs {
    /// Which scenario
    #[arg(long, value_enum, default_value_t = Scenario::Burst)]
    scenario: Scenario,
    /// Alarms (default: what suits the scenario)
    #[arg(long)]
    alarms: Option<usize>,
    /// Targets
    #[arg(long, default_value_t = 10)]
    targets: usize,
    /// How long a target takes for an answer, in milliseconds
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 50)]
    answer_after: u64,
    /// Servers
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Use this (empty!) database instead of a private one: its contents are removed
    #[arg(long, value_name = "URL")]
    on: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Very many due within one second: the most that can pass through, and the share of the bare client
    Burst,
    /// 200 a second for ten seconds: how late a healthy alarm is
    Healthy,
    /// The cost of a claim beside a million alarms that are not due
    Claim,
    /// All of them
    All,
}

impl Scenario {
    const EACH: [Self; 3] = [Self::Burst, Self::Healthy, Self::Claim];

    fn name(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Healthy => "healthy",
            Self::Claim => "claim",
            Self::All => "all",
        }
    }
}

pub(super) async fn run(args: &AlarmsArgs, config: &Config, context: &Context) -> Result<()> {
    let (url, server) = if let Some(url) = &args.on {
        (url.clone(), None)
    } else {
        let server = private_postgres(config).await?;
        (server.url("postgres"), Some(server))
    };
    stationmaster_core::db::Database::new(&url, 2)?.migrate().await?;
    let scenarios = if args.scenario == Scenario::All {
        Scenario::EACH.to_vec()
    } else {
        vec![args.scenario]
    };
    let mut results = serde_json::Map::new();
    for scenario in scenarios {
        let figures = one(scenario, args, config, &url, context).await?;
        results.insert(scenario.name().to_owned(), figures);
    }
    context.format.print(&Value::Object(results), table)?;
    if let Some(server) = server {
        tokio::task::spawn_blocking(move || server.stop()).await?;
    }
    Ok(())
}

async fn one(
    scenario: Scenario,
    args: &AlarmsArgs,
    config: &Config,
    url: &str,
    context: &Context,
) -> Result<Value> {
    let mut bar = Bar::new(scenario.name(), context.format);
    let settings = config.alarms().unwrap_or_default();
    let burst = |alarms: usize, within: u64| Burst {
        alarms: args.alarms.unwrap_or(alarms),
        within: Duration::from_secs(within),
        targets: args.targets,
        servers: args.servers,
        answer_after: Duration::from_millis(args.answer_after),
    };
    match scenario {
        Scenario::Burst | Scenario::All => Ok(json!(
            burst::run(url, burst(20_000, 1), &settings, &mut bar).await?
        )),
        Scenario::Healthy => Ok(json!(
            burst::run(url, burst(2_000, 10), &settings, &mut bar).await?
        )),
        Scenario::Claim => {
            let many = args.alarms.unwrap_or(1_000_000);
            Ok(json!(
                claim_cost::measure(url, 1_000, many, |part| bar.part(part, 1)).await?
            ))
        }
    }
}
