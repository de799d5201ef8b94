//! The dashboard: pages that show what the API tells, and forms that ask it for things.
//!
//! ```text
//! browser -> session (who looks) -> a page: wire types -> markup -> frame -> browser
//!                                -> actions: a look first, then the deed; every POST says where it comes from
//!         <- live: something may have changed; the script asks for the same page again, and swaps what differs
//! ```
//!
//! A page knows the client and nothing behind it: what a person sees and does here is what the API shows to that person's token and
//! does for it, and histories name the person. Pages are whole without their script, which only refreshes, completes and jumps.
//!
//! To add a page: a file with a handler that answers a [`Page`](frame::Page), a line in [`routes`], a line in `frame::PLACES`.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;

mod actions;
mod alarm_form;
mod alarms;
mod assets;
mod audit;
mod calendar;
mod charts;
mod difference;
mod dispatchers;
mod executions;
mod failures;
mod fields;
mod frame;
mod graph;
mod health;
mod history;
mod item;
mod json;
mod jump;
mod lists;
mod live;
mod locks;
mod misspelt;
mod operations;
mod overview;
mod pieces;
mod queue;
mod runbooks;
mod servers;
mod session;
mod settings;
mod signals;
mod strays;
mod ticks;
mod tokens;
mod views;
mod workflows;
mod workspaces;

pub(crate) use session::Desk;

/// What a handler answers; the frame is put around it on the way out.
type Answer = Result<frame::Page, frame::Trouble>;

/// All pages, beside the API in the same router.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(desk: Desk) -> Router<S> {
    let pages = Router::new()
        .route("/", get(overview::show))
        .route("/failures", get(failures::list))
        .route("/failures/{group}", get(failures::show))
        .route("/queue", get(queue::list))
        .route("/queue/{id}", get(item::show))
        .route("/executions", get(executions::list))
        .route(strays::PATH, get(strays::list))
        .route("/executions/{id}", get(item::show_execution))
        .route("/workspaces", get(workspaces::list))
        .route("/workspaces/{id}", get(workspaces::show))
        .route("/workflows", get(workflows::list))
        .route("/workflows/{id}", get(workflows::show))
        .route("/alarms", get(alarms::list))
        .route("/alarms/new", get(alarm_form::form))
        .route("/alarms/{id}", get(alarms::show))
        .route("/alarms/{id}/edit", get(alarm_form::edit))
        .route("/signals", get(signals::list))
        .route("/signals/{project}/{id}", get(signals::show))
        .route("/dispatchers", get(dispatchers::list))
        .route("/dispatchers/{id}", get(dispatchers::show))
        .route("/locks", get(locks::list))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operations::show))
        .route("/servers", get(servers::list))
        .route("/audit", get(audit::list))
        .route("/tokens", get(tokens::list))
        .route("/settings", get(settings::show))
        .route("/health", get(health::show))
        .route("/runbooks", get(runbooks::list))
        .route("/runbooks/{name}", get(runbooks::show))
        .route("/jump", get(jump::jump))
        .route("/complete", get(jump::complete))
        .route("/act/{name}", get(actions::look).post(actions::carry_out))
        .route("/live", get(live::listen))
        // Not for what is no page: that is the API's to refuse.
        .route_layer(from_fn_with_state(desk.clone(), session::enter));
    Router::new()
        .route("/sign-in", get(session::ask).post(session::sign_in))
        .route("/sign-out", axum::routing::post(session::sign_out))
        .route("/look", axum::routing::post(session::change_look))
        .route("/assets/{name}", get(assets::serve))
        .merge(pages)
        .with_state(desk)
}
