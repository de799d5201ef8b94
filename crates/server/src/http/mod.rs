//! The HTTP API, one module a noun, and what stands around it.
//!
//! ```text
//! listener   -> guard (name, place, time, panics, problem+json)
//! in_process ->   -> doors: /livez /readyz (/healthz) /metrics /docs /v1/openapi.json
//!                 -> dashboard: pages, which come back in by in_process with the token of whoever looks
//!                 -> caller (token) -> limits -> routes (role) -> idempotency -> a noun -> core, on the caller's behalf
//! ```
//!
//! There are two ways in: the listener of a server, and a client in the same process, which is how commands work on a database
//! alone. What a noun needs of a running server it asks of `work`, which answers without one too.
//!
//! A noun reads the wire, calls the core, and writes the wire; it holds no SQL and decides nothing about work. It names a role
//! for each route, and cannot leave it out. To add a noun: a module with `routes()`, a line in [`nouns`].

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use stationmaster_core::db::Database;
use stationmaster_core::executions::gather::Gather;
use stationmaster_core::locks::Locks;
use stationmaster_core::observe::Metrics;
use stationmaster_core::retention::Retention;
use stationmaster_core::station::Station;
use stationmaster_core::task::{Bell, spawn};
use stationmaster_core::wake::guard::Guard;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{Config, Http};
use crate::dashboard::{self, Desk};

mod alarms;
mod audit;
pub(crate) mod beforehand;
mod caller;
mod certificate;
mod cursor;
mod descriptors;
mod dispatchers;
mod doctor;
mod document;
mod doors;
mod etag;
mod events;
mod examples;
mod executions;
mod extract;
mod failures;
mod feed;
mod guard;
mod guests;
mod history;
mod idempotency;
mod in_process;
mod limits;
mod listener;
mod locks;
mod names;
mod operations;
mod overview;
mod places;
mod plans;
mod problem;
mod queue;
mod routes;
mod servers;
mod shapes;
mod signals;
mod strays;
mod tokens;
mod trace;
mod triggers;
mod unread;
mod views;
pub(crate) mod waiting;
mod wording;
mod work;
mod workflows;
mod workspaces;

use caller::Access;
pub(crate) use certificate::Certificate;
use document::ProblemAnswer;
pub(crate) use document::document;
use feed::Feed;
pub(crate) use in_process::alone;
use limits::{Limits, Sweep};
use problem::{Detail, Problem, Result};
use routes::Routes;
use work::Work;

/// What the API stands on.
pub(crate) struct Parts {
    pub(crate) database: Database,
    pub(crate) station: Arc<Station>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) locks: Locks,
    pub(crate) settings: Http,
    pub(crate) certificate: Option<Certificate>,
    /// Where wakes may go.
    pub(crate) targets: Guard,
    /// Everything that this server was told, for those who examine it.
    pub(crate) config: Arc<Config>,
}

/// What every request has at hand.
#[derive(Clone)]
pub(crate) struct State {
    database: Database,
    work: Work,
    metrics: Arc<Metrics>,
    locks: Locks,
    settings: Arc<Http>,
    access: Access,
    limits: Limits,
    feed: Feed,
    targets: Arc<Guard>,
    gather: Gather,
    config: Arc<Config>,
    /// One examination at a time.
    examining: Arc<tokio::sync::Mutex<()>>,
    /// How much a refusal tells of its cause.
    detail: Detail,
    stop: CancellationToken,
}

/// Every noun of the API.
fn nouns() -> Routes {
    Routes::of("")
        .merge(executions::routes())
        .merge(strays::routes())
        .merge(queue::routes())
        .merge(failures::routes())
        .merge(operations::routes())
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
        .merge(history::routes())
        .merge(events::routes())
        .merge(tokens::routes())
        .merge(audit::routes())
        .merge(doctor::routes())
        .merge(names::routes())
        .merge(views::routes())
}

/// Serves until `stop`.
pub(crate) async fn serve(listener: TcpListener, parts: Parts, stop: CancellationToken) {
    let state = State {
        limits: Limits::new(&parts.settings),
        settings: Arc::new(parts.settings),
        database: parts.database.for_requests(),
        work: Work::Here(Arc::clone(&parts.station)),
        metrics: parts.metrics,
        locks: parts.locks,
        access: Access::default(),
        feed: Feed::new(),
        targets: Arc::new(parts.targets),
        gather: Gather::default(),
        config: parts.config,
        examining: Arc::default(),
        detail: Detail::Kept,
        stop: stop.clone(),
    };
    let most = descriptors::room_for(
        state.settings.max_connections,
        state.config.connections() as usize,
    );
    let tracker = TaskTracker::new();
    tracker.spawn({
        let (forgetting, stop) = (
            state.access.clone().forget_on(parts.station.access_bell()),
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
        state.feed.pump(parts.database.clone()),
    );
    let retention = Retention {
        database: parts.database,
        events: state.settings.event_retention,
        audit: state.settings.audit_retention,
        history: state.settings.history_retention,
    };
    spawn(&tracker, &stop, Bell::default(), retention);
    spawn(&tracker, &stop, Bell::default(), Sweep(state.limits.clone()));
    let tls = parts.certificate.as_ref().map(Certificate::acceptor);
    if let Some(mut certificate) = parts.certificate {
        certificate.tell(state.metrics.clone());
        tracker.spawn(certificate.follow(stop.clone()));
    }
    listener::serve(listener, tls, router(state, &parts.station), most, stop).await;
    tracker.close();
    tracker.wait().await;
}

/// The API, the doors beside it, and the pages, which ask the API like everybody else.
fn router(state: State, station: &Arc<Station>) -> Router {
    let document = document();
    let doors = || doors::routes(&document, Arc::clone(station));
    let inside = guarded(state.clone(), |api| api.merge(doors()));
    let desk = Desk {
        clients: Arc::new(move |request, token| in_process::for_whoever(&inside, request, token)),
        secure: state.settings.tls_cert.is_some(),
        read_only: state.settings.dashboard_read_only,
        temporal_ui: state
            .settings
            .temporal_ui_url
            .as_deref()
            .and_then(|url| url.parse().ok()),
        stop: state.stop.clone(),
    };
    guarded(state, |api| api.merge(doors()).merge(dashboard::routes(desk)))
}

/// The API, and whatever stands beside it, behind the guard.
fn guarded(state: State, beside: impl FnOnce(Router<State>) -> Router<State>) -> Router {
    let (nouns, _) = nouns().split();
    let api = nouns.layer(from_fn_with_state(state.clone(), caller::authenticate));
    beside(api)
        .layer(from_fn_with_state(state.clone(), guard::guard))
        .with_state(state)
}

/// A label may be empty; else it is like a name.
fn check_label(label: &str) -> Result<()> {
    name("/label", Some(label).filter(|label| !label.is_empty()))
}

/// A name that people give: not empty, not endless, on one line.
fn name(field: &str, name: Option<&str>) -> Result<()> {
    match name {
        Some(name) if name.trim().is_empty() => Err(Problem::field(field, "it is empty")),
        Some(name) if name.chars().count() > 200 => Err(Problem::field(field, "at most 200 characters")),
        Some(name) if name.contains(char::is_control) => {
            Err(Problem::field(field, "it holds a control character"))
        }
        _ => Ok(()),
    }
}
