//! `stationmaster alarms`: what fires at a time.

use anyhow::Result;
use clap::Subcommand;

use super::Context;

mod next;

/// What to do with alarms.
#[derive(Debug, Subcommand)]
pub(crate) enum AlarmsCommand {
    /// When a cron expression fires next, and what clocks that move do to it; needs no server and no database
    Next(next::NextArgs),
}

pub(crate) fn run(command: AlarmsCommand, context: &Context) -> Result<()> {
    match command {
        AlarmsCommand::Next(args) => next::run(&args, context),
    }
}
