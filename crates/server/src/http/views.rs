//! `/v1/views`: addresses of lists with their filters, which people keep under a name.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use stationmaster_client::wire;
use stationmaster_core::access;
use stationmaster_core::session::Scope;
use stationmaster_core::views::{self, Owner};
use utoipa_axum::routes;
use uuid::Uuid;

use super::caller::{Caller, Visit};
use super::extract::{Json, Path};
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::of("view")
        .viewer(routes!(list))
        .operator(routes!(keep))
        .operator(routes!(forget))
}

/// The views of the token that asks, and those for all, by name
///
/// Those for all are shown to tokens that are for all workspaces: an address may name any of them.
#[utoipa::path(get, path = "/v1/views", operation_id = "list_views", tag = "views",
    responses((status = 200, description = "The views", body = wire::Views)))]
async fn list(Visit { state, caller, .. }: Visit) -> Reply<wire::Views> {
    let items = views::list(&state.database, owner(&caller)).await?;
    Ok(Answer(wire::Views { items }))
}

/// Keep a view under a name; a name that the token uses already gets the new address. To share it takes a token for all workspaces
#[utoipa::path(post, path = "/v1/views", operation_id = "keep_view", tag = "views", request_body = wire::NewView,
    responses((status = 201, description = "It is kept", body = wire::View), (status = 409, response = super::ProblemAnswer)))]
async fn keep(
    Visit { state, caller, .. }: Visit,
    Json(new): Json<wire::NewView>,
) -> Result<impl IntoResponse> {
    let mut wrong = Wrong::default();
    let mut field = |field: &str, words: &str| {
        wrong.see::<(), _>(Err(Problem::field(field, words)));
    };
    if new.name.trim().is_empty() || new.name.chars().count() > 100 || new.name.contains(char::is_control) {
        field("/name", "1 to 100 characters, on one line");
    }
    let plain = new.path.starts_with('/') && !new.path.starts_with("//") && !new.path.contains('\\');
    if !plain || new.path.len() > 2000 || !new.path.bytes().all(|byte| byte.is_ascii_graphic()) {
        let words =
            "the address of a page on this server, such as /queue?status=PENDING, at most 2000 characters";
        field("/path", words);
    }
    wrong.told()?;
    if new.shared {
        caller.sees_all()?;
    }
    let kept = views::keep(&state.database, owner(&caller), &new).await;
    let kept = kept.map_err(|error| match error {
        access::Error::Invalid(words) => Problem::new(Kind::Conflict, words),
        other => other.into(),
    })?;
    Ok((StatusCode::CREATED, Answer(kept)))
}

/// Forget a view: one's own, or one for all
#[utoipa::path(delete, path = "/v1/views/{id}", operation_id = "forget_view", tag = "views",
    responses((status = 204, description = "It is forgotten")))]
async fn forget(Visit { state, caller, .. }: Visit, Path(id): Path<Uuid>) -> Result<StatusCode> {
    if views::forget(&state.database, owner(&caller), id).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Problem::not_found(format!("there is no view {id}")))
}

fn owner(caller: &Caller) -> Owner<'_> {
    Owner {
        actor: &caller.actor,
        sees_all: matches!(caller.scope, Scope::All),
    }
}
