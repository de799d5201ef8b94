//! Tokens: who may come in.

use maud::html;
use stationmaster_client::wire::PageQuery;
use uuid::Uuid;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::pieces::{act, lamp, maybe_time, nothing, pager, time};
use super::session::Visitor;

/// Workspaces of a token that are named.
const NAMED: usize = 5;

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = PageQuery {
        limit: Some(100),
        cursor: fields.owned("cursor"),
    };
    let page = visitor.client.tokens(&query).await?;
    let body = html! {
        header.page { h1 { "Tokens" } @if visitor.administers() { div.actions { (act("Make a token", "create-token", &[], "/tokens")) } } }
        section #tokens data-live {
            @if page.items.is_empty() { (nothing("There is none.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Token" } th { "Role" } th { "Where" } th { "State" } th { "Last used" } th { "Made" } th { "Ends" } @if visitor.administers() { th { "Do" } } } }
                tbody { @for token in &page.items { tr data-key=(token.id) {
                    td { (token.name) " " code.quiet { "…" (token.hint) } }
                    td { (token.role) }
                    td.long { @if let Some(workspaces) = &token.workspaces { (called(workspaces, token.workspace_names.as_deref())) } @else { "everywhere" } }
                    td { @if token.revoked_at.is_some() { (lamp("off", "revoked")) } @else if token.active { (lamp("good", "active")) } @else { (lamp("off", "ended")) } }
                    td { (maybe_time(token.last_used_at)) }
                    td { (time(token.created_at)) " by " (token.created_by) }
                    td { @if token.expires_at.is_some() { (maybe_time(token.expires_at)) } @else { "never" } }
                    @if visitor.administers() { td { @if token.active { (act("Revoke", "revoke-token", &[("id", &token.id.to_string())], "/tokens")) } } }
                } } }
            } } }
            (pager("/tokens", &fields, &[], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Tokens", body))
}

/// A few workspaces by name, and how many more there are; what is gone has its id left.
fn called(ids: &[Uuid], names: Option<&[Option<String>]>) -> String {
    let name = |(place, id): (usize, &Uuid)| {
        let name = names.and_then(|names| names.get(place).cloned().flatten());
        name.unwrap_or_else(|| id.to_string())
    };
    let mut called: Vec<String> = ids.iter().enumerate().take(NAMED).map(name).collect();
    if let Some(more @ 1..) = ids.len().checked_sub(NAMED) {
        called.push(format!("{more} more"));
    }
    called.join(", ")
}
