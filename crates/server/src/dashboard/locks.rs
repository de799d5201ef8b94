//! Named locks: who holds them, and until when.

use maud::html;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::pieces::{Filter, act, filters, lamp, maybe_time, nothing};
use super::session::Visitor;

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let mut locks = visitor.client.locks().await?;
    let text = fields.get("search").unwrap_or_default().to_lowercase();
    locks.retain(|lock| lock.name.to_lowercase().contains(&text));
    let none = if text.is_empty() {
        "No lock was ever taken."
    } else {
        "Nothing matches."
    };
    let body = html! {
        header.page { h1 { "Locks" } }
        (filters("/locks", &fields, &[Filter::Text("search", "In the name")]))
        section #locks data-live {
            @if locks.is_empty() { (nothing(none)) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Lock" } th { "State" } th { "By" } th { "Since" } th { "Until" } th.number { "Token" } @if visitor.operates() { th { "Do" } } } }
                tbody { @for lock in &locks { tr data-key=(lock.name) {
                    td { (lock.name) }
                    td { @if lock.held { (lamp("busy", "held")) } @else { (lamp("off", "free")) } }
                    td.long { (lock.by) }
                    td { (maybe_time(lock.since)) }
                    td { @if lock.until.is_none() { "for ever" } @else { (maybe_time(lock.until)) } }
                    td.number { @if let Some(token) = lock.token { (token) } @else { "–" } }
                    @if visitor.operates() { td { @if lock.held { (act("Free", "release-lock", &[("id", &lock.name)], "/locks")) } } }
                } } }
            } } }
        }
    };
    Ok(Page::new("Locks", body))
}
