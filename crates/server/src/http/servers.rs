//! `/v1/servers`: who shares the work, who did, and who is to take no more of it.

use axum::Json as Answer;
use stationmaster_client::wire;
use stationmaster_core::db::Database;
use stationmaster_core::id::ServerId;
use stationmaster_core::presence::{self, Wish};
use utoipa_axum::routes;

use super::State;
use super::caller::{Caller, Visit};
use super::extract::{MaybeJson, Path, Query};
use super::problem::{Kind, Problem, Reply, Result};
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::of("server")
        .named()
        .viewer(routes!(list))
        .viewer(routes!(show))
        .admin(routes!(drain))
        .admin(routes!(resume))
}

/// The servers that share the work; with `all`, those too that have left
#[utoipa::path(get, path = "/v1/servers", operation_id = "list_servers", tag = "servers", params(wire::ServerQuery),
    responses((status = 200, description = "All servers", body = wire::Servers)))]
async fn list(Visit { database, .. }: Visit, Query(query): Query<wire::ServerQuery>) -> Reply<wire::Servers> {
    let items = presence::list(&database, query.all.unwrap_or_default()).await?;
    Ok(Answer(wire::Servers { items }))
}

/// One server, also one that has left; of several with a name the one that is there, or else the last one
#[utoipa::path(get, path = "/v1/servers/{id}", operation_id = "show_server", tag = "servers",
    responses((status = 200, description = "The server", body = wire::Server)))]
async fn show(Visit { database, .. }: Visit, Path(id): Path<wire::Reference>) -> Reply<wire::Server> {
    find(&database, &id).await.map(Answer)
}

/// Wish that a server takes no new work; with `exit`, that it leaves as well. For tokens that are for all workspaces
///
/// It finds out by its next heartbeat, within a second: it claims nothing more, hands its dispatchers and duties over, and finishes what it
/// has in hand. With `exit` it stops as if its process had been told to, and gives what still runs in it back to the queue.
#[utoipa::path(post, path = "/v1/servers/{id}/drain", operation_id = "drain_server", tag = "servers",
    request_body(content = Option<wire::Drain>),
    responses((status = 200, description = "The server as it is now", body = wire::Server),
              (status = 409, response = super::ProblemAnswer)))]
async fn drain(
    Visit { state, caller, .. }: Visit,
    Path(id): Path<wire::Reference>,
    MaybeJson(how): MaybeJson<wire::Drain>,
) -> Reply<wire::Server> {
    let wish = if how.exit { Wish::Exit } else { Wish::Drain };
    wished(&state, &caller, &id, Some(wish)).await
}

/// Let a server take work again. For tokens that are for all workspaces
#[utoipa::path(post, path = "/v1/servers/{id}/resume", operation_id = "resume_server", tag = "servers",
    responses((status = 200, description = "The server as it is now", body = wire::Server),
              (status = 409, response = super::ProblemAnswer)))]
async fn resume(Visit { state, caller, .. }: Visit, Path(id): Path<wire::Reference>) -> Reply<wire::Server> {
    wished(&state, &caller, &id, None).await
}

async fn find(database: &Database, which: &wire::Reference) -> Result<wire::Server> {
    let found = presence::find(database, which).await?;
    found.ok_or_else(|| Problem::not_found(format!("there is no server {which}, and none is on record")))
}

async fn wished(
    state: &State,
    caller: &Caller,
    which: &wire::Reference,
    wish: Option<Wish>,
) -> Reply<wire::Server> {
    caller.sees_all()?;
    let server = find(&state.database, which).await?;
    let id = ServerId(server.id);
    if !server.alive || !presence::wish(&state.database, id, wish, &caller.actor).await? {
        let words = format!("server {} is not there any more", server.name);
        return Err(Problem::new(Kind::Conflict, words));
    }
    find(&state.database, &server.id.into()).await.map(Answer)
}
