//! Look at alarms.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Alarm, AlarmEvent, AlarmKind, AlarmQuery, AlarmStatus, Misfire, Occurrence, OccurrenceQuery, PageQuery,
    Reference,
};
use uuid::Uuid;

use super::next::Shown;
use crate::command::Context;
use crate::command::arguments::{text, word_of};
use crate::command::inspection::json_cell;
use crate::command::names::{self, reference};
use crate::command::pages::{Asked, Newest};
use crate::output::{
    Column, Described, cell, column, details, fields, id, in_details, in_table, in_wide, long, maybe, minor,
    named, rows, status, time, word,
};

/// Last occurrences that are shown.
const SHOWN: u32 = 10;
/// And of what was done to it.
const EVENTS: u32 = 100;

/// Which alarms.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this workspace; several with commas, or repeated
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = reference)]
    workspace: Vec<Reference>,
    /// Only in this status; several with commas, or repeated
    #[arg(long, value_delimiter = ',', value_parser = word_of::<AlarmStatus>(["active", "paused", "fired", "cancelled", "failed"]), ignore_case = true)]
    status: Vec<AlarmStatus>,
    /// Only of this kind
    #[arg(long, value_parser = word_of::<AlarmKind>(["once", "cron"]), ignore_case = true)]
    kind: Option<AlarmKind>,
    /// Only with this text in the label, in the target or in the last error, in whatever case
    #[arg(long, value_name = "TEXT", value_parser = text)]
    search: Option<String>,
    #[command(flatten)]
    part: Newest,
}

pub(super) async fn list(args: ListArgs, client: &Client, context: &Context) -> Result<()> {
    let places = names::places(client, &args.workspace, None).await?;
    let query = AlarmQuery {
        kind: args.kind,
        search: args.search,
        ..AlarmQuery::default()
    };
    let newest = |one: &Alarm, other: &Alarm| other.id.cmp(&one.id);
    let asked = Asked::of_each(
        query,
        &args.status,
        |query, status| query.status = Some(status),
        newest,
    );
    let asked = asked.within(&places, |query, place| {
        query.workspace_id = place.workspace.map(Reference::from);
    });
    context
        .list_asked(client, args.part, &asked, Client::alarms)
        .await
}

fn when(alarm: &Alarm) -> String {
    match (&alarm.cron_expr, &alarm.civil_at, &alarm.timezone) {
        (Some(expression), _, Some(zone)) => format!("{expression} {zone}"),
        (_, Some(civil), Some(zone)) => format!("{civil} {zone}"),
        _ => alarm.fire_at.map(|at| at.to_string()).unwrap_or_default(),
    }
}

#[derive(Serialize)]
struct Whole {
    #[serde(flatten)]
    alarm: Alarm,
    fires: Vec<Shown>,
    occurrences: Vec<Occurrence>,
    events: Vec<AlarmEvent>,
}

pub(super) async fn show(id: Uuid, client: &Client, context: &Context) -> Result<()> {
    let found = client.alarm(id).await?;
    let newest_occurrences = OccurrenceQuery {
        limit: Some(SHOWN),
        ..OccurrenceQuery::default()
    };
    let newest_events = PageQuery {
        limit: Some(EVENTS),
        cursor: None,
    };
    let mut lately = client.alarm_history(id, &newest_events).await?.items;
    lately.reverse();
    let whole = Whole {
        alarm: found.alarm,
        fires: found.upcoming.into_iter().map(Shown::from).collect(),
        occurrences: client.occurrences(id, &newest_occurrences).await?.items,
        events: lately,
    };
    context.print(&whole, |whole| {
        let mut parts = vec![fields(details(&whole.alarm))];
        if !whole.fires.is_empty() {
            parts.push(rows(&whole.fires));
        }
        if !whole.occurrences.is_empty() {
            parts.push(rows(&whole.occurrences));
        }
        parts.push(rows(&whole.events));
        parts.join("\n\n")
    })
}

impl Described for AlarmEvent {
    const COLUMNS: &'static [Column<Self>] = &[
        time("AT", |event| Some(event.at)),
        column("EVENT", |event| cell(&event.event)),
        column("BY", |event| cell(&event.actor)),
        long("DETAIL", |event| event.detail.as_deref()),
    ];
}

impl Described for Alarm {
    const COLUMNS: &'static [Column<Self>] = &[
        id("ID", |alarm| alarm.id),
        column("STATUS", |alarm| status(&word(&alarm.status))),
        column("NAME", |alarm| maybe(alarm.name.as_ref())),
        long("LABEL", |alarm| {
            Some(alarm.label.as_str()).filter(|label| !label.is_empty())
        }),
        named("WORKSPACE", |alarm| {
            (alarm.workspace.as_deref(), alarm.workspace_id)
        }),
        column("WHEN", |alarm| cell(when(alarm))),
        in_details(column("IN WORDS", |alarm| maybe(alarm.description.as_ref()))),
        time("NEXT", |alarm| alarm.next_fire_at),
        time("LAST FIRED", |alarm| alarm.last_fired_at),
        minor(in_table(column("FAILURES", |alarm| cell(alarm.failure_count)))),
        in_details(column("FAILED TRIES", |alarm| cell(alarm.failure_count))),
        in_details(column("FAILED IN A ROW", |alarm| cell(alarm.failed_in_a_row))),
        long("LAST ERROR", |alarm| alarm.last_error.as_deref()),
        in_wide(column("TARGET", |alarm| {
            cell(alarm.target_url.as_deref().unwrap_or("the router"))
        })),
        in_details(column("USER", |alarm| maybe(alarm.user_id.as_ref()))),
        in_details(column("CONVERSATION", |alarm| {
            maybe(alarm.conversation_id.as_ref())
        })),
        in_details(column("MESSAGE", |alarm| maybe(alarm.message.as_ref()))),
        in_details(column("PAYLOAD", |alarm| json_cell(alarm.payload.as_deref()))),
        in_details(column("MAX FAILURES", |alarm| maybe(alarm.max_failures))),
        in_details(column("MISFIRE", |alarm| match alarm.misfire {
            Misfire::CatchUp => cell(format!("catch_up {}", alarm.catch_up)),
            other => cell(word(&other)),
        })),
        in_details(column("OVERLAP", |alarm| cell(word(&alarm.overlap)))),
        in_details(column("DST", |alarm| cell(word(&alarm.dst)))),
        in_details(column("JITTER", |alarm| cell(format!("{} s", alarm.jitter)))),
        in_details(time("START", |alarm| alarm.start_at)),
        in_details(time("END", |alarm| alarm.end_at)),
        in_details(column("PAUSE AFTER", |alarm| maybe(alarm.pause_after))),
        in_details(column("SET BY", |alarm| cell(&alarm.set_by))),
        in_details(time("SET", |alarm| Some(alarm.created_at))),
        in_details(time("CHANGED", |alarm| Some(alarm.updated_at))),
    ];
}
