//! `/v1/tokens`: who may come in. A token can only make, see and revoke tokens that may do no more than itself.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use stationmaster_client::wire;
use stationmaster_core::access::{self, NewToken, Role, Token};
use stationmaster_core::id::{TokenId, WorkspaceId};
use stationmaster_core::session::Scope;
use utoipa_axum::routes;
use uuid::Uuid;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::extract::{Json, Path, Query};
use super::problem::{Kind, Problem};
use super::routes::Routes;
use super::words::Translate;

pub(super) fn routes() -> Routes {
    Routes::new()
        .admin(routes!(list))
        // The answer holds the secret, so it is not kept for repeats; the name is unique, so a repeat makes no second one.
        .unkept(Role::Admin, routes!(create))
        .viewer(routes!(own))
        .admin(routes!(show))
        .admin(routes!(revoke))
}

/// Tokens, in the order of their ids; those that may do no more than the one that asks
#[utoipa::path(get, path = "/v1/tokens", operation_id = "list_tokens", tag = "tokens", params(wire::PageQuery),
    responses((status = 200, description = "A page of tokens", body = wire::Page<wire::Token>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::PageQuery>,
) -> Result<Answer<wire::Page<wire::Token>>, Problem> {
    let list = List::new("tokens", &query);
    let after = list.position(query.cursor.as_deref(), cursor::uuid)?.map(TokenId);
    let limit = cursor::limit(query.limit)?;
    let rows = access::list(&state.database, after, i64::from(limit) + 1).await?;
    let (rows, next) = cursor::cut(rows, limit, |token| token.id.0.as_bytes().to_vec());
    Ok(Answer(wire::Page {
        items: rows
            .into_iter()
            .filter(|token| may_see(&caller, token))
            .map(token)
            .collect(),
        next_cursor: next.map(|next| list.cursor(&next)),
    }))
}

/// Make a token; its secret is in the answer, and nowhere else
#[utoipa::path(post, path = "/v1/tokens", operation_id = "create_token", tag = "tokens", request_body = wire::NewToken,
    responses((status = 201, description = "It is made", body = wire::TokenMade), (status = 409, response = super::ProblemAnswer)))]
async fn create(
    Shared(state): Shared<State>,
    caller: Caller,
    Json(new): Json<wire::NewToken>,
) -> Result<impl IntoResponse, Problem> {
    let scope = match new.workspaces {
        None => Scope::All,
        Some(workspaces) => Scope::Only(workspaces.into_iter().map(WorkspaceId).collect()),
    };
    if !caller.scope.covers(&scope) {
        let words = "a token cannot be for more workspaces than the one that makes it";
        return Err(Problem::new(Kind::Forbidden, words));
    }
    super::name("/name", Some(&new.name))?;
    let new = NewToken {
        name: new.name,
        role: new.role.translate(),
        scope,
        expires_at: new.expires_at,
    };
    let (made, secret) = access::create(&state.database, &new, &caller.actor).await?;
    let made = wire::TokenMade {
        token: token(made),
        secret: secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Answer(made)))
}

/// The token that this request came with
#[utoipa::path(get, path = "/v1/tokens/self", operation_id = "show_own_token", tag = "tokens",
    responses((status = 200, description = "The token", body = wire::Token), (status = 404, response = super::ProblemAnswer)))]
async fn own(Shared(state): Shared<State>, caller: Caller) -> Result<Answer<wire::Token>, Problem> {
    let found = access::token(&state.database, caller.token).await?;
    let words = "this request came without a token, to a server that is open";
    found
        .map(|found| Answer(token(found)))
        .ok_or_else(|| Problem::not_found(words))
}

/// One token
#[utoipa::path(get, path = "/v1/tokens/{id}", operation_id = "show_token", tag = "tokens",
    params(("id" = Uuid, Path, description = "The token")),
    responses((status = 200, description = "The token", body = wire::Token), (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Answer<wire::Token>, Problem> {
    Ok(Answer(token(find(&state, &caller, id).await?)))
}

/// Revoke a token; every server forgets it within five seconds
#[utoipa::path(delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", tag = "tokens",
    params(("id" = Uuid, Path, description = "The token")),
    responses((status = 204, description = "It is revoked"), (status = 404, response = super::ProblemAnswer)))]
async fn revoke(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<StatusCode, Problem> {
    let found = find(&state, &caller, id).await?;
    access::revoke(&state.database, &found.id.to_string(), &caller.actor).await?;
    // The others are told by a notification; here it holds before the answer is given.
    state.access.forget();
    Ok(StatusCode::NO_CONTENT)
}

fn may_see(caller: &Caller, token: &Token) -> bool {
    caller.scope.covers(&token.scope)
}

async fn find(state: &State, caller: &Caller, id: Uuid) -> Result<Token, Problem> {
    let found = access::token(&state.database, TokenId(id)).await?;
    found
        .filter(|token| may_see(caller, token))
        .ok_or_else(|| Problem::not_found(format!("there is no token {id}")))
}

pub(crate) fn token(token: Token) -> wire::Token {
    let workspaces = token
        .scope
        .limited()
        .map(|ids| ids.iter().map(|id| id.0).collect());
    wire::Token {
        id: token.id.0,
        name: token.name,
        hint: token.hint,
        role: token.role.translate(),
        workspaces,
        created_at: token.created_at,
        created_by: token.created_by,
        expires_at: token.expires_at,
        revoked_at: token.revoked_at,
        last_used_at: token.last_used_at,
        active: token.active,
    }
}
