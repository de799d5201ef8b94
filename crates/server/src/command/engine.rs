//! `stationmaster engine`: which engine executions run on, and how to move to another one. It works on the database itself and on
//! the engine of the settings: whoever changes engines has stopped the servers.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use stationmaster_core::engine::record::{self, Changed, Recorded, Runs};

use super::Context;
use super::arguments::Caution;
use super::pages::Sorting;
use crate::failure::{Kind, Refusal};
use crate::output::{Column, Described, cell, column, status};
use crate::wiring;

const PATIENCE: Duration = Duration::from_secs(15);

/// What to do with the engine.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The engines on record, and what runs on each
    Show(Sorting),

    /// Use the engine of the settings from now on, in the place of the one on record
    ///
    /// Servers refuse to work with another engine than the one on record: a mistyped address or an emptied cluster would make
    /// everything that runs look lost. This command says that the other one is meant. All servers must be stopped first. What
    /// runs on the old engine is ended as FAILED with the reason `engine_lost` and its slots are free; the old engine itself is not
    /// told anything, and its runs go on there if it is still there. With --keep-runs they are taken to be on the new engine, as
    /// after a cluster was restored or moved with its runs.
    Change(ChangeArgs),
}

/// How to change.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would happen")))]
pub(crate) struct ChangeArgs {
    /// The new engine has the runs of the old one: they keep their slots and are looked for there
    #[arg(long)]
    keep_runs: bool,

    #[command(flatten)]
    caution: Caution,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Show(sorting) => context.show_all(record::list(&context.database().await?).await?, &sorting),
        Command::Change(args) => change(&args, context).await,
    }
}

#[derive(Serialize)]
struct Change {
    engine: &'static str,
    /// Where the one on record is; absent: there is none, or it is this one already.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    to: String,
    /// Executions that were ended, or kept.
    executions: u64,
    kept: bool,
    changed: bool,
}

async fn change(args: &ChangeArgs, context: &Context) -> Result<()> {
    let database = context.database().await?;
    let engine = wiring::executions_engine(&context.settings()?.config, &database)?;
    let name = engine.name();
    let identity = match tokio::time::timeout(PATIENCE, engine.identity()).await {
        Ok(Ok(identity)) => identity,
        Ok(Err(error)) => return Err(away(name, error.reason()).into()),
        Err(_) => return Err(away(name, "it does not answer").into()),
    };
    let current = record::list(&database).await?;
    let current = current
        .into_iter()
        .find(|one| one.name == name && one.retired_at.is_none());
    let from = current
        .filter(|one| one.identity != identity.key)
        .map(|one| one.place);
    let (starting, running) = record::counted(&database, name).await?;
    let plan = plan(args, from.as_deref(), &identity.place, starting, running);
    let mut answer = Change {
        engine: name,
        from,
        to: identity.place.clone(),
        executions: 0,
        kept: args.keep_runs,
        changed: false,
    };
    if args.caution.dry_run {
        return context.say(&answer, plan);
    }
    Context::confirm(&format!("{plan} Go on?"), args.caution.yes)?;
    let runs = if args.keep_runs { Runs::Keep } else { Runs::End };
    match record::change(&database, name, &identity, runs, &Context::actor()).await? {
        Changed::Served(servers) => Err(Refusal::new(
            Kind::Conflict,
            format!(
                "servers still work with the engine {name}: {}",
                servers.join(", ")
            ),
            "Stop all of them first, then change, then start them with the new settings",
        )
        .into()),
        Changed::Done { executions, .. } => {
            (answer.executions, answer.changed) = (executions, true);
            let words = format!(
                "The engine {name} is {} now; {executions} executions were {}.",
                answer.to,
                if answer.kept { "kept" } else { "ended as lost" },
            );
            context.say(&answer, words)
        }
    }
}

fn away(name: &str, reason: &str) -> Refusal {
    Refusal::new(
        Kind::Unavailable,
        format!("the engine {name} cannot be asked who it is: {reason}"),
        "Check the settings of the new engine: stationmaster doctor",
    )
}

fn plan(args: &ChangeArgs, from: Option<&str>, to: &str, starting: i64, running: i64) -> String {
    let engines = from.map_or_else(
        || format!("The engine on record is {to} already, or there is none yet."),
        |from| format!("The engine on record is {from}. From now on it is {to}."),
    );
    let runs = match (from, args.keep_runs) {
        (None, _) => "Only what was left on engines before it is seen to.".to_owned(),
        (Some(_), true) => format!(
            "{running} running executions and {starting} that are being started keep their slots and are looked for on the new one."
        ),
        (Some(_), false) => format!(
            "{running} running executions and {starting} that are being started end as FAILED (engine_lost) and free their slots; \
             if the old engine is still there, their runs go on there unseen. What waits is not touched."
        ),
    };
    format!("{engines} {runs}")
}

impl Described for Recorded {
    const COLUMNS: &'static [Column<Self>] = &[
        column("ENGINE", |engine| cell(&engine.name)),
        column("STATE", |engine| {
            status(if engine.retired_at.is_some() {
                "retired"
            } else {
                "current"
            })
        }),
        column("PLACE", |engine| cell(&engine.place)),
        column("ACTIVE", |engine| cell(engine.active)),
        column("SINCE", |engine| cell(&engine.recorded_at)),
        column("BY", |engine| cell(&engine.recorded_by)),
    ];
}
