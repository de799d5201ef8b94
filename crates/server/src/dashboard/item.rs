//! One item and its execution: why it waits or what keeps it, what was asked and what came of it, its life as a time line, and what
//! can be done.

use axum::extract::Path;
use jiff::Timestamp;
use maud::{Markup, html};
use stationmaster_client::wire::{
    Execution, ExecutionStatus, ExpectedStart, ItemStatus, ItemWait, QueueItem, QueueItemDetails, Step,
    Waiting,
};
use uuid::Uuid;

use super::Answer;
use super::frame::{Page, Trouble};
use super::graph;
use super::pieces::{
    act, document, due, execution_lamp, execution_link, grouped, item_lamp, lamp, line, maybe_time, quoted,
    short, since, time, took, waiting, workflow_link, workspace_link,
};
use super::session::Visitor;

/// How far the line of one item is counted.
const COUNTED: i64 = 10_000;

pub(super) async fn show(visitor: Visitor, Path(id): Path<Uuid>) -> Answer {
    let details = visitor.client.queue_item(id).await?;
    let execution = match details.item.execution_id {
        Some(id) => visitor.client.execution(id).await.ok(),
        None => None,
    };
    page(&visitor, details, execution).await
}

pub(super) async fn show_execution(visitor: Visitor, Path(id): Path<Uuid>) -> Answer {
    let execution = visitor.client.execution(id).await?;
    let details = visitor.client.queue_item(execution.queue_item_id).await?;
    page(&visitor, details, Some(execution)).await
}

async fn page(visitor: &Visitor, details: QueueItemDetails, execution: Option<Execution>) -> Answer {
    let history = visitor
        .client
        .queue_history(details.item.id)
        .await
        .map_err(Trouble::from)?;
    let graph = match &execution {
        Some(execution) => drawn(visitor, execution.id).await,
        None => None,
    };
    let item = &details.item;
    let title = item.workflow.clone().unwrap_or_else(|| short(item.id));
    let body = html! {
        header.page {
            h1 { (title) " " span.id.quiet { (short(item.id)) } }
            @if visitor.operates() { div.actions #actions data-live { (actions(visitor, item, execution.as_ref())) } }
        }
        section #state data-live { (state(&details, execution.as_ref())) }
        @if !details.reasons.is_empty() { section #waiting data-live { (obstacle(&details)) } }
        section #facts data-live { (facts(visitor, item, execution.as_ref())) }
        @if let Some(graph) = graph { section #graph data-live { h2 { "Where it stands in its workflow" } (graph) } }
        div.columns {
            section #input { (document("Input", item.input.as_deref())) }
            section #output data-live {
                @if let Some(execution) = &execution {
                    @if let Some(omitted) = &execution.output_omitted {
                        h3 { "Output" } p { "It was too large to be kept here: " (omitted.size) " bytes, " (omitted.encoding) ". It is to be had of the engine." }
                    } @else { (document("Output", execution.output.as_deref())) }
                    @if execution.error.is_some() { (document("Error", execution.error.as_deref())) }
                } @else if let Some(error) = &item.last_error { h3 { "Last error" } pre.error tabindex="0" { (error) } }
            }
        }
        section #history data-live { h2 { "Time line" } (line_of(&history.items)) }
        section #copies { h2 { "The same by hand" } (copies(item, execution.as_ref())) }
    };
    Ok(Page::new(title, body))
}

/// The graph that it runs, with where each node stands. A page is shown without it where it cannot be had.
async fn drawn(visitor: &Visitor, execution: Uuid) -> Option<Markup> {
    let nodes = visitor.client.execution_nodes(execution).await.ok()?;
    let picture = graph::draw(nodes.graph.as_ref()?.get(), &nodes.nodes)?;
    let known = nodes.nodes.iter().any(|node| node.state.is_some());
    let until = nodes.nodes.iter().find_map(|node| Some((&node.id, node.until?)));
    Some(html! {
        (picture)
        @if let Some((id, until)) = until { p.quiet { (id) " waits until " (time(until)) } }
        @if !known { p.quiet { "Which of them are finished is not known here." } }
    })
}

fn actions(visitor: &Visitor, item: &QueueItem, execution: Option<&Execution>) -> Markup {
    let id = item.id.to_string();
    let pairs = [("id", id.as_str())];
    let over = item.outcome.is_some() || matches!(item.status, ItemStatus::Failed | ItemStatus::Cancelled);
    let badly = matches!(item.status, ItemStatus::Failed | ItemStatus::Cancelled)
        || item
            .outcome
            .is_some_and(|outcome| outcome != ExecutionStatus::Completed);
    let running = execution.filter(|execution| {
        execution.completed_at.is_none()
            && matches!(
                execution.status,
                ExecutionStatus::Running | ExecutionStatus::Starting
            )
    });
    html! {
        @if badly && over { (act("Retry", "retry", &pairs, &visitor.here)) }
        @if item.status == ItemStatus::Pending { (act("Priority", "priority", &pairs, &visitor.here)) }
        @if !over { (act("Cancel", "cancel", &pairs, &visitor.here)) }
        @if let Some(running) = running { (act("End by force", "terminate", &[("id", &running.id.to_string())], &visitor.here)) }
        (act("Run again", "run-again", &pairs, &visitor.here))
    }
}

fn state(details: &QueueItemDetails, execution: Option<&Execution>) -> Markup {
    let item = &details.item;
    html! {
        p.state {
            @if let Some(execution) = execution { (execution_lamp(execution.status)) } @else { (item_lamp(item.status, item.outcome)) }
            " in " (workspace_link(item.workspace.as_deref(), item.workspace_id))
            " · " (workflow_link(item.workflow.as_deref(), item.workflow_definition_id))
            @if let Some(execution) = execution {
                @if execution.started_at.is_some() { " · ran " (took(execution.started_at, execution.completed_at)) }
                @if execution.superseded_at.is_some() { " · " (lamp("off", "followed by a retry")) }
            }
        }
        @if let Some(obstacle) = &details.obstacle { p.banner.warn { (obstacle) } }
        @if let Some(error) = execution.and_then(|execution| execution.error.as_deref()) { pre.error tabindex="0" { (super::executions::words(error.get())) } }
        @else if let Some(reason) = execution.and_then(|execution| execution.reason.as_deref()) { p { "Reason: " (reason) } }
    }
}

/// The reason in a line, with the place in the queue and when it is expected to start.
pub(super) fn why(wait: &ItemWait, counted: i64) -> Option<Markup> {
    let reason = wait.reasons.first()?;
    Some(html! {
        // In the line of a list there is room for little.
        @if let Waiting::Limit { limit, active, .. } = reason { "the workspace is full: " (active) " of " (limit) } @else { (waiting(reason)) }
        @if let Some(position) = wait.position { " · position " (place(position, counted)) }
        @if let Some(expected) = &wait.expected { " · " span title=(expected.how) { (start(expected)) } }
    })
}

/// When it is expected to start; a time that has passed, also while somebody looks, says no more than that it is near.
fn start(expected: &ExpectedStart) -> Markup {
    html! { @if expected.at <= Timestamp::now() { "any moment" } @else { "about " (due(expected.at)) } }
}

/// A position, counted up to a bound.
fn place(position: i64, counted: i64) -> String {
    if position > counted {
        format!("after {} others", grouped(counted))
    } else {
        grouped(position)
    }
}

fn obstacle(details: &QueueItemDetails) -> Markup {
    let item = &details.item;
    html! {
        h2 { "Why it waits" }
        ol.reasons { @for reason in &details.reasons { li {
            (waiting(reason))
            @match reason {
                Waiting::WorkspacePaused => { ": " (workspace_link(item.workspace.as_deref(), item.workspace_id)) " can be resumed on its page" },
                Waiting::DefinitionPaused => { ": " (workflow_link(item.workflow.as_deref(), item.workflow_definition_id)) " can be resumed on its page" },
                _ => {},
            }
        } } }
        @if let Some(position) = details.position { p { "Its position in the queue of the workspace: " strong { (place(position, COUNTED)) } "." } }
        @if let Some(expected) = &details.expected { p { "Expected to start " strong { (start(expected)) } " " span.quiet { "(" (expected.how) ")" } } }
        @if !details.holders.is_empty() {
            p { "The slots are held by:" }
            div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Execution" } th { "Workflow" } th { "Server" } th { "For" } } }
                tbody { @for holder in &details.holders { tr data-key=(holder.execution_id) {
                    td { (execution_link(holder.execution_id)) }
                    td { (workflow_link(holder.workflow.as_deref(), holder.workflow_definition_id)) }
                    td { (holder.server.clone().unwrap_or_else(|| short(holder.server_id))) }
                    td { (since(holder.since)) }
                } } }
            } }
        }
    }
}

fn facts(visitor: &Visitor, item: &QueueItem, execution: Option<&Execution>) -> Markup {
    html! {
        dl.facts {
            dt { "Item" } dd { code { (item.id) } }
            @if let Some(execution) = execution { dt { "Execution" } dd { code { (execution.id) } } }
            dt { "Enqueued" } dd { (time(item.created_at)) " by " (item.enqueued_by) }
            @if let Some(at) = item.run_at { dt { "Not before" } dd { (time(at)) } }
            dt { "Priority" } dd { (item.priority) }
            dt { "Claimed" } dd { (maybe_time(item.claimed_at)) }
            @if let Some(execution) = execution {
                dt { "Started" } dd { (maybe_time(execution.started_at)) }
                dt { "Ended" } dd { (maybe_time(execution.completed_at)) }
                @if let Some(engine) = &execution.engine { dt { "Engine" } dd { (engine) } }
                @if let Some(run) = &execution.run_id { dt { "Run" } dd { code { (run) } @if let Some(url) = temporal(visitor, execution) { " " a href=(url) rel="noreferrer" { "in Temporal's UI" } } } }
            }
            @if item.attempt_count > 0 { dt { "Refused starts" } dd { (item.attempt_count) } }
            @if item.recovery_count > 0 { dt { "Servers lost with it" } dd { (item.recovery_count) } }
            @if let Some(key) = &item.idempotency_key { dt { "Idempotency key" } dd { code { (key) } } }
            @if let Some(reference) = &item.correlation_id { dt { "Correlation id" } dd { code { (reference) } } }
        }
    }
}

/// Where Temporal shows this run.
fn temporal(visitor: &Visitor, execution: &Execution) -> Option<String> {
    let engine = execution.engine.as_deref();
    engine.filter(|engine| engine.starts_with("temporal"))?;
    visitor.on_temporal(execution.id)
}

fn line_of(steps: &[Step]) -> Markup {
    html! {
        @if steps.is_empty() { p.quiet { "Nothing is on record." } }
        ol.timeline {
            @for (at, step) in steps.iter().enumerate() {
                @let before = at.checked_sub(1).and_then(|before| steps.get(before));
                li class=(class_of(&step.event)) {
                    div { strong { (step.event) } " " (time(step.at)) @if let Some(before) = before { " " span.quiet { "+" (took(Some(before.at), Some(step.at))) } } }
                    div.quiet {
                        @if let Some(server) = &step.server { "server " (server) } @else { (step.actor) }
                        @if let Some(detail) = &step.detail { " · " (detail) }
                        @if let Some(id) = step.execution_id { " · " (execution_link(id)) }
                    }
                }
            }
        }
    }
}

fn class_of(event: &str) -> &'static str {
    let event = event.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| event.contains(word));
    if has(&["fail", "refus", "lost", "timed", "terminat", "quarantine"]) {
        "bad"
    } else if has(&["complete", "finished"]) {
        "good"
    } else if has(&["cancel"]) {
        "off"
    } else if has(&["start", "claim", "running", "dispatch"]) {
        "busy"
    } else {
        "wait"
    }
}

fn copies(item: &QueueItem, execution: Option<&Execution>) -> Markup {
    let workspace = item
        .workspace
        .clone()
        .unwrap_or_else(|| item.workspace_id.to_string());
    let workflow = item
        .workflow
        .clone()
        .unwrap_or_else(|| item.workflow_definition_id.to_string());
    let input = item.input.as_ref().map_or("{}", |input| input.get());
    let again = format!(
        "stationmaster queue add --workspace {} --workflow {} --input {}",
        quoted(&workspace),
        quoted(&workflow),
        quoted(input)
    );
    let body = serde_json::json!({ "workspace": workspace, "workflow": workflow }).to_string();
    // The input goes in as it was written.
    let body = format!("{},\"input\":{input}}}", body.trim_end_matches('}'));
    let curl = format!(
        "curl -X POST \"$STATIONMASTER_URL/v1/executions\" -H \"authorization: Bearer $STATIONMASTER_TOKEN\" -H 'content-type: application/json' -d {}",
        quoted(&body)
    );
    html! {
        (line("Show", &format!("stationmaster queue show {}", item.id)))
        @if let Some(execution) = execution { (line("Its execution", &format!("stationmaster executions show {}", execution.id))) }
        (line("Run again", &again))
        (line("curl", &curl))
    }
}
