//! `stationmaster config`: what is in force, and who said so.

use anyhow::Result;
use clap::Subcommand;

use super::Context;
use crate::config::Effective;
use crate::output::{Column, Described, cell, column, maybe};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Every setting with its value and its origin; secrets are hidden
    Show,
}

pub(crate) fn run(command: &Command, context: &Context) -> Result<()> {
    match command {
        Command::Show => context.show_all(&context.settings()?.values),
    }
}

impl Described for Effective {
    const COLUMNS: &'static [Column<Self>] = &[
        column("SETTING", |value| cell(value.key)),
        column("VALUE", |value| maybe(value.value.as_ref())),
        column("FROM", |value| cell(&value.origin)),
    ];
}
