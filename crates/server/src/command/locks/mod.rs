//! `stationmaster locks`: who holds what, a lock freed by hand, and a command run under a lock.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde::Serialize;
use stationmaster_client::wire::{Lock, UnlockAnswer};
use stationmaster_client::{Client, Error};

use super::Context;
use super::arguments::{Caution, text};
use super::pages::Sorting;
use crate::failure::{Kind, Refusal};
use crate::output::{Column, Described, ago, cell, column, maybe, minor, moment, printable, status, time};

mod run;

/// What to do with locks.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The locks there are, those that are held first
    List(Sorting),
    /// Run a command while holding a lock, which is kept alive for as long as the command runs
    Run(run::RunArgs),
    /// Free a lock that somebody holds; for a holder that is gone and a lock that would hold for long
    Release(ReleaseArgs),
}

/// What to free.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only say what would be freed")))]
pub(crate) struct ReleaseArgs {
    /// The lock
    #[arg(value_parser = text)]
    name: String,
    #[command(flatten)]
    caution: Caution,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::List(sorting) => context.show_all(context.client().await?.locks().await?, &sorting),
        Command::Run(args) => run::run(args, context).await,
        Command::Release(args) => release(&args, &context.client().await?, context).await,
    }
}

impl Described for Lock {
    const COLUMNS: &'static [Column<Self>] = &[
        column("NAME", |lock| cell(&lock.name)),
        column("STATE", |lock| status(if lock.held { "held" } else { "free" })),
        column("BY", |lock| cell(&lock.by)),
        time("SINCE", |lock| lock.since),
        column("UNTIL", |lock| {
            lock.until
                .map_or_else(|| cell("for ever"), |until| cell(ago(until)))
        }),
        minor(column("TOKEN", |lock| maybe(lock.token))),
    ];
}

#[derive(Serialize)]
struct Release<'a> {
    name: &'a str,
    /// Who holds it, or held it last.
    by: &'a str,
    /// Was it held when we looked?
    held: bool,
    /// Was it freed?
    released: bool,
}

async fn release(args: &ReleaseArgs, client: &Client, context: &Context) -> Result<()> {
    let lock = client.lock(&args.name).await?;
    let answer = |released| Release {
        name: &lock.name,
        by: &lock.by,
        held: lock.held,
        released,
    };
    let (name, by) = (printable(&lock.name), printable(&lock.by));
    if !lock.held {
        let words = format!("Nobody holds {name}; nothing was changed.");
        return context.print(&answer(false), |_| words);
    }
    let until = lock.until.map_or_else(
        || "for ever".to_owned(),
        |until| format!("until {}", moment(until)),
    );
    if args.caution.dry_run {
        let words = format!("{name} is held by {by} {until}; nothing was changed.");
        return context.print(&answer(false), |_| words);
    }
    let question = format!(
        "{name} is held by {by} {until}. Its holder may still be at work, and somebody else could begin. Free it?"
    );
    Context::confirm(&question, args.caution.yes)?;
    match client.release_lock(&lock.name, &lock.by).await {
        Ok(UnlockAnswer { released: true, .. }) => {
            context.print(&answer(true), |_| format!("{name} is free; {by} held it."))
        }
        Ok(_) => context.print(&answer(false), |_| {
            format!("{name} has become free by itself; nothing was changed.")
        }),
        Err(Error::Conflict(problem)) => {
            let message = problem.detail.unwrap_or(problem.title);
            Err(Refusal::new(Kind::Conflict, message, "Look again: stationmaster locks list").into())
        }
        Err(error) => Err(error.into()),
    }
}
