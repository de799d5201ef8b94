//! Answers that are kept: a POST repeated under its `Idempotency-Key` is answered as the first was, and not done again.
//!
//! Only what was carried out is kept; a refusal gives the key back. From the moment a key is taken the request goes on to its end,
//! whether or not somebody still waits for it; and a key whose outcome is not known, because this server was lost or broke in
//! between, stays taken: it is never carried out again. Answers that hold a secret are never kept: such routes do not pass here.

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};
use stationmaster_core::access::answers::{self, Answer, Taken};

use super::State;
use super::caller::Caller;
use super::extract::{IdempotencyKey, whole};
use super::guard::{Place, to_its_end};
use super::problem::{Kind, Problem};

/// Says that an answer was given before.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Carries a request out once for its key.
pub(super) async fn keep(
    Extension(state): Extension<State>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    match once(&state, &caller, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn once(state: &State, caller: &Caller, request: Request, next: Next) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let IdempotencyKey(key) = IdempotencyKey::from_request_parts(&mut parts, state).await?;
    let Some(key) = key else {
        return Ok(next.run(Request::from_parts(parts, body)).await);
    };
    let body = whole(body, state.settings.body_limit).await?;
    let mut hash = Sha256::new();
    for part in [
        parts.method.as_str().as_bytes(),
        parts.uri.to_string().as_bytes(),
        &body,
    ] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let hash: [u8; 32] = hash.finalize().into();
    match answers::take(&state.database, caller.token, &key, &hash).await? {
        Taken::New => {}
        Taken::Answered(answer) => return Ok(replay(answer)),
        Taken::UnderWay => {
            let words = "the first request with this key is not over yet; ask again";
            return Err(Problem::new(Kind::IdempotencyUnderWay, words).retry_after(1));
        }
        Taken::Unknown => {
            let words = "the first request with this key was cut off, and nobody knows what came of it: look, then take a new key";
            return Err(Problem::new(Kind::IdempotencyUnderWay, words));
        }
        Taken::Other => {
            let words =
                format!("the key {key:?} came with another request within the last day; take a new one");
            return Err(Problem::new(Kind::IdempotencyConflict, words));
        }
    }
    let (state, caller) = (state.clone(), caller.clone());
    let place = parts.extensions.get::<Place>().cloned();
    let work = async move {
        let response = next.run(Request::from_parts(parts, Body::from(body))).await;
        remember(&state, &caller, &key, response).await
    };
    to_its_end(place, work).await
}

async fn remember(
    state: &State,
    caller: &Caller,
    key: &str,
    response: Response,
) -> Result<Response, Problem> {
    if !response.status().is_success() {
        let undone = match response.extensions().get::<Problem>() {
            Some(problem) => problem.is_undone(),
            None => !response.status().is_server_error(),
        };
        // Whatever was wrong may be mended, and the same key be used for the next try; unless it may have been carried out and only
        // the answer be lost: then the key stays taken.
        if undone {
            answers::give_back(&state.database, caller.token, key).await?;
        }
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = whole(body, usize::MAX).await?;
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let answer = Answer {
        status: parts.status.as_u16(),
        kind: kind.and_then(|kind| kind.to_str().ok()).map(str::to_owned),
        body: body.to_vec(),
    };
    answers::keep(&state.database, caller.token, key, &answer).await?;
    Ok(Response::from_parts(parts, body.into()))
}

fn replay(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, answer.body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    if let Some(kind) = answer.kind.and_then(|kind| HeaderValue::try_from(kind).ok()) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
