//! Strays: runs that the engine holds open and that no row tells of. People end them, one by one; nobody else does.

use maud::{Markup, html};
use stationmaster_client::wire::{PageQuery, Stray};
use uuid::Uuid;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::pieces::{act, lamp, line, maybe_time, nothing, pager, time, workspace_link};
use super::session::Visitor;

pub(super) const PATH: &str = "/executions/strays";

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let query = PageQuery {
        limit: Some(50),
        cursor: fields.owned("cursor"),
    };
    let page = visitor.client.strays(&query).await?;
    let body = html! {
        header.page { h1 { "Runs that no row tells of" } }
        section #meaning {
            p { "The engine holds them open for workspaces of this database, and nothing here knows of them: they were lost with a failover, or are younger than a backup that was brought back. They do their work and hold no slot. Nothing ends them by itself, as their rows may come back." }
            p { "Look at what each was asked to do, on the engine. When its work counts, let it end: it leaves this list then. When somebody has enqueued the same again, or will, end it." }
            (line("List", "stationmaster executions strays"))
        }
        section #strays data-live {
            @if page.items.is_empty() { (nothing("There is none: every run that the engine holds open for us is on record.")) }
            @else { (table(&visitor, &page.items)) }
            (pager(PATH, &fields, &[], page.next_cursor.as_deref()))
        }
    };
    Ok(Page::new("Strays", body))
}

fn table(visitor: &Visitor, strays: &[Stray]) -> Markup {
    html! {
        div.scroll tabindex="0" { table.rows {
            thead { tr { th { "On the engine" } th { "Workspace" } th { "Run" } th { "Started" } th { "Found" } th { "State" } @if visitor.operates() { th { "Do" } } } }
            tbody { @for stray in strays { tr data-key=(stray.run_id) {
                td.long { (name(visitor, stray.execution_id)) }
                td { (workspace_link(stray.workspace.as_deref(), stray.workspace_id)) }
                td.long { code { (stray.run_id) } }
                td { (maybe_time(stray.started_at)) }
                td { (time(stray.found_at)) }
                td { (state(stray)) }
                @if visitor.operates() { td { @if stray.end_requested_at.is_none() { (end(stray)) } } }
            } } }
        } }
    }
}

/// What the engine calls it, and where it shows it.
fn name(visitor: &Visitor, execution: Uuid) -> Markup {
    html! {
        code { "execution-" (execution) }
        @if let Some(url) = visitor.on_temporal(execution) { " " a href=(url) rel="noreferrer" { "in Temporal's UI" } }
    }
}

fn state(stray: &Stray) -> Markup {
    html! {
        @match (stray.end_requested_at, &stray.end_requested_by) {
            (Some(at), by) => { (lamp("wait", "to be ended")) " " span.quiet { "asked for " (time(at)) @if let Some(by) = by { " by " (by) } } },
            (None, _) => (lamp("bad", "open")),
        }
    }
}

fn end(stray: &Stray) -> Markup {
    let execution = stray.execution_id.to_string();
    act(
        "End",
        "end-stray",
        &[("id", &execution), ("run", &stray.run_id)],
        PATH,
    )
}
