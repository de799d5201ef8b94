//! What is done to one item or its execution, and asking for another one.

use maud::html;
use stationmaster_client::wire::{Cancel, CancelledHow, Enqueue, QueueItemChange, Terminate};
use uuid::Uuid;

use super::super::fields::Fields;
use super::super::frame::Trouble;
use super::super::json;
use super::super::pieces::{execution_lamp, item_lamp, short};
use super::super::session::Visitor;
use super::{Deed, Done, Input, Kind, Look, Seen, typed};

pub(super) async fn look(visitor: &Visitor, name: &str, fields: &Fields) -> Seen {
    let client = &visitor.client;
    let id = fields.must::<Uuid>("id")?;
    if name == "run-now" {
        let workflow = client.workflow(id).await?;
        let last = stationmaster_client::wire::QueueQuery {
            workspace_id: Some(workflow.workspace_id.into()),
            workflow_definition_id: Some(workflow.id.into()),
            limit: Some(1),
            ..Default::default()
        };
        let last = client.queue(&last).await?.items.pop().and_then(|item| item.input);
        let words = html! { p { "Enqueues " strong { (workflow.name) } " of " (workflow.workspace) " once" @if last.is_some() { ", with the input of the last one unless you change it" } "." } };
        return Ok(Look::new(format!("Run {}", workflow.name), "Run it", words)
            .bind("id", id)
            .bind("key", Uuid::now_v7())
            .ask(Input::new(
                Kind::Area,
                "input",
                "Input (JSON)",
                last.map_or("{}".to_owned(), |input| json::pretty(input.get())),
            ))
            .ask(Input::new(
                Kind::Number,
                "priority",
                "Priority (higher goes first)",
                0,
            )));
    }
    if name == "terminate" {
        let execution = client.execution(id).await?;
        let words = html! { p { "Ends the run of " code { (id) } " by force and frees its slot; the workflow cannot clean up. It is " (execution_lamp(execution.status)) " now." } };
        return Ok(Look::new("End a run by force", "End it by force", words)
            .bind("id", id)
            .ask(Input::note("reason", "Why, for the history"))
            .for_good());
    }
    let item = client.queue_item(id).await?.item;
    let what = format!("{} ({})", item.workflow.clone().unwrap_or_default(), short(id));
    let is = html! { "It is " (item_lamp(item.status, item.outcome)) " now." };
    let look = match name {
        "cancel" => Look::new(
            format!("Cancel {what}"),
            "Cancel it",
            html! { p { (is) " What waits is cancelled at once; of what runs, the engine is asked, and its slot is free when the run has closed." } },
        )
        .ask(Input::note("reason", "Why, for the history"))
        .for_good(),
        "retry" => Look::new(
            format!("Retry {what}"),
            "Retry it",
            html! { p { (is) " It goes back into the queue with the same input." } @if let Some(error) = &item.last_error { pre.error { (error) } } },
        ),
        "priority" => Look::new(format!("Priority of {what}"), "Change it", html! { p { (is) } })
            .ask(Input::new(Kind::Number, "priority", "Priority (higher goes first)", item.priority)),
        "run-again" => Look::new(
            format!("Run {what} again"),
            "Run it again",
            html! { p { "Enqueues the same workflow once more, as a new item. What was done before stays as it is." } },
        )
        .bind("key", Uuid::now_v7())
        .ask(Input::new(Kind::Area, "input", "Input (JSON)", item.input.as_ref().map_or("{}".to_owned(), |input| json::pretty(input.get()))))
        .ask(Input::new(Kind::Number, "priority", "Priority (higher goes first)", item.priority)),
        _ => return Err(Trouble::not_found(name)),
    };
    Ok(look.bind("id", id))
}

pub(super) async fn carry(visitor: &Visitor, name: &str, fields: &Fields) -> Deed {
    let client = &visitor.client;
    let id = fields.must::<Uuid>("id")?;
    let reason = fields.owned("reason");
    Ok(match name {
        "cancel" => {
            let cancelled = client.cancel(id, &Cancel { reason }).await?;
            Done::said(match cancelled.result {
                CancelledHow::Cancelled => "Cancelled.",
                CancelledHow::Requested => "The engine is asked to cancel it.",
            })
        }
        "retry" => {
            client.retry(id).await?;
            Done::said("It is back in the queue.")
        }
        "priority" => {
            let priority = fields.must("priority")?;
            let (_, tag) = client
                .with_tag(async |client| client.queue_item(id).await)
                .await?;
            let client = tag.map_or_else(|| Ok(client.clone()), |tag| client.only_if(&tag))?;
            client
                .change_queue_item(id, &QueueItemChange { priority })
                .await?;
            Done::said(format!("Its priority is {priority}."))
        }
        "terminate" => {
            let execution = client.terminate(id, &Terminate { reason }).await?;
            Done::said(format!("It is {}.", execution.status))
        }
        "run-again" | "run-now" => {
            let (workspace, workflow) = if name == "run-again" {
                let item = client.queue_item(id).await?.item;
                (item.workspace_id, item.workflow_definition_id)
            } else {
                let workflow = client.workflow(id).await?;
                (workflow.workspace_id, workflow.id)
            };
            let request = Enqueue {
                input: typed(fields, "input")?,
                priority: fields.parse("priority")?.unwrap_or_default(),
                // Sent twice, it is the same wish.
                idempotency_key: Some(format!("dashboard-{}", fields.must::<Uuid>("key")?)),
                ..Enqueue::new(workspace, workflow)
            };
            let made = client.enqueue(&request).await?;
            Done::said("It is in the queue.").at(format!("/queue/{}", made.id))
        }
        _ => return Err(Trouble::not_found(name)),
    })
}
