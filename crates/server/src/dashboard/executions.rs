//! Executions: what runs and what ran.

use futures::future::join;
use maud::{Markup, html};
use stationmaster_client::Client;
use stationmaster_client::wire::{
    Execution, ExecutionCountQuery, ExecutionQuery, ExecutionStatus, Order, RetriableStatus,
};

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::lists::{tally, turned};
use super::misspelt::{self, List};
use super::pieces::{
    Filter, SINCE, act, execution_class, execution_lamp, execution_link, filters, maybe_time, none_found,
    pager, short, since_then, took, workflow_link, workspace_link,
};
use super::session::Visitor;
use super::{ticks, views};

const STATUSES: [(&str, &str); 8] = [
    ("RUNNING", "running"),
    ("STARTING", "starting"),
    ("PENDING", "between two tries"),
    ("COMPLETED", "completed"),
    ("FAILED", "failed"),
    ("TIMED_OUT", "timed out"),
    ("TERMINATED", "terminated"),
    ("CANCELLED", "cancelled"),
];
const FILTERS: [Filter<'_>; 5] = [
    Filter::Choice("status", "Status", &STATUSES),
    Filter::Name("workspace", "Workspace", "workspace"),
    Filter::Name("workflow", "Workflow", "workflow"),
    Filter::Choice("since", "Ended", &SINCE),
    Filter::Text("search", "In input or error"),
];
const LIST: List<'_> = List {
    title: "Executions",
    path: "/executions",
    filters: &FILTERS,
};
const KEPT: [&str; 6] = ["workspace", "workflow", "status", "since", "search", "sort"];

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let status = fields.parse::<ExecutionStatus>("status")?;
    let query = ExecutionQuery {
        workspace_id: fields.reference("workspace"),
        workflow_definition_id: fields.reference("workflow"),
        status,
        superseded: None,
        completed_after: since_then(&fields),
        completed_before: None,
        search: fields.owned("search"),
        order: fields.parse::<Order>("sort")?,
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let counted = ExecutionCountQuery {
        workspace_id: query.workspace_id.clone(),
        workflow_definition_id: query.workflow_definition_id.clone(),
        completed_after: query.completed_after,
        completed_before: None,
    };
    let counts = counts(&visitor.client, &counted, &fields);
    let (page, counts) = join(visitor.client.executions(&query), counts).await;
    let page = match page {
        Ok(page) => page,
        Err(error) => return misspelt::explain(&visitor, &fields, &LIST, error).await,
    };
    let (to, sorted) = match query.order.unwrap_or_default() {
        Order::Newest => (Some("oldest"), "descending"),
        Order::Oldest => (None, "ascending"),
    };
    let words = ("Execution", "Newest or oldest first, by when they were asked for");
    let first = html! { th aria-sort=(sorted) { (turned("/executions", &fields, words, to, Some(sorted))) } };
    let again = status.is_some_and(|status| status.as_str().parse::<RetriableStatus>().is_ok());
    let mut narrowed: Vec<(&str, &str)> = ["workspace", "workflow", "status", "since"]
        .into_iter()
        .filter_map(|name| Some((name, fields.get(name)?)))
        .collect();
    narrowed.push(("status_of", "execution"));
    let body = html! {
        header.page {
            h1 { "Executions" }
            @if visitor.operates() && again && fields.get("search").is_none() {
                div.actions { (act("Retry all of these", "retry-all", &narrowed, &visitor.here)) }
            }
        }
        (filters("/executions", &fields, &FILTERS))
        (views::shelf(&visitor, "/executions").await)
        section #counts data-live { (counts) }
        section #executions data-live {
            @if status.is_none() && query.completed_after.is_some() { p.quiet { "What has ended since then. What has not is counted above, each a way to it." } }
            @if page.items.is_empty() { (none_found(page.next_cursor.is_some())) }
            @else { (table(Some(&visitor), &page.items, &first)) }
            (pager("/executions", &fields, &KEPT, page.next_cursor.as_deref()))
        }
        @if !page.items.is_empty() { (ticks::bar(&visitor, &[("Cancel", "cancel-these"), ("Retry", "retry-these")])) }
    };
    Ok(Page::new("Executions", body))
}

/// How many there are in each status. A search tells of the rows it found alone; and a list is shown without them when they cannot be had.
async fn counts(client: &Client, query: &ExecutionCountQuery, fields: &Fields) -> Markup {
    let counts = match fields.get("search") {
        None => client.execution_counts(query).await.unwrap_or_default(),
        Some(_) => Vec::new(),
    };
    let of = |(status, word): &(&'static str, &'static str)| {
        let count = counts.iter().find(|count| count.status.as_str() == *status)?;
        let class = execution_class(count.status);
        Some((*status, *word, class, count.count, count.more))
    };
    let counts: Vec<_> = STATUSES.iter().filter_map(of).collect();
    html! { @if !counts.is_empty() { (tally("/executions", fields, &counts)) } }
}

pub(super) fn rows(executions: &[Execution]) -> Markup {
    table(None, executions, &html! { th { "Execution" } })
}

/// Rows of executions; those of somebody who may tick them have a box, which stands for the item.
fn table(ticker: Option<&Visitor>, executions: &[Execution], first: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" { table.rows.cards {
            thead { tr { @if let Some(visitor) = ticker { (ticks::head(visitor)) } (first) th { "Workspace" } th { "Workflow" } th { "Status" } th { "Started" } th { "Took" } th { "What went wrong" } } }
            tbody { @for execution in executions {
                tr data-key=(execution.id) {
                    @if let Some(visitor) = ticker { (ticks::cell(visitor, execution.queue_item_id, &short(execution.id))) }
                    td { (execution_link(execution.id)) }
                    td { (workspace_link(execution.workspace.as_deref(), execution.workspace_id)) }
                    td { (workflow_link(execution.workflow.as_deref(), execution.workflow_definition_id)) }
                    td { (execution_lamp(execution.status)) }
                    td { (maybe_time(execution.started_at)) }
                    td { (took(execution.started_at, execution.completed_at)) }
                    td.long { @if let Some(error) = &execution.error { (words(error.get())) } @else if let Some(reason) = &execution.reason { (reason) } }
                }
            } }
        } }
    }
}

/// What an error says, when it says it in words; else the whole.
pub(super) fn words(error: &str) -> String {
    let read = serde_json::from_str::<serde_json::Value>(error);
    let message = read.ok().and_then(|error| match error {
        serde_json::Value::String(text) => Some(text),
        other => other
            .get("message")
            .and_then(|message| message.as_str())
            .map(ToOwned::to_owned),
    });
    message.unwrap_or_else(|| error.to_owned())
}
