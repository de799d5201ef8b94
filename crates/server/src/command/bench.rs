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
use stationmaster_bench::{claim_cost, horizon, idle};
use stationmaster_core::executions::Settings;
use stationmaster_postgres::{Afterwards, Binaries, Server};
use stationmaster_temporal::TemporalEngine;

use super::{Context, bench_api};
use crate::config::{Config, bench_surroundings};
use crate::output::Format;
use crate::wiring;

mod alarms;

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
    /// Throughput while an old snapshot is held elsewhere, against throughput without
    Horizon,
    /// As given by the other arguments
    Custom,
    /// All but custom
    All,
}

impl Scenario {
    const EACH: [Self; 8] = [
        Self::Noop,
        Self::Limits,
        Self::Tenants,
        Self::Many,
        Self::Claim,
        Self::Temporal,
        Self::Idle,
        Self::Horizon,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Limits => "limits",
            Self::Tenants => "tenants",
            Self::Many => "many",
            Self::Claim => "claim",
            Self::Temporal => "temporal",
            Self::Idle => "idle",
            Self::Horizon => "horizon",
            Self::Custom => "custom",
            Self::All => "all",
        }
    }
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    let config = context.settings()?.config;
    let args = match command {
        Command::Executions(args) => args,
        Command::Alarms(args) => return alarms::run(&args, &config, context).await,
        Command::Api(args) => return bench_api::run(&args, context).await,
    };
    let bench = Bench::start(&config, args, context.format).await?;
    let scenarios = if bench.args.scenario == Scenario::All {
        Scenario::EACH.to_vec()
    } else {
        vec![bench.args.scenario]
    };
    let mut results = serde_json::Map::new();
    for scenario in scenarios {
        results.insert(scenario.name().to_owned(), bench.scenario(scenario).await?);
    }
    let results = Value::Object(results);
    context.format.print(&results, table)?;
    bench.stop().await
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

struct Bench<'a> {
    config: &'a Config,
    args: ExecutionsArgs,
    format: Format,
    url: String,
    server: Option<Server>,
}

impl<'a> Bench<'a> {
    async fn start(config: &'a Config, args: ExecutionsArgs, format: Format) -> Result<Self> {
        let (url, server) = if let Some(url) = &args.on {
            (url.clone(), None)
        } else {
            let server = private_postgres(config).await?;
            (server.url("postgres"), Some(server))
        };
        stationmaster_core::db::Database::new(&url, 2)?.migrate().await?;
        Ok(Self {
            config,
            args,
            format,
            url,
            server,
        })
    }

    async fn scenario(&self, scenario: Scenario) -> Result<Value> {
        let settings = self.config.executions().unwrap_or_default();
        let items = |usual: usize| self.args.items.unwrap_or(usual);
        let work = Duration::from_millis(400);
        match scenario {
            Scenario::Noop => {
                let load = Load {
                    limits: self.limits(),
                    work: Duration::ZERO,
                    items: items(200_000),
                    by_limit: false,
                };
                self.embedded(scenario, load, self.args.servers, &settings).await
            }
            Scenario::Custom => {
                let load = Load {
                    limits: self.limits(),
                    work: self.args.work.unwrap_or_default(),
                    items: items(10_000),
                    by_limit: true,
                };
                self.embedded(scenario, load, self.args.servers, &settings).await
            }
            Scenario::Limits => {
                let load = Load {
                    limits: vec![1, 1, 1, 5, 20],
                    work,
                    items: items(1_400),
                    by_limit: true,
                };
                self.embedded(scenario, load, 6, &settings).await
            }
            Scenario::Tenants => {
                let load = Load {
                    limits: vec![5; 200],
                    work,
                    items: items(30_000),
                    by_limit: true,
                };
                self.embedded(scenario, load, 4, &settings).await
            }
            Scenario::Many => {
                let load = Load {
                    limits: vec![1; 10_000],
                    work,
                    items: items(100_000),
                    by_limit: true,
                };
                self.embedded(scenario, load, 4, &settings).await
            }
            Scenario::Claim => {
                let mut bar = Bar::new(scenario.name(), self.format);
                let cost = claim_cost::measure(&self.url, 20_000, items(1_000_000), 10_000, |part| {
                    bar.part(part, 1);
                })
                .await?;
                Ok(json!(cost))
            }
            Scenario::Temporal => self.temporal(items(2_000), &settings).await,
            Scenario::Idle => {
                let mut bar = Bar::new(scenario.name(), self.format);
                let waits = idle::idle(&self.url, items(50), &settings, &mut bar).await?;
                Ok(json!(waits))
            }
            Scenario::Horizon => {
                let load = Load {
                    limits: self.limits(),
                    work: Duration::ZERO,
                    items: items(200_000),
                    by_limit: false,
                };
                let mut bar = Bar::new(scenario.name(), self.format);
                let servers = self.args.servers;
                let horizon = horizon::horizon(&self.url, &load, servers, &settings, &mut bar).await?;
                Ok(json!(horizon))
            }
            Scenario::All => Ok(Value::Null),
        }
    }

    fn limits(&self) -> Vec<i32> {
        (0..self.args.workspaces)
            .map(|n| self.args.limits[n % self.args.limits.len()])
            .collect()
    }

    async fn embedded(
        &self,
        scenario: Scenario,
        load: Load,
        servers: usize,
        settings: &Settings,
    ) -> Result<Value> {
        let mut bar = Bar::new(scenario.name(), self.format);
        let ran = scenario::embedded(&self.url, &load, servers, settings, &mut bar).await?;
        Ok(json!(ran))
    }

    async fn temporal(&self, items: usize, settings: &Settings) -> Result<Value> {
        let mut bar = Bar::new(Scenario::Temporal.name(), self.format);
        let mut temporal = wiring::temporal(&self.config.temporal, "bench")?;
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
        let starts = scenario::starts(&self.url, engine, items, settings, &mut bar).await?;
        Ok(json!(starts))
    }

    async fn stop(self) -> Result<()> {
        if let Some(server) = self.server {
            tokio::task::spawn_blocking(move || server.stop()).await?;
        }
        Ok(())
    }
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
    scenario: &'static str,
    bar: ProgressBar,
}

impl Bar {
    fn new(scenario: &'static str, format: Format) -> Self {
        let bar = if format == Format::People {
            ProgressBar::new(1)
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{msg:32} {wide_bar} {pos}/{len} {elapsed}") {
            bar.set_style(style);
        }
        Self { scenario, bar }
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
