//! Tells a page that something may have changed; the page then asks for itself again. When events come, within a second; and every two
//! seconds besides, as not everything that moves is an event (the steps of executions are told only where somebody asked for them). A
//! page that did not change costs an answer without a body.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use stationmaster_client::EventStream;
use stationmaster_client::wire::EventQuery;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::frame::Trouble;
use super::session::{Desk, Visitor};

/// No more often than this.
const SOONEST: Duration = Duration::from_secs(1);
/// No less often than this.
const LATEST: Duration = Duration::from_secs(2);

struct Listening {
    events: EventStream,
    desk: Desk,
}

/// A stream that does not end before the server does, or the token.
pub(super) async fn listen(State(desk): State<Desk>, visitor: Visitor) -> Result<Response, Trouble> {
    let events = visitor.client.events(&EventQuery::default(), None).await?;
    let listening = Listening { events, desk };
    let told = stream::unfold(listening, |mut listening| async move {
        listening.next().await?;
        Some((
            Ok::<_, Infallible>(Event::default().event("look").data("again")),
            listening,
        ))
    });
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Sse::new(told)).into_response())
}

impl Listening {
    /// Waits until there may be something new.
    async fn next(&mut self) -> Option<()> {
        let (soonest, latest) = (Instant::now() + SOONEST, Instant::now() + LATEST);
        let stop = self.desk.stop.clone();
        tokio::select! {
            () = stop.cancelled() => None,
            heard = self.hear(soonest, latest) => heard,
        }
    }

    async fn hear(&mut self, soonest: Instant, latest: Instant) -> Option<()> {
        match timeout_at(latest, self.events.next()).await {
            Err(_) => return Some(()),
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None) | Err(_)) => return None,
        }
        // Whatever comes meanwhile is seen by the same look.
        while let Ok(heard) = timeout_at(soonest, self.events.next()).await {
            heard.ok().flatten()?;
        }
        sleep_until(soonest).await;
        Some(())
    }
}
