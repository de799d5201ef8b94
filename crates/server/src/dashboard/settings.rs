//! Settings that live in the database: plans. What a server was told at its start, its own command shows.

use maud::html;

use super::Answer;
use super::frame::Page;
use super::pieces::{act, line};
use super::session::Visitor;

pub(super) async fn show(visitor: Visitor) -> Answer {
    let plans = visitor.client.plans().await?;
    let body = html! {
        header.page { h1 { "Settings" } }
        section #plans data-live {
            h2 { "Plans" }
            table.rows {
                thead { tr { th { "Plan" } th.number { "At once" } th.number { "Weight" } @if visitor.administers_all() { th { "Do" } } } }
                tbody { @for plan in &plans { tr data-key=(plan.name) {
                    td { (plan.name) } td.number { (plan.max_concurrent) } td.number { (plan.weight) }
                    @if visitor.administers_all() { td { (act("Change", "change-plan", &[("id", &plan.name)], "/settings")) } }
                } } }
            }
        }
        section {
            h2 { "You" }
            p { @if let Some(name) = &visitor.name { "Signed in with token " strong { (name) } ", role " (visitor.role) @if !visitor.sees_all { ", for some workspaces" } "." } @else { "Nobody is asked for a token here." } }
            p.quiet { "Theme and how times are told are chosen at the top of every page, and kept in this browser." }
        }
        section {
            h2 { "What a server was told" }
            (line("On its machine", "stationmaster config show"))
        }
    };
    Ok(Page::new("Settings", body))
}
