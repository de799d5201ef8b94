//! Views that people keep: the addresses of a list with its filters, one's own and those for all, beside the filters of that list.

use maud::{Markup, html};

use super::fields::{Fields, address};
use super::pieces::act;
use super::session::Visitor;

/// The views of the list at this path. A list is shown without them when they cannot be had.
pub(super) async fn shelf(visitor: &Visitor, path: &str) -> Markup {
    let Ok(mut views) = visitor.client.views().await else {
        return html! {};
    };
    let of = |text: &str| text.split('?').next().unwrap_or_default().to_owned();
    views.retain(|view| of(&view.path) == path);
    let query = visitor.here.split_once('?').map_or("", |(_, query)| query);
    let here = address(path, &Fields::read(query.as_bytes()).without(&["cursor", "page"]));
    html! {
        @if visitor.operates() || !views.is_empty() {
            div.shelf {
                @for view in &views {
                    span.view {
                        a href=(view.path) aria-current=[(view.path == here).then_some("true")] title=(format!("Kept by {}", view.made_by)) { (view.name) }
                        @if view.shared { " " span.quiet { "for all" } }
                        @if visitor.operates() { " " a.forget href=(address("/act/forget-view", &[("id", view.id.to_string()), ("back", here.clone())])) aria-label=(format!("Forget {}", view.name)) { "×" } }
                    }
                }
                @if visitor.operates() { (act("Keep this view", "keep-view", &[("path", &here)], &here)) }
            }
        }
    }
}
