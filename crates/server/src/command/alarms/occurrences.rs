//! The occurrences of an alarm.

use anyhow::Result;
use clap::{Args, ValueEnum};
use comfy_table::Cell;
use stationmaster_client::Client;
use stationmaster_client::wire::{Occurrence, OccurrenceQuery, OccurrenceStatus};
use uuid::Uuid;

use crate::command::Context;
use crate::command::arguments::id;
use crate::command::pages::{listed, say_where_it_ends};
use crate::output::{age, cell, maybe, short, status, table, word};

/// Which occurrences.
#[derive(Debug, Args)]
pub(crate) struct OccurrencesArgs {
    /// The alarm
    #[arg(value_parser = id::<Uuid>)]
    id: Uuid,
    /// Only in this status
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE")]
    before: Option<String>,
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

impl From<Status> for OccurrenceStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Claimed => Self::Claimed,
            Status::Retrying => Self::Retrying,
            Status::Fired => Self::Fired,
            Status::Failed => Self::Failed,
            Status::Skipped => Self::Skipped,
            Status::Coalesced => Self::Coalesced,
            Status::Cancelled => Self::Cancelled,
        }
    }
}

pub(super) async fn run(args: &OccurrencesArgs, client: &Client, context: &Context) -> Result<()> {
    let query = OccurrenceQuery {
        status: args.status.map(OccurrenceStatus::from),
        ..OccurrenceQuery::default()
    };
    let found = listed(args.limit, args.before.as_deref(), async |limit, cursor| {
        let query = OccurrenceQuery {
            limit,
            cursor,
            ..query.clone()
        };
        client.occurrences(args.id, &query).await
    })
    .await?;
    context.format.print(&found.rows[..], rows)?;
    say_where_it_ends("--before", found.next.as_deref(), context.format);
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
        status(&word(&occurrence.status)),
        cell(&occurrence.origin),
        cell(tries),
        maybe(occurrence.answer_status),
        maybe(occurrence.fired_at.map(age)),
        maybe(occurrence.retry_at.map(age)),
        short(why),
    ]
}
