//! The doors: liveness, readiness, metrics, and the overview page. Reads only; every change goes through the CLI or SQL.

use std::sync::Arc;

use anyhow::Result;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use stationmaster_core::db::Database;
use stationmaster_core::executions::inspect;
use stationmaster_core::observe::Metrics;
use stationmaster_core::station::Station;
use stationmaster_core::{catalogue, db, presence};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// What the doors open on.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) database: Database,
    pub(crate) station: Arc<Station>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Serves until `stop`.
pub(crate) async fn serve(listener: TcpListener, state: State, stop: CancellationToken) -> Result<()> {
    let router = Router::new()
        .route("/", get(page))
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/v1/overview", get(overview))
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "there is nothing at this address") })
        .with_state(state);
    axum::serve(listener, router)
        .with_graceful_shutdown(stop.cancelled_owned())
        .await?;
    Ok(())
}

async fn page() -> Html<&'static str> {
    Html(include_str!("overview.html"))
}

async fn ready(Shared(state): Shared<State>) -> Response {
    let readiness = state.station.readiness().await;
    if readiness.problems.is_empty() {
        Json(json!({ "status": "ready" })).into_response()
    } else {
        let body = json!({ "status": "not ready", "problems": readiness.problems });
        (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
    }
}

async fn metrics(Shared(state): Shared<State>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], state.metrics.render()).into_response()
}

async fn overview(Shared(state): Shared<State>) -> Response {
    match read_overview(&state.database).await {
        Ok(overview) => Json(overview).into_response(),
        Err(error) => problem(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

async fn read_overview(database: &Database) -> Result<serde_json::Value, db::Error> {
    let overview = inspect::overview(database).await?;
    let workspaces = match catalogue::workspaces(database, None, 200).await {
        Ok(workspaces) => workspaces,
        Err(catalogue::Error::Database(error)) => return Err(error),
        Err(_) => Vec::new(),
    };
    let recent = inspect::Filter {
        limit: 15,
        ..inspect::Filter::default()
    };
    let executions = inspect::executions(database, &recent).await?;
    let servers = presence::list(database).await?;
    Ok(
        json!({ "overview": overview, "workspaces": workspaces, "executions": executions, "servers": servers }),
    )
}

/// An error by RFC 9457.
fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail });
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        body.to_string(),
    )
        .into_response()
}
