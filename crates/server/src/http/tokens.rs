//! `/v1/tokens`: who may come in. A token can only make, see and revoke tokens that may do no more than itself.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use stationmaster_client::wire::{self, Reference};
use stationmaster_core::access::{self, Role};
use stationmaster_core::db::Database;
use stationmaster_core::id::TokenId;
use stationmaster_core::names::{among, fold};
use utoipa_axum::routes;

use super::caller::{Caller, Visit};
use super::cursor::List;
use super::extract::{Json, Path, Query};
use super::names;
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::routes::{Routes, long};

pub(super) fn routes() -> Routes {
    Routes::of("token")
        .named()
        .admin(long(routes!(list)))
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
    Visit { database, .. }: Visit,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::Token>> {
    let list = List::new("tokens", &query)?;
    let after = list.position()?.map(TokenId);
    let rows = access::list(&database, after, list.rows()).await?;
    Ok(list.page(rows, |token| token.id))
}

/// Make a token; its secret is in the answer, and nowhere else
#[utoipa::path(post, path = "/v1/tokens", operation_id = "create_token", tag = "tokens", request_body = wire::asked::NewToken,
    responses((status = 201, description = "It is made", body = wire::TokenMade),
              (status = 409, response = super::ProblemAnswer)))]
async fn create(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Json(new): Json<wire::asked::NewToken>,
) -> Result<impl IntoResponse> {
    let mut wrong = Wrong::default();
    wrong.see(names::given("/name", Some(&new.name)));
    let workspaces = wrong.see(names::all(&database, new.workspaces.as_deref()).await);
    wrong.told()?;
    let new = new.with_ids(workspaces.flatten());
    if !caller.scope.covers(&new.workspaces.clone().into()) {
        let words = "a token cannot be for more workspaces than the one that makes it";
        return Err(Problem::new(Kind::Forbidden, words));
    }
    if let Some(mine) = caller.expires_at
        && new.expires_at.is_none_or(|end| end > mine)
    {
        let words = format!("a token cannot outlive the one that makes it, which ends at {mine}");
        return Err(Problem::new(Kind::Forbidden, words));
    }
    let (token, secret) = access::create(&state.database, &new, &caller.actor).await?;
    let made = wire::TokenMade {
        token,
        secret: secret.expose().to_owned(),
    };
    Ok((StatusCode::CREATED, Answer(made)))
}

/// The token that this request came with
#[utoipa::path(get, path = "/v1/tokens/self", operation_id = "show_own_token", tag = "tokens",
    responses((status = 200, description = "The token", body = wire::Token), (status = 404, response = super::ProblemAnswer)))]
async fn own(Visit { state, caller, .. }: Visit) -> Reply<wire::Token> {
    let found = access::token(&state.database, caller.token).await?;
    let words = "this request came without a token, to a server that is open";
    found.map(Answer).ok_or_else(|| Problem::not_found(words))
}

/// One token
#[utoipa::path(get, path = "/v1/tokens/{id}", operation_id = "show_token", tag = "tokens",
    responses((status = 200, description = "The token", body = wire::Token)))]
async fn show(visit: Visit, Path(id): Path<Reference>) -> Reply<wire::Token> {
    find(&visit, &id).await.map(Answer)
}

/// Revoke a token; every server forgets it within five seconds
#[utoipa::path(delete, path = "/v1/tokens/{id}", operation_id = "revoke_token", tag = "tokens",
    responses((status = 204, description = "It is revoked")))]
async fn revoke(visit: Visit, Path(id): Path<Reference>) -> Result<StatusCode> {
    let id = find(&visit, &id).await?.id;
    let Visit { state, caller, .. } = visit;
    access::revoke(&state.database, &id.to_string(), &caller.actor).await?;
    // The others are told by a notification; here it holds before the answer is given.
    state.access.forget();
    Ok(StatusCode::NO_CONTENT)
}

fn may_see(caller: &Caller, token: &wire::Token) -> bool {
    caller.scope.covers(&token.workspaces.clone().into())
}

async fn find(visit: &Visit, id: &Reference) -> Result<wire::Token> {
    let found = match id {
        Reference::Id(id) => access::token(&visit.database, TokenId(*id)).await?,
        Reference::Name(name) => access::named(&visit.state.database, &fold(name)).await?,
    };
    found
        .filter(|token| may_see(&visit.caller, token))
        .ok_or_else(|| Problem::not_found(format!("there is no token {id}")))
}

/// What a text means among the tokens that the caller may see: the one of that name, or those whose ids begin so.
pub(super) async fn seen(database: &Database, text: &str) -> Result<wire::NamesFound> {
    // There are few of them.
    let tokens = access::list(database, None, 10_000).await?;
    let tokens = tokens.into_iter().filter(|token| token.revoked_at.is_none());
    let tokens = tokens.map(|token| wire::NameFound {
        id: token.id,
        name: Some(token.name),
        workspace: None,
    });
    Ok(among(tokens.collect(), text))
}
