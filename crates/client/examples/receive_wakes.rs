//! Receive wakes, verify them, and deal with each once.
//!
//! The secret is what `stationmaster alarms secrets show router` prints.
//!
//! `WAKE_SECRET=whsec_… cargo run --example receive_wakes -- 127.0.0.1:8080`

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use stationmaster_client::webhook::{Verifier, Wake};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<()> {
    let secret = std::env::var("WAKE_SECRET").context("WAKE_SECRET")?;
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let router = router(&secret, |wake| {
        println!(
            "{} of {}: {:?}",
            wake.scheduled_for, wake.workspace_id, wake.message
        );
    })?;
    axum::serve(TcpListener::bind(address).await?, router).await?;
    Ok(())
}

struct Receiver {
    verifier: Verifier,
    /// A program that restarts keeps these in its database, in the transaction that does the work.
    seen: Mutex<HashSet<String>>,
    wake: Box<dyn Fn(&Wake) + Send + Sync>,
}

/// Takes wakes at `/internal/wake`.
pub(crate) fn router(secret: &str, wake: impl Fn(&Wake) + Send + Sync + 'static) -> Result<Router> {
    let receiver = Receiver {
        verifier: Verifier::new(secret)?,
        seen: Mutex::default(),
        wake: Box::new(wake),
    };
    Ok(Router::new()
        .route("/internal/wake", post(receive))
        .with_state(Arc::new(receiver)))
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &'static str| headers.get(name)?.to_str().ok();
    let Ok((trusted, wake)) = receiver.verifier.read(header, &body) else {
        return StatusCode::UNAUTHORIZED;
    };
    let mut seen = receiver.seen.lock().unwrap_or_else(PoisonError::into_inner);
    // The same wake may come twice: an answer may be lost.
    if seen.insert(trusted.id) {
        (receiver.wake)(&wake);
    }
    StatusCode::NO_CONTENT
}
