//! `/v1/events`: what happens, as it happens. A listener that comes back with the id of the last event it heard hears
//! everything since, as long as events are kept; when they are not any more, it is told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::sse::{Event as Told, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::access::{Role, Secret};
use stationmaster_core::db::{self, Database};
use stationmaster_core::events;
use stationmaster_core::id::WorkspaceId;
use stationmaster_core::session::Scope;
use tokio::sync::watch;
use tokio::time::Instant;
use utoipa_axum::routes;

use super::State;
use super::caller::{Caller, Visit, bearer};
use super::extract::Query;
use super::feed::{BATCH, Batch};
use super::names;
use super::places::Taken;
use super::problem::{Problem, Result};
use super::routes::Routes;

/// How often a comment shows that the stream lives.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often it is looked whether the token still opens the door.
const CHECK: Duration = Duration::from_secs(2);

pub(super) fn routes() -> Routes {
    Routes::of("event").viewer(routes!(listen))
}

/// What happens, as it happens, as server-sent events
///
/// The name of an event is its kind, its id the position; send the last one heard as `Last-Event-ID` to go on after it. First
/// comes `hello`; `reset` says that events were missed that are not kept any more. Comments are heartbeats.
#[utoipa::path(get, path = "/v1/events", operation_id = "listen_events", tag = "events",
    params(wire::EventQuery, ("Last-Event-ID" = Option<i64>, Header, description = "The id of the last event heard", minimum = 0)),
    responses((status = 200, description = "A stream that does not end by itself", content_type = "text/event-stream", body = String)))]
async fn listen(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    headers: HeaderMap,
    Query(query): Query<wire::EventQuery>,
) -> Result<Response> {
    let last = last_event_id(&headers)?;
    let place = state.limits.stream(&caller.scope)?;
    let listener = Listener {
        workspace: names::asked(&database, &caller, query.workspace_id.as_ref()).await?,
        family: query.family,
        database,
        secret: bearer(&headers)?,
        newest: state.feed.listen(),
        position: last,
        known: 0,
        begun: false,
        ready: VecDeque::new(),
        check_at: Instant::now() + CHECK,
        caller,
        state,
        _place: place,
    };
    let told = stream::unfold(listener, |mut listener| async move {
        let told = listener.next().await?;
        Some((Ok::<_, Infallible>(told), listener))
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT).text("heartbeat");
    let headers = [
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Sse::new(told).keep_alive(heartbeat)).into_response())
}

fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("?");
    if text.is_empty() {
        return Ok(None);
    }
    let position = text.parse().ok().filter(|position| *position >= 0_i64);
    position
        .map(Some)
        .ok_or_else(|| Problem::field("Last-Event-ID", "the id of an event: a whole number, 0 or more"))
}

struct Listener {
    state: State,
    caller: Caller,
    database: Database,
    secret: Option<Secret>,
    workspace: Option<WorkspaceId>,
    family: Option<String>,
    newest: watch::Receiver<Arc<Batch>>,
    /// Everything up to here was told, or was not for this listener.
    position: Option<i64>,
    /// There are events up to here.
    known: i64,
    begun: bool,
    ready: VecDeque<Told>,
    check_at: Instant,
    _place: Taken,
}

impl Listener {
    /// The next thing to tell; `None` ends the stream: the server stops, or the token opens the door no more.
    async fn next(&mut self) -> Option<Told> {
        loop {
            // Also while there is always something to tell.
            if Instant::now() >= self.check_at {
                self.check_at = Instant::now() + CHECK;
                self.look_again().await.then_some(())?;
            }
            if let Some(told) = self.ready.pop_front() {
                return Some(told);
            }
            if !self.begun {
                self.begin().await.ok()?;
                self.begun = true;
                // Something may have come before this listener knew where it stands.
                self.newest.mark_changed();
                continue;
            }
            if self.position.is_some_and(|position| position < self.known) {
                self.read_on().await.ok()?;
                continue;
            }
            let stop = self.state.stop.clone();
            tokio::select! {
                () = stop.cancelled() => return None,
                () = tokio::time::sleep_until(self.check_at) => {}
                changed = self.newest.changed() => {
                    changed.ok()?;
                    let batch = Arc::clone(&self.newest.borrow_and_update());
                    self.hear(&batch);
                }
            }
        }
    }

    /// Finds out from where on to tell, and catches up.
    async fn begin(&mut self) -> Result<(), db::Error> {
        events::number(&self.state.database).await?;
        let kept = events::kept(&self.state.database).await?;
        match self.position {
            Some(last) if last + 1 >= kept.oldest && last <= kept.newest => {
                self.say("hello", last, &wire::Hello { position: last });
                self.known = kept.newest;
            }
            missed => {
                self.position = Some(kept.newest);
                if missed.is_some() {
                    let reset = wire::Reset {
                        oldest: kept.oldest,
                        newest: kept.newest,
                    };
                    self.say("reset", kept.newest, &reset);
                } else {
                    let hello = wire::Hello {
                        position: kept.newest,
                    };
                    self.say("hello", kept.newest, &hello);
                }
            }
        }
        Ok(())
    }

    /// New events have come. When they follow what was told they are at hand; else what lies between is read first.
    fn hear(&mut self, batch: &Batch) {
        let position = self.position.unwrap_or(batch.after);
        if position >= batch.after {
            for event in batch.events.iter().filter(|event| event.position > position) {
                self.tell(event);
            }
            self.position = Some(position.max(batch.up_to));
        }
        self.known = self.known.max(batch.up_to);
    }

    /// Reads one page of what was missed. The next is read when this one was told: nothing is buffered for a listener that
    /// does not listen.
    async fn read_on(&mut self) -> Result<(), db::Error> {
        let position = self.position.unwrap_or(self.known);
        let read = events::after(&self.database, self.workspace, position, self.known, BATCH);
        let events = read.await?;
        let full = i64::try_from(events.len()).is_ok_and(|count| count >= BATCH);
        let last = events.last().filter(|_| full).map(|event| event.position);
        self.position = last.or(Some(self.known));
        for event in &events {
            self.tell(event);
        }
        Ok(())
    }

    fn tell(&mut self, event: &wire::Event) {
        if !self.is_for(event) {
            return;
        }
        self.say(&event.kind, event.position, event);
    }

    fn is_for(&self, event: &wire::Event) -> bool {
        let family = event.kind.split('.').next().unwrap_or_default();
        let wanted = self.family.as_deref().is_none_or(|wanted| wanted == family);
        let visible = match event.workspace_id {
            Some(workspace) => self.caller.scope.holds(WorkspaceId(workspace)),
            None => self.caller.scope == Scope::All,
        };
        let asked = self
            .workspace
            .is_none_or(|asked| event.workspace_id == Some(asked.0));
        wanted && visible && asked && (family != "audit" || self.caller.role == Role::Admin)
    }

    fn say(&mut self, name: &str, position: i64, data: &impl Serialize) {
        let data = serde_json::to_string(data).unwrap_or_default();
        self.ready
            .push_back(Told::default().event(name).id(position.to_string()).data(data));
    }

    /// Is the listener still welcome? What it hears follows what its token may see now.
    async fn look_again(&mut self) -> bool {
        let Some(secret) = &self.secret else {
            // Let in by a server that asks nobody, or by its own process.
            return true;
        };
        match self.state.access.who(&self.state.database, secret).await {
            Ok(caller) => {
                if caller.scope != self.caller.scope {
                    self.database = self.state.database.on_behalf(&caller.actor, caller.scope.clone());
                }
                self.caller = caller;
                self.workspace
                    .is_none_or(|workspace| self.caller.scope.holds(workspace))
            }
            // A database that is away for a moment revokes nobody.
            Err(problem) => !problem.is(super::problem::Kind::Unauthenticated),
        }
    }
}
