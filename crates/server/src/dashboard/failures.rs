//! What needs a person, by what it has in common; and one such group: its runs, the error whole, and what can be done about it.

use axum::extract::Path;
use maud::{Markup, html};
use stationmaster_client::wire::{Failure, FailureGroup, FailureKind, FailureOrder, FailureQuery, PageQuery};

use super::Answer;
use super::charts;
use super::fields::{Fields, address};
use super::frame::Page;
use super::misspelt::{self, List};
use super::pieces::{
    Filter, SINCE, act, counted, document, execution_link, filters, item_link, lamp, many, nothing, pager,
    since_then, time, workflow_link, workspace_link,
};
use super::session::Visitor;
use super::views;

const KINDS: [(&str, &str); 4] = [
    ("execution", "executions"),
    ("start", "starts"),
    ("occurrence", "alarms"),
    ("signal", "signals"),
];
const FILTERS: [Filter<'_>; 5] = [
    Filter::Choice("kind", "Kind", &KINDS),
    Filter::Name("workspace", "Workspace", "workspace"),
    Filter::Name("workflow", "Workflow", "workflow"),
    Filter::Choice("since", "Time", &SINCE),
    Filter::Text("search", "In the message"),
];
const LIST: List<'_> = List {
    title: "Failures",
    path: "/failures",
    filters: &FILTERS,
};
const KEPT: [&str; 6] = ["workspace", "workflow", "kind", "since", "search", "sort"];

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = FailureQuery {
        workspace_id: fields.reference("workspace"),
        workflow_definition_id: fields.reference("workflow"),
        kind: fields.parse::<FailureKind>("kind")?,
        after: since_then(&fields),
        before: None,
        search: fields.owned("search"),
        order: fields.parse::<FailureOrder>("sort")?,
        trend: Some(true),
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let page = match visitor.client.failures(&query).await {
        Ok(page) => page,
        Err(error) => return misspelt::explain(&visitor, &fields, &LIST, error).await,
    };
    let total: i64 = page.items.iter().map(|group| group.count).sum();
    let narrowed: Vec<(&str, &str)> = ["workspace", "workflow", "kind", "since"]
        .into_iter()
        .filter_map(|name| Some((name, fields.get(name)?)))
        .collect();
    let body = html! {
        header.page {
            h1 { "Failures" }
            div.actions {
                @if visitor.operates() && !page.items.is_empty() && fields.get("search").is_none() {
                    (act("Retry all", "retry-failures", &narrowed, &visitor.here))
                    (act("Set all aside", "set-failures-aside", &narrowed, &visitor.here))
                }
            }
        }
        (filters("/failures", &fields, &FILTERS))
        (views::shelf(&visitor, "/failures").await)
        div.range role="group" aria-label="Order" {
            @let now = fields.get("sort").unwrap_or("last");
            @for (order, word) in [("last", "failed last"), ("first", "what is new"), ("count", "most of them")] {
                @let pairs = { let mut pairs = fields.without(&["sort", "cursor"]); pairs.push(("sort".to_owned(), order.to_owned())); pairs };
                a href=(address("/failures", &pairs)) aria-current=[(now == order).then_some("true")] { (word) }
            }
        }
        section #groups data-live {
            p.quiet { (many(total, "failure")) " in " (many(page.items.len(), "group")) @if page.next_cursor.is_some() { ", and more" } }
            @if page.items.is_empty() { (nothing("Nothing failed that nobody has looked at.")) }
            @else { (groups(&page.items)) }
            (pager("/failures", &fields, &KEPT, page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Failures", body))
}

fn groups(groups: &[FailureGroup]) -> Markup {
    html! {
        ul.groups {
            @for group in groups {
                li data-key=(group.id) {
                    @if let Some(trend) = &group.trend { (charts::spark(&trend.iter().map(|count| u32::try_from(*count).unwrap_or(u32::MAX)).collect::<Vec<_>>(), "in an hour of the last day")) }
                    a.message href=(format!("/failures/{}", group.id)) { span.count { (counted(group.count, 10_000)) } (group.message) }
                    p.quiet {
                        (lamp("bad", group.kind.as_str())) " " (place(group))
                        " · first " (time(group.first_at)) " · last " (time(group.last_at))
                    }
                }
            }
        }
    }
}

fn place(group: &FailureGroup) -> Markup {
    html! {
        @if let Some(id) = group.workspace_id { (workspace_link(group.workspace.as_deref(), id)) }
        @if let Some(id) = group.workflow_definition_id { " · " (workflow_link(group.workflow.as_deref(), id)) }
        @if let Some(id) = group.alarm_id { " · " a href=(format!("/alarms/{id}")) { "alarm" @if let Some(name) = &group.alarm { " " (name) } } }
    }
}

pub(super) async fn show(visitor: Visitor, Path(id): Path<String>, fields: Fields) -> Answer {
    let client = &visitor.client;
    let group = client.failure_group(&id).await?;
    let query = PageQuery {
        limit: Some(100),
        cursor: fields.owned("cursor"),
    };
    let members = client.failures_of(&group.id, &query).await?;
    let example = match group.execution_id {
        Some(id) => client.execution(id).await.ok(),
        None => None,
    };
    let item = match (&example, group.queue_item_id) {
        (None, Some(id)) => client.queue_item(id).await.ok(),
        _ => None,
    };
    let times: Vec<_> = members.items.iter().map(|member| member.at).collect();
    let path = format!("/failures/{}", group.id);
    let of_group = [("group", group.id.as_str())];
    let body = html! {
        header.page {
            h1 { span.count { (counted(group.count, 10_000)) } " failures of one kind" }
            @if visitor.operates() {
                div.actions {
                    (act("Retry all", "retry-failures", &of_group, "/failures"))
                    (act("Set all aside", "set-failures-aside", &of_group, "/failures"))
                    @if group.workflow_definition_id.is_some() { (act("Cancel what waits", "cancel-failing", &of_group, &path)) }
                }
            }
        }
        section #group data-live {
            pre.error tabindex="0" { (group.message) }
            p { (lamp("bad", group.kind.as_str())) " " (place(&group)) " · first " (time(group.first_at)) " · last " (time(group.last_at)) " " (charts::spark(&charts::parts(&times, 24), "in a part of the time")) }
        }
        section #example data-live {
            h2 { "The last of them" }
            @if let Some(execution) = &example {
                p { (execution_link(execution.id)) " took " (super::pieces::took(execution.started_at, execution.completed_at)) }
                div.columns { (document("Error", execution.error.as_deref())) (document("Input", execution.input.as_deref())) }
                (document("Output", execution.output.as_deref()))
            } @else if let Some(item) = &item {
                p { (item_link(item.item.id)) " could not be started" }
                (document("Input", item.item.input.as_deref()))
            } @else if let Some(signal) = &group.signal_id {
                p { "Signal " code { (signal) } }
            } @else if let (Some(alarm), Some(at)) = (group.alarm_id, group.scheduled_for) {
                p { a href=(format!("/alarms/{alarm}")) { "The alarm" } " was to fire at " (time(at)) }
            }
        }
        section #members data-live {
            h2 { "All of them" }
            (rows(&members.items, &visitor))
            (pager(&path, &fields, &[], members.next_cursor.as_deref()))
        }
    };
    Ok(Page::new(format!("Failures {}", group.id), body))
}

fn rows(members: &[Failure], visitor: &Visitor) -> Markup {
    html! {
        div.scroll tabindex="0" { table.rows {
            thead { tr { th { "When" } th { "What" } th { "Message" } th { "State" } @if visitor.operates() { th { "Do" } } } }
            tbody { @for member in members {
                tr data-key=(member.at) {
                    td { (time(member.at)) }
                    td {
                        @match (member.execution_id, member.queue_item_id, &member.signal_id, member.scheduled_for) {
                            (Some(id), ..) => (execution_link(id)),
                            (_, Some(id), ..) => (item_link(id)),
                            (_, _, Some(id), _) => code { (id) },
                            (.., Some(at)) => (time(at)),
                            _ => "–",
                        }
                    }
                    td.long { (member.message) }
                    td {
                        @if let Some(at) = member.set_aside_at {
                            "set aside " (time(at)) @if let Some(by) = &member.set_aside_by { " by " (by) } @if let Some(note) = &member.note { ": " (note) }
                        } @else { "open" }
                    }
                    @if visitor.operates() { td {
                        @if let Some(id) = member.queue_item_id { (act("Retry", "retry", &[("id", &id.to_string())], &visitor.here)) }
                    } }
                }
            } }
        } }
    }
}
