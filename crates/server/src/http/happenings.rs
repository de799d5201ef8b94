//! `/v1/alarms/{id}/events` and `/v1/dispatchers/{id}/events`: what was done to an alarm, what happened to a dispatcher.

use axum::Json as Answer;
use axum::extract::State as Shared;
use serde_json::value::RawValue;
use stationmaster_client::wire;
use stationmaster_core::alarms::inspect as alarms;
use stationmaster_core::dispatchers::inspect as dispatchers;
use stationmaster_core::id::AlarmId;
use utoipa_axum::routes;
use uuid::Uuid;

use super::State;
use super::caller::Caller;
use super::cursor::{self, List};
use super::extract::{Path, Query};
use super::problem::Problem;
use super::routes::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .viewer(routes!(of_alarm))
        .viewer(routes!(of_dispatcher))
}

/// What was done to an alarm, oldest first
#[utoipa::path(get, path = "/v1/alarms/{id}/events", operation_id = "list_alarm_events", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    responses((status = 200, description = "At most 1,000 events", body = wire::AlarmEvents), (status = 404, response = super::ProblemAnswer)))]
async fn of_alarm(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Answer<wire::AlarmEvents>, Problem> {
    let database = caller.database(&state);
    let alarm = super::alarms::find(&database, &caller, AlarmId(id)).await?;
    let events = alarms::events(&database, alarm.id).await?;
    Ok(Answer(wire::AlarmEvents {
        items: events.into_iter().map(alarm_event).collect(),
    }))
}

/// What happened to a dispatcher, newest first
#[utoipa::path(get, path = "/v1/dispatchers/{id}/events", operation_id = "list_dispatcher_events", tag = "dispatchers",
    params(("id" = String, Path, description = "The dispatcher"), wire::PageQuery),
    responses((status = 200, description = "A page of events", body = wire::Page<wire::DispatcherEvent>), (status = 404, response = super::ProblemAnswer)))]
async fn of_dispatcher(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<wire::PageQuery>,
) -> Result<Answer<wire::Page<wire::DispatcherEvent>>, Problem> {
    let list = List::new(&format!("dispatcher events {id}"), &query);
    let limit = cursor::limit(query.limit)?;
    let before = list.position(query.cursor.as_deref(), cursor::number)?;
    let dispatcher = super::dispatchers::find(&state, &caller, id).await?;
    let database = caller.database(&state);
    let rows = dispatchers::events(&database, Some(&dispatcher.id), before, i64::from(limit) + 1).await?;
    let (rows, next) = cursor::cut(rows, limit, |event| event.id.to_be_bytes().to_vec());
    Ok(Answer(wire::Page {
        items: rows.into_iter().map(dispatcher_event).collect(),
        next_cursor: next.map(|next| list.cursor(&next)),
    }))
}

/// What was done to an alarm, on the wire.
pub(crate) fn alarm_event(event: alarms::Event) -> wire::AlarmEvent {
    wire::AlarmEvent {
        at: event.at,
        event: event.event,
        actor: event.actor,
        detail: event.detail,
    }
}

/// What happened to a dispatcher, on the wire.
pub(crate) fn dispatcher_event(event: dispatchers::Event) -> wire::DispatcherEvent {
    wire::DispatcherEvent {
        id: event.id,
        at: event.at,
        dispatcher_id: event.dispatcher_id.0,
        event: event.event,
        epoch: event.epoch.map(|epoch| epoch.0),
        server_id: event.server_id.map(|id| id.0),
        run_id: event.run_id,
        actor: event.actor,
        detail: RawValue::from_string(event.detail.get().to_owned()).unwrap_or_default(),
    }
}
