//! The occurrences of an alarm.

use anyhow::Result;
use clap::{Args, ValueEnum};
use comfy_table::Cell;
use jiff::Timestamp;
use stationmaster_core::alarms::inspect::{self, Occurrence};
use stationmaster_core::alarms::operate;
use stationmaster_core::id::AlarmId;

use crate::command::Context;
use crate::command::arguments::{id, instant, is_full};
use crate::output::{age, cell, maybe, short, status, table};

/// Which occurrences.
#[derive(Debug, Args)]
pub(crate) struct OccurrencesArgs {
    /// The alarm
    #[arg(value_parser = id::<AlarmId>)]
    id: AlarmId,
    /// Only in this status
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
    /// Only those before this nominal instant: where the last page ended
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    before: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Claimed,
    Retrying,
    Fired,
    Failed,
    Skipped,
    Coalesced,
    Cancelled,
}

pub(super) async fn run(args: &OccurrencesArgs, context: &Context) -> Result<()> {
    let database = context.database().await?;
    if inspect::alarm(&database, args.id).await?.is_none() {
        return Err(operate::Error::NotFound(args.id).into());
    }
    let status = args.status.and_then(|status| status.to_possible_value());
    let status = status.as_ref().map(clap::builder::PossibleValue::get_name);
    let found = inspect::occurrences(&database, args.id, status, args.before, args.limit).await?;
    context.format.print(&found[..], rows)?;
    if let Some(last) = found.last().filter(|_| is_full(found.len(), args.limit)) {
        context
            .format
            .hint(&format!("There may be more: --before {}", last.scheduled_for));
    }
    Ok(())
}

/// As a table.
pub(super) fn rows(occurrences: &[Occurrence]) -> String {
    let header = [
        "SCHEDULED FOR",
        "STATUS",
        "ORIGIN",
        "TRIES",
        "ANSWER",
        "FIRED",
        "RETRY",
        "WHY",
    ];
    table(&header, occurrences.iter().map(row))
}

fn row(occurrence: &Occurrence) -> Vec<Cell> {
    let why = occurrence
        .last_error
        .as_deref()
        .or(occurrence.reason.as_deref())
        .or(occurrence.note.as_deref());
    let scheduled_for = match (occurrence.until, occurrence.covers) {
        (None, _) => occurrence.scheduled_for.to_string(),
        (Some(until), covers) => {
            let covers = covers.map_or_else(|| "very many".to_owned(), |covers| covers.to_string());
            format!("{} up to {until} ({covers})", occurrence.scheduled_for)
        }
    };
    let tries = occurrence.attempts + i32::from(occurrence.fired_at.is_some());
    vec![
        cell(scheduled_for),
        status(&occurrence.status),
        cell(&occurrence.origin),
        cell(tries),
        maybe(occurrence.answer_status),
        maybe(occurrence.fired_at.map(age)),
        maybe(occurrence.retry_at.map(age)),
        short(why),
    ]
}
