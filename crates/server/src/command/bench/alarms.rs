//! `stationmaster bench alarms`.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::json;
use stationmaster_bench::alarms::burst::{self, Burst};
use stationmaster_bench::alarms::claim_cost;
use stationmaster_bench::scenario::Progress as _;

use super::{Bar, measure_each};
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

pub(super) async fn run(args: &AlarmsArgs, config: &Config, context: &Context) -> Result<()> {
    let settings = config.alarms().unwrap_or_default();
    let burst = |alarms: usize, within: u64| Burst {
        alarms: args.alarms.unwrap_or(alarms),
        within: Duration::from_secs(within),
        targets: args.targets,
        servers: args.servers,
        answer_after: Duration::from_millis(args.answer_after),
    };
    let one = async |scenario, url: &str, bar: &mut Bar| {
        Ok(match scenario {
            Scenario::Burst | Scenario::All => {
                json!(burst::run(url, burst(20_000, 1), &settings, bar).await?)
            }
            Scenario::Healthy => json!(burst::run(url, burst(2_000, 10), &settings, bar).await?),
            Scenario::Claim => {
                let many = args.alarms.unwrap_or(1_000_000);
                json!(claim_cost::measure(url, 1_000, many, |part| bar.part(part, 1)).await?)
            }
        })
    };
    let left_out = [Scenario::All];
    measure_each(args.scenario, &left_out, args.on.as_deref(), config, context, one).await
}
