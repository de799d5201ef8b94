//! What is done to operations: one is ended, or what an ended one left is done after all.

use std::collections::BTreeSet;

use maud::html;
use stationmaster_client::wire::{Operation, OperationKind};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::operations::{filter, left_off, operation_lamp, told, words};
use super::super::session::Visitor;
use super::{Deed, Done, Look, Seen};

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let operation = visitor.client.operation(fields.need("id")?).await?;
    let what = words(operation.kind);
    let stands = html! { p { (operation_lamp(operation.status)) " " (told(&operation)) } };
    let look = if name == "cancel-operation" {
        let words = html! { (stands) p { "No further part of it is done. What was done stays done." } };
        let mut look = Look::new(format!("End: {what}"), "End it", words).for_good();
        look.button = look.button.filter(|_| !operation.status.has_ended());
        look
    } else {
        let mine = is_within_reach(visitor, &operation).await?;
        let words = html! {
            (stands)
            dl.facts { @for (name, value) in filter(&operation.filter) { dt { (name) } dd { (value) } } }
            @if mine { p { "What still matches is done as an operation of its own, under your name, bound to the same instant: what came later is not touched." } }
            @else { p.wrong { "It was asked for by a token for other workspaces than yours, so the same filter would mean something else." } }
        };
        let title = format!("Do the rest: {what}");
        let mut look = Look::new(title, "Do the rest", words).bind("key", Uuid::now_v7());
        look.button = look.button.filter(|_| mine && left_off(&operation));
        look
    };
    Ok(look.bind("id", operation.id))
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let client = &visitor.client;
    let operation = client.operation(fields.need("id")?).await?;
    if name == "cancel-operation" {
        client.cancel_operation(operation.id).await?;
        return Ok(Done::said("It is ended."));
    }
    if !left_off(&operation) || !is_within_reach(visitor, &operation).await? {
        return Err(Trouble::invalid("there is nothing left of it that you could do"));
    }
    // What a workflow that fails still has in the queue is on record as the items that it was.
    let kind = match operation.kind {
        OperationKind::CancelFailures => OperationKind::CancelQueue,
        kind => kind,
    };
    let key = fields.need("key")?;
    let begun = client.begin(kind, &operation.filter, Some(key)).await?;
    Ok(Done::said("The servers do the rest now.").at(format!("/operations/{}", begun.id)))
}

/// Would the same filter mean the same things to this visitor? One that names no workspace means all that its token was for.
async fn is_within_reach(visitor: &Visitor, operation: &Operation) -> Result<bool, Trouble> {
    let Some(meant) = &operation.workspaces else {
        return Ok(true);
    };
    if operation
        .filter
        .get("workspace_id")
        .is_some_and(|id| !id.is_null())
    {
        return Ok(true);
    }
    if visitor.sees_all {
        return Ok(false);
    }
    let own: BTreeSet<Uuid> = visitor
        .client
        .own_token()
        .await?
        .workspaces
        .into_iter()
        .flatten()
        .collect();
    Ok(meant.iter().copied().collect::<BTreeSet<_>>() == own)
}
