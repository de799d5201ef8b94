//! The herald: tells incident tooling what happens to dispatchers, by a signed webhook. One server at a time, in order, at least
//! once, for as long as it is news.

use std::time::Duration;

use jiff::Timestamp;
use tracing::Instrument as _;

use super::assembly::Webhook;
use super::inspect::Event;
use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::duty;
use crate::observe::trace;
use crate::presence::Presence;
use crate::retry::Backoff;
use crate::task::{Next, Pass};
use crate::tls;
use crate::wake::signature;

const DUTY: &str = "herald";
const BEAT: Duration = Duration::from_secs(1);
const BATCH: i64 = 50;
/// What could not be told for so long wakes nobody any more; it is in the audit.
const NEWS: Duration = Duration::from_hours(1);
const TIMEOUT: Duration = Duration::from_secs(5);
const AGAIN: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(20),
};

/// See the module.
pub(super) struct Herald {
    database: Database,
    presence: Presence,
    webhook: Webhook,
    client: reqwest::Client,
    failures: u32,
}

impl Herald {
    pub(super) fn new(
        database: Database,
        presence: Presence,
        webhook: Webhook,
    ) -> Result<Self, reqwest::Error> {
        // Another part of the program may have chosen the same provider before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = tls::client(|| {
            reqwest::Client::builder()
                .timeout(TIMEOUT)
                .redirect(reqwest::redirect::Policy::none())
                .user_agent(concat!("stationmaster/", env!("CARGO_PKG_VERSION")))
        })?;
        Ok(Self {
            database,
            presence,
            webhook,
            client,
            failures: 0,
        })
    }

    async fn post(&self, event: &Event) -> Result<(), String> {
        trace::link(event.traceparent.as_deref());
        let body = serde_json::to_string(event).map_err(|error| error.to_string())?;
        let id = format!("dispatcher-event-{}", event.happened.id);
        let timestamp = Timestamp::now().as_second();
        let mut request = self
            .client
            .post(&self.webhook.url)
            .header("content-type", "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp.to_string());
        if let Some(secret) = &self.webhook.secret {
            request = request.header(
                "webhook-signature",
                signature::sign(std::slice::from_ref(secret), &id, timestamp, body.as_bytes()),
            );
        }
        // As with wakes: the trace in which it happened goes on at the receiver; otherwise ours does, if it is sent anywhere.
        if let Some(traceparent) = event.traceparent.clone().or_else(trace::own) {
            request = request.header("traceparent", traceparent);
        }
        let answer = request
            .body(body)
            .send()
            .await
            .map_err(|error| error.without_url().to_string())?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("it answered {}", answer.status()))
        }
    }
}

impl Pass for Herald {
    fn name(&self) -> &'static str {
        "herald"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        if duty::hold(&self.database, &self.presence, DUTY).await?.is_none() {
            return Ok(Next::After(BEAT));
        }
        let query = sqlx::query_as(statement!("dispatchers/untold"))
            .bind(NEWS.as_secs_f64())
            .bind(BATCH);
        let events: Vec<Event> = query.all(&self.database).await?;
        let round = if events.is_empty() {
            tracing::Span::none()
        } else {
            tracing::debug_span!("flow:tell_of_dispatchers")
        };
        for event in &events {
            let step = tracing::debug_span!(parent: &round, "webhook:post", event = event.happened.id);
            if let Err(error) = self.post(event).instrument(step).await {
                self.failures += 1;
                if self.failures == 1 {
                    tracing::error!(
                        event = event.happened.id,
                        error,
                        "The webhook of dispatchers did not take an event; trying on"
                    );
                }
                return Ok(Next::After(AGAIN.wait(self.failures).max(BEAT)));
            }
            self.failures = 0;
            sqlx::query(statement!("dispatchers/told"))
                .bind(event.happened.id)
                .run(&self.database)
                .await?;
        }
        Ok(Next::After(BEAT))
    }
}
