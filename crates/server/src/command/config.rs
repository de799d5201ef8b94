//! `stationmaster config`: what is in force, and who said so.

use anyhow::Result;
use clap::Subcommand;

use super::Context;
use crate::config::Effective;
use crate::output::{cell, maybe, table};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Every setting with its value and its origin; secrets are hidden
    Show,
}

pub(crate) fn run(command: &Command, context: &Context) -> Result<()> {
    match command {
        Command::Show => {
            let values = context.settings()?.values;
            context.format.print(&values[..], |values| {
                let row = |value: &Effective| {
                    vec![cell(value.key), maybe(value.value.as_ref()), cell(&value.origin)]
                };
                table(&["SETTING", "VALUE", "FROM"], values.iter().map(row))
            })
        }
    }
}
