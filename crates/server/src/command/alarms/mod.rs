//! `stationmaster alarms`: what fires at a time.

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use stationmaster_client::Client;
use stationmaster_client::wire::{Alarm, Noun, Reference};
use uuid::Uuid;

use super::Context;
use super::arguments::Caution;
use super::names::{self, reference};
use crate::output::printable;

mod backfill;
mod edit;
mod next;
mod occurrences;
mod request;
mod secrets;
mod set;
mod show;

/// What to do with alarms.
#[derive(Debug, Subcommand)]
pub(crate) enum AlarmsCommand {
    /// When a cron expression fires next, and what clocks that move do to it; needs no server and no database
    Next(next::NextArgs),
    /// Set an alarm, for once or by a cron expression
    Set(Box<set::SetArgs>),
    /// The alarms there are, newest first
    List(show::ListArgs),
    /// One alarm, with its coming fires, its last occurrences and what was done to it
    Show(One),
    /// Change an alarm; what is not named stays
    Edit(Box<edit::EditArgs>),
    /// Fire nothing more of an alarm, for good
    #[command(mut_arg("dry_run", |flag| flag.help("Only say what would be cancelled")))]
    Cancel {
        #[command(flatten)]
        one: One,
        #[command(flatten)]
        caution: Caution,
    },
    /// Fire nothing more of an alarm until it is resumed
    Pause(One),
    /// Fire again; a series goes on with its next instant from now
    Resume(One),
    /// Fire an alarm now, beside its schedule
    Fire(One),
    /// Fire occurrences of the past that were not accepted, after a look at them
    Backfill(backfill::BackfillArgs),
    /// The occurrences of an alarm, newest first
    Occurrences(occurrences::OccurrencesArgs),
    /// The secrets by which wakes to a target are signed
    #[command(subcommand)]
    Secrets(secrets::Command),
}

/// Which one.
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The alarm
    #[arg(value_parser = reference)]
    id: Reference,
}

impl One {
    async fn meant(&self, client: &Client) -> Result<Uuid> {
        names::one(client, Noun::Alarm, None, &self.id).await
    }
}

pub(crate) async fn run(command: AlarmsCommand, context: &Context) -> Result<()> {
    match command {
        AlarmsCommand::Next(args) => next::run(&args, context),
        AlarmsCommand::Set(args) => set::run(*args, context).await,
        AlarmsCommand::List(args) => show::list(args, &context.client().await?, context).await,
        AlarmsCommand::Show(one) => {
            let client = context.client().await?;
            show::show(one.meant(&client).await?, &client, context).await
        }
        AlarmsCommand::Edit(args) => edit::run(*args, context).await,
        AlarmsCommand::Cancel { one, caution } => {
            let client = context.client().await?;
            cancel(one.meant(&client).await?, caution, &client, context).await
        }
        AlarmsCommand::Pause(one) => {
            let client = context.client().await?;
            let id = one.meant(&client).await?;
            client.pause_alarm(id).await?;
            say(id, "paused", &client, context).await
        }
        AlarmsCommand::Resume(one) => {
            let client = context.client().await?;
            let id = one.meant(&client).await?;
            client.resume_alarm(id).await?;
            say(id, "active", &client, context).await
        }
        AlarmsCommand::Fire(one) => {
            let client = context.client().await?;
            fire(one.meant(&client).await?, &client, context).await
        }
        AlarmsCommand::Backfill(args) => backfill::run(&args, &context.client().await?, context).await,
        AlarmsCommand::Occurrences(args) => occurrences::run(args, &context.client().await?, context).await,
        AlarmsCommand::Secrets(command) => secrets::run(command, context).await,
    }
}

async fn cancel(id: Uuid, caution: Caution, client: &Client, context: &Context) -> Result<()> {
    let alarm = client.alarm(id).await?.alarm;
    let what = called(&alarm);
    if !caution.agreed(&format!(
        "Cancel {what}? It fires nothing more, and cannot be resumed."
    ))? {
        let words = format!("Would cancel {what}: it would fire nothing more, and could not be resumed.");
        return context.say(&json!({ "id": id, "status": alarm.status }), words);
    }
    client.cancel_alarm(id).await?;
    say(id, "cancelled", client, context).await
}

/// By the name that people gave it, or else by its label, and by its id.
fn called(alarm: &Alarm) -> String {
    let name = alarm.name.as_deref().unwrap_or(&alarm.label);
    match (name, alarm.id) {
        ("", id) => format!("alarm {id}"),
        (name, id) => format!("alarm {} ({id})", printable(name)),
    }
}

/// At the beginning of a sentence.
fn sentence(words: &str) -> String {
    words.replacen("alarm", "Alarm", 1)
}

async fn say(id: Uuid, status: &str, client: &Client, context: &Context) -> Result<()> {
    let words = format!(
        "{} is {status}.",
        sentence(&called(&client.alarm(id).await?.alarm))
    );
    context.say(&json!({ "id": id, "status": status }), words)
}

async fn fire(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    let at = client.fire_alarm(id).await?.scheduled_for;
    let what = sentence(&called(&client.alarm(id).await?.alarm));
    let words = format!("{what} fires now; the occurrence is {at}.");
    context.say(&json!({ "id": id, "scheduled_for": at }), words)
}
