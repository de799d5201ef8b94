//! `stationmaster bench`: measures the product on this machine, and the ceiling beside it in the same run.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use stationmaster_bench::fixture::Load;
use stationmaster_bench::scenario::{self, Progress};
use stationmaster_bench::{claim_cost, enqueue, horizon, idle};
use stationmaster_core::db::Database;
use stationmaster_core::executions::Settings;
use stationmaster_postgres::{Afterwards, Binaries, Server};
use stationmaster_temporal::TemporalEngine;

use super::{Context, bench_api};
use crate::config::{Config, bench_surroundings};
use crate::output::Format;
use crate::wiring;

mod alarms;

/// What an execution takes where work is done.
const WORK: Duration = Duration::from_millis(400);

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The queue of executions: throughput, latency, slot use, overshoot, cost of a claim
    Executions(ExecutionsArgs),
    /// Alarms: wakes a second, lateness, duplicates, cost of a claim
    Alarms(alarms::AlarmsArgs),
    /// The HTTP API: how long its lists take beside a million rows
    Api(bench_api::ApiArgs),
}

/// Which scenarios, and of what size.
#[derive(Debug, Args)]
pub(crate) struct ExecutionsArgs {
    /// Which scenario
    #[arg(long, value_enum, default_value_t = Scenario::Noop)]
    scenario: Scenario,
    /// Items (default: what suits the scenario)
    #[arg(long)]
    items: Option<usize>,
    /// Workspaces, for the scenario custom and noop
    #[arg(long, default_value_t = 100)]
    workspaces: usize,
    /// The limit of each workspace, or several separated by commas, which then repeat
    #[arg(long, value_delimiter = ',', default_value = "1000")]
    limits: Vec<i32>,
    /// How long each execution takes, for the scenario custom (default: no time at all)
    #[arg(long, value_parser = crate::config::duration)]
    work: Option<Duration>,
    /// Servers, for the scenarios custom and noop
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Use this (empty!) database instead of a private one: its contents are removed
    #[arg(long, value_name = "URL")]
    on: Option<String>,
}

/// The scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Nothing to do: the most that can pass through, and the share of bare SQL
    Noop,
    /// Five workspaces (limits 1, 1, 1, 5, 20), 400 ms of work, 6 servers
    Limits,
    /// 200 workspaces of limit 5, 400 ms of work, 4 servers
    Tenants,
    /// 10,000 workspaces of limit 1, 400 ms of work, 4 servers
    Many,
    /// The cost of a claim beside a million items in ten thousand full workspaces
    Claim,
    /// Starts on Temporal, and the share of bare starts
    Temporal,
    /// Items one at a time on an idle system: how soon each is started
    Idle,
    /// One item a transaction from many connections, beside a bare insert: asleep, full, paused, busy
    Enqueue,
    /// Throughput while an old snapshot is held elsewhere, against throughput without
    Horizon,
    /// As given by the other arguments
    Custom,
    /// All but custom
    All,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let config = context.settings()?.config;
    let args = match command {
        Command::Executions(args) => args,
        Command::Alarms(args) => return alarms::run(&args, &config, context).await,
        Command::Api(args) => return bench_api::run(&args, context).await,
    };
    let settings = config.executions().unwrap_or_default();
    let one = async |scenario, url: &str, bar: &mut Bar| match scenario {
        Scenario::Temporal => temporal(&config, url, args.items.unwrap_or(2_000), &settings, bar).await,
        scenario => args.measure(scenario, url, &settings, bar).await,
    };
    let left_out = [Scenario::Custom, Scenario::All];
    measure_each(
        args.scenario,
        &left_out,
        args.on.as_deref(),
        &config,
        context,
        one,
    )
    .await
}

/// Measures the chosen scenario, or all but those that are left out, and prints what came of them.
async fn measure_each<S: ValueEnum + PartialEq + 'static>(
    chosen: S,
    left_out: &[S],
    on: Option<&str>,
    config: &Config,
    context: &Context,
    one: impl AsyncFn(S, &str, &mut Bar) -> Result<Value>,
) -> Result<()> {
    let (url, server) = if let Some(url) = on {
        (url.to_owned(), None)
    } else {
        let server = private_postgres(config).await?;
        (server.url("postgres"), Some(server))
    };
    Database::new(&url, 2)?.migrate().await?;
    // The last one that is left out is the word for all.
    let scenarios = if left_out.last() == Some(&chosen) {
        let each = S::value_variants().iter();
        each.filter(|scenario| !left_out.contains(scenario))
            .cloned()
            .collect()
    } else {
        vec![chosen]
    };
    let mut results = serde_json::Map::new();
    for scenario in scenarios {
        let value = scenario.to_possible_value();
        let name = value.map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut bar = Bar::new(&name, context.format);
        let figures = one(scenario, &url, &mut bar).await?;
        results.insert(name, figures);
    }
    context.print(&Value::Object(results), table)?;
    if let Some(server) = server {
        tokio::task::spawn_blocking(move || server.stop()).await?;
    }
    Ok(())
}

/// One row for each figure.
pub(super) fn table(results: &Value) -> String {
    let mut table = Table::new();
    table.set_header(["scenario", "figure", "value"]);
    for (scenario, figures) in results.as_object().into_iter().flatten() {
        let mut rows = Vec::new();
        flatten("", figures, &mut rows);
        for (name, value) in rows {
            table.add_row([scenario.clone(), name, value]);
        }
    }
    table.to_string()
}

fn flatten(prefix: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                flatten(&name, value, rows);
            }
        }
        Value::Null => {}
        Value::Number(number) if number.is_f64() => {
            rows.push((
                prefix.to_owned(),
                format!("{:.3}", number.as_f64().unwrap_or_default()),
            ));
        }
        other => rows.push((prefix.to_owned(), other.to_string())),
    }
}

impl ExecutionsArgs {
    async fn measure(
        &self,
        scenario: Scenario,
        url: &str,
        settings: &Settings,
        bar: &mut Bar,
    ) -> Result<Value> {
        let items = |usual| self.items.unwrap_or(usual);
        let (limits, work, many, servers) = match scenario {
            Scenario::Noop | Scenario::Horizon => (self.limits(), Duration::ZERO, 200_000, self.servers),
            Scenario::Custom => (self.limits(), self.work.unwrap_or_default(), 10_000, self.servers),
            Scenario::Limits => (vec![1, 1, 1, 5, 20], WORK, 1_400, 6),
            Scenario::Tenants => (vec![5; 200], WORK, 30_000, 4),
            Scenario::Many => (vec![1; 10_000], WORK, 100_000, 4),
            Scenario::Claim => {
                let part = |part: &str| bar.part(part, 1);
                let cost = claim_cost::measure(url, 20_000, items(1_000_000), 10_000, part).await?;
                return Ok(json!(cost));
            }
            Scenario::Idle => return Ok(json!(idle::idle(url, items(50), settings, bar).await?)),
            Scenario::Enqueue => {
                let states = enqueue::enqueue(url, settings, bar).await?;
                let named = states.iter().map(|state| {
                    let key = if state.with_key { ", with key" } else { "" };
                    (
                        format!("{}, {} clients{key}", state.state, state.clients),
                        json!(state),
                    )
                });
                return Ok(named.collect());
            }
            // Not a load of its own.
            Scenario::Temporal | Scenario::All => return Ok(Value::Null),
        };
        let load = Load {
            limits,
            work,
            items: items(many),
            by_limit: !matches!(scenario, Scenario::Noop | Scenario::Horizon),
        };
        Ok(if scenario == Scenario::Horizon {
            json!(horizon::horizon(url, &load, servers, settings, bar).await?)
        } else {
            json!(scenario::embedded(url, &load, servers, settings, bar).await?)
        })
    }

    fn limits(&self) -> Vec<i32> {
        let limits = self.limits.iter().cycle();
        limits.take(self.workspaces).copied().collect()
    }
}

async fn temporal(
    config: &Config,
    url: &str,
    items: usize,
    settings: &Settings,
    bar: &mut Bar,
) -> Result<Value> {
    let mut temporal = wiring::temporal(&config.temporal, "bench");
    // A dev server of its own where its program is at hand; otherwise the one that is configured.
    let _child = match bench_surroundings().1 {
        Some(program) => {
            let (child, address) = temporal_dev_server(&program).await?;
            temporal.address = address;
            Some(child)
        }
        None => None,
    };
    let engine = Arc::new(TemporalEngine::new(&temporal)?);
    let starts = scenario::starts(url, engine, items, settings, bar).await?;
    Ok(json!(starts))
}

/// A PostgreSQL of its own with durable commits, removed afterwards.
pub(super) async fn private_postgres(config: &Config) -> Result<Server> {
    let (hint, parent) = (config.dev.postgres_bin.clone(), bench_surroundings().0);
    let server = tokio::task::spawn_blocking(move || -> Result<Server> {
        let binaries = Binaries::find(hint.as_deref())?;
        let mut settings = stationmaster_postgres::Settings::throw_away(&parent);
        settings.durability = stationmaster_postgres::Durability::Durable;
        settings.afterwards = Afterwards::Remove;
        settings.max_connections = 200;
        Ok(Server::start(&binaries, &settings)?)
    });
    server.await?
}

async fn temporal_dev_server(program: &PathBuf) -> Result<(tokio::process::Child, String)> {
    let port = stationmaster_postgres::free_port()?;
    let child = tokio::process::Command::new(program)
        .args([
            "server",
            "start-dev",
            "--headless",
            "--ip",
            "127.0.0.1",
            "--log-level",
            "error",
            "--port",
        ])
        .arg(port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} could not be started", program.display()))?;
    let address = format!("127.0.0.1:{port}");
    for _ in 0..300 {
        if tokio::net::TcpStream::connect(&address).await.is_ok() {
            // The port opens a moment before the namespace is there.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return Ok((child, address));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("Temporal's dev server did not open {address} within 30 s")
}

/// A progress bar on a terminal, nothing otherwise.
struct Bar {
    scenario: String,
    bar: ProgressBar,
}

impl Bar {
    fn new(scenario: &str, format: Format) -> Self {
        let bar = if format == Format::People {
            ProgressBar::new(1)
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{msg:32} {wide_bar} {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Self {
            scenario: scenario.to_owned(),
            bar,
        }
    }
}

impl Progress for Bar {
    fn part(&mut self, name: &str, steps: usize) {
        self.bar.reset();
        self.bar.set_length(steps as u64);
        self.bar.set_message(format!("{}: {name}", self.scenario));
    }

    fn at(&mut self, steps: usize) {
        self.bar.set_position(steps as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
