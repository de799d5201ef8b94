//! `stationmaster dispatchers`: the routers of signals.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use futures::TryStreamExt as _;
use serde::Serialize;
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Dispatcher, DispatcherAct, DispatcherEvent, DispatcherFinding, DispatcherQuery, PageQuery, Reconcile,
    Reconciled,
};
use stationmaster_core::engine::dispatchers::state::Status;
use stationmaster_core::id::DispatcherId;

use super::Context;
use super::arguments::{Caution, text};
use super::inspection::by;
use super::pages::Sorting;
use crate::config::Target;
use crate::failure::{Kind, Refusal};
use crate::output::{
    Column, Described, cell, column, counted, details, fields, in_details, in_table, long, maybe, rows,
    status, time, told as long_json, word,
};
use crate::wiring;

/// Events that are shown with a dispatcher.
const EVENTS: u32 = 20;
/// How long a run may take to tell of itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// What to do with dispatchers.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The dispatchers there are, and who owns them
    List {
        /// Only of this project
        #[arg(long, value_parser = text)]
        project: Option<String>,
        #[command(flatten)]
        sorting: Sorting,
    },
    /// One dispatcher: its owner, its servers, what its run tells, and what happened to it
    Show {
        /// The dispatcher, such as dispatcher-shop-default
        id: String,
    },
    /// The id of the dispatcher of a project and a task queue, which is also the id of its workflow on Temporal
    Id {
        /// The project
        #[arg(value_parser = text)]
        project: String,
        /// The task queue
        #[arg(value_parser = text, default_value = "default")]
        task_queue: String,
    },
    /// Remove a dispatcher for which nothing waits: its run ends, and the next signal makes it anew
    Remove(RemoveArgs),
    /// Compare leases, heartbeats and the engine's runs, and remove what a crash left behind
    Reconcile(ReconcileArgs),
}

/// Which dispatcher to remove.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be removed")))]
pub(crate) struct RemoveArgs {
    /// The dispatcher, such as dispatcher-shop-default
    #[arg(value_parser = text)]
    id: String,
    #[command(flatten)]
    caution: Caution,
}

/// How to reconcile.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be done")))]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    caution: Caution,
    /// Also remove the runs and heartbeats that an older deployment left: ids with a random suffix, of projects and task queues known here
    #[arg(long)]
    legacy: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::List { project, sorting } => {
            let query = DispatcherQuery {
                project,
                ..DispatcherQuery::default()
            };
            let client = context.client().await?;
            let found: Vec<Dispatcher> = client.all_dispatchers(query).try_collect().await?;
            context.show_all(found, &sorting)
        }
        Command::Show { id } => show(&id, &context.client().await?, context).await,
        Command::Id { project, task_queue } => {
            let id = DispatcherId::of(&project, &task_queue);
            context.print(&json!({ "id": id }), |_| id.to_string())
        }
        Command::Remove(args) => remove(&args, &context.client().await?, context).await,
        Command::Reconcile(args) => reconcile(&args, &context.client().await?, context).await,
    }
}

impl Described for Dispatcher {
    const COLUMNS: &'static [Column<Self>] = &[
        column("ID", |dispatcher| cell(&dispatcher.id)),
        column("STATE", |dispatcher| status(&word(&dispatcher.state))),
        in_details(column("PROJECT", |dispatcher| cell(&dispatcher.project))),
        in_details(column("TASK QUEUE", |dispatcher| cell(&dispatcher.task_queue))),
        column("OWNER", |dispatcher| maybe(owner(dispatcher))),
        column("EPOCH", |dispatcher| cell(dispatcher.epoch)),
        in_details(time("LEASE UNTIL", |dispatcher| dispatcher.lease_until)),
        in_table(time("SINCE", |dispatcher| dispatcher.taken_at)),
        in_details(time("TAKEN", |dispatcher| dispatcher.taken_at)),
        in_details(time("HEARTBEAT", |dispatcher| dispatcher.heartbeat_at)),
        in_details(column("RUN", |dispatcher| maybe(dispatcher.run_id.as_ref()))),
        column("WAITING", |dispatcher| cell(dispatcher.waiting)),
        in_table(time("OLDEST", |dispatcher| dispatcher.oldest_waiting_at)),
        in_details(time("TO BE REMOVED", |dispatcher| {
            dispatcher.removal_requested_at
        })),
        in_table(column("ENGINE", |dispatcher| maybe(dispatcher.engine.as_ref()))),
    ];
}

impl Described for DispatcherEvent {
    const COLUMNS: &'static [Column<Self>] = &[
        time("AT", |event| Some(event.at)),
        column("EVENT", |event| cell(&event.event)),
        column("EPOCH", |event| maybe(event.epoch)),
        column("BY", |event| cell(by(event.server.as_deref(), &event.actor))),
        long_json("DETAIL", |event| Some(json!(event.detail).to_string())),
    ];
}

impl Described for DispatcherFinding {
    const COLUMNS: &'static [Column<Self>] = &[
        column("DISPATCHER", |finding| cell(&finding.dispatcher_id)),
        column("CLASS", |finding| status(&finding.class)),
        column("TO DO", |finding| maybe(act(&finding.act))),
        long("WHY", |finding| Some(&finding.reason)),
    ];
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

async fn show(id: &str, client: &Client, context: &Context) -> Result<()> {
    let dispatcher = client.dispatcher(id).await?;
    let lately = PageQuery {
        limit: Some(EVENTS),
        cursor: None,
    };
    let shown = Shown {
        run: run_of(&dispatcher, context).await?,
        events: client.dispatcher_history(id, &lately).await?.items,
        dispatcher,
    };
    context.print(&shown, for_people)
}

/// What the run of a dispatcher tells of itself. Only a run on the engine of our own settings can be asked, and it need not
/// answer; a server does not pass the question on.
async fn run_of(dispatcher: &Dispatcher, context: &Context) -> Result<Option<Status>> {
    if let Target::Api(_) = context.target()? {
        return Ok(None);
    }
    let engine = wiring::dispatcher_engine(&context.settings()?.config)?;
    if dispatcher.engine.as_deref() != Some(engine.name()) {
        return Ok(None);
    }
    let id = DispatcherId(dispatcher.id.clone());
    let asked = tokio::time::timeout(PATIENCE, engine.status(&id)).await;
    Ok(asked.ok().and_then(Result::ok).flatten())
}

fn for_people(shown: &Shown) -> String {
    let Shown {
        dispatcher,
        run,
        events,
    } = shown;
    let mut parts = details(dispatcher);
    if let Some(run) = run {
        parts.extend([
            ("ROUTED", cell(run.routed)),
            ("DEAD", cell(run.dead)),
            ("EVICTED", cell(run.evicted)),
            ("SERVERS", cell(run.servers.len())),
        ]);
    }
    format!("{}\n\n{}", fields(parts), rows(events))
}

async fn remove(args: &RemoveArgs, client: &Client, context: &Context) -> Result<()> {
    let now = client.dispatcher(&args.id).await?;
    let id = &now.id;
    if now.waiting > 0 {
        let message = format!("{} for dispatcher {id}", waits(now.waiting));
        let advice = "Let them be routed first; see why they wait: stationmaster doctor";
        return Err(Refusal::new(Kind::Conflict, message, advice).into());
    }
    let then = "its run ends; the next signal makes it anew, and so does a server whose settings name it when it starts";
    if !args
        .caution
        .agreed(&format!("Remove dispatcher {id}? Then {then}."))?
    {
        return context.say(&now, format!("Would remove dispatcher {id}. Then {then}."));
    }
    let removed = client.remove_dispatcher(id).await?;
    context.say(
        &removed,
        format!("Dispatcher {id} is removed as soon as its owner can; then {then}."),
    )
}

fn waits(signals: i64) -> String {
    let verb = if signals == 1 { "waits" } else { "wait" };
    format!("{} {verb}", counted(signals.unsigned_abs(), "signal"))
}

async fn reconcile(args: &ReconcileArgs, client: &Client, context: &Context) -> Result<()> {
    let how = |dry_run| Reconcile {
        dry_run,
        legacy: args.legacy,
    };
    let mut seen = client.reconcile_dispatchers(&how(true)).await?;
    let to_do = seen
        .findings
        .iter()
        .filter(|finding| finding.act.act.is_some())
        .count();
    if args.caution.dry_run || to_do == 0 {
        seen.dry_run = args.caution.dry_run;
        return context.print(&seen, told);
    }
    if !args.caution.yes {
        context.hint(&rows(&seen.findings));
    }
    let question = format!(
        "Do what is to be done about {}? Runs that are ended are not taken up again.",
        counted(to_do, "dispatcher")
    );
    Context::confirm(&question, args.caution.yes)?;
    context.print(&client.reconcile_dispatchers(&how(false)).await?, told)
}

fn told(report: &Reconciled) -> String {
    let mut parts = vec![rows(&report.findings)];
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
        ("remove_heartbeat" | "remove_legacy_heartbeat", _) => "remove the heartbeat".to_owned(),
        ("release", _) => "say that nobody owns it".to_owned(),
        (other, _) => other.to_owned(),
    })
}
