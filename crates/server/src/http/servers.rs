//! `/v1/servers`: who shares the work.

use axum::Json as Answer;
use stationmaster_client::wire;
use stationmaster_core::presence;
use utoipa_axum::routes;

use super::caller::Visit;
use super::problem::Reply;
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::of("server").viewer(routes!(list))
}

/// The servers that share the work
#[utoipa::path(get, path = "/v1/servers", operation_id = "list_servers", tag = "servers",
    responses((status = 200, description = "All servers", body = wire::Servers)))]
async fn list(Visit { state, .. }: Visit) -> Reply<wire::Servers> {
    let items = presence::list(&state.database).await?;
    Ok(Answer(wire::Servers { items }))
}
