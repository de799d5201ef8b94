//! Look at alarms.

use anyhow::Result;
use clap::{Args, ValueEnum};
use comfy_table::Cell;
use serde::Serialize;
use stationmaster_core::alarms::inspect::{self, Alarm, Event, Filter, Occurrence};
use stationmaster_core::alarms::operate;
use stationmaster_core::id::{AlarmId, WorkspaceId};

use super::next::{Shown, fires};
use super::occurrences;
use crate::command::Context;
use crate::command::arguments::{id, is_full};
use crate::command::inspection::json_cell;
use crate::output::{age, cell, fields, maybe, moment, short, status, table};

/// Coming fires, and last occurrences, that are shown.
const SHOWN: usize = 10;

/// Which alarms.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only of this workspace
    #[arg(long, value_name = "ID", value_parser = id::<WorkspaceId>)]
    workspace: Option<WorkspaceId>,
    /// Only in this status
    #[arg(long, value_enum)]
    status: Option<Status>,
    /// Only of this kind
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// At most so many, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,
    /// Only those older than this one: where the last page ended
    #[arg(long, value_name = "ID", value_parser = id::<AlarmId>)]
    before: Option<AlarmId>,
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

/// The name of a choice, which is also what rows call it.
fn name<T: ValueEnum>(value: &T) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

pub(super) async fn list(args: &ListArgs, context: &Context) -> Result<()> {
    let filter = Filter {
        workspace: args.workspace,
        status: args.status.as_ref().and_then(name),
        kind: args.kind.as_ref().and_then(name),
        before: args.before,
        limit: args.limit,
    };
    let alarms = inspect::alarms(&context.database().await?, &filter).await?;
    context.format.print(&alarms[..], |alarms| {
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
    if let Some(last) = alarms.last().filter(|_| is_full(alarms.len(), args.limit)) {
        context
            .format
            .hint(&format!("There may be more: --before {}", last.id));
    }
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
        status(&alarm.status),
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
    events: Vec<Event>,
}

pub(super) async fn show(id: AlarmId, context: &Context) -> Result<()> {
    let database = context.database().await?;
    let Some(alarm) = inspect::alarm(&database, id).await? else {
        return Err(operate::Error::NotFound(id).into());
    };
    let limit = i64::try_from(SHOWN)?;
    let whole = Whole {
        fires: alarm
            .upcoming(jiff::Timestamp::now(), SHOWN)
            .into_iter()
            .map(Shown::from)
            .collect(),
        occurrences: inspect::occurrences(&database, id, None, None, limit).await?,
        events: inspect::events(&database, id).await?,
        alarm,
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

fn events(events: &[Event]) -> String {
    let row = |event: &Event| {
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
    let misfire = match alarm.misfire.as_str() {
        "catch_up" => format!("catch_up {}", alarm.catch_up),
        other => other.to_owned(),
    };
    fields([
        ("ID", cell(alarm.id)),
        ("STATUS", status(&alarm.status)),
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
        ("OVERLAP", cell(&alarm.overlap)),
        ("DST", cell(&alarm.dst)),
        ("JITTER", cell(format!("{} s", alarm.jitter))),
        ("START", maybe(alarm.start_at.map(moment))),
        ("END", maybe(alarm.end_at.map(moment))),
        ("PAUSE AFTER", maybe(alarm.pause_after)),
        ("SET BY", cell(&alarm.set_by)),
        ("SET", cell(moment(alarm.created_at))),
        ("CHANGED", cell(moment(alarm.updated_at))),
    ])
}
