//! `stationmaster alarms next`: an expression tried out. Everything is computed here, from the zone data in this binary.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;
use stationmaster_client::wire::Upcoming;
use stationmaster_schedule::{Cron, DstPolicy, Fire, Note, Series, zone, zone_data_version};

use crate::command::Context;
use crate::command::arguments::{explained, word_of};
use crate::command::times::future;
use crate::failure::BadExpression;
use crate::output::{Column, Described, cell, column, printable, rows};

/// Which expression, and whose clock.
#[derive(Debug, Args)]
pub(crate) struct NextArgs {
    /// The cron expression, in quotes: five or six fields, a nickname such as @daily, or @every with a duration
    #[arg(value_name = "EXPR")]
    expression: String,
    /// The IANA time zone whose clock is meant
    #[arg(long, default_value = "UTC")]
    zone: String,
    /// Fires after this time; now when it is not given
    #[arg(long, value_name = "TIME", value_parser = future, allow_hyphen_values = true)]
    from: Option<Timestamp>,
    /// How many fires
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    count: u16,
    /// What becomes of fixed local times that do not exist or come twice
    #[arg(long, value_parser = word_of::<DstPolicy>(explained(&DST)), default_value = "vixie")]
    dst: DstPolicy,
}

pub(super) const DST: [(&str, &str); 3] = [
    (
        "vixie",
        "Fires once: in a gap at the first instant after it, in an overlap the first time",
    ),
    ("skip", "Fires not at all in a gap, in an overlap the first time"),
    (
        "both",
        "Fires in a gap at the first instant after it, in an overlap both times",
    ),
];

/// When an expression would fire.
#[derive(Serialize)]
struct Preview<'a> {
    expression: &'a str,
    description: String,
    zone: &'a str,
    zone_data_version: &'static str,
    dst: DstPolicy,
    /// From where it was asked.
    from: Timestamp,
    fires: Vec<Shown>,
}

/// A fire as it is shown.
#[derive(Serialize)]
pub(super) struct Shown {
    /// With the offset of the zone.
    at: String,
    /// The same instant in UTC.
    utc: Timestamp,
    /// What a moving clock did, in words and for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Note>,
}

impl From<Upcoming> for Shown {
    fn from(fire: Upcoming) -> Self {
        Self {
            at: fire.local,
            utc: fire.at,
            note: fire.note,
            effect: None,
        }
    }
}

impl From<Fire> for Shown {
    fn from(fire: Fire) -> Self {
        Self {
            at: fire.rfc3339(),
            utc: fire.at,
            note: fire.note.as_ref().map(ToString::to_string),
            effect: fire.note,
        }
    }
}

pub(super) fn run(args: &NextArgs, context: &Context) -> Result<()> {
    let from = args.from.unwrap_or_else(Timestamp::now);
    let cron = Cron::parse(&args.expression).map_err(|error| BadExpression {
        text: args.expression.clone(),
        error,
    })?;
    let series = Series {
        cron,
        zone: zone(&args.zone)?,
        dst: args.dst,
        start: None,
        end: None,
        anchor: from,
    };
    let fires = series.fires(from).take(args.count.into());
    let answer = Preview {
        expression: &args.expression,
        description: series.cron.describe(),
        zone: series.zone.name(),
        zone_data_version: zone_data_version(),
        dst: series.dst,
        from,
        fires: fires.map(Shown::from).collect(),
    };
    context.print(&answer, for_people)
}

fn for_people(answer: &Preview<'_>) -> String {
    let head = format!(
        "{}\n{} in {}, zone data {}, DST {}",
        answer.description,
        printable(answer.expression),
        answer.zone,
        answer.zone_data_version,
        answer.dst
    );
    if answer.fires.is_empty() {
        return format!("{head}\n\nIt does not fire any more.");
    }
    format!("{head}\n\n{}", rows(&answer.fires))
}

impl Described for Shown {
    const COLUMNS: &'static [Column<Self>] = &[
        column("FIRES", |fire| cell(&fire.at)),
        column("NOTE", |fire| cell(fire.note.as_deref().unwrap_or_default())),
    ];
}
