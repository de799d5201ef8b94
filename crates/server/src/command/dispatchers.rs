//! `stationmaster dispatchers`: the routers of signals.

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::wire::{
    Dispatcher, DispatcherAct, DispatcherEvent, DispatcherFinding, Reconcile, Reconciled,
};
use stationmaster_core::engine::dispatchers::state::Status;

use super::Context;
use super::arguments::text;
use super::backend::Backend;
use crate::http::shapes::word;
use crate::output::{age, cell, fields, maybe, moment, short, status, table};

/// Events that are shown with a dispatcher.
const EVENTS: usize = 20;

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
            let found = context.backend().await?.dispatchers(project.as_deref()).await?;
            context.format.print(&found[..], |found| {
                let header = [
                    "ID", "STATE", "OWNER", "EPOCH", "SINCE", "WAITING", "OLDEST", "ENGINE",
                ];
                table(&header, found.iter().map(row))
            })
        }
        Command::Show { id } => show(&id, &context.backend().await?, context).await,
        Command::Reconcile(args) => reconcile(&args, &context.backend().await?, context).await,
    }
}

fn row(dispatcher: &Dispatcher) -> Vec<Cell> {
    vec![
        cell(&dispatcher.id),
        status(&word(&dispatcher.state)),
        maybe(owner(dispatcher)),
        cell(dispatcher.epoch),
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
    /// What its run tells; null when it could not be asked, as through a server.
    run: Option<Status>,
    events: Vec<DispatcherEvent>,
}

async fn show(id: &str, backend: &Backend, context: &Context) -> Result<()> {
    let dispatcher = backend.dispatcher(id).await?;
    let shown = Shown {
        run: backend.dispatcher_run(&dispatcher, context).await?,
        events: backend.dispatcher_events(id, EVENTS).await?,
        dispatcher,
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
        ("STATE", status(&word(&dispatcher.state))),
        ("PROJECT", cell(&dispatcher.project)),
        ("TASK QUEUE", cell(&dispatcher.task_queue)),
        ("OWNER", maybe(owner(dispatcher))),
        ("EPOCH", cell(dispatcher.epoch)),
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
    let event = |event: &DispatcherEvent| {
        vec![
            cell(moment(event.at)),
            cell(&event.event),
            maybe(event.epoch),
            cell(&event.actor),
            short(Some(&json!(event.detail).to_string())),
        ]
    };
    let header = ["AT", "EVENT", "EPOCH", "BY", "DETAIL"];
    format!("{}\n\n{}", fields(rows), table(&header, events.iter().map(event)))
}

async fn reconcile(args: &ReconcileArgs, backend: &Backend, context: &Context) -> Result<()> {
    let how = Reconcile {
        dry_run: args.dry_run,
        legacy: args.legacy,
    };
    let report = backend.reconcile_dispatchers(&how, context).await?;
    context.format.print(&report, told)
}

fn told(report: &Reconciled) -> String {
    let finding = |finding: &DispatcherFinding| {
        vec![
            cell(&finding.dispatcher_id),
            status(&finding.class),
            maybe(act(&finding.act)),
            cell(&finding.reason),
        ]
    };
    let header = ["DISPATCHER", "CLASS", "TO DO", "WHY"];
    let mut parts = vec![table(&header, report.findings.iter().map(finding))];
    let unseen = |problem: &String| format!("Not everything could be seen: {problem}");
    parts.extend(report.problems.iter().map(unseen));
    let failed = report.done.iter().filter(|deed| deed.error.is_some()).count();
    parts.push(match (report.dry_run, report.done.len() - failed, failed) {
        (true, _, _) => "Nothing was done: this was a dry run.".to_owned(),
        (false, 0, 0) => "There was nothing to do.".to_owned(),
        (false, done, failed) => format!("{done} done, {failed} failed."),
    });
    parts.join("\n\n")
}

fn act(act: &DispatcherAct) -> Option<String> {
    Some(match (act.act.as_deref()?, &act.run_id) {
        ("terminate", Some(run_id)) => format!("end run {run_id}"),
        ("remove_heartbeat", _) => "remove the heartbeat".to_owned(),
        ("release", _) => "say that nobody owns it".to_owned(),
        (other, _) => other.to_owned(),
    })
}
