//! `/v1/signals`: events that come in from outside, and the dead letters among them.
//!
//! A signal belongs to its project, and the project to the workspace of its first trigger. A project without a trigger belongs
//! to nobody yet: only tokens for all workspaces may send for it, see it, or give it its first trigger. Otherwise one tenant
//! could claim the name under which another's signals already wait.

use axum::Json as Answer;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use stationmaster_client::wire;
use stationmaster_core::operations::Request;
use stationmaster_core::session::Scope;
use stationmaster_core::signals::{inspect, replay, send, triggers};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::extract::{Json, Path, Prefer, Query};
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::queue::narrowed;
use super::routes::{Routes, detachable, long};
use super::trace::TraceParent;
use super::{names, operations};

/// Signals that one call may send.
const MOST: usize = 1000;

pub(super) fn routes() -> Routes {
    Routes::of("signal")
        .operator(routes!(send_one))
        .operator(routes!(send_many))
        .viewer(long(routes!(list)))
        .viewer(routes!(show))
        .operator(routes!(replay_one))
        .operator(detachable(routes!(replay_all)))
}

/// Send a signal; it is committed when this answers
#[utoipa::path(post, path = "/v1/signals", operation_id = "send_signal", tag = "signals", request_body = wire::NewSignal,
    responses((status = 202, description = "It is in the inbox", body = wire::SignalSent, headers(("location" = String, description = "The signal"))),
              (status = 409, response = super::ProblemAnswer)))]
async fn send_one(
    visit: Visit,
    trace: TraceParent,
    Json(mut signal): Json<wire::NewSignal>,
) -> Result<impl IntoResponse> {
    let mut wrong = Wrong::default();
    signal.traceparent = wrong.see(trace.or_of_body(signal.traceparent, "")).flatten();
    let sent = send_all(&visit, wrong, vec![signal], "").await?;
    let sent = sent.into_iter().next();
    let sent = sent.ok_or_else(|| Problem::new(Kind::Internal, "one signal has one answer"))?;
    let id = utf8_percent_encode(&sent.id, NON_ALPHANUMERIC);
    let location = [(header::LOCATION, format!("/v1/signals/{id}"))];
    Ok((StatusCode::ACCEPTED, location, Answer(sent)))
}

/// Send many signals, all or none
#[utoipa::path(post, path = "/v1/signals/bulk", operation_id = "send_signals", tag = "signals", request_body = wire::BulkSend,
    responses((status = 202, description = "They are in the inbox", body = wire::BulkSent),
              (status = 409, response = super::ProblemAnswer)))]
async fn send_many(
    visit: Visit,
    trace: TraceParent,
    Json(mut request): Json<wire::BulkSend>,
) -> Result<impl IntoResponse> {
    if !(1..=MOST).contains(&request.items.len()) {
        return Err(Problem::field("/items", format!("1 to {MOST} signals")));
    }
    let mut wrong = Wrong::default();
    for (index, signal) in request.items.iter_mut().enumerate() {
        let traced = trace.or_of_body(signal.traceparent.take(), &format!("/items/{index}"));
        signal.traceparent = wrong.see(traced).flatten();
    }
    let items = send_all(&visit, wrong, request.items, "/items").await?;
    Ok((StatusCode::ACCEPTED, Answer(wire::BulkSent { items })))
}

/// Signals, newest first
#[utoipa::path(get, path = "/v1/signals", operation_id = "list_signals", tag = "signals", params(wire::SignalQuery),
    responses((status = 200, description = "A page of signals", body = wire::Page<wire::Signal>)))]
async fn list(
    Visit { database, .. }: Visit,
    Query(query): Query<wire::SignalQuery>,
) -> Reply<wire::Page<wire::Signal>> {
    let list = List::new("signals", &query)?;
    let page = inspect::list(&database, &query, list.position()?, list.limit()).await?;
    let signals = page.rows.into_iter().map(|placed| placed.signal).collect();
    Ok(list.ending_at(signals, page.next))
}

/// One signal
#[utoipa::path(get, path = "/v1/signals/{id}", operation_id = "show_signal", tag = "signals",
    params(("id" = String, Path, description = "The sender's id of it"), wire::SignalPlace),
    responses((status = 200, description = "The signal", body = wire::Signal),
              (status = 409, response = super::ProblemAnswer)))]
async fn show(
    Visit { database, .. }: Visit,
    Path(id): Path<String>,
    Query(place): Query<wire::SignalPlace>,
) -> Reply<wire::Signal> {
    let project = place.project.as_deref().map(known).transpose()?;
    let found = inspect::show(&database, known(&id)?, project).await?;
    found.map(Answer).ok_or_else(|| missing(&id))
}

/// Put a dead letter back into the inbox
#[utoipa::path(post, path = "/v1/signals/{id}/replay", operation_id = "replay_signal", tag = "signals",
    params(("id" = String, Path, description = "The sender's id of it"), wire::SignalPlace),
    responses((status = 202, description = "The signal, waiting again", body = wire::Signal),
              (status = 409, response = super::ProblemAnswer)))]
async fn replay_one(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Path(id): Path<String>,
    Query(place): Query<wire::SignalPlace>,
) -> Result<impl IntoResponse> {
    let project = place.project.as_deref().map(known).transpose()?;
    let now = replay::replay(&database, known(&id)?, project, &caller.actor).await?;
    state.work.ring_for_signals();
    Ok((StatusCode::ACCEPTED, Answer(now)))
}

/// Put every dead letter back that matches; with `dry_run`, only count it
#[utoipa::path(post, path = "/v1/signals/replay", operation_id = "replay_signals", tag = "signals", request_body = wire::asked::BulkReplay,
    responses((status = 200, description = "What was done, or would be", body = wire::BulkAnswer)))]
async fn replay_all(
    visit: Visit,
    prefer: Prefer,
    Json(request): Json<wire::asked::BulkReplay>,
) -> Result<Response> {
    let mut wrong = Wrong::default();
    let filters = [
        request.workspace_id.is_some(),
        request.project.is_some(),
        request.task_queue.is_some(),
        request.name.is_some(),
        request.reason.is_some(),
    ];
    wrong.see(narrowed(&filters, request.all));
    let asked = names::asked(&visit.database, &visit.caller, request.workspace_id.as_ref());
    let workspace = wrong.see(asked.await).flatten();
    wrong.told()?;
    let request = request.with_ids(workspace.map(|id| id.0));
    operations::answer(&visit, prefer, Request::Replay(request)).await
}

/// May the caller act for this project? Foreign projects and those of nobody are refused in the same words.
pub(super) async fn may_act(visit: &Visit, project: &str) -> Result<()> {
    if project.contains('\0') {
        return Err(Problem::field("project", "it holds a zero byte"));
    }
    let workspace = triggers::workspace_of(&visit.database, project).await?;
    let may = match (&visit.caller.scope, workspace) {
        (Scope::All, _) => true,
        (scope, Some(workspace)) => scope.holds(workspace),
        (Scope::Only(_), None) => false,
    };
    if may {
        return Ok(());
    }
    let words = format!("the token's workspaces do not include that of project {project:?}");
    Err(Problem::new(Kind::Forbidden, words))
}

async fn send_all(
    visit: &Visit,
    mut wrong: Wrong,
    signals: Vec<wire::NewSignal>,
    at: &str,
) -> Result<Vec<wire::SignalSent>> {
    for error in send::problems(&signals) {
        wrong.see::<(), _>(Err(refused(error, at)));
    }
    wrong.told()?;
    let mut projects: Vec<&str> = signals.iter().map(|signal| signal.project.as_str()).collect();
    projects.sort_unstable();
    projects.dedup();
    for project in projects {
        may_act(visit, project).await?;
    }
    let sent = send::send_all(&visit.database, signals, &visit.caller.actor).await;
    let sent = sent.map_err(|error| refused(error, at))?;
    visit.state.work.ring_for_signals();
    Ok(sent)
}

/// Why nothing was sent; `at` is where the signals stand in the body, nothing when it is one.
fn refused(error: send::Error, at: &str) -> Problem {
    use send::Error;
    let words = error.to_string();
    match error {
        Error::TooLarge { index, .. } => Problem::field_of(at, Some(index), "payload", words),
        Error::BadName { index, field, .. } => Problem::field_of(at, Some(index), field, words),
        Error::BadPayload(_) => Problem::field_of(at, None, "payload", words),
        Error::TooManyQueues(_) => Problem::field_of(at, None, "task_queue", words),
        Error::Conflict { .. } => Problem::new(Kind::Conflict, words),
        Error::Database(error) => error.into(),
    }
}

impl From<replay::Error> for Problem {
    fn from(error: replay::Error) -> Self {
        let words = error.to_string();
        match error {
            replay::Error::NotFound(_) => Self::not_found(words),
            replay::Error::WrongState { .. } | replay::Error::Several(_) => Self::new(Kind::Conflict, words),
            replay::Error::Bulk(error) => error.into(),
            replay::Error::Database(error) => error.into(),
        }
    }
}

impl From<inspect::Error> for Problem {
    fn from(error: inspect::Error) -> Self {
        let words = error.to_string();
        match error {
            inspect::Error::Several(_) => Self::new(Kind::Conflict, words),
            inspect::Error::Database(error) => error.into(),
        }
    }
}

fn missing(id: &str) -> Problem {
    Problem::not_found(format!("there is no signal {id:?}"))
}

/// An id that PostgreSQL cannot keep is nobody's.
fn known(id: &str) -> Result<&str> {
    if id.contains('\0') {
        Err(missing(id))
    } else {
        Ok(id)
    }
}
