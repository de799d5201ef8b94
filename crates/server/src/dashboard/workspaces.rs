//! Workspaces: how their slots are used, by whom and since when, and what waits.

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Execution, ExecutionQuery, ExecutionStatus, Obstacle, Order, PageQuery, Workspace,
};
use uuid::Uuid;

use super::Answer;
use super::fields::{Fields, segment};
use super::frame::Page;
use super::history::{self, Drawn};
use super::lists::{self, Column};
use super::overview::slots;
use super::pieces::{
    Filter, act, counted, filters, lamp, nothing, pager, short, since, time, workflow_link, workspace_link,
};
use super::session::Visitor;
use super::views;

const COLUMNS: [Column<Workspace>; 7] = [
    Column::text("name", "Workspace", |one, other| one.name.cmp(&other.name)),
    Column::text("plan", "Plan", |one, other| one.plan.cmp(&other.plan)),
    Column::plain("Slots"),
    Column::number("active", "In use", |one, other| one.active.cmp(&other.active)),
    Column::number("waiting", "Ready", |one, other| one.ready.cmp(&other.ready)),
    Column::number("weight", "Weight", |one, other| {
        one.weight.total_cmp(&other.weight)
    }),
    Column::text("since", "Since", |one, other| {
        one.created_at.cmp(&other.created_at)
    }),
];
/// Slots of a kind that a board shows at most.
const BOARD: usize = 100;
/// What a list of workspaces can be narrowed to.
const STATES: [(&str, &str); 3] = [
    ("full", "full"),
    ("waiting", "in which work waits"),
    ("paused", "paused"),
];

fn is_in(workspace: &Workspace, state: Option<&str>) -> bool {
    match state {
        Some("full") => workspace.active >= workspace.limit,
        Some("waiting") => workspace.ready > 0,
        Some("paused") => workspace.paused,
        _ => true,
    }
}

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let mut onward = None;
    let everything = lists::asked(&fields, &["state", "search"]);
    let mut whole = if everything {
        let next = |cursor| {
            let limit = Some(lists::CALL);
            let client = client.clone();
            async move { client.workspaces(&PageQuery { limit, cursor }).await }
        };
        lists::whole(next).await?
    } else {
        let query = PageQuery {
            limit: Some(100),
            cursor: fields.owned("cursor"),
        };
        let page = client.workspaces(&query).await?;
        onward = page.next_cursor;
        lists::Whole {
            items: page.items,
            cut: false,
        }
    };
    let text = fields.get("search").unwrap_or_default().to_lowercase();
    whole
        .items
        .retain(|workspace| is_in(workspace, fields.get("state")) && workspace.name.contains(&text));
    lists::arrange(&mut whole.items, &fields, &COLUMNS);
    let shown = lists::part(&whole.items, &fields);
    let body = html! {
        header.page { h1 { "Workspaces" } }
        (filters("/workspaces", &fields, &[Filter::Choice("state", "Which", &STATES), Filter::Text("search", "In the name")]))
        (views::shelf(&visitor, "/workspaces").await)
        section #workspaces data-live {
            @if shown.is_empty() { (nothing("There is none.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { (lists::heads("/workspaces", &fields, &COLUMNS)) }
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
            @if everything { (lists::turner("/workspaces", &fields, &whole)) }
            @else { (pager("/workspaces", &fields, &[], onward.as_deref())) }
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
            order: Some(Order::Oldest),
            ..ExecutionQuery::default()
        };
        holders.extend(client.executions(&query).await?.items);
    }
    holders.sort_by_key(|execution| execution.claimed_at);
    let backlog = client.backlog(workspace.id).await?;
    let full = !workspace.paused && workspace.active >= workspace.limit && workspace.ready > 0;
    let held = match holders.first() {
        Some(oldest) if full => held_up(client, oldest.id).await,
        _ => None,
    };
    let charts = history::draw(
        &visitor,
        &fields,
        Drawn {
            path: &format!("/workspaces/{}", segment(&workspace.name)),
            workspace: Some(workspace.id.into()),
            workflow: None,
            server: None,
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
            @if let Some((execution, obstacle)) = &held {
                p.banner.warn { "It is full, and " (counted(workspace.ready, 10_000)) " wait. " a href=(format!("/executions/{execution}")) { "Its oldest run" } " does not go on: " (obstacle) ". A higher limit would not help for long." }
            } @else if full {
                p.banner { "It is full, and " (counted(workspace.ready, 10_000)) " wait: a higher limit would let more run." }
            }
            (board(&workspace, &holders))
        }
        section #charts data-live { (charts) }
        section #pending data-live {
            h2 { "What waits" }
            @if backlog.is_empty() { (nothing("Nothing waits.")) }
            @else { table.rows {
                thead { tr { th { "Workflow" } th.number { "Ready" } th.number { "Held" } th { "Oldest" } th {} } }
                tbody { @for waits in &backlog { tr data-key=(waits.workflow_definition_id) {
                    td { (workflow_link(waits.workflow.as_deref(), waits.workflow_definition_id)) @if waits.parked > 0 { " " (lamp("wait", "paused")) } }
                    td.number { (counted(waits.ready, 9_999)) }
                    td.number { (counted(waits.parked, 9_999)) }
                    td { (time(waits.oldest_at)) }
                    td { a href=(super::fields::address("/queue", &[("workspace", workspace.name.as_str()), ("workflow", &waits.workflow_definition_id.to_string()), ("status", "PENDING")])) { "Show" } }
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

/// A run and what keeps it from going on, when the engine knows.
pub(super) async fn held_up(client: &Client, execution: Uuid) -> Option<(Uuid, Obstacle)> {
    let obstacle = client.execution(execution).await.ok()?.obstacle?;
    Some((execution, obstacle))
}

/// The slots as a board: what is in each, and since when.
fn board(workspace: &Workspace, holders: &[Execution]) -> Markup {
    // Of very many holders not all were read; how many there are, the workspace says.
    let free = usize::try_from(workspace.limit - workspace.active).unwrap_or_default();
    let shown = holders.len().min(BOARD);
    let taken = usize::try_from(workspace.active).unwrap_or_default();
    html! {
        ol.board {
            @for holder in holders.iter().take(BOARD) {
                li.taken {
                    a href=(format!("/executions/{}", holder.id)) title=(about(holder)) { (holder.workflow.clone().unwrap_or_else(|| short(holder.id))) }
                    span.quiet { @if let Some(at) = holder.claimed_at { (since(at)) } }
                }
            }
            @for _ in 0..free.min(BOARD) { li.free { span.quiet { "free" } } }
        }
        @if taken > shown { p.quiet { "Of " (taken) " slots in use, " (shown) " are shown." } }
        @if free > BOARD { p.quiet { "Of " (free) " free slots, " (BOARD) " are shown." } }
    }
}

/// Who holds a slot, in words.
fn about(holder: &Execution) -> String {
    let workflow = holder.workflow.as_deref().unwrap_or("a workflow that is gone");
    let mut words = format!("{workflow} · execution {}", short(holder.id));
    if let Some(at) = holder.claimed_at {
        words.push_str(&at.strftime(" · since %Y-%m-%d %H:%M:%S UTC").to_string());
    }
    words.push_str(" · ");
    words.push_str(holder.status.as_str());
    words
}
