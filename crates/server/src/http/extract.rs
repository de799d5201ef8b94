//! What handlers take in: bodies, queries and parts of the address, read strictly. What cannot be read is a [`Problem`] that
//! names the field.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{header, request};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use stationmaster_client::wire;

use super::State;
use super::problem::{Kind, Problem};
use super::unread;

/// How long a body may take to arrive.
const ARRIVES: Duration = Duration::from_secs(10);

/// A body of JSON.
pub(super) struct Json<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<State> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Self, Problem> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/json") {
            let words = "send the body as JSON, with Content-Type: application/json";
            return Err(Problem::new(Kind::UnsupportedMediaType, words));
        }
        let body = whole(request.into_body(), state.settings.body_limit).await?;
        unread::body(&body).map(Self)
    }
}

/// A body of JSON, or the default when there is none.
pub(super) struct MaybeJson<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<State> for MaybeJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Self, Problem> {
        if request.headers().contains_key(header::CONTENT_TYPE) {
            return Json::from_request(request, state)
                .await
                .map(|Json(body)| Self(body));
        }
        let body = whole(request.into_body(), state.settings.body_limit).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        let words = "send the body as JSON, with Content-Type: application/json";
        Err(Problem::new(Kind::UnsupportedMediaType, words))
    }
}

/// Reads a whole body, no larger than the limit, within a time.
pub(super) async fn whole(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let read = tokio::time::timeout(ARRIVES, Limited::new(body, limit).collect()).await;
    match read {
        Err(_) => Err(Problem::new(
            Kind::RequestTimeout,
            "the body did not arrive in time",
        )),
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let words = format!("the body has more than {limit} bytes (setting http.body_limit)");
            Err(Problem::new(Kind::TooLarge, words))
        }
        Ok(Err(_)) => Err(Problem::new(Kind::Malformed, "the body was cut off")),
    }
}

/// The query of an address.
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<State> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, _: &State) -> Result<Self, Problem> {
        unread::query(pairs(parts), Vec::new()).map(Self)
    }
}

fn pairs(parts: &request::Parts) -> Vec<(String, String)> {
    let text = parts.uri.query().unwrap_or_default();
    url::form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

/// The query of an address, and the statuses that it asks for: several, with commas between them, or repeated.
pub(super) struct InStatus<T, S>(pub(super) T, pub(super) Vec<S>);

impl<T: DeserializeOwned, S: DeserializeOwned> FromRequestParts<State> for InStatus<T, S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, _: &State) -> Result<Self, Problem> {
        let (asked, rest): (Vec<_>, Vec<_>) =
            pairs(parts).into_iter().partition(|(name, _)| name == "status");
        let rest = joined(rest, &["workspace_id", "workspace"]);
        let (mut statuses, mut errors) = (Vec::new(), Vec::new());
        for word in asked.iter().flat_map(|(_, words)| words.split(',')) {
            match serde_json::from_value(serde_json::Value::from(word.trim())) {
                Ok(status) => statuses.push(status),
                Err(error) => errors.push(wire::FieldError::new("status", unread::words(&error.to_string()))),
            }
        }
        unread::query(rest, errors).map(|query| Self(query, statuses))
    }
}

/// Pairs in which what is repeated of these fields is one value, with commas.
fn joined(pairs: Vec<(String, String)>, fields: &[&str]) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in pairs {
        let known = joined.iter_mut().find(|(known, _)| *known == name);
        match known.filter(|_| fields.contains(&name.as_str())) {
            Some((_, values)) => *values = format!("{values},{value}"),
            None => joined.push((name, value)),
        }
    }
    joined
}

/// A part of the address.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<State> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, state: &State) -> Result<Self, Problem> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Self(value))
            .map_err(|error| {
                let words = error.body_text();
                Problem::new(Kind::Invalid, "a part of the address cannot be read")
                    .with_errors(vec![wire::FieldError::new("path", words)])
            })
    }
}

/// The longest idempotency key.
const LONGEST_KEY: usize = 256;

/// The header `Idempotency-Key`.
pub(super) struct IdempotencyKey(pub(super) Option<String>);

impl IdempotencyKey {
    /// The key of a request whose body may name one as well: the same one.
    pub(super) fn or_of_body(self, named: Option<String>) -> Result<Option<String>, Problem> {
        match (self.0, named) {
            (Some(one), Some(other)) if one != other => {
                let words = "the body names another key than the header Idempotency-Key";
                Err(Problem::field("/idempotency_key", words))
            }
            (key, named) => Ok(key.or(named)),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(Self(None));
        };
        let visible = |text: &&str| {
            (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match value.to_str().ok().filter(visible) {
            Some(key) => Ok(Self(Some(key.to_owned()))),
            None => Err(Problem::field(
                "Idempotency-Key",
                "1 to 256 visible characters of ASCII",
            )),
        }
    }
}

/// The header `Prefer` (RFC 7240), of which one preference is known: `respond-async`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefer {
    /// The answer is worth waiting for.
    Waiting,
    /// Not to wait: servers carry it out.
    NotWaiting,
}

impl<S: Sync> FromRequestParts<S> for Prefer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut request::Parts, _: &S) -> Result<Self, Infallible> {
        let lines = parts.headers.get_all("prefer").iter();
        let mut preferences = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','));
        let asynchronous = preferences.any(|preference| {
            let name = preference.split([';', '=']).next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case("respond-async")
        });
        Ok(if asynchronous {
            Self::NotWaiting
        } else {
            Self::Waiting
        })
    }
}
