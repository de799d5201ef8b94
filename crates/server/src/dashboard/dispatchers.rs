//! Dispatchers: who owns each, under which epoch, and what happened.

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::wire::{Dispatcher, DispatcherQuery, DispatcherState, PageQuery};

use super::Answer;
use super::fields::{Fields, segment};
use super::frame::Page;
use super::pieces::{Filter, act, counted, filters, lamp, maybe_time, nothing, pager, time};
use super::session::Visitor;

fn state_lamp(state: DispatcherState) -> Markup {
    match state {
        DispatcherState::Owned => lamp("good", "owned"),
        DispatcherState::Vacant => lamp("bad", "vacant"),
        DispatcherState::Resting => lamp("off", "resting"),
    }
}

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = DispatcherQuery {
        project: fields.owned("project"),
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let page = visitor.client.dispatchers(&query).await?;
    let body = html! {
        header.page {
            h1 { "Dispatchers" }
            @if visitor.administers_all() { div.actions { (act("Reconcile", "reconcile", &[], &visitor.here)) } }
        }
        (filters("/dispatchers", &fields, &[Filter::Text("project", "Project")]))
        section #dispatchers data-live {
            @if page.items.is_empty() { (nothing("There is none: the first signal of a project makes one.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Dispatcher" } th { "State" } th { "Owner" } th.number { "Epoch" } th { "Lease until" } th { "Heartbeat" } th.number { "Waiting" } th { "Oldest" } } }
                tbody { @for dispatcher in &page.items { tr data-key=(dispatcher.id) {
                    td { a href=(format!("/dispatchers/{}", segment(&dispatcher.id))) { (dispatcher.project) " · " (dispatcher.task_queue) } }
                    td { (state_lamp(dispatcher.state)) }
                    td { (owner(dispatcher).unwrap_or("nobody")) }
                    td.number { (dispatcher.epoch) }
                    td { (maybe_time(dispatcher.lease_until)) }
                    td { (maybe_time(dispatcher.heartbeat_at)) }
                    td.number { (counted(dispatcher.waiting, 999)) }
                    td { (maybe_time(dispatcher.oldest_waiting_at)) }
                } } }
            } } }
            (pager("/dispatchers", &fields, &["project"], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Dispatchers", body))
}

/// What the owner is called, while its lease holds.
fn owner(dispatcher: &Dispatcher) -> Option<&str> {
    let owned = dispatcher.state == DispatcherState::Owned;
    dispatcher.owner_name.as_deref().filter(|_| owned)
}

pub(super) async fn show(visitor: Visitor, Path(id): Path<String>) -> Answer {
    let dispatcher = visitor.client.dispatcher(&id).await?;
    let query = PageQuery {
        limit: Some(50),
        cursor: None,
    };
    let history = visitor.client.dispatcher_history(&id, &query).await?;
    let body = html! {
        header.page { h1 { (dispatcher.project) " · " (dispatcher.task_queue) } }
        section #dispatcher data-live {
            p { (state_lamp(dispatcher.state)) @if let Some(owner) = owner(&dispatcher) { " by " strong { (owner) } } ", epoch " (dispatcher.epoch) ", " (counted(dispatcher.waiting, 999)) " waiting" }
            dl.facts {
                dt { "Id" } dd { code { (dispatcher.id) } }
                dt { "Taken" } dd { (maybe_time(dispatcher.taken_at)) }
                dt { "Lease until" } dd { (maybe_time(dispatcher.lease_until)) }
                dt { "Run started" } dd { (maybe_time(dispatcher.run_started_at)) }
                @if let Some(run) = &dispatcher.run_id { dt { "Run" } dd { code { (run) } } }
                dt { "Heartbeat" } dd { (maybe_time(dispatcher.heartbeat_at)) }
            }
            h2 { "Servers that stand by" }
            ul.servers { @for server in &dispatcher.servers { li { @if server.alive { (lamp("good", "alive")) } @else { (lamp("bad", "silent")) } " " (server.name.clone().unwrap_or_else(|| server.server_id.to_string())) " " span.quiet { "since " (time(server.registered_at)) } } } }
        }
        section #history data-live {
            h2 { "What happened" }
            ol.timeline { @for event in &history.items { li.busy { div { strong { (event.event) } " " (time(event.at)) } div.quiet { @if let Some(server) = &event.server { span title=(event.actor) { "server " (server) } } @else { (event.actor) } @if let Some(epoch) = event.epoch { " · epoch " (epoch) } @if !event.detail.is_empty() { " · " (serde_json::to_string(&event.detail).unwrap_or_default()) } } } } }
        }
    };
    Ok(Page::new(dispatcher.id.clone(), body))
}
