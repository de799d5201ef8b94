//! `/v1/servers`: who shares the work.

use axum::Json as Answer;
use axum::extract::State as Shared;
use stationmaster_client::wire;
use stationmaster_core::presence::{self, Server};
use utoipa_axum::routes;

use super::State;
use super::problem::Problem;
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new().viewer(routes!(list))
}

/// The servers that share the work
#[utoipa::path(get, path = "/v1/servers", operation_id = "list_servers", tag = "servers",
    responses((status = 200, description = "All servers", body = wire::Servers)))]
async fn list(Shared(state): Shared<State>) -> Result<Answer<wire::Servers>, Problem> {
    let servers = presence::list(&state.database).await?;
    Ok(Answer(wire::Servers {
        items: servers.into_iter().map(server).collect(),
    }))
}

/// A server on the wire.
pub(crate) fn server(server: Server) -> wire::Server {
    wire::Server {
        id: server.id.0,
        name: server.name,
        version: server.version,
        engine: server.engine,
        engine_up: server.engine_up,
        claiming: server.claiming,
        started_at: server.started_at,
        seen_at: server.seen_at,
        alive: server.alive,
    }
}
