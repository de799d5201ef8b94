//! `stationmaster apply`: a file says what there is to be; what differs is shown, and made so.
//!
//! `file` reads what is wanted, `difference` compares it with what there is, and here it is shown, asked about and carried out, by
//! the API like everything else. Each change is a transaction of its own and names what it is about, so a second apply goes on
//! where a first one ended, and one that finds everything as it is to be does nothing.

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::Context;
use super::arguments::Caution;
use crate::output::counted;

mod difference;
mod file;
mod same;

use difference::{Difference, Step};

/// What to apply, and how.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only show what would be changed")))]
pub(crate) struct ApplyArgs {
    /// The file that says what there is to be, as TOML; - for the standard input
    #[arg(short, long, value_name = "FILE")]
    file: String,
    /// Remove workflows, triggers and named alarms of the workspaces in the file that are not in it
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    caution: Caution,
}

#[derive(Serialize)]
struct Answer<'a> {
    changes: &'a [Step],
    /// What is not in the file, and stays.
    kept: &'a [String],
    /// Alarms of the file whose only instant has passed; they are not made.
    over: &'a [String],
    applied: bool,
}

pub(crate) async fn run(args: ApplyArgs, context: &Context) -> Result<()> {
    let wanted = file::read(&args.file)?;
    let client = context.client().await?;
    let difference = difference::between(&client, wanted, args.prune).await?;
    let steps = &difference.steps;
    let shown = shown(&difference);
    let answer = |applied| Answer {
        changes: steps,
        kept: &difference.kept,
        over: &difference.over,
        applied,
    };
    if steps.is_empty() {
        return context.print(&answer(false), |_| {
            format!("{shown}Nothing differs: everything is as the file says.")
        });
    }
    let count = counted(steps.len(), "change");
    if args.caution.dry_run {
        return context.print(&answer(false), |_| format!("{shown}Would make {count}."));
    }
    context.hint(shown.trim_end());
    Context::confirm(&format!("Make {count}?"), args.caution.yes)?;
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = step.carry_out(&client).await {
            context.hint(&format!(
                "{done} of {count} were made before this went wrong: {}. Apply again to go on from there.",
                step.line()
            ));
            return Err(error);
        }
    }
    context.print(&answer(true), |_| format!("Made {count}."))
}

fn shown(difference: &Difference) -> String {
    let mut text = String::new();
    for step in &difference.steps {
        text.push_str(&step.line());
        text.push('\n');
    }
    for (head, things) in [
        ("Over, and not made: ", &difference.over),
        (
            "Not in the file, and stays (--prune removes it): ",
            &difference.kept,
        ),
    ] {
        if !things.is_empty() {
            text.push_str(head);
            text.push_str(&things.join(", "));
            text.push('\n');
        }
    }
    text
}
