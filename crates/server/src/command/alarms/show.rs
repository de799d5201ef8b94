//! Look at alarms.

use anyhow::Result;
use clap::{Args, ValueEnum};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Alarm, AlarmEvent, AlarmKind, AlarmQuery, AlarmStatus, Misfire, Occurrence, OccurrenceQuery, PageQuery,
};
use uuid::Uuid;

use super::next::{Shown, fires};
use super::occurrences;
use crate::command::Context;
use crate::command::arguments::{id, text};
use crate::command::inspection::json_cell;
use crate::command::pages::{listed, say_where_it_ends};
use crate::output::{age, cell, fields, maybe, moment, short, status, table, word};

/// Last occurrences that are shown.
const SHOWN: u32 = 10;
/// And of what was done to it.
const EVENTS: u32 = 100;

/// Which alarms.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<Uuid>)]
    workspace: Option<Uuid>,
    /// Only in this status
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Only of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Only with this text in the label or in the last error, in whatever case
    #[arg(long, value_name = "TEXT", value_parser = text)]
    search: Option<String>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Go on where the list before ended: what it said, with --json as `next_cursor` on stderr
    #[arg(long, value_name = "PLACE")]
    before: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Active,
    Paused,
    Fired,
    Cancelled,
    Failed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Once,
    Cron,
}

impl From<Status> for AlarmStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Active => Self::Active,
            Status::Paused => Self::Paused,
            Status::Fired => Self::Fired,
            Status::Cancelled => Self::Cancelled,
            Status::Failed => Self::Failed,
        }
    }
}

impl From<Kind> for AlarmKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Once => Self::Once,
            Kind::Cron => Self::Cron,
        }
    }
}

pub(super) async fn list(args: &ListArgs, client: &Client, context: &Context) -> Result<()> {
    let query = AlarmQuery {
        workspace_id: args.workspace,
        status: args.status.map(AlarmStatus::from),
        kind: args.kind.map(AlarmKind::from),
        search: args.search.clone(),
        ..AlarmQuery::default()
    };
    let alarms = listed(args.limit, args.before.as_deref(), async |limit, cursor| {
        let query = AlarmQuery {
            limit,
            cursor,
            ..query.clone()
        };
        client.alarms(&query).await
    })
    .await?;
    context.format.print(&alarms.rows[..], |alarms| {
        let header = [
            "ID",
            "STATUS",
            "LABEL",
            "WHEN",
            "NEXT",
            "LAST FIRED",
            "FAILURES",
            "LAST ERROR",
        ];
        table(&header, alarms.iter().map(row))
    })?;
    say_where_it_ends("--before", alarms.next.as_deref(), context.format);
    Ok(())
}

fn when(alarm: &Alarm) -> String {
    match (&alarm.cron_expr, &alarm.civil_at, &alarm.timezone) {
        (Some(expression), _, Some(zone)) => format!("{expression} {zone}"),
        (_, Some(civil), Some(zone)) => format!("{civil} {zone}"),
        _ => alarm.fire_at.map(|at| at.to_string()).unwrap_or_default(),
    }
}

fn row(alarm: &Alarm) -> Vec<Cell> {
    vec![
        cell(alarm.id),
        status(&word(&alarm.status)),
        short(Some(&alarm.label)),
        cell(when(alarm)),
        maybe(alarm.next_fire_at.map(age)),
        maybe(alarm.last_fired_at.map(age)),
        cell(alarm.failure_count),
        short(alarm.last_error.as_deref()),
    ]
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
    context.format.print(&whole, |whole| {
        let mut parts = vec![details(&whole.alarm)];
        if !whole.fires.is_empty() {
            parts.push(fires(&whole.fires));
        }
        if !whole.occurrences.is_empty() {
            parts.push(occurrences::rows(&whole.occurrences));
        }
        parts.push(events(&whole.events));
        parts.join("\n\n")
    })
}

fn events(events: &[AlarmEvent]) -> String {
    let row = |event: &AlarmEvent| {
        vec![
            cell(moment(event.at)),
            cell(&event.event),
            cell(&event.actor),
            maybe(event.detail.as_ref()),
        ]
    };
    table(&["AT", "EVENT", "BY", "DETAIL"], events.iter().map(row))
}

fn details(alarm: &Alarm) -> String {
    let misfire = match alarm.misfire {
        Misfire::CatchUp => format!("catch_up {}", alarm.catch_up),
        other => word(&other),
    };
    fields([
        ("ID", cell(alarm.id)),
        ("STATUS", status(&word(&alarm.status))),
        ("LABEL", cell(&alarm.label)),
        ("WORKSPACE", cell(alarm.workspace_id)),
        ("WHEN", cell(when(alarm))),
        ("IN WORDS", maybe(alarm.description.as_ref())),
        ("NEXT", maybe(alarm.next_fire_at.map(moment))),
        ("LAST FIRED", maybe(alarm.last_fired_at.map(moment))),
        ("FAILED TRIES", cell(alarm.failure_count)),
        ("FAILED IN A ROW", cell(alarm.failed_in_a_row)),
        ("LAST ERROR", maybe(alarm.last_error.as_ref())),
        (
            "TARGET",
            alarm.target_url.as_ref().map_or_else(|| cell("the router"), cell),
        ),
        ("USER", maybe(alarm.user_id.as_ref())),
        ("CONVERSATION", maybe(alarm.conversation_id.as_ref())),
        ("MESSAGE", maybe(alarm.message.as_ref())),
        ("PAYLOAD", json_cell(alarm.payload.as_deref())),
        ("MAX FAILURES", maybe(alarm.max_failures)),
        ("MISFIRE", cell(misfire)),
        ("OVERLAP", cell(word(&alarm.overlap))),
        ("DST", cell(word(&alarm.dst))),
        ("JITTER", cell(format!("{} s", alarm.jitter))),
        ("START", maybe(alarm.start_at.map(moment))),
        ("END", maybe(alarm.end_at.map(moment))),
        ("PAUSE AFTER", maybe(alarm.pause_after)),
        ("SET BY", cell(&alarm.set_by)),
        ("SET", cell(moment(alarm.created_at))),
        ("CHANGED", cell(moment(alarm.updated_at))),
    ])
}
