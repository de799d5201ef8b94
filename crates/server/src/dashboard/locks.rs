//! Named locks: who holds them, and until when.

use maud::html;

use super::Answer;
use super::frame::Page;
use super::pieces::{act, lamp, maybe_time, nothing};
use super::session::Visitor;

pub(super) async fn list(visitor: Visitor) -> Answer {
    let locks = visitor.client.locks().await?;
    let body = html! {
        header.page { h1 { "Locks" } }
        section #locks data-live {
            @if locks.is_empty() { (nothing("No lock was ever taken.")) }
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
