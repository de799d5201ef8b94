//! `stationmaster config`: what is in force, and who said so; and a file to begin with.

use std::fs::File;
use std::io::Write as _;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

use super::Context;
use super::arguments::Caution;
use super::pages::Sorting;
use crate::config::{Effective, template};
use crate::failure::{Kind, Refusal};
use crate::output::{Column, Described, ask, cell, column, maybe};

/// What to show.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Every setting with its value and its origin; secrets are hidden
    Show(Sorting),
    /// Write a file with every setting in it, commented out, to begin with
    Init(InitArgs),
}

/// Where to write it.
#[derive(Debug, Args)]
#[command(mut_arg("yes", |flag| flag.help("Do not ask before a file that is there is written over")),
    mut_arg("dry_run", |flag| flag.help("Only say what would be written")))]
pub(crate) struct InitArgs {
    /// The file; - for the standard output
    #[arg(default_value = "stationmaster.toml")]
    path: String,
    #[command(flatten)]
    caution: Caution,
}

pub(crate) fn run(command: &Command, context: &Context) -> Result<()> {
    match command {
        Command::Show(sorting) => context.show_all(context.settings()?.values, sorting),
        Command::Init(args) => init(args, context),
    }
}

fn init(args: &InitArgs, context: &Context) -> Result<()> {
    let path = args.path.as_str();
    if path == "-" {
        std::io::stdout().lock().write_all(template().as_bytes())?;
        return Ok(());
    }
    let there = std::path::Path::new(path).exists();
    if args.caution.dry_run {
        let over = if there { " over what is there" } else { "" };
        return context.say(
            &json!({ "path": path, "written": false }),
            format!("Would write {path}{over}."),
        );
    }
    let question = format!("The file {path} is there already. Write over it?");
    if there && !args.caution.yes && ask(&question)? != Some(true) {
        let advice = "Name another file, or say --yes to write over it";
        return Err(Refusal::new(
            Kind::Conflict,
            format!("the file {path} is there already"),
            advice,
        )
        .into());
    }
    let mut options = File::options();
    options.write(true);
    if there {
        options.truncate(true);
    } else {
        options.create_new(true);
    }
    let unwritable = |error| {
        Refusal::usage(
            format!("the file {path} cannot be written: {error}"),
            "Name another file",
        )
    };
    let mut file = options.open(path).map_err(unwritable)?;
    file.write_all(template().as_bytes())?;
    let words = format!("Wrote {path}. Give database_url in it, then: stationmaster serve --config {path}");
    context.say(&json!({ "path": path, "written": true }), words)
}

impl Described for Effective {
    const COLUMNS: &'static [Column<Self>] = &[
        column("SETTING", |value| cell(value.key)),
        column("VALUE", |value| maybe(value.value.as_ref())),
        column("FROM", |value| cell(&value.origin)),
    ];
}
