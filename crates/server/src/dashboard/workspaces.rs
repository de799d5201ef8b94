//! Workspaces: how their slots are used, by whom and since when, and what waits.

use std::collections::BTreeMap;

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::wire::{
    Execution, ExecutionQuery, ExecutionStatus, ItemStatus, PageQuery, QueueQuery, Workspace,
};

use super::Answer;
use super::fields::{Fields, segment};
use super::frame::Page;
use super::history::{self, Drawn};
use super::overview::slots;
use super::pieces::{act, counted, lamp, nothing, pager, short, since, time, workflow_link, workspace_link};
use super::session::Visitor;

/// Pending items looked at to tell which workflows they are of.
const LOOKED_AT: u32 = 500;

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = PageQuery {
        limit: Some(100),
        cursor: fields.owned("cursor"),
    };
    let page = visitor.client.workspaces(&query).await?;
    let only_full = fields.get("full").is_some();
    let mut shown: Vec<&Workspace> = page
        .items
        .iter()
        .filter(|workspace| !only_full || workspace.active >= workspace.limit)
        .collect();
    match fields.get("sort") {
        Some("waiting") => shown.sort_by_key(|workspace| -workspace.ready),
        Some("active") => shown.sort_by_key(|workspace| -workspace.active),
        Some("name") => shown.sort_by(|one, other| one.name.cmp(&other.name)),
        _ => {}
    }
    let body = html! {
        header.page { h1 { "Workspaces" } }
        div.range role="group" aria-label="Order" {
            @for (value, word) in [("name", "by name"), ("active", "by slots in use"), ("waiting", "by what waits")] {
                a href=(super::fields::address("/workspaces", &[("sort", value)])) aria-current=[(fields.get("sort") == Some(value)).then_some("true")] { (word) }
            }
            a href="/workspaces?full=yes" aria-current=[only_full.then_some("true")] { "only full ones" }
        }
        section #workspaces data-live {
            @if shown.is_empty() { (nothing("There is none.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Workspace" } th { "Plan" } th { "Slots" } th.number { "In use" } th.number { "Ready" } th.number { "Weight" } th { "Since" } } }
                tbody { @for workspace in shown { tr data-key=(workspace.id) {
                    td { (workspace_link(Some(&workspace.name), workspace.id)) @if workspace.paused { " " (lamp("wait", "paused")) } }
                    td { (workspace.plan) }
                    td { (slots(workspace)) }
                    td.number { (workspace.active) " of " (workspace.limit) }
                    td.number { (counted(workspace.ready, 10_000)) }
                    td.number { (workspace.weight) }
                    td { (time(workspace.created_at)) }
                } } }
            } } }
            (pager("/workspaces", &fields, &["sort", "full"], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Workspaces", body))
}

pub(super) async fn show(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Answer {
    let client = &visitor.client;
    let workspace = client.workspace(id.as_str()).await?;
    let mut holders = Vec::new();
    for status in [ExecutionStatus::Running, ExecutionStatus::Starting] {
        let query = ExecutionQuery {
            workspace_id: Some(workspace.id.into()),
            status: Some(status),
            limit: Some(200),
            ..ExecutionQuery::default()
        };
        holders.extend(client.executions(&query).await?.items);
    }
    holders.sort_by_key(|execution| execution.claimed_at);
    let query = QueueQuery {
        workspace_id: Some(workspace.id.into()),
        status: Some(ItemStatus::Pending),
        limit: Some(LOOKED_AT),
        ..QueueQuery::default()
    };
    let pending = client.queue(&query).await?;
    let mut by_workflow: BTreeMap<(String, uuid::Uuid), (usize, jiff::Timestamp)> = BTreeMap::new();
    for item in &pending.items {
        let name = item
            .workflow
            .clone()
            .unwrap_or_else(|| short(item.workflow_definition_id));
        let entry = by_workflow
            .entry((name, item.workflow_definition_id))
            .or_insert((0, item.created_at));
        *entry = (entry.0 + 1, entry.1.min(item.created_at));
    }
    let charts = history::draw(
        &visitor,
        &fields,
        Drawn {
            path: &format!("/workspaces/{}", segment(&workspace.name)),
            workspace: Some(workspace.id.into()),
            workflow: None,
            limit: Some(workspace.limit),
        },
    )
    .await?;
    let pairs = [("id", workspace.name.as_str())];
    let body = html! {
        header.page {
            h1 { (workspace.name) @if workspace.paused { " " (lamp("wait", "paused")) } }
            div.actions {
                @if visitor.operates() {
                    @if workspace.paused { (act("Resume", "resume-workspace", &pairs, &visitor.here)) }
                    @else { (act("Pause", "pause-workspace", &pairs, &visitor.here)) }
                }
                @if visitor.administers() { (act("Plan and limit", "change-workspace", &pairs, &visitor.here)) }
            }
        }
        section #use data-live {
            p { "Plan " strong { (workspace.plan) } ", " (workspace.active) " of " (workspace.limit) " slots in use, " (counted(workspace.ready, 10_000)) " ready to be admitted." }
            @if !workspace.paused && workspace.active >= workspace.limit && workspace.ready > 0 {
                p.banner { "It is full, and " (counted(workspace.ready, 10_000)) " wait: a higher limit would let more run." }
            }
            (board(&workspace, &holders))
        }
        section #charts data-live { (charts) }
        section #pending data-live {
            h2 { "What waits" }
            @if by_workflow.is_empty() { (nothing("Nothing waits.")) }
            @else { table.rows {
                thead { tr { th { "Workflow" } th.number { "Waiting" } th { "Oldest" } th {} } }
                tbody { @for ((name, id), (count, oldest)) in &by_workflow { tr data-key=(id) {
                    td { (workflow_link(Some(name), *id)) }
                    td.number { (count) @if pending.next_cursor.is_some() { " or more" } }
                    td { (time(*oldest)) }
                    td { a href=(super::fields::address("/queue", &[("workspace", workspace.name.as_str()), ("workflow", &id.to_string()), ("status", "PENDING")])) { "Show" } }
                } } }
            } }
        }
        p {
            a href=(super::fields::address("/executions", &pairs.map(|(_, name)| ("workspace", name)))) { "Executions" } " · "
            a href=(super::fields::address("/queue", &[("workspace", workspace.name.as_str())])) { "Queue" } " · "
            a href=(super::fields::address("/failures", &[("workspace", workspace.name.as_str())])) { "Failures" } " · "
            a href=(super::fields::address("/workflows", &[("workspace", workspace.name.as_str())])) { "Workflows" } " · "
            a href=(super::fields::address("/alarms", &[("workspace", workspace.name.as_str())])) { "Alarms" }
        }
    };
    Ok(Page::new(workspace.name.clone(), body))
}

/// The slots as a board: what is in each, and since when.
fn board(workspace: &Workspace, holders: &[Execution]) -> Markup {
    let free = usize::try_from(workspace.limit)
        .unwrap_or_default()
        .saturating_sub(holders.len());
    html! {
        ol.board {
            @for holder in holders.iter().take(100) {
                li.taken {
                    a href=(format!("/executions/{}", holder.id)) title=(holder.id) { (holder.workflow.clone().unwrap_or_else(|| short(holder.id))) }
                    span.quiet { @if let Some(at) = holder.claimed_at { (since(at)) } }
                }
            }
            @for _ in 0..free.min(100) { li.free { span.quiet { "free" } } }
        }
        @if holders.len() > 100 || free > 100 { p.quiet { "Of " (workspace.limit) " slots, the first are shown." } }
    }
}
