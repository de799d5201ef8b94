//! `stationmaster locks`: who holds what, a lock freed by hand, and a command run under a lock.

use anyhow::Result;
use clap::{Args, Subcommand};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_client::wire::{Lock, UnlockAnswer};
use stationmaster_client::{Client, Error};

use super::Context;
use super::arguments::text;
use crate::failure::{Kind, Refusal};
use crate::output::{cell, maybe, moment, printable, status, table};

mod run;

/// What to do with locks.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The locks there are, those that are held first
    List,
    /// Run a command while holding a lock, which is kept alive for as long as the command runs
    Run(run::RunArgs),
    /// Free a lock that somebody holds; for a holder that is gone and a lock that would hold for long
    Release(ReleaseArgs),
}

/// What to free.
#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    /// The lock
    #[arg(value_parser = text)]
    name: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Only say what would be freed
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

pub(crate) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::List => {
            let locks = context.client().await?.locks().await?;
            context.format.print(&locks[..], |locks| {
                table(
                    &["NAME", "STATE", "BY", "SINCE", "UNTIL", "TOKEN"],
                    locks.iter().map(row),
                )
            })
        }
        Command::Run(args) => run::run(args, context).await,
        Command::Release(args) => release(&args, &context.client().await?, context).await,
    }
}

fn row(lock: &Lock) -> Vec<Cell> {
    vec![
        cell(&lock.name),
        status(if lock.held { "held" } else { "free" }),
        cell(&lock.by),
        maybe(lock.since.map(moment)),
        lock.until
            .map_or_else(|| cell("for ever"), |until| cell(moment(until))),
        maybe(lock.token),
    ]
}

#[derive(Serialize)]
struct Answer<'a> {
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
    let answer = |released| Answer {
        name: &lock.name,
        by: &lock.by,
        held: lock.held,
        released,
    };
    let (name, by) = (printable(&lock.name), printable(&lock.by));
    if !lock.held {
        let words = format!("Nobody holds {name}; nothing was changed.");
        return context.format.print(&answer(false), |_| words);
    }
    let until = lock.until.map_or_else(
        || "for ever".to_owned(),
        |until| format!("until {}", moment(until)),
    );
    if args.dry_run {
        let words = format!("{name} is held by {by} {until}; nothing was changed.");
        return context.format.print(&answer(false), |_| words);
    }
    let question = format!(
        "{name} is held by {by} {until}. Its holder may still be at work, and somebody else could begin. Free it?"
    );
    Context::confirm(&question, args.yes)?;
    match client.release_lock(&lock.name, &lock.by).await {
        Ok(UnlockAnswer { released: true, .. }) => context
            .format
            .print(&answer(true), |_| format!("{name} is free; {by} held it.")),
        Ok(_) => context.format.print(&answer(false), |_| {
            format!("{name} has become free by itself; nothing was changed.")
        }),
        Err(Error::Conflict(problem)) => {
            let message = problem.detail.unwrap_or(problem.title);
            Err(Refusal::new(Kind::Conflict, message, "Look again: stationmaster locks list").into())
        }
        Err(error) => Err(error.into()),
    }
}
