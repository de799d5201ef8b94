//! Signals and dead letters.

use axum::extract::Path;
use maud::html;
use stationmaster_client::wire::{SignalQuery, SignalStatus, TriggerQuery};

use super::Answer;
use super::fields::{Fields, segment};
use super::frame::Page;
use super::pieces::{
    Filter, act, document, execution_link, filters, item_link, maybe_time, nothing, pager, signal_lamp, time,
    workflow_link,
};
use super::session::Visitor;

const STATUSES: [(&str, &str); 3] = [
    ("PENDING", "waiting"),
    ("ROUTED", "routed"),
    ("DEAD", "dead letters"),
];

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let status = fields.parse::<SignalStatus>("status")?;
    let query = SignalQuery {
        project: fields.owned("project"),
        name: fields.owned("name"),
        status,
        limit: Some(50),
        cursor: fields.owned("cursor"),
        ..SignalQuery::default()
    };
    let page = client.signals(&query).await?;
    let triggers = client
        .triggers(&TriggerQuery {
            project: fields.owned("project"),
            limit: Some(50),
            ..TriggerQuery::default()
        })
        .await?;
    let narrowed: Vec<(&str, &str)> = fields
        .get("project")
        .map(|project| ("project", project))
        .into_iter()
        .collect();
    let body = html! {
        header.page {
            h1 { "Signals" }
            @if visitor.operates() && status == Some(SignalStatus::Dead) && !page.items.is_empty() {
                div.actions { (act("Replay all dead letters", "replay-all", &narrowed, &visitor.here)) }
            }
        }
        (filters("/signals", &fields, &[Filter::Choice("status", "Status", &STATUSES), Filter::Text("project", "Project"), Filter::Text("name", "Name")]))
        section #signals data-live {
            @if page.items.is_empty() { (nothing("Nothing matches.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Signal" } th { "Project" } th { "Name" } th { "Status" } th { "Came" } th { "What came of it" } } }
                tbody { @for signal in &page.items { tr data-key=(signal.id) {
                    td.long { a href=(format!("/signals/{}/{}", segment(&signal.project), segment(&signal.id))) { (signal.id) } }
                    td { (signal.project) }
                    td { (signal.name) }
                    td { (signal_lamp(signal.status)) }
                    td { (time(signal.received_at)) }
                    td.long {
                        @if let Some(id) = signal.execution_id { (execution_link(id)) } @else if let Some(id) = signal.queue_item_id { (item_link(id)) }
                        @if let Some(reason) = &signal.reason { (reason) @if let Some(detail) = &signal.detail { ": " (detail) } }
                    }
                } } }
            } } }
            (pager("/signals", &fields, &["status", "project", "name"], page.next_cursor.as_deref()))
        }
        section #triggers data-live {
            h2 { "Triggers" }
            @if triggers.items.is_empty() { (nothing("No signal starts anything.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Project" } th { "Signal" } th { "Task queue" } th { "Starts" } th.number { "Priority" } } }
                tbody { @for trigger in &triggers.items { tr {
                    td { (trigger.project) } td { (trigger.name) } td { (trigger.task_queue.as_deref().unwrap_or("any")) }
                    td { (workflow_link(trigger.workflow.as_deref(), trigger.workflow_definition_id)) }
                    td.number { (trigger.priority) }
                } } }
            } } }
        }
    };
    Ok(Page::new("Signals", body))
}

pub(super) async fn show(visitor: Visitor, Path((project, id)): Path<(String, String)>) -> Answer {
    let signal = visitor.client.signal_of(&project, &id).await?;
    let body = html! {
        header.page {
            h1 { (signal.name) }
            @if visitor.operates() && signal.status == SignalStatus::Dead {
                div.actions { (act("Replay", "replay", &[("project", &project), ("id", &id)], &visitor.here)) }
            }
        }
        section #signal data-live {
            p { (signal_lamp(signal.status)) @if let Some(reason) = &signal.reason { " " strong { (reason) } @if let Some(detail) = &signal.detail { ": " (detail) } } }
            dl.facts {
                dt { "Id" } dd { code { (signal.id) } }
                dt { "Project" } dd { (signal.project) }
                dt { "Task queue" } dd { (signal.task_queue) }
                dt { "Came" } dd { (time(signal.received_at)) " from " (signal.sent_by) }
                dt { "Settled" } dd { (maybe_time(signal.settled_at)) @if let Some(epoch) = signal.epoch { ", epoch " (epoch) } }
                dt { "Dispatcher" } dd { a href=(format!("/dispatchers/{}", segment(&signal.dispatcher_id))) { (signal.dispatcher_id) } }
                @if let Some(id) = signal.queue_item_id { dt { "Item" } dd { (item_link(id)) } }
                @if let Some(id) = signal.execution_id { dt { "Execution" } dd { (execution_link(id)) } }
                @if signal.replays > 0 { dt { "Put back" } dd { (signal.replays) " times" } }
                @if let Some(reference) = &signal.correlation_id { dt { "Correlation id" } dd { code { (reference) } } }
            }
            (document("Payload", signal.payload.as_deref()))
        }
    };
    Ok(Page::new(signal.name.clone(), body))
}
