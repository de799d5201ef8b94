//! The secrets by which wakes are signed: shown to whoever has the servers' signing secret, from which they are derived.

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use jiff::SignedDuration;
use serde::Serialize;
use serde_json::json;
use stationmaster_core::alarms::keys::{self, Key};
use stationmaster_core::wake::signature::Secret;
use stationmaster_core::wake::targets::Recipient;

use crate::command::Context;
use crate::command::arguments::{Caution, duration};
use crate::command::pages::Sorting;
use crate::failure::Refusal;
use crate::output::{Column, Described, cell, column, time};

/// What to do with secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a new secret for the setting `alarms.signing_secret`; it is stored nowhere
    Generate,
    /// Print the secret by which wakes to the router or to a target are signed, for whoever receives them
    Show {
        /// `router`, or the URL of a target, of which only scheme, host and port count
        target: Recipient,
    },
    /// Give the router or a target its next secret, and print it. The one before counts for a while beside it
    #[command(mut_arg("dry_run", |flag| flag.help("Only say what would be rotated")))]
    Rotate {
        /// `router`, or the URL of a target, of which only scheme, host and port count
        target: Recipient,
        /// For how long the one before counts as well
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
        keep_old: Duration,
        #[command(flatten)]
        caution: Caution,
    },
    /// Whose secrets were rotated, without the secrets; all others have their first
    List(Sorting),
}

#[derive(Serialize)]
struct Shown {
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i32>,
    secret: String,
}

pub(super) async fn run(command: Command, context: &Context) -> Result<()> {
    match command {
        Command::Generate => show(
            &Shown {
                target: None,
                generation: None,
                secret: Secret::random().reveal(),
            },
            context,
        ),
        Command::Show { target } => {
            let database = context.database().await?;
            let shown = keys::show(&database, &master(context)?, &target).await?;
            show(&Shown::from(shown), context)
        }
        Command::Rotate {
            target,
            keep_old,
            caution,
        } => {
            let database = context.database().await?;
            let before = keys::show(&database, &master(context)?, &target).await?;
            let words = format!(
                "secret {} of {} by the next one; after {:#} a receiver that knows only the old one refuses every wake",
                before.generation,
                before.target,
                SignedDuration::try_from(keep_old)?
            );
            if !caution.agreed(&format!("Replace {words}?"))? {
                let answer = json!({ "target": before.target, "generation": before.generation });
                return context.say(&answer, format!("Would replace {words}."));
            }
            let shown = keys::rotate(&database, &master(context)?, &target, keep_old).await?;
            show(&Shown::from(shown), context)
        }
        Command::List(sorting) => context.show_all(keys::list(&context.database().await?).await?, &sorting),
    }
}

impl From<keys::Shown> for Shown {
    fn from(shown: keys::Shown) -> Self {
        Self {
            target: Some(shown.target),
            generation: Some(shown.generation),
            secret: shown.secret.reveal(),
        }
    }
}

/// The secrets of targets are derived from the servers' own.
fn master(context: &Context) -> Result<Secret> {
    let config = context.settings()?.config;
    config.alarms.signing_secret.ok_or_else(|| {
        Refusal::usage(
            "no signing secret is configured: the setting alarms.signing_secret is missing",
            "Make one with `stationmaster alarms secrets generate`, and give the same to every server",
        )
        .into()
    })
}

fn show(shown: &Shown, context: &Context) -> Result<()> {
    context.print(shown, |shown| shown.secret.clone())?;
    if shown.target.is_none() {
        context.hint("Keep it: it is not shown again.");
    }
    Ok(())
}

impl Described for Key {
    const COLUMNS: &'static [Column<Self>] = &[
        column("TARGET", |key| cell(&key.target)),
        column("GENERATION", |key| cell(key.generation)),
        time("MADE", |key| Some(key.rotated_at)),
        time("THE ONE BEFORE UNTIL", |key| key.previous_until),
    ];
}
