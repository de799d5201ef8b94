//! `stationmaster config`: what is in force, and who said so; and a file to begin with.

use std::fs::File;
use std::io::{ErrorKind, Write as _};

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::Context;
use crate::config::{Effective, template};
use crate::failure::{Kind, Refusal};
use crate::output::{Column, Described, cell, column, maybe};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Every setting with its value and its origin; secrets are hidden
    Show,
    /// Write a file with every setting in it, commented out, to begin with
    Init(InitArgs),
}

/// Where to write it.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The file; - for the standard output
    #[arg(default_value = "stationmaster.toml")]
    path: String,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(command: &Command, context: &Context) -> Result<()> {
    match command {
        Command::Show => context.show_all(&context.settings()?.values),
        Command::Init(args) => init(args, context),
    }
}

fn init(args: &InitArgs, context: &Context) -> Result<()> {
    let path = args.path.as_str();
    if path == "-" {
        std::io::stdout().lock().write_all(template().as_bytes())?;
        return Ok(());
    }
    let mut options = File::options();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let advice = "Name another file, or say --force to write over it";
            Refusal::new(
                Kind::Conflict,
                format!("the file {path} is there already"),
                advice,
            )
        }
        _ => Refusal::usage(
            format!("the file {path} cannot be written: {error}"),
            "Name another file",
        ),
    })?;
    file.write_all(template().as_bytes())?;
    let words = format!("Wrote {path}. Give database_url in it, then: stationmaster serve --config {path}");
    context.say(&json!({ "path": path }), words)
}

impl Described for Effective {
    const COLUMNS: &'static [Column<Self>] = &[
        column("SETTING", |value| cell(value.key)),
        column("VALUE", |value| maybe(value.value.as_ref())),
        column("FROM", |value| cell(&value.origin)),
    ];
}
