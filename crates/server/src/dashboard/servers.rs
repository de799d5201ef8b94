//! Servers: who shares the work.

use maud::html;
use stationmaster_client::wire::ServerQuery;

use super::Answer;
use super::fields::Fields;
use super::frame::Page;
use super::overview::server_lamp;
use super::pieces::{act, nothing, short, time};
use super::session::Visitor;

pub(super) async fn list(visitor: Visitor, fields: Fields) -> Answer {
    let all = fields.get("all").is_some();
    let query = ServerQuery {
        all: all.then_some(true),
    };
    let servers = visitor.client.servers_on_record(&query).await?;
    let ready = visitor
        .client
        .readiness()
        .await
        .err()
        .map(|error| error.to_string());
    let body = html! {
        header.page { h1 { "Servers" } }
        div.range role="group" aria-label="Which" {
            a href="/servers" aria-current=[(!all).then_some("true")] { "those that are there" }
            a href="/servers?all=yes" aria-current=[all.then_some("true")] { "those that have left too" }
        }
        section #servers data-live {
            @if let Some(words) = ready { p.banner.warn { "The server that shows this page is not ready: " (words) } }
            @if servers.is_empty() { (nothing("No server is known.")) }
            @else { div.scroll tabindex="0" { table.rows {
                thead { tr { th { "Server" } th { "State" } th { "Engine" } th { "Version" } th.number { "In hand" } th { "Started" } th { "Heartbeat" } th { "Id" } @if visitor.administers_all() { th { "Do" } } } }
                tbody { @for server in &servers { tr data-key=(server.id) {
                    td { (server.name) }
                    td { (server_lamp(server)) @if server.recovered > 0 { " " span.quiet { (server.recovered) " taken out of its hands" @if let Some(by) = &server.recovered_by { " by " (by) } } } }
                    td { (server.engine) @if server.alive && !server.engine_up { " does not answer" @if let Some(at) = server.engine_away_at { " since " (time(at)) } } }
                    td { (server.version) }
                    td.number { (server.in_hand) }
                    td { (time(server.started_at)) }
                    td { (time(server.left_at.unwrap_or(server.seen_at))) }
                    td.id title=(server.id) { (short(server.id)) }
                    @if visitor.administers_all() { td {
                        @if server.alive && server.draining { (act("Resume", "resume-server", &[("id", &server.id.to_string())], "/servers")) }
                        @else if server.alive { (act("Drain", "drain-server", &[("id", &server.id.to_string())], "/servers")) }
                    } }
                } } }
            } } }
        }
    };
    Ok(Page::new("Servers", body))
}
