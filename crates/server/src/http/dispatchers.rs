//! `/v1/dispatchers`: who routes the signals of which project, and what a crash left behind.

use axum::Json as Answer;
use axum::extract::State as Shared;
use serde_json::json;
use serde_json::value::RawValue;
use stationmaster_client::wire;
use stationmaster_core::db::Database;
use stationmaster_core::dispatchers::DispatcherId;
use stationmaster_core::dispatchers::classify::Legacy;
use stationmaster_core::dispatchers::inspect::{self, Dispatcher, Event, Which};
use stationmaster_core::dispatchers::supervisor::{Options, Report};
use utoipa_axum::routes;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::extract::{MaybeJson, Path, Query};
use super::problem::{Kind, Problem};
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .viewer(routes!(list))
        .viewer(routes!(show))
        .viewer(routes!(history))
        .admin(routes!(reconcile))
}

/// Dispatchers, in the order of their ids
#[utoipa::path(get, path = "/v1/dispatchers", operation_id = "list_dispatchers", tag = "dispatchers", params(wire::DispatcherQuery),
    responses((status = 200, description = "A page of dispatchers", body = wire::Page<wire::Dispatcher>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::DispatcherQuery>,
) -> Result<Answer<wire::Page<wire::Dispatcher>>, Problem> {
    let list = List::new("dispatchers", &query);
    let limit = cursor::limit(query.limit)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let after = list.position(query.cursor.as_deref(), text)?;
    let which = Which {
        project: query.project.as_deref(),
        after: after.as_deref(),
        only: None,
    };
    let rows = inspect::list(&caller.database(&state), &which, i64::from(limit) + 1).await?;
    Ok(list.page(rows, limit, |row| row.id.0.clone().into_bytes(), dispatcher))
}

/// One dispatcher
#[utoipa::path(get, path = "/v1/dispatchers/{id}", operation_id = "show_dispatcher", tag = "dispatchers",
    params(("id" = String, Path, description = "The dispatcher")),
    responses((status = 200, description = "The dispatcher", body = wire::Dispatcher), (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Answer<wire::Dispatcher>, Problem> {
    let found = find(&caller.database(&state), id).await?;
    Ok(Answer(dispatcher(found)))
}

/// What happened to a dispatcher, newest first: who took it under which epoch, who was evicted, which run was ended
#[utoipa::path(get, path = "/v1/dispatchers/{id}/history", operation_id = "show_dispatcher_history", tag = "dispatchers",
    params(("id" = String, Path, description = "The dispatcher"), wire::PageQuery),
    responses((status = 200, description = "A page of what happened", body = wire::Page<wire::DispatcherEvent>), (status = 404, response = super::ProblemAnswer)))]
async fn history(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<wire::PageQuery>,
) -> Result<Answer<wire::Page<wire::DispatcherEvent>>, Problem> {
    let list = List::new(&format!("history of dispatcher {id}"), &query);
    let limit = cursor::limit(query.limit)?;
    let before = list.position(query.cursor.as_deref(), cursor::number)?;
    let database = caller.database(&state);
    let found = find(&database, id).await?;
    let rows = inspect::events(&database, Some(&found.id), before, i64::from(limit) + 1).await?;
    Ok(list.page(rows, limit, |row| row.id.to_be_bytes().to_vec(), event))
}

/// The dispatcher, when the caller may see it.
async fn find(database: &Database, id: String) -> Result<Dispatcher, Problem> {
    let missing = || Problem::not_found(format!("there is no dispatcher {id:?}"));
    if id.contains('\0') {
        return Err(missing());
    }
    let found = inspect::show(database, &DispatcherId(id.clone())).await?;
    found.ok_or_else(missing)
}

/// What happened to a dispatcher, on the wire.
pub(crate) fn event(row: Event) -> wire::DispatcherEvent {
    wire::DispatcherEvent {
        id: row.id,
        at: row.at,
        event: row.event,
        epoch: row.epoch.map(|epoch| epoch.0),
        server_id: row.server_id.map(|id| id.0),
        run_id: row.run_id,
        actor: row.actor,
        detail: serde_json::from_str(row.detail.get()).unwrap_or_default(),
    }
}

/// Remove what a crash left behind; with `dry_run`, only look. For tokens that are for all workspaces
#[utoipa::path(post, path = "/v1/dispatchers/reconcile", operation_id = "reconcile_dispatchers", tag = "dispatchers",
    request_body(content = Option<wire::Reconcile>),
    responses((status = 200, description = "What was found and done", body = wire::Reconciled),
              (status = 503, response = super::ProblemAnswer)))]
async fn reconcile(
    Shared(state): Shared<State>,
    caller: Caller,
    MaybeJson(how): MaybeJson<wire::Reconcile>,
) -> Result<Answer<wire::Reconciled>, Problem> {
    caller.sees_all()?;
    let options = Options {
        dry_run: how.dry_run,
        legacy: if how.legacy { Legacy::Remove } else { Legacy::Leave },
    };
    let report = state.work.reconcile_dispatchers(options, &caller.actor).await?;
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

/// A dispatcher on the wire.
pub(crate) fn dispatcher(row: Dispatcher) -> wire::Dispatcher {
    let servers = row.servers.as_deref().map_or("[]", RawValue::get);
    wire::Dispatcher {
        id: row.id.0,
        project: row.project,
        task_queue: row.task_queue,
        state: if row.owned {
            wire::DispatcherState::Owned
        } else {
            wire::DispatcherState::Vacant
        },
        owner: row.owner.map(|id| id.0),
        owner_name: row.owner_name,
        epoch: row.epoch.0,
        lease_until: row.lease_until,
        engine: row.engine,
        run_id: row.run_id,
        taken_at: row.taken_at,
        run_started_at: row.run_started_at,
        heartbeat_at: row.heartbeat_at,
        waiting: row.waiting,
        oldest_waiting_at: row.oldest_waiting_at,
        servers: serde_json::from_str(servers).unwrap_or_default(),
    }
}
