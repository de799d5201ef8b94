//! The occurrences of an alarm.

use anyhow::Result;
use clap::Args;
use stationmaster_client::Client;
use stationmaster_client::wire::{Occurrence, OccurrenceQuery, OccurrenceStatus};

use super::One;
use crate::command::Context;
use crate::command::arguments::word_of;
use crate::command::pages::{Asked, Newest};
use crate::output::{Column, Described, cell, column, long, maybe, status, time, word};

const STATUSES: [&str; 8] = [
    "pending",
    "claimed",
    "retrying",
    "fired",
    "failed",
    "skipped",
    "coalesced",
    "cancelled",
];

/// Which occurrences.
#[derive(Debug, Args)]
pub(crate) struct OccurrencesArgs {
    #[command(flatten)]
    one: One,
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<OccurrenceStatus>(STATUSES), ignore_case = true)]
    status: Vec<OccurrenceStatus>,
    #[command(flatten)]
    part: Newest,
}

pub(super) async fn run(args: OccurrencesArgs, client: &Client, context: &Context) -> Result<()> {
    let id = args.one.meant(client).await?;
    let newest = |one: &Occurrence, other: &Occurrence| other.scheduled_for.cmp(&one.scheduled_for);
    let asked = Asked::of_each(
        OccurrenceQuery::default(),
        &args.status,
        |query, status| query.status = Some(status),
        newest,
    );
    let read = async |client: &Client, query: &OccurrenceQuery| client.occurrences(id, query).await;
    context.list_asked(client, args.part, &asked, read).await
}

impl Described for Occurrence {
    const COLUMNS: &'static [Column<Self>] = &[
        column("SCHEDULED FOR", |occurrence| cell(scheduled_for(occurrence))),
        column("STATUS", |occurrence| status(&word(&occurrence.status))),
        column("ORIGIN", |occurrence| cell(&occurrence.origin)),
        column("TRIES", |occurrence| {
            cell(occurrence.attempts + i32::from(occurrence.fired_at.is_some()))
        }),
        column("ANSWER", |occurrence| maybe(occurrence.answer_status)),
        time("FIRED", |occurrence| occurrence.fired_at),
        time("RETRY", |occurrence| occurrence.retry_at),
        long("WHY", |occurrence| {
            let why = occurrence.last_error.as_deref().or(occurrence.reason.as_deref());
            why.or(occurrence.note.as_deref())
        }),
    ];
}

fn scheduled_for(occurrence: &Occurrence) -> String {
    let first = occurrence.scheduled_for;
    let Some(until) = occurrence.until else {
        return first.to_string();
    };
    let covers = occurrence.covers;
    let covers = covers.map_or_else(|| "very many".to_owned(), |covers| covers.to_string());
    format!("{first} up to {until} ({covers})")
}
