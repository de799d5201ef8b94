//! The receiver of `dev`: stands where a router would, verifies the signature of every wake, and prints it. Also an example of
//! what a receiver has to do.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use stationmaster_client::webhook::Verifier;
use stationmaster_core::wake::signature::Secret;
use tokio::net::TcpListener;

/// Starts it on a free port. Answers its URL.
pub(super) async fn start(secret: &Secret) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let router = Router::new()
        .route("/internal/wake", post(wake))
        .with_state(Verifier::new(&secret.reveal())?);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "The receiver of wakes has ended");
        }
    });
    Ok(url)
}

async fn wake(State(verifier): State<Verifier>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let wake = match verifier.read(header, &body) {
        Ok((_, wake)) => wake,
        Err(untrusted) => {
            println!("A wake came that is not to be believed, and was refused: {untrusted}.");
            return StatusCode::UNAUTHORIZED;
        }
    };
    println!(
        "⏰ {}: scheduled for {}, try {}, signature verified",
        wake.message.unwrap_or_default(),
        wake.scheduled_for,
        wake.attempt
    );
    StatusCode::NO_CONTENT
}
