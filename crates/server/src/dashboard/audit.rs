//! The audit: who changed what, and when.

use maud::{Markup, html};
use serde_json::Value;
use stationmaster_client::wire::{AuditEntry, AuditQuery};
use uuid::Uuid;

use super::Answer;
use super::fields::{Fields, address};
use super::frame::Page;
use super::misspelt::{self, List};
use super::pieces::{Filter, filters, nothing, pager, short, time, workspace_link};
use super::session::Visitor;
use super::views;

const FILTERS: [Filter<'_>; 4] = [
    Filter::Name("workspace", "Workspace", "workspace"),
    Filter::Text("actor", "Who"),
    Filter::Text("action", "What"),
    Filter::Text("subject", "To which thing"),
];
const LIST: List<'_> = List {
    title: "Audit",
    path: "/audit",
    filters: &FILTERS,
};

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = AuditQuery {
        workspace_id: fields.reference("workspace"),
        actor: fields.owned("actor"),
        action: fields.owned("action"),
        subject: fields.owned("subject"),
        limit: Some(100),
        cursor: fields.owned("cursor"),
        ..AuditQuery::default()
    };
    let page = match visitor.client.audit(&query).await {
        Ok(page) => page,
        Err(error) => return misspelt::explain(&visitor, &fields, &LIST, error).await,
    };
    let body = html! {
        header.page { h1 { "Audit" } }
        (filters("/audit", &fields, &FILTERS))
        (views::shelf(&visitor, "/audit").await)
        section #audit data-live {
            @if page.items.is_empty() { (nothing("Nothing matches.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "When" } th { "Who" } th { "What" } th { "To which thing" } th { "Where" } th { "More" } } }
                tbody { @for entry in &page.items { tr data-key=(entry.id) {
                    td { (time(entry.at)) }
                    td.long { @if let Some(server) = &entry.server { span title=(entry.actor) { "server " (server) } } @else { (entry.actor) } }
                    td { (entry.action) }
                    td.long { (subject(entry)) }
                    td { @if let Some(id) = entry.workspace_id { (workspace_link(entry.workspace.as_deref(), id)) } }
                    td.long { (told(&entry.detail)) }
                } } }
            } } }
            (pager("/audit", &fields, &["workspace", "actor", "action", "subject"], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Audit", body))
}

/// What it was done to: whatever has a page is a click away.
fn subject(entry: &AuditEntry) -> Markup {
    let id = entry.subject.parse::<Uuid>().ok();
    html! {
        @if let Some(id) = id.filter(|_| !entry.action.starts_with("token")) { a.id href=(address("/jump", &[("q", &entry.subject)])) title=(id) { (short(id)) } }
        @else { (entry.subject) }
    }
}

/// The values of a change in words: what became what, and nothing of what is not there.
fn told(detail: &Value) -> String {
    let Value::Object(fields) = detail else {
        return said(detail);
    };
    let told = fields
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| match (value.get("from"), value.get("to")) {
            (Some(from), Some(to)) => format!("{name}: {} → {}", said(from), said(to)),
            _ => format!("{name}: {}", said(value)),
        });
    told.collect::<Vec<_>>().join(", ")
}

fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_is_told_by_what_became_what_without_what_is_not_there() {
        assert_eq!(
            told(&json!({ "plan": { "from": "FREE", "to": "PRO" }, "paused": false, "name": null })),
            "paused: false, plan: FREE → PRO"
        );
        assert_eq!(
            told(&json!({ "limit": { "from": null, "to": 3 } })),
            "limit: nothing → 3"
        );
        assert_eq!(told(&json!({})), "");
    }
}
