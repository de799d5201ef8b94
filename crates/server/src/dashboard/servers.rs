//! Servers: who shares the work.

use maud::html;

use super::Answer;
use super::frame::Page;
use super::overview::server_lamp;
use super::pieces::{nothing, short, time};
use super::session::Visitor;

pub(super) async fn list(visitor: Visitor) -> Answer {
    let servers = visitor.client.servers().await?;
    let ready = visitor
        .client
        .readiness()
        .await
        .err()
        .map(|error| error.to_string());
    let body = html! {
        header.page { h1 { "Servers" } }
        section #servers data-live {
            @if let Some(words) = ready { p.banner.warn { "The server that shows this page is not ready: " (words) } }
            @if servers.is_empty() { (nothing("No server is known.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Server" } th { "State" } th { "Engine" } th { "Version" } th { "Started" } th { "Heartbeat" } th { "Id" } } }
                tbody { @for server in &servers { tr data-key=(server.id) {
                    td { (server.name) }
                    td { (server_lamp(server)) }
                    td { (server.engine) @if !server.engine_up { " does not answer" } }
                    td { (server.version) }
                    td { (time(server.started_at)) }
                    td { (time(server.seen_at)) }
                    td.id title=(server.id) { (short(server.id)) }
                } } }
            } } }
        }
    };
    Ok(Page::new("Servers", body))
}
