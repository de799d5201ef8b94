//! Fire occurrences of the past.

use anyhow::Result;
use clap::Args;
use comfy_table::Cell;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_core::alarms::backfill::{Planned, backfill, preview};
use stationmaster_core::id::AlarmId;

use crate::command::Context;
use crate::command::arguments::{id, instant};
use crate::output::{cell, status, table};

/// Which occurrences.
#[derive(Debug, Args)]
pub(crate) struct BackfillArgs {
    /// The alarm
    #[arg(value_parser = id::<AlarmId>)]
    id: AlarmId,
    /// Those after this instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    from: Timestamp,
    /// Those up to and with this instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    to: Timestamp,
    /// Only show what would be fired
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Answer {
    id: AlarmId,
    /// How many are fired, or would be.
    count: usize,
    fired: bool,
    occurrences: Vec<Planned>,
}

pub(super) async fn run(args: &BackfillArgs, context: &Context) -> Result<()> {
    let database = context.database().await?;
    let occurrences = preview(&database, args.id, args.from, args.to).await?;
    let count = occurrences.iter().filter(|planned| planned.fires).count();
    let fired = !args.dry_run && count > 0;
    let mut answer = Answer {
        id: args.id,
        count,
        fired,
        occurrences,
    };
    if fired {
        if !args.yes {
            context.format.hint(&rows(&answer.occurrences));
        }
        Context::confirm(&format!("Fire {count} occurrences now?"), args.yes)?;
        answer.count = backfill(&database, args.id, args.from, args.to, &Context::actor())
            .await?
            .len();
    }
    context.format.print(&answer, |answer| {
        if answer.fired {
            format!("{} occurrences fire now.", answer.count)
        } else {
            format!(
                "{}\n\n{} occurrences would fire.",
                rows(&answer.occurrences),
                answer.count
            )
        }
    })
}

fn rows(planned: &[Planned]) -> String {
    let row = |planned: &Planned| -> Vec<Cell> {
        vec![
            cell(planned.scheduled_for),
            status(&planned.status),
            cell(if planned.fires { "fires" } else { "stays" }),
            cell(planned.note.as_deref().unwrap_or_default()),
        ]
    };
    table(
        &["SCHEDULED FOR", "ON RECORD", "THEN", "NOTE"],
        planned.iter().map(row),
    )
}
