//! The audit: who changed what, and when.

use maud::html;
use stationmaster_client::wire::AuditQuery;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::pieces::{Filter, filters, nothing, pager, time, workspace_link};
use super::session::Visitor;

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = AuditQuery {
        workspace_id: fields.reference("workspace"),
        actor: fields.owned("actor"),
        action: fields.owned("action"),
        subject: fields.owned("subject"),
        limit: Some(100),
        cursor: fields.owned("cursor"),
    };
    let page = visitor.client.audit(&query).await?;
    let body = html! {
        header.page { h1 { "Audit" } }
        (filters("/audit", &fields, &[
            Filter::Name("workspace", "Workspace", "workspace"),
            Filter::Text("actor", "Who"),
            Filter::Text("action", "What"),
            Filter::Text("subject", "To which thing"),
        ]))
        section #audit data-live {
            @if page.items.is_empty() { (nothing("Nothing matches.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "When" } th { "Who" } th { "What" } th { "To which thing" } th { "Where" } th { "More" } } }
                tbody { @for entry in &page.items { tr data-key=(entry.id) {
                    td { (time(entry.at)) }
                    td.long { (entry.actor) }
                    td { (entry.action) }
                    td.long { (entry.subject) }
                    td { @if let Some(id) = entry.workspace_id { (workspace_link(entry.workspace.as_deref(), id)) } }
                    td.long { code { (entry.detail.to_string()) } }
                } } }
            } } }
            (pager("/audit", &fields, &["workspace", "actor", "action", "subject"], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Audit", body))
}
