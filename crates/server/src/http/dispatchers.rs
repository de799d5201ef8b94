//! `/v1/dispatchers`: who routes the signals of which project, and what a crash left behind.

use axum::Json as Answer;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::json;
use stationmaster_client::wire;
use stationmaster_core::db::Database;
use stationmaster_core::dispatchers::DispatcherId;
use stationmaster_core::dispatchers::classify::Legacy;
use stationmaster_core::dispatchers::inspect::{self, Which};
use stationmaster_core::dispatchers::remove::{self, Removal};
use stationmaster_core::dispatchers::supervisor::{Asked, Options, Report};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::extract::{MaybeJson, Path, Query};
use super::problem::{Kind, Problem, Reply, Result};
use super::routes::{Routes, long};
use super::trace::TraceParent;

pub(super) fn routes() -> Routes {
    Routes::of("dispatcher")
        .viewer(long(routes!(list)))
        .viewer(routes!(show))
        .viewer(long(routes!(history)))
        .admin(routes!(reconcile))
        .admin(routes!(remove_one))
}

/// Dispatchers, in the order of their ids
#[utoipa::path(get, path = "/v1/dispatchers", operation_id = "list_dispatchers", tag = "dispatchers", params(wire::DispatcherQuery),
    responses((status = 200, description = "A page of dispatchers", body = wire::Page<wire::Dispatcher>)))]
async fn list(
    Visit { database, .. }: Visit,
    Query(query): Query<wire::DispatcherQuery>,
) -> Reply<wire::Page<wire::Dispatcher>> {
    let list = List::new("dispatchers", &query)?;
    let after: Option<[String; 1]> = list.position()?;
    let which = Which {
        project: query.project.as_deref(),
        after: after.as_ref().map(|[after]| after.as_str()),
        only: None,
    };
    let rows = inspect::list(&database, &which, list.rows()).await?;
    Ok(list.page(rows, |row| [row.id.clone()]))
}

/// One dispatcher
#[utoipa::path(get, path = "/v1/dispatchers/{id}", operation_id = "show_dispatcher", tag = "dispatchers",
    params(("id" = String, Path, description = "The dispatcher")),
    responses((status = 200, description = "The dispatcher", body = wire::Dispatcher)))]
async fn show(Visit { database, .. }: Visit, Path(id): Path<String>) -> Reply<wire::Dispatcher> {
    find(&database, &DispatcherId(id)).await.map(Answer)
}

/// What happened to a dispatcher, newest first: who took it under which epoch, who was evicted, which run was ended
#[utoipa::path(get, path = "/v1/dispatchers/{id}/history", operation_id = "show_dispatcher_history", tag = "dispatchers",
    params(("id" = String, Path, description = "The dispatcher"), wire::PageQuery),
    responses((status = 200, description = "A page of what happened", body = wire::Page<wire::DispatcherEvent>)))]
async fn history(
    Visit { database, .. }: Visit,
    Path(id): Path<String>,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::DispatcherEvent>> {
    let list = List::new(&format!("history of dispatcher {id}"), &query)?;
    let before = list.position()?;
    let id = DispatcherId(id);
    find(&database, &id).await?;
    let rows = inspect::events(&database, Some(&id), before, list.rows()).await?;
    Ok(list.page(rows, |row| row.id))
}

/// The dispatcher, when the caller may see it.
async fn find(database: &Database, id: &DispatcherId) -> Result<wire::Dispatcher> {
    let missing = || Problem::not_found(format!("there is no dispatcher {:?}", id.0));
    if id.0.contains('\0') {
        return Err(missing());
    }
    let found = inspect::show(database, id).await?;
    found.ok_or_else(missing)
}

/// Remove a dispatcher for which nothing waits; its run ends, and the next signal makes it anew
///
/// Its owner does that as soon as it can. What comes meanwhile is routed first. One that the settings of a server name is made anew when
/// that server starts.
#[utoipa::path(delete, path = "/v1/dispatchers/{id}", operation_id = "remove_dispatcher", tag = "dispatchers",
    params(("id" = String, Path, description = "The dispatcher")),
    responses((status = 202, description = "It will be removed; the dispatcher as it is now", body = wire::Dispatcher),
              (status = 409, response = super::ProblemAnswer)))]
async fn remove_one(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<String>,
) -> Result<impl IntoResponse> {
    let id = DispatcherId(id);
    find(&database, &id).await?;
    match remove::remove(&database, &id, &caller.actor).await? {
        Removal::Wished(dispatcher) => Ok((StatusCode::ACCEPTED, Answer(*dispatcher))),
        Removal::Waiting(signals) => {
            let words = format!(
                "{signals} signals wait for dispatcher {:?}: it can be removed when they are routed",
                id.0
            );
            Err(Problem::new(Kind::Conflict, words))
        }
        Removal::Missing => Err(Problem::not_found(format!("there is no dispatcher {:?}", id.0))),
    }
}

/// Remove what a crash left behind; with `dry_run`, only look. For tokens that are for all workspaces
#[utoipa::path(post, path = "/v1/dispatchers/reconcile", operation_id = "reconcile_dispatchers", tag = "dispatchers",
    request_body(content = Option<wire::Reconcile>),
    responses((status = 200, description = "What was found and done", body = wire::Reconciled),
              (status = 503, response = super::ProblemAnswer)))]
async fn reconcile(
    Visit { state, caller, .. }: Visit,
    trace: TraceParent,
    MaybeJson(how): MaybeJson<wire::Reconcile>,
) -> Reply<wire::Reconciled> {
    caller.sees_all()?;
    let options = Options {
        dry_run: how.dry_run,
        legacy: if how.legacy { Legacy::Remove } else { Legacy::Leave },
    };
    let asked = Asked {
        by: &caller.actor,
        traceparent: trace.header(),
    };
    let report = state.work.reconcile_dispatchers(options, asked).await?;
    reconciled(&report, how.dry_run)
        .map(Answer)
        .ok_or_else(|| Problem::new(Kind::Internal, "the report cannot be told"))
}

/// A report on the wire: the words are the same.
pub(crate) fn reconciled(report: &Report, dry_run: bool) -> Option<wire::Reconciled> {
    Some(wire::Reconciled {
        dry_run,
        findings: serde_json::from_value(json!(report.findings)).ok()?,
        done: serde_json::from_value(json!(report.done)).ok()?,
        problems: report.problems.clone(),
    })
}
