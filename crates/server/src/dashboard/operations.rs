//! Operations: what servers do to everything that matched, while nobody waits for it: how far each is, and what came of it.

use axum::extract::Path;
use maud::{Markup, html};
use serde_json::Value;
use stationmaster_client::wire::{Operation, OperationKind, OperationQuery, OperationStatus};

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::pieces::{
    Filter, act, at_least, filters, grouped, lamp, line, maybe_time, nothing, pager, short, time, took,
};
use super::session::Visitor;

const STATUSES: [(&str, &str); 5] = [
    ("PENDING", "not begun"),
    ("RUNNING", "under way"),
    ("COMPLETED", "completed"),
    ("FAILED", "failed"),
    ("CANCELLED", "cancelled"),
];

/// What it does, in words.
pub(super) fn words(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::CancelQueue => "Cancel items",
        OperationKind::RetryQueue => "Retry items",
        OperationKind::PrioritiseQueue => "Change the priority of items",
        OperationKind::RetryFailures => "Retry failures",
        OperationKind::SetFailuresAside => "Set failures aside",
        OperationKind::CancelFailures => "Cancel what waits of a workflow that fails",
        OperationKind::ReplaySignals => "Replay dead letters",
    }
}

pub(super) fn operation_lamp(status: OperationStatus) -> Markup {
    let class = match status {
        OperationStatus::Pending => "wait",
        OperationStatus::Running => "busy",
        OperationStatus::Completed => "good",
        OperationStatus::Failed => "bad",
        OperationStatus::Cancelled => "off",
    };
    lamp(class, status.as_str())
}

/// How many of how many.
pub(super) fn told(operation: &Operation) -> String {
    let total = if operation.total_is_least {
        at_least(operation.total)
    } else {
        grouped(operation.total)
    };
    format!("{} of {total}", grouped(operation.done))
}

fn bar(operation: &Operation) -> Markup {
    // Where not all were counted nobody knows how much is left, and more may be done than was counted.
    let whole = operation.total.max(operation.done).max(1);
    html! {
        progress max=(whole) value=(operation.done) aria-label=(told(operation)) {}
        " " span.number { (told(operation)) }
    }
}

/// Is there something left that somebody may want done after all?
pub(super) fn left_off(operation: &Operation) -> bool {
    matches!(
        operation.status,
        OperationStatus::Cancelled | OperationStatus::Failed
    )
}

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = OperationQuery {
        status: fields.parse("status")?,
        kind: None,
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let page = visitor.client.operations(&query).await?;
    let body = html! {
        header.page { h1 { "Operations" } }
        (filters("/operations", &fields, &[Filter::Choice("status", "Status", &STATUSES)]))
        section #operations data-live {
            @if page.items.is_empty() { (nothing("None. What is done to very many at once appears here, with how far it is.")) }
            @else { div.scroll tabindex="0" { table.rows.cards {
                thead { tr { th { "Operation" } th { "What" } th { "Status" } th { "How far" } th { "Asked for" } th { "By" } } }
                tbody { @for operation in &page.items { tr data-key=(operation.id) {
                    td { a.id href=(format!("/operations/{}", operation.id)) title=(operation.id) { (short(operation.id)) } }
                    td { (words(operation.kind)) }
                    td { (operation_lamp(operation.status)) }
                    td { (bar(operation)) }
                    td { (time(operation.created_at)) }
                    td.long { (operation.created_by) }
                } } }
            } } }
            (pager("/operations", &fields, &["status"], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Operations", body))
}

pub(super) async fn show(visitor: Visitor, Path(id): Path<String>) -> Answer {
    let operation = visitor.client.operation(&id).await?;
    let id = operation.id.to_string();
    let pairs = [("id", id.as_str())];
    let body = html! {
        header.page {
            h1 { (words(operation.kind)) " " span.id.quiet { (short(operation.id)) } }
            @if visitor.operates() { div.actions #actions data-live {
                @if !operation.status.has_ended() { (act("Cancel", "cancel-operation", &pairs, &visitor.here)) }
                @if left_off(&operation) { (act("Do the rest", "resume-operation", &pairs, &visitor.here)) }
            } }
        }
        section.progress #progress data-live {
            p { (operation_lamp(operation.status)) " " (bar(&operation)) }
            @if let Some(unchanged) = operation.unchanged.filter(|unchanged| *unchanged > 0) {
                p.quiet { (grouped(unchanged)) " were left as they were: something else had happened to them, or there was nothing to change." }
            }
            @if let Some(error) = &operation.error { pre.error tabindex="0" { (error) } }
            @if left_off(&operation) { p.quiet { "What was done stays done. The rest can be done as an operation of its own, bound to the same instant." } }
        }
        section #facts data-live {
            dl.facts {
                dt { "Asked for" } dd { (time(operation.created_at)) " by " (operation.created_by) }
                dt { "Bound to" } dd { (time(operation.as_of)) ": what came later is not touched" }
                dt { "Begun" } dd { (maybe_time(operation.started_at)) @if let Some(server) = &operation.server { ", last on " (server) } }
                dt { "Over" } dd { (maybe_time(operation.ended_at)) @if let Some(by) = &operation.ended_by { ", ended by " (by) } }
                @if operation.started_at.is_some() { dt { "Took" } dd { (took(operation.started_at, operation.ended_at)) } }
                @for (name, value) in filter(&operation.filter) { dt { (name) } dd { (value) } }
            }
        }
        section #copies { h2 { "The same by hand" } (line("Show", &format!("stationmaster operations show {id}"))) }
    };
    Ok(Page::new(words(operation.kind), body))
}

/// What it was narrowed to, one line each.
pub(super) fn filter(filter: &Value) -> Vec<(String, String)> {
    let said = |value: &Value| match value {
        Value::Null | Value::Bool(false) => None,
        Value::Bool(true) => Some("yes".to_owned()),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let fields = filter.as_object().into_iter().flatten();
    fields
        .filter_map(|(name, value)| Some((name.replace('_', " "), said(value)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_told_by_what_it_says_and_not_by_what_it_leaves_open() {
        let asked = serde_json::json!({ "workspace_id": "a", "status": null, "all": false, "priority": 7 });
        let told = filter(&asked);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(told, [pair("priority", "7"), pair("workspace id", "a")]);
    }
}
