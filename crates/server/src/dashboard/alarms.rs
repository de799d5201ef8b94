//! Alarms: when all of them fire next, how each stands, and what came of its occurrences.

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::wire::{
    Alarm, AlarmKind, AlarmQuery, AlarmStatus, OccurrenceQuery, PageQuery, Upcoming,
};
use stationmaster_client::{Client, Error};

use super::Answer;
use super::fields::Fields;
use super::frame::{Page, Trouble};
use super::lists::{self, Column};
use super::misspelt::{self, List};
use super::overview::called;
use super::pieces::{
    Filter, act, alarm_lamp, document, filters, maybe_time, nothing, occurrence_lamp, pager, time,
    workspace_link,
};
use super::session::Visitor;
use super::{calendar, ticks, views};

const STATUSES: [(&str, &str); 5] = [
    ("active", "active"),
    ("paused", "paused"),
    ("failed", "failed"),
    ("fired", "over"),
    ("cancelled", "cancelled"),
];
const FILTERS: [Filter<'_>; 4] = [
    Filter::Choice("status", "Status", &STATUSES),
    Filter::Choice("kind", "Kind", &[("cron", "again and again"), ("once", "once")]),
    Filter::Name("workspace", "Workspace", "workspace"),
    Filter::Text("search", "In label, target or error"),
];
const LIST: List<'_> = List {
    title: "Alarms",
    path: "/alarms",
    filters: &FILTERS,
};
const KEPT: [&str; 5] = ["workspace", "status", "kind", "search", "ahead"];

/// The columns of the list.
const COLUMNS: [Column<Alarm>; 7] = [
    Column::text("name", "Alarm", |one, other| {
        called(one).to_lowercase().cmp(&called(other).to_lowercase())
    }),
    Column::text("workspace", "Workspace", |one, other| {
        one.workspace.cmp(&other.workspace)
    }),
    Column::text("status", "Status", |one, other| {
        one.status.as_str().cmp(other.status.as_str())
    }),
    Column::plain("When"),
    Column::text("next", "Next", |one, other| {
        // What fires no more comes last.
        (one.next_fire_at.is_none(), one.next_fire_at)
            .cmp(&(other.next_fire_at.is_none(), other.next_fire_at))
    }),
    Column::text("last", "Last fired", |one, other| {
        other.last_fired_at.cmp(&one.last_fired_at)
    }),
    Column::text("trouble", "Trouble", |one, other| {
        other.failed_in_a_row.cmp(&one.failed_in_a_row)
    }),
];

/// What the filters of an address ask for.
pub(super) fn query_of(fields: &Fields) -> Result<AlarmQuery, Trouble> {
    Ok(AlarmQuery {
        workspace_id: fields.reference("workspace"),
        status: fields.parse::<AlarmStatus>("status")?,
        kind: fields.parse::<AlarmKind>("kind")?,
        search: fields.owned("search"),
        limit: Some(lists::CALL),
        cursor: None,
    })
}

/// All alarms that the query asks for, page after page.
pub(super) async fn all_of(client: &Client, query: &AlarmQuery) -> Result<lists::Whole<Alarm>, Error> {
    let next = |cursor| {
        let (client, query) = (
            client.clone(),
            AlarmQuery {
                cursor,
                ..query.clone()
            },
        );
        async move { client.alarms(&query).await }
    };
    lists::whole(next).await
}

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let query = query_of(&fields)?;
    let found = if lists::asked(&fields, &[]) {
        all_of(client, &query).await.map(|whole| (whole, None))
    } else {
        let query = AlarmQuery {
            limit: Some(100),
            cursor: fields.owned("cursor"),
            ..query.clone()
        };
        client.alarms(&query).await.map(lists::first)
    };
    let (mut whole, onward) = match found {
        Ok(found) => found,
        Err(error) => return misspelt::explain(&visitor, &fields, &LIST, error).await,
    };
    lists::arrange(&mut whole.items, &fields, &COLUMNS);
    let calendar = calendar::show(&visitor, &fields).await?;
    let narrowed: Vec<(&str, &str)> = ["workspace", "status", "kind", "search"]
        .into_iter()
        .filter_map(|name| Some((name, fields.get(name)?)))
        .collect();
    let pauses = matches!(query.status, None | Some(AlarmStatus::Active));
    let resumes = query.status == Some(AlarmStatus::Paused);
    let shown = lists::part(&whole.items, &fields);
    let body = html! {
        header.page {
            h1 { "Alarms" }
            @if visitor.operates() {
                div.actions {
                    a.button.primary href="/alarms/new" { "Set an alarm" }
                    @if pauses { (act("Pause all of these", "pause-alarms", &narrowed, &visitor.here)) }
                    @if resumes { (act("Resume all of these", "resume-alarms", &narrowed, &visitor.here)) }
                }
            }
        }
        (filters("/alarms", &fields, &FILTERS))
        (views::shelf(&visitor, "/alarms").await)
        section #line data-live { (calendar) }
        section #alarms data-live {
            h2 { "All of them" }
            @if shown.is_empty() { (nothing("Nothing matches.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { (lists::heads_after(ticks::head(&visitor), "/alarms", &fields, &COLUMNS)) }
                tbody { @for alarm in shown { tr data-key=(alarm.id) {
                    (ticks::cell(&visitor, alarm.id, &called(alarm)))
                    td { a href=(format!("/alarms/{}", alarm.id)) { (called(alarm)) } }
                    td { (workspace_link(alarm.workspace.as_deref(), alarm.workspace_id)) }
                    td { (alarm_lamp(alarm.status)) }
                    td { @if let Some(words) = &alarm.description { (words) } @else { "once" } @if let Some(zone) = &alarm.timezone { " " span.quiet { (zone) } } }
                    td { (maybe_time(alarm.next_fire_at)) }
                    td { (maybe_time(alarm.last_fired_at)) }
                    td.long { @if alarm.failed_in_a_row > 0 { (alarm.failed_in_a_row) " failed in a row" } @if let Some(error) = &alarm.last_error { " " (error) } }
                } } }
            } } }
            @if lists::asked(&fields, &[]) { (lists::turner("/alarms", &fields, &whole)) }
            @else { (pager("/alarms", &fields, &KEPT, onward.as_deref())) }
        }
        @if !shown.is_empty() { (ticks::bar(&visitor, &[("Pause", "pause-alarms"), ("Resume", "resume-alarms")])) }
    };
    Ok(Page::new("Alarms", body))
}

/// The next fires in words, with what moving clocks do to them.
pub(super) fn coming(upcoming: &[Upcoming]) -> Markup {
    html! {
        @if upcoming.is_empty() { (nothing("It fires no more.")) }
        ol.fires { @for fire in upcoming { li { (time(fire.at)) " " code { (fire.local) } @if let Some(note) = &fire.note { " " strong.note { (note) } } } } }
    }
}

pub(super) async fn show(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Answer {
    let client = &visitor.client;
    let details = client.alarm(id.as_str()).await?;
    let alarm = &details.alarm;
    let query = OccurrenceQuery {
        status: None,
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let occurrences = client.occurrences(alarm.id, &query).await?;
    let events = client
        .alarm_history(
            alarm.id,
            &PageQuery {
                limit: Some(20),
                cursor: None,
            },
        )
        .await?;
    let id = alarm.id.to_string();
    let pairs = [("id", id.as_str())];
    let over = matches!(
        alarm.status,
        AlarmStatus::Fired | AlarmStatus::Cancelled | AlarmStatus::Failed
    );
    let path = format!("/alarms/{id}");
    let body = html! {
        header.page {
            h1 { (called(alarm)) }
            @if visitor.operates() { div.actions {
                @if !over { a.button href=(format!("{path}/edit")) { "Edit" } }
                (act("Fire now", "fire-alarm", &pairs, &path))
                @if alarm.status == AlarmStatus::Paused { (act("Resume", "resume-alarm", &pairs, &path)) }
                @else if alarm.status == AlarmStatus::Active { (act("Pause", "pause-alarm", &pairs, &path)) }
                @if alarm.kind == AlarmKind::Cron { (act("Backfill", "backfill", &pairs, &path)) }
                @if !over { (act("Cancel", "cancel-alarm", &pairs, &path)) }
            } }
        }
        section #alarm data-live {
            p { (alarm_lamp(alarm.status)) " in " (workspace_link(alarm.workspace.as_deref(), alarm.workspace_id)) @if let Some(words) = &alarm.description { " · " strong { (words) } } @if let Some(zone) = &alarm.timezone { " · " (zone) } }
            @if let Some(error) = &alarm.last_error { pre.error tabindex="0" { (error) } }
        }
        div.columns {
            section #coming data-live { h2 { "Coming fires" } (coming(&details.upcoming)) }
            section #facts data-live { h2 { "How it is set" } (facts(alarm)) }
        }
        section #occurrences data-live {
            h2 { "Occurrences" }
            @if occurrences.items.is_empty() { (nothing("It has not fired yet.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Nominal instant" } th { "Status" } th { "Origin" } th.number { "Failed tries" } th { "Settled" } th { "Answer" } } }
                tbody { @for occurrence in &occurrences.items { tr data-key=(occurrence.scheduled_for) {
                    td { (time(occurrence.scheduled_for)) @if let Some(note) = &occurrence.note { " " strong.note { (note) } } }
                    td { (occurrence_lamp(occurrence.status)) @if let Some(retry) = occurrence.retry_at { " again " (time(retry)) } }
                    td { (occurrence.origin) @if let Some(covers) = occurrence.covers.filter(|covers| *covers > 1) { " for " (covers) } }
                    td.number { (occurrence.attempts) }
                    td { (maybe_time(occurrence.finished_at)) }
                    td.long { @if let Some(status) = occurrence.answer_status { (status) " " } @if let Some(error) = &occurrence.last_error { (error) } @else if let Some(answer) = &occurrence.answer { (answer) } @else if let Some(reason) = &occurrence.reason { (reason) } }
                } } }
            } } }
            (pager(&path, &fields, &[], occurrences.next_cursor.as_deref()))
        }
        section #history data-live {
            h2 { "What was done to it" }
            ol.timeline { @for event in &events.items { li.wait { div { strong { (event.event) } " " (time(event.at)) } div.quiet { (event.actor) @if let Some(detail) = &event.detail { " · " (detail) } } } } }
        }
    };
    Ok(Page::new(called(alarm), body))
}

fn facts(alarm: &Alarm) -> Markup {
    html! {
        dl.facts {
            @if let Some(cron) = &alarm.cron_expr { dt { "Expression" } dd { code { (cron) } } }
            @if let Some(civil) = &alarm.civil_at { dt { "Local time" } dd { (civil) } }
            @if let Some(at) = alarm.fire_at { dt { "Once at" } dd { (time(at)) } }
            dt { "Target" } dd { (alarm.target_url.as_deref().unwrap_or("the router")) }
            @if let Some(message) = &alarm.message { dt { "Message" } dd { (message) } }
            dt { "Missed ones" } dd { (alarm.misfire) }
            dt { "Overlap" } dd { (alarm.overlap) }
            @if let Some(after) = alarm.pause_after { dt { "Paused after" } dd { (after) " failures in a row" } }
            dt { "Moving clocks" } dd { (alarm.dst) }
            dt { "Last fired" } dd { (maybe_time(alarm.last_fired_at)) }
            dt { "Set" } dd { (time(alarm.created_at)) " by " (alarm.set_by) }
            dt { "Id" } dd { code { (alarm.id) } }
        }
        @if alarm.payload.is_some() { (document("Payload", alarm.payload.as_deref())) }
    }
}
