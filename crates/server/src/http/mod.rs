//! The HTTP API, one module a noun, and what stands around it.
//!
//! ```text
//! listener -> guard (name, place, time, panics, problem+json)
//!               -> doors: /livez /readyz /metrics / /docs /v1/openapi.json
//!               -> caller (token) -> limits -> routes (role) -> idempotency -> a noun -> core, on the caller's behalf
//! ```
//!
//! A noun reads the wire, calls the core, and writes the wire; it holds no SQL and decides nothing about work. It names a role
//! for each route, and cannot leave it out. To add a noun: a module with `routes()`, a line in [`nouns`].

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use stationmaster_core::db::Database;
use stationmaster_core::locks::Locks;
use stationmaster_core::observe::Metrics;
use stationmaster_core::retention::Retention;
use stationmaster_core::station::Station;
use stationmaster_core::task::{Bell, spawn};
use stationmaster_core::wake::guard::Guard;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Http;

mod alarm_terms;
mod alarms;
mod audit;
mod caller;
mod cursor;
mod dispatchers;
mod document;
mod doors;
mod etag;
mod events;
mod executions;
mod extract;
mod feed;
mod guard;
mod idempotency;
mod limits;
mod listener;
mod locks;
mod overview;
mod plans;
mod problem;
mod queue;
mod routes;
mod servers;
mod signals;
mod tokens;
mod triggers;
mod wording;
mod workflows;
mod workspaces;

use caller::Access;
use document::ProblemAnswer;
pub(crate) use document::document;
use feed::Feed;
use limits::{Limits, Sweep};
pub(crate) use listener::tls;
pub(crate) use problem::Problem;
use routes::Routes;

/// How the core's things are told on the wire. Commands print them in the same shape.
pub(crate) mod shapes {
    pub(crate) use super::alarm_terms::{
        alarm, change as alarm_change, details as alarm_details, occurrence, request as alarm_request,
    };
    pub(crate) use super::alarms::backfill_item;
    pub(crate) use super::audit::entry;
    pub(crate) use super::dispatchers::{dispatcher, event as dispatcher_event, reconciled};
    pub(crate) use super::executions::{close_status, enqueued_wire, execution};
    pub(crate) use super::locks::lock;
    pub(crate) use super::plans::plan;
    pub(crate) use super::queue::{bulk_answer, item, step, waiting, word};
    pub(crate) use super::servers::server;
    pub(crate) use super::signals::{signal, signal_request};
    pub(crate) use super::tokens::token;
    pub(crate) use super::triggers::trigger;
    pub(crate) use super::workflows::workflow;
    pub(crate) use super::workspaces::workspace;
}

/// What the API stands on.
pub(crate) struct Parts {
    pub(crate) database: Database,
    pub(crate) station: Arc<Station>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) locks: Locks,
    pub(crate) settings: Http,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Where wakes may go.
    pub(crate) targets: Guard,
}

/// What every request has at hand.
#[derive(Clone)]
pub(crate) struct State {
    database: Database,
    station: Arc<Station>,
    metrics: Arc<Metrics>,
    locks: Locks,
    settings: Arc<Http>,
    access: Access,
    limits: Limits,
    feed: Feed,
    targets: Arc<Guard>,
    stop: CancellationToken,
}

/// Every noun of the API.
fn nouns() -> Routes {
    Routes::new()
        .merge(executions::routes())
        .merge(queue::routes())
        .merge(workspaces::routes())
        .merge(workflows::routes())
        .merge(plans::routes())
        .merge(alarms::routes())
        .merge(signals::routes())
        .merge(triggers::routes())
        .merge(dispatchers::routes())
        .merge(servers::routes())
        .merge(locks::routes())
        .merge(overview::routes())
        .merge(events::routes())
        .merge(tokens::routes())
        .merge(audit::routes())
}

/// Serves until `stop`.
pub(crate) async fn serve(listener: TcpListener, parts: Parts, stop: CancellationToken) {
    let state = State {
        limits: Limits::new(&parts.settings),
        settings: Arc::new(parts.settings),
        database: parts.database,
        station: parts.station,
        metrics: parts.metrics,
        locks: parts.locks,
        access: Access::default(),
        feed: Feed::new(),
        targets: Arc::new(parts.targets),
        stop: stop.clone(),
    };
    let (most, tracker) = (state.settings.max_connections, TaskTracker::new());
    tracker.spawn({
        let (forgetting, stop) = (
            state.access.clone().forget_on(state.station.access_bell()),
            stop.clone(),
        );
        async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = forgetting => {}
            }
        }
    });
    spawn(
        &tracker,
        &stop,
        state.feed.bell(),
        state.feed.pump(state.database.clone()),
    );
    let retention = Retention {
        database: state.database.clone(),
        events: state.settings.event_retention,
        audit: state.settings.audit_retention,
    };
    spawn(&tracker, &stop, Bell::default(), retention);
    spawn(&tracker, &stop, Bell::default(), Sweep(state.limits.clone()));
    listener::serve(listener, parts.tls, router(state), most, stop).await;
    tracker.close();
    tracker.wait().await;
}

fn router(state: State) -> Router {
    let (nouns, _) = nouns().split();
    nouns
        .layer(from_fn_with_state(state.clone(), caller::authenticate))
        .merge(doors::routes(&document()))
        .layer(from_fn_with_state(state.clone(), guard::guard))
        .with_state(state)
}

/// A label may be empty; else it is like a name.
fn check_label(label: &str) -> Result<(), Problem> {
    name("/label", Some(label).filter(|label| !label.is_empty()))
}

/// A name that people give: not empty, not endless, on one line.
fn name(field: &str, name: Option<&str>) -> Result<(), Problem> {
    match name {
        Some(name) if name.trim().is_empty() => Err(Problem::field(field, "it is empty")),
        Some(name) if name.chars().count() > 200 => Err(Problem::field(field, "at most 200 characters")),
        Some(name) if name.contains(char::is_control) => {
            Err(Problem::field(field, "it holds a control character"))
        }
        _ => Ok(()),
    }
}
