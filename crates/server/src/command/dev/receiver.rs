//! The receiver of `dev`: stands where a router would, verifies the signature of every wake, and prints it. Also an example of
//! what a receiver has to do.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use stationmaster_core::wake::signature::{Secret, verify};
use tokio::net::TcpListener;

/// An older or a newer wake is refused: somebody may have kept it and sent it again.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// Starts it on a free port. Answers its URL.
pub(super) async fn start(secret: Secret) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route("/internal/wake", post(wake))
        .with_state(secret);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "The receiver of wakes has ended");
        }
    });
    Ok(url)
}

async fn wake(State(secret): State<Secret>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let (id, timestamp) = (
        header("webhook-id"),
        header("webhook-timestamp").parse().unwrap_or_default(),
    );
    let fresh = jiff::Timestamp::now().as_second().abs_diff(timestamp) <= TOLERANCE_SECONDS.unsigned_abs();
    if !fresh || !verify(&secret, id, timestamp, &body, header("webhook-signature")) {
        println!("A wake came with a signature that is not ours; refused.");
        return StatusCode::UNAUTHORIZED;
    }
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    let words = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
    println!(
        "⏰ {}: scheduled for {}, try {}, signature verified",
        words("message"),
        words("scheduled_for"),
        said["attempt"]
    );
    StatusCode::NO_CONTENT
}
