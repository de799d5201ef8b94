//! The queue: what waits, what is under way, and what became of it.

use std::collections::HashMap;

use futures::future::join;
use maud::{Markup, html};
use stationmaster_client::Client;
use stationmaster_client::wire::{
    ItemStatus, QueueCountQuery, QueueItem, QueueOrder, QueueQuery, WaitingReason,
};
use uuid::Uuid;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::item::why;
use super::lists::{tally, turned};
use super::misspelt::{self, List};
use super::pieces::{
    Filter, SINCE, act, filters, item_lamp, item_link, none_found, pager, short, since_then, time,
    workflow_link, workspace_link,
};
use super::session::Visitor;
use super::{ticks, views};

const STATUSES: [(&str, &str); 5] = [
    ("PENDING", "waiting"),
    ("CLAIMED", "being started"),
    ("DISPATCHED", "started"),
    ("FAILED", "could not be started"),
    ("CANCELLED", "cancelled"),
];
const FILTERS: [Filter<'_>; 5] = [
    Filter::Choice("status", "Status", &STATUSES),
    Filter::Name("workspace", "Workspace", "workspace"),
    Filter::Name("workflow", "Workflow", "workflow"),
    Filter::Choice("since", "Enqueued", &SINCE),
    Filter::Text("search", "In input or error"),
];
const LIST: List<'_> = List {
    title: "Queue",
    path: "/queue",
    filters: &FILTERS,
};
/// What can be done to the rows that are ticked.
const TICKED: [(&str, &str); 3] = [
    ("Cancel", "cancel-these"),
    ("Retry", "retry-these"),
    ("Priority", "prefer-these"),
];
const KEPT: [&str; 6] = ["workspace", "workflow", "status", "since", "search", "sort"];

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let status = fields.parse::<ItemStatus>("status")?;
    // Each workspace has a line of its own.
    let in_line = fields.get("workspace").is_some() && matches!(status, None | Some(ItemStatus::Pending));
    let order = fields.parse::<QueueOrder>("sort")?.unwrap_or_default();
    let order = Some(order).filter(|order| *order != QueueOrder::Next || in_line);
    let query = QueueQuery {
        workspace_id: fields.reference("workspace"),
        workflow_definition_id: fields.reference("workflow"),
        status,
        created_after: since_then(&fields),
        created_before: None,
        search: fields.owned("search"),
        order,
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let counted = QueueCountQuery {
        workspace_id: query.workspace_id.clone(),
        workflow_definition_id: query.workflow_definition_id.clone(),
        created_after: query.created_after,
        created_before: None,
    };
    let (page, counts) = join(client.queue(&query), counts(client, &counted, &fields)).await;
    let page = match page {
        Ok(page) => page,
        Err(error) => return misspelt::explain(&visitor, &fields, &LIST, error).await,
    };
    let reasons = reasons(client, &page.items).await;
    let narrowed: Vec<(&str, &str)> = ["workspace", "workflow", "since"]
        .into_iter()
        .filter_map(|name| Some((name, fields.get(name)?)))
        .collect();
    let mut with_status = narrowed.clone();
    with_status.extend(fields.get("status").map(|status| ("status", status)));
    let mut to_retry = with_status.clone();
    to_retry.push(("status_of", "item"));
    let searched = fields.get("search").is_some();
    let waits = matches!(query.status, None | Some(ItemStatus::Pending));
    let ended = matches!(query.status, Some(ItemStatus::Failed | ItemStatus::Cancelled));
    // What ended is told by when it ended, and not by when it was enqueued.
    let again = ended && fields.get("since").is_none();
    let body = html! {
        header.page {
            h1 { "Queue" }
            @if visitor.operates() && !searched {
                div.actions {
                    @if waits { (act("Priority of what waits", "set-priorities", &narrowed, &visitor.here)) }
                    @if again { (act("Retry all of these", "retry-all", &to_retry, &visitor.here)) }
                    @if !ended { (act("Cancel all of these", "cancel-all", &with_status, &visitor.here)) }
                }
            }
        }
        (filters("/queue", &fields, &FILTERS))
        (views::shelf(&visitor, "/queue").await)
        section #counts data-live { (counts) }
        section #items data-live {
            @if order == Some(QueueOrder::Next) { p.quiet { "What is ready in " (fields.get("workspace").unwrap_or_default()) ", in the order in which it goes." } }
            @if page.items.is_empty() { (none_found(page.next_cursor.is_some())) }
            @else { (rows(&visitor, &page.items, &reasons, &heads(&visitor, &fields, order, in_line))) }
            (pager("/queue", &fields, &KEPT, page.next_cursor.as_deref()))
        }
        @if !page.items.is_empty() { (ticks::bar(&visitor, &TICKED)) }
    };
    Ok(Page::new("Queue", body))
}

/// Why each of those that wait does. One that has left the queue meanwhile has no reason; and where none can be had, the list still tells the
/// first obstacle of each.
async fn reasons(client: &Client, items: &[QueueItem]) -> HashMap<Uuid, Markup> {
    let pending: Vec<Uuid> = items
        .iter()
        .filter(|item| item.status == ItemStatus::Pending)
        .map(|item| item.id)
        .collect();
    if pending.is_empty() {
        return HashMap::new();
    }
    let Ok(waits) = client.waits(&pending).await else {
        return HashMap::new();
    };
    let told = waits
        .items
        .iter()
        .filter_map(|wait| Some((wait.id, why(wait, waits.counted)?)));
    told.collect()
}

/// How many there are in each status. A search tells of the rows it found alone; and a list is shown without them when they cannot be had.
async fn counts(client: &Client, query: &QueueCountQuery, fields: &Fields) -> Markup {
    let counts = match fields.get("search") {
        None => client.queue_counts(query).await.unwrap_or_default(),
        Some(_) => Vec::new(),
    };
    let of = |(status, word): &(&'static str, &'static str)| {
        let count = counts.iter().find(|count| count.status.as_str() == *status)?;
        let class = match count.status {
            ItemStatus::Pending => "wait",
            ItemStatus::Claimed | ItemStatus::Dispatched => "busy",
            ItemStatus::Failed => "bad",
            ItemStatus::Cancelled => "off",
        };
        Some((*status, *word, class, count.count, count.more))
    };
    let counts: Vec<_> = STATUSES.iter().filter_map(of).collect();
    html! { @if !counts.is_empty() { (tally("/queue", fields, &counts)) } }
}

/// The heads of the columns; by some the server sorts.
fn heads(visitor: &Visitor, fields: &Fields, order: Option<QueueOrder>, in_line: bool) -> Markup {
    let order = order.unwrap_or_default();
    let (to, enqueued) = match order {
        QueueOrder::Newest => (Some("oldest"), Some("descending")),
        QueueOrder::Oldest => (None, Some("ascending")),
        QueueOrder::Next => (None, None),
    };
    let next = order == QueueOrder::Next;
    let line = next.then_some("descending");
    html! { tr {
        (ticks::head(visitor)) th { "Item" } th { "Workspace" } th { "Workflow" } th { "Status" }
        th.number aria-sort=[line] {
            @if in_line { (turned("/queue", fields, ("Priority", "In the order in which they go"), (!next).then_some("next"), line)) } @else { "Priority" }
        }
        th aria-sort=[enqueued] { (turned("/queue", fields, ("Enqueued", "Newest or oldest first"), to, enqueued)) }
        th { "Why, or what came of it" }
    } }
}

fn rows(visitor: &Visitor, items: &[QueueItem], reasons: &HashMap<Uuid, Markup>, heads: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" { table.rows.cards {
            thead { (heads) }
            tbody { @for item in items {
                tr data-key=(item.id) {
                    (ticks::cell(visitor, item.id, &short(item.id)))
                    td { (item_link(item.id)) }
                    td { (workspace_link(item.workspace.as_deref(), item.workspace_id)) }
                    td { (workflow_link(item.workflow.as_deref(), item.workflow_definition_id)) }
                    td { (item_lamp(item.status, item.outcome)) }
                    td.number { (item.priority) }
                    td { (time(item.created_at)) }
                    td.long {
                        @if let Some(reason) = reasons.get(&item.id) { (reason) }
                        @else if let Some(reason) = item.waits_for { (waits_for(reason)) }
                        @else if let Some(error) = &item.last_error { (error) }
                    }
                }
            } }
        } }
    }
}

fn waits_for(reason: WaitingReason) -> &'static str {
    match reason {
        WaitingReason::Scheduled => "its time has not come",
        WaitingReason::BackingOff => "another try follows",
        WaitingReason::WorkspacePaused => "its workspace is paused",
        WaitingReason::DefinitionPaused => "its workflow is paused",
        WaitingReason::NoServer => "no server takes work",
        WaitingReason::EngineDown => "the engine is away",
        WaitingReason::Limit => "the workspace is full",
        WaitingReason::Queued => "others go first",
    }
}
