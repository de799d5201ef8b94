//! Rows that are ticked, to be acted on together: a box in each row, and a bar below the list. The boxes belong to the form of the bar by its
//! id, so the list itself may be refreshed; the script keeps what is ticked, counts it, and shows the bar only while something is.

use maud::{Markup, html};
use uuid::Uuid;

use super::session::Visitor;

/// The head of the column of boxes; with the script it ticks all.
pub(super) fn head(visitor: &Visitor) -> Markup {
    html! { @if visitor.operates() { th.tick { input.tick-all type="checkbox" aria-label="Tick all rows" title="Tick all rows" hidden; } } }
}

/// The box of a row.
pub(super) fn cell(visitor: &Visitor, id: Uuid, called: &str) -> Markup {
    html! { @if visitor.operates() { td.tick { input type="checkbox" form="ticked" name="id" value=(id) aria-label=(format!("Tick {called}")); } } }
}

/// What can be done to what is ticked: words and actions.
pub(super) fn bar(visitor: &Visitor, actions: &[(&str, &str)]) -> Markup {
    html! {
        @if visitor.operates() && !actions.is_empty() {
            form.ticked #ticked aria-label="What is ticked" {
                input type="hidden" name="back" value=(visitor.here);
                span.ticked-count role="status" { "What is ticked:" }
                @for (word, action) in actions { button formaction=(format!("/act/{action}")) { (word) "…" } }
            }
        }
    }
}
