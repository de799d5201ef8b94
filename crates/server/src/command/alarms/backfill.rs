//! Fire occurrences of the past.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{Backfill, BackfillItem, Noun, Reference};
use uuid::Uuid;

use crate::command::Context;
use crate::command::arguments::Caution;
use crate::command::names::{self, reference};
use crate::command::times::past;
use crate::output::{Column, Described, cell, column, counted, rows, status};

/// Which occurrences.
#[derive(Debug, Args)]
#[command(mut_arg("dry_run", |flag| flag.help("Only show what would be fired")))]
pub(crate) struct BackfillArgs {
    /// The alarm
    #[arg(value_parser = reference)]
    id: Reference,
    /// Those after this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    from: Timestamp,
    /// Those up to and with this time
    #[arg(long, value_name = "TIME", value_parser = past, allow_hyphen_values = true)]
    to: Timestamp,
    #[command(flatten)]
    caution: Caution,
}

#[derive(Serialize)]
struct Refilled {
    id: Uuid,
    /// How many are fired, or would be.
    count: usize,
    fired: bool,
    occurrences: Vec<BackfillItem>,
}

pub(super) async fn run(args: &BackfillArgs, client: &Client, context: &Context) -> Result<()> {
    let id = names::one(client, Noun::Alarm, None, &args.id).await?;
    let range = |dry_run| Backfill {
        from: args.from,
        to: args.to,
        dry_run,
    };
    let occurrences = client.backfill(id, &range(true)).await?.items;
    let count = fires(&occurrences);
    let fired = !args.caution.dry_run && count > 0;
    let mut answer = Refilled {
        id,
        count,
        fired,
        occurrences,
    };
    if fired {
        if !args.caution.yes {
            context.hint(&rows(&answer.occurrences));
        }
        Context::confirm(
            &format!("Fire {} now?", counted(count, "occurrence")),
            args.caution.yes,
        )?;
        answer.count = fires(&client.backfill(id, &range(false)).await?.items);
    }
    context.print(&answer, |answer| {
        if answer.fired {
            format!("Fired: {}.", counted(answer.count, "occurrence"))
        } else {
            format!(
                "{}\n\nWould fire: {}.",
                rows(&answer.occurrences),
                counted(answer.count, "occurrence")
            )
        }
    })
}

fn fires(planned: &[BackfillItem]) -> usize {
    planned.iter().filter(|planned| planned.fires).count()
}

impl Described for BackfillItem {
    const COLUMNS: &'static [Column<Self>] = &[
        column("SCHEDULED FOR", |planned| cell(planned.scheduled_for)),
        column("ON RECORD", |planned| status(&planned.status)),
        column("THEN", |planned| {
            cell(if planned.fires { "fires" } else { "stays" })
        }),
        column("NOTE", |planned| {
            cell(planned.note.as_deref().unwrap_or_default())
        }),
    ];
}
