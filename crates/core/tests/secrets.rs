//! No log line holds a secret, a payload or a message. A program of its own, because it listens to everything that is logged.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

#[path = "alarms/bed.rs"]
mod bed;
mod common;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stationmaster_core::wake::signature::Secret;
use tracing_subscriber::fmt::MakeWriter;

use bed::Bed;
use common::receiver::Reply;
use common::{eventually, raw};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_log_line_holds_a_secret_or_a_payload() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let bed = Bed::new().await;
    let (old, new) = (Secret::random(), Secret::random());
    bed.receiver.next("/said", [Reply::status(500)]);
    let mut settings = bed.settings();
    settings.signing_secret = Some(new.clone());
    settings.previous_secret = Some(old.clone());
    let shown = format!("{settings:?}");
    let server = bed.server_with(settings).await;
    let mut request = bed.request(bed::once_in(Duration::ZERO), "/said");
    request.payload = Some(raw(r#"{"card": "4111-payload"}"#));
    request.message = Some("message-for-nobody-else".to_owned());
    let id = bed.set(request).await;
    bed.next_try(id, 1).await;
    bed.until(id, "fired").await;
    eventually("the log says so", async || {
        String::from_utf8_lossy(&log.0.lock().unwrap()).contains("Alarm fired")
    })
    .await;
    server.stop().await;
    let said = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned() + &shown;
    for secret in [&old, &new] {
        let text = secret.reveal();
        assert!(
            !said.contains(&text) && !said.contains(text.trim_start_matches("whsec_")),
            "a secret was said"
        );
    }
    // What was bound to statements is the database driver's own matter at its finest level, which nobody switches on.
    let ours = said.lines().filter(|line| line.contains("stationmaster_core"));
    for line in ours {
        assert!(
            !line.contains("4111-payload") && !line.contains("message-for-nobody-else"),
            "{line}"
        );
    }
}
