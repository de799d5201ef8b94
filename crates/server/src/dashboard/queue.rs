//! The queue: what waits, what is under way, and what became of it.

use std::collections::HashMap;

use futures::future::join_all;
use maud::{Markup, html};
use stationmaster_client::wire::{ItemStatus, QueueItem, QueueQuery, WaitingReason};
use uuid::Uuid;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::pieces::{
    Filter, SINCE, act, filters, item_lamp, item_link, nothing, pager, since_then, time, workflow_link,
    workspace_link,
};
use super::session::Visitor;

const STATUSES: [(&str, &str); 5] = [
    ("PENDING", "waiting"),
    ("CLAIMED", "being started"),
    ("DISPATCHED", "started"),
    ("FAILED", "could not be started"),
    ("CANCELLED", "cancelled"),
];
const KEPT: [&str; 5] = ["workspace", "workflow", "status", "since", "search"];
/// Pending items of which a page tells place and expected start as well.
const REASONS: usize = 15;

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let client = &visitor.client;
    let query = QueueQuery {
        workspace_id: fields.reference("workspace"),
        workflow_definition_id: fields.reference("workflow"),
        status: fields.parse::<ItemStatus>("status")?,
        created_after: since_then(&fields),
        created_before: None,
        search: fields.owned("search"),
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let page = client.queue(&query).await?;
    let pending = page
        .items
        .iter()
        .filter(|item| item.status == ItemStatus::Pending);
    let asked = pending.take(REASONS).map(|item| async {
        // One that has left the queue meanwhile has none.
        let details = client.queue_item(item.id).await.ok()?;
        Some((item.id, super::item::why(&details)?))
    });
    let reasons = join_all(asked).await.into_iter().flatten().collect();
    let narrowed: Vec<(&str, &str)> = ["workspace", "workflow", "since"]
        .into_iter()
        .filter_map(|name| Some((name, fields.get(name)?)))
        .collect();
    let mut with_status = narrowed.clone();
    with_status.extend(fields.get("status").map(|status| ("status", status)));
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
                    @if again { (act("Retry all of these", "retry-all", &with_status, &visitor.here)) }
                    @if !ended { (act("Cancel all of these", "cancel-all", &with_status, &visitor.here)) }
                }
            }
        }
        (filters("/queue", &fields, &[
            Filter::Choice("status", "Status", &STATUSES),
            Filter::Name("workspace", "Workspace", "workspace"),
            Filter::Name("workflow", "Workflow", "workflow"),
            Filter::Choice("since", "Enqueued", &SINCE),
            Filter::Text("search", "In input or error"),
        ]))
        section #items data-live {
            @if page.items.is_empty() { (nothing("Nothing matches.")) }
            @else { (rows(&page.items, &reasons)) }
            (pager("/queue", &fields, &KEPT, page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Queue", body))
}

fn rows(items: &[QueueItem], reasons: &HashMap<Uuid, Markup>) -> Markup {
    html! {
        div.scroll tabindex="0" { table.rows {
            thead { tr { th { "Item" } th { "Workspace" } th { "Workflow" } th { "Status" } th.number { "Priority" } th { "Enqueued" } th { "Why, or what came of it" } } }
            tbody { @for item in items {
                tr data-key=(item.id) {
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
