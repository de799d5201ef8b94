//! The doors that need no token: is it alive, is it ready, its metrics, and the document of the API with a page to
//! read it. None of them shows data of a workspace but the metrics, which name those that use most: where that is not for everybody,
//! they ask for a token that is for all workspaces.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::json;
use stationmaster_client::wire;
use stationmaster_core::observe::Format;
use stationmaster_core::station::Station;

use super::State;
use super::caller::{Peer, bearer};
use super::problem::{Kind, Problem};

/// Pages bring everything with them and may reach nothing but this server.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes(document: &utoipa::openapi::OpenApi, station: Arc<Station>) -> Router<State> {
    // Written once: whoever asks again and again must not keep this server busy.
    let document = Bytes::from(serde_json::to_vec(document).unwrap_or_default());
    let (for_readiness, for_health) = (Arc::clone(&station), Arc::clone(&station));
    Router::new()
        .route("/docs", get(|| async { page(include_str!("docs.html")) }))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(async move || ready(&for_readiness)))
        // What many balancers ask for unless they are told otherwise.
        .route("/healthz", get(async move || ready(&for_health)))
        .route(
            "/metrics",
            get(async move |state, peer, headers| metrics(&station, state, peer, headers).await),
        )
        .route(
            "/v1/openapi.json",
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], document) }),
        )
}

fn page(text: &'static str) -> Response {
    let mut response = Html(text).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn ready(station: &Station) -> Response {
    let readiness = station.readiness();
    if readiness.problems.is_empty() {
        return Json(json!({ "status": "ready" })).into_response();
    }
    let errors = readiness
        .problems
        .iter()
        .map(|problem| wire::FieldError::new("readiness", problem));
    Problem::new(Kind::NotReady, readiness.problems.join("; "))
        .with_errors(errors.collect())
        .into_response()
}

async fn metrics(
    station: &Station,
    Shared(state): Shared<State>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if state.settings.protect_metrics {
        let secret = bearer(&headers)?;
        let words = "metrics need a token here (setting http.protect_metrics)";
        let secret = secret.ok_or_else(|| Problem::new(Kind::Unauthenticated, words))?;
        // While the database is away the metrics are what tells of it.
        let caller = state.who_by_memory_too(peer.map(|peer| peer.0.0), &secret);
        caller.await?.sees_all()?;
    }
    station.measure().await;
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let format = Format::accepted(accept);
    let text = state.metrics.render_as(format);
    Ok(([(header::CONTENT_TYPE, format.content_type())], text).into_response())
}
