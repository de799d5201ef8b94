//! `/v1/locks`: named locks, shared with ShedLock applications. They belong to no workspace, so they are for tokens that are for
//! all of them.

use std::time::Duration;

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::json;
use stationmaster_client::wire;
use stationmaster_core::audit;
use stationmaster_core::id::Token;
use stationmaster_core::locks::{self, Extended, LockName, Released, Terms, Unlocked};
use utoipa_axum::routes;

use super::caller::Visit;
use super::extract::{Json, Path, Query};
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::routes::{Routes, long};

pub(super) fn routes() -> Routes {
    Routes::of("lock")
        .viewer(long(routes!(list)))
        .viewer(routes!(show))
        .operator(routes!(acquire))
        .operator(routes!(extend))
        .operator(routes!(end))
}

/// The locks there are, those that are held first
#[utoipa::path(get, path = "/v1/locks", operation_id = "list_locks", tag = "locks",
    responses((status = 200, description = "At most 1,000 locks", body = wire::Locks)))]
async fn list(Visit { state, caller, .. }: Visit) -> Reply<wire::Locks> {
    caller.sees_all()?;
    let items = state.locks.list().await?;
    Ok(Answer(wire::Locks { items }))
}

/// One lock
#[utoipa::path(get, path = "/v1/locks/{name}", operation_id = "show_lock", tag = "locks",
    params(("name" = String, Path, description = "The lock", min_length = 1, max_length = 64)),
    responses((status = 200, description = "The lock", body = wire::Lock), (status = 404, response = super::ProblemAnswer)))]
async fn show(Visit { state, caller, .. }: Visit, Path(name): Path<String>) -> Reply<wire::Lock> {
    caller.sees_all()?;
    let found = state.locks.find(&name).await?;
    found.map(Answer).ok_or_else(|| unknown(&name))
}

/// Take a lock when nobody has it; never waits for it
#[utoipa::path(post, path = "/v1/locks/{name}", operation_id = "acquire_lock", tag = "locks",
    params(("name" = String, Path, description = "The lock", min_length = 1, max_length = 64)), request_body = wire::LockRequest,
    responses((status = 201, description = "It is held, under this token", body = wire::Acquired),
              (status = 409, response = super::ProblemAnswer)))]
async fn acquire(
    Visit { state, caller, .. }: Visit,
    Path(name): Path<String>,
    Json(request): Json<wire::LockRequest>,
) -> Result<impl IntoResponse> {
    caller.sees_all()?;
    let mut wrong = Wrong::default();
    let name = wrong.see(name.parse::<LockName>());
    wrong.see(super::name("/owner", request.owner.as_deref()));
    let at_most = wrong.see(seconds("/at_most", request.at_most));
    let at_least = wrong.see(seconds("/at_least", request.at_least));
    let (Some(name), Some(at_most), Some(at_least)) = (name, at_most, at_least) else {
        return Err(wrong.whole());
    };
    wrong.told()?;
    let terms = Terms::new(at_most, at_least)?;
    let owner = request.owner.as_deref().unwrap_or(&caller.actor);
    let lock = match state.locks.lock(&name, terms, owner).await? {
        locks::Locked::Acquired(lock) => lock,
        locks::Locked::Taken(taken) => return Err(Problem::taken(name.as_str(), taken)),
    };
    let detail = json!({ "token": lock.token.0, "locked_by": lock.holder });
    audit::note(
        &state.database,
        &caller.actor,
        "lock.acquire",
        None,
        name.as_str(),
        detail,
    )
    .await?;
    let acquired = wire::Acquired {
        name: lock.name.to_string(),
        token: lock.token.0,
        holder: lock.holder,
        until: lock.until,
    };
    Ok((StatusCode::CREATED, Answer(acquired)))
}

/// Hold a lock for longer, counted from now
#[utoipa::path(post, path = "/v1/locks/{name}/extend", operation_id = "extend_lock", tag = "locks",
    params(("name" = String, Path, description = "The lock", min_length = 1, max_length = 64)), request_body = wire::ExtendLock,
    responses((status = 200, description = "It holds until then", body = wire::LockExtended),
              (status = 409, response = super::ProblemAnswer)))]
async fn extend(
    Visit { state, caller, .. }: Visit,
    Path(name): Path<String>,
    Json(request): Json<wire::ExtendLock>,
) -> Reply<wire::LockExtended> {
    caller.sees_all()?;
    let mut wrong = Wrong::default();
    let name = wrong.see(name.parse::<LockName>());
    let at_most = wrong.see(seconds("/at_most", request.at_most));
    let (Some(name), Some(at_most)) = (name, at_most) else {
        return Err(wrong.whole());
    };
    match state.locks.extend(&name, Token(request.token), at_most).await? {
        Extended::Until(until) => Ok(Answer(wire::LockExtended { until })),
        Extended::Lost => {
            let words = format!("the lock {name} is not held under this token any more");
            Err(Problem::new(Kind::LockLost, words))
        }
    }
}

/// Give a lock back by its token, or free it by hand from a holder who was seen
#[utoipa::path(delete, path = "/v1/locks/{name}", operation_id = "end_lock", tag = "locks",
    params(("name" = String, Path, description = "The lock", min_length = 1, max_length = 64), wire::LockQuery),
    responses((status = 200, description = "What came of it", body = wire::UnlockAnswer),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn end(
    Visit { state, caller, .. }: Visit,
    Path(name): Path<String>,
    Query(query): Query<wire::LockQuery>,
) -> Reply<wire::UnlockAnswer> {
    caller.sees_all()?;
    let name: LockName = name.parse()?;
    if state.locks.find(name.as_str()).await?.is_none() {
        return Err(unknown(name.as_str()));
    }
    let (released, free_at) = match (query.token, query.holder) {
        (Some(token), None) => match state.locks.unlock(&name, Token(token)).await? {
            Unlocked::Free => (true, None),
            Unlocked::FreeAt(at) => (true, Some(at)),
            Unlocked::NotHeld => (false, None),
        },
        (None, Some(holder)) => match state.locks.release(name.as_str(), &holder, &caller.actor).await? {
            Released::Free => (true, None),
            Released::WasFree => (false, None),
            Released::Unknown => return Err(unknown(name.as_str())),
            Released::HeldByAnother(by) => {
                let words = format!("{name} is now held by {by}; nothing was changed");
                return Err(Problem::new(Kind::Conflict, words));
            }
        },
        _ => {
            return Err(Problem::field(
                "token",
                "give the token, or the holder who was seen",
            ));
        }
    };
    if let (true, Some(token)) = (released, query.token) {
        let detail = json!({ "token": token });
        audit::note(
            &state.database,
            &caller.actor,
            "lock.unlock",
            None,
            name.as_str(),
            detail,
        )
        .await?;
    }
    Ok(Answer(wire::UnlockAnswer {
        name: name.to_string(),
        released,
        free_at,
    }))
}

fn seconds(field: &str, seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| Problem::field(field, "seconds, from 0 to those of ten years"))
}

fn unknown(name: &str) -> Problem {
    Problem::not_found(format!("there is no lock {name:?}"))
}
