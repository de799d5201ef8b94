//! What is done to the items whose rows were ticked: to these, by their ids, and to no others.

use futures::future::join_all;
use maud::html;
use stationmaster_client::Error;
use stationmaster_client::wire::{Cancel, QueueItem, QueueItemChange};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::pieces::{item_lamp, item_link, many, workflow_link, workspace_link};
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen};

/// More rows than any list shows at once.
const MOST: usize = 100;

/// Title, what the button says, what was done.
fn words(name: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match name {
        "cancel-these" => ("Cancel what is ticked", "Cancel", "Cancelled"),
        "retry-these" => ("Retry what is ticked", "Retry", "Retried"),
        "prefer-these" => ("Priority of what is ticked", "Change", "Changed the priority of"),
        _ => return None,
    })
}

pub(super) fn is_one(name: &str) -> bool {
    words(name).is_some()
}

/// The items that were ticked, each once.
fn ticked(fields: &Fields) -> Result<Vec<Uuid>, Trouble> {
    let mut ids = Vec::new();
    for text in fields.all("id") {
        let id = text
            .parse()
            .map_err(|error| Trouble::invalid(format!("id: {error}")))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if ids.len() > MOST {
        return Err(Trouble::invalid(format!("at most {MOST} at once")));
    }
    Ok(ids)
}

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let (title, button, _) = words(name).ok_or_else(|| Trouble::not_found(name))?;
    let ids = ticked(fields)?;
    let asked = ids.iter().map(|id| visitor.client.queue_item(*id));
    // One that was pruned meanwhile is not there to be shown.
    let items: Vec<QueueItem> = join_all(asked)
        .await
        .into_iter()
        .filter_map(|details| Some(details.ok()?.item))
        .collect();
    let count = many(items.len(), "item");
    let words = html! {
        @if items.is_empty() { p { "No row is ticked. Tick some in the list first; " kbd { "x" } " ticks the row that is chosen." } }
        @else {
            p.count-words { strong { (count) } ", these and no others:" }
            div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Item" } th { "Workspace" } th { "Workflow" } th { "Status" } th.number { "Priority" } } }
                tbody { @for item in &items { tr {
                    td { (item_link(item.id)) }
                    td { (workspace_link(item.workspace.as_deref(), item.workspace_id)) }
                    td { (workflow_link(item.workflow.as_deref(), item.workflow_definition_id)) }
                    td { (item_lamp(item.status, item.outcome)) }
                    td.number { (item.priority) }
                } } }
            } }
            p.quiet { "To what has moved on by then, and cannot have it done any more, nothing is done." }
        }
    };
    let mut look = Look::new(title, &format!("{button} {count}"), words);
    for item in &items {
        look = look.bind("id", item.id);
    }
    look.final_ = name == "cancel-these";
    if items.is_empty() {
        look.button = None;
        return Ok(look);
    }
    Ok(match name {
        "cancel-these" => look.ask(Input::note("reason", "Why, for the history")),
        "prefer-these" => look.ask(Input::new(
            Kind::Number,
            "priority",
            "Priority (higher goes first)",
            10,
        )),
        _ => look,
    })
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let client = &visitor.client;
    let (_, _, did) = words(name).ok_or_else(|| Trouble::not_found(name))?;
    let priority = match name {
        "prefer-these" => fields.must("priority")?,
        _ => 0,
    };
    let why = Cancel {
        reason: fields.owned("reason"),
    };
    let (mut done, mut others) = (0, 0);
    for id in ticked(fields)? {
        let came = match name {
            "cancel-these" => client.cancel(id, &why).await.map(drop),
            "retry-these" => client.retry(id).await.map(drop),
            _ => client
                .change_queue_item(id, &QueueItemChange { priority })
                .await
                .map(drop),
        };
        match came {
            Ok(()) => done += 1,
            Err(Error::Conflict(_) | Error::NotFound(_)) => others += 1,
            Err(error) => return Err(error.into()),
        }
    }
    let mut words = format!("{did} {}.", many(done, "item"));
    if others > 0 {
        words.push_str(" The others had moved on meanwhile.");
    }
    Ok(Done::said(words))
}
