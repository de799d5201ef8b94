//! `stationmaster dispatchers`: the routers of signals.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_core::dispatchers::DispatcherId;
use stationmaster_core::dispatchers::classify::{Act, Finding, Legacy};
use stationmaster_core::dispatchers::inspect::{self, Dispatcher, Event};
use stationmaster_core::dispatchers::state::Status;
use stationmaster_core::dispatchers::supervisor::{self, Office, Options, Report};
use stationmaster_core::observe::Metrics;

use super::Context;
use super::arguments::text;
use crate::failure::{Kind, Refusal};
use crate::output::{age, cell, fields, maybe, moment, short, status, table};
use crate::wiring;

/// How long a run may take to tell of itself.
const PATIENCE: Duration = Duration::from_secs(3);
const EVENTS: i64 = 20;

/// What to do with dispatchers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The dispatchers there are, and who owns them
    List {
        /// Only of this project
        #[arg(long, value_parser = text)]
        project: Option<String>,
    },
    /// One dispatcher: its owner, its servers, what its run tells, and what happened to it
    Show {
        /// The dispatcher, such as dispatcher-shop-default
        id: String,
    },
    /// Compare leases, heartbeats and the engine's runs, and remove what a crash left behind
    Reconcile(ReconcileArgs),
}

/// How to reconcile.
#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Also end the runs that an older deployment left: ids with a random suffix, of projects and task queues known here
    #[arg(long)]
    legacy: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::List { project } => {
            let database = context.database().await?;
            let found = inspect::list(&database, project.as_deref(), 10_000).await?;
            context.format.print(&found[..], |found| {
                let header = [
                    "ID", "STATE", "OWNER", "EPOCH", "SINCE", "WAITING", "OLDEST", "ENGINE",
                ];
                table(&header, found.iter().map(row))
            })
        }
        Command::Show { id } => show(DispatcherId(id), context).await,
        Command::Reconcile(args) => reconcile(&args, context).await,
    }
}

fn row(dispatcher: &Dispatcher) -> Vec<Cell> {
    vec![
        cell(&dispatcher.id),
        status(dispatcher.state),
        maybe(owner(dispatcher)),
        cell(dispatcher.epoch.0),
        maybe(dispatcher.taken_at.map(age)),
        cell(dispatcher.waiting),
        maybe(dispatcher.oldest_waiting_at.map(age)),
        maybe(dispatcher.engine.as_ref()),
    ]
}

/// The name of the owner when its server is known, its id otherwise.
fn owner(dispatcher: &Dispatcher) -> Option<String> {
    let id = dispatcher.owner?;
    Some(match &dispatcher.owner_name {
        Some(name) => format!("{name} ({id})"),
        None => id.to_string(),
    })
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    dispatcher: Dispatcher,
    /// What its run tells; null when it could not be asked.
    run: Option<Status>,
    events: Vec<Event>,
}

async fn show(id: DispatcherId, context: &Context) -> Result<()> {
    let database = context.database().await?;
    let Some(dispatcher) = inspect::show(&database, &id).await? else {
        let message = format!("there is no dispatcher {id}");
        return Err(Refusal::new(
            Kind::NotFound,
            message,
            "See which there are: stationmaster dispatchers list",
        )
        .into());
    };
    let engine = wiring::dispatcher_engine(&context.settings()?.config)?;
    // Only a run on the configured engine can be asked, and it need not answer.
    let run = if dispatcher.engine.as_deref() == Some(engine.name()) {
        let asked = tokio::time::timeout(PATIENCE, engine.status(&id)).await;
        asked.ok().and_then(Result::ok).flatten()
    } else {
        None
    };
    let events = inspect::events(&database, Some(&id), None, EVENTS).await?;
    let shown = Shown {
        dispatcher,
        run,
        events,
    };
    context.format.print(&shown, for_people)
}

fn for_people(shown: &Shown) -> String {
    let Shown {
        dispatcher,
        run,
        events,
    } = shown;
    let mut rows = vec![
        ("ID", cell(&dispatcher.id)),
        ("STATE", status(dispatcher.state)),
        ("PROJECT", cell(&dispatcher.project)),
        ("TASK QUEUE", cell(&dispatcher.task_queue)),
        ("OWNER", maybe(owner(dispatcher))),
        ("EPOCH", cell(dispatcher.epoch.0)),
        ("LEASE UNTIL", maybe(dispatcher.lease_until.map(moment))),
        ("TAKEN", maybe(dispatcher.taken_at.map(moment))),
        ("HEARTBEAT", maybe(dispatcher.heartbeat_at.map(moment))),
        ("RUN", maybe(dispatcher.run_id.as_ref())),
        ("WAITING", cell(dispatcher.waiting)),
    ];
    if let Some(run) = run {
        rows.extend([
            ("ROUTED", cell(run.routed)),
            ("DEAD", cell(run.dead)),
            ("EVICTED", cell(run.evicted)),
            ("SERVERS", cell(run.servers.len())),
        ]);
    }
    let event = |event: &Event| {
        vec![
            cell(moment(event.at)),
            cell(&event.event),
            maybe(event.epoch.map(|epoch| epoch.0)),
            cell(&event.actor),
            short(Some(event.detail.get())),
        ]
    };
    let header = ["AT", "EVENT", "EPOCH", "BY", "DETAIL"];
    format!("{}\n\n{}", fields(rows), table(&header, events.iter().map(event)))
}

async fn reconcile(args: &ReconcileArgs, context: &Context) -> Result<()> {
    let database = context.database().await?;
    let config = context.settings()?.config;
    let store = wiring::heartbeats(&config)?.store(&database);
    let office = Office::new(
        database,
        wiring::dispatcher_engine(&config)?,
        store,
        Arc::new(config.dispatchers()),
        Arc::new(Metrics::new()),
    );
    let options = Options {
        dry_run: args.dry_run,
        legacy: if args.legacy {
            Legacy::Remove
        } else {
            Legacy::Leave
        },
    };
    let report = supervisor::reconcile(&office, options, &Context::actor()).await?;
    context.format.print(&report, |report| told(report, args.dry_run))
}

fn told(report: &Report, dry_run: bool) -> String {
    let finding = |finding: &Finding| {
        let class = serde_json::to_value(finding.class).unwrap_or_default();
        vec![
            cell(&finding.dispatcher_id),
            status(class.as_str().unwrap_or_default()),
            maybe(finding.act.as_ref().map(act)),
            cell(&finding.reason),
        ]
    };
    let header = ["DISPATCHER", "CLASS", "TO DO", "WHY"];
    let mut parts = vec![table(&header, report.findings.iter().map(finding))];
    let unseen = |problem: &String| format!("Not everything could be seen: {problem}");
    parts.extend(report.problems.iter().map(unseen));
    let failed = report.done.iter().filter(|deed| deed.error.is_some()).count();
    parts.push(match (dry_run, report.done.len() - failed, failed) {
        (true, _, _) => "Nothing was done: this was a dry run.".to_owned(),
        (false, 0, 0) => "There was nothing to do.".to_owned(),
        (false, done, failed) => format!("{done} done, {failed} failed."),
    });
    parts.join("\n\n")
}

fn act(act: &Act) -> String {
    match act {
        Act::Terminate { run_id, .. } => format!("end run {run_id}"),
        Act::RemoveHeartbeat { epoch, .. } => format!("remove the heartbeat of epoch {}", epoch.0),
        Act::Release => "say that nobody owns it".to_owned(),
    }
}
