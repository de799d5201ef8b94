//! `/v1/alarms`: setting alarms, looking at them, and what people do to them.

use axum::Json as Answer;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use jiff::Timestamp;
use stationmaster_client::wire;
use stationmaster_core::access::Role;
use stationmaster_core::alarms::inspect::{self, Alarm};
use stationmaster_core::alarms::{AlarmStatus, OccurrenceStatus, backfill, edit, operate, set};
use stationmaster_core::db::Database;
use stationmaster_core::id::AlarmId;
use stationmaster_schedule::{Cron, Fire, Series, zone};
use utoipa_axum::routes;
use uuid::Uuid;

use super::State;
use super::alarm_terms::{self, alarm, alarm_tag, check_target, details, expression, occurrence, upcoming};
use super::caller::Caller;
use super::cursor::{self, List};
use super::etag::{Expected, Tagged};
use super::extract::{IdempotencyKey, Json, Path, Query};
use super::problem::{Kind, Problem};
use super::queue::search;
use super::routes::Routes;
use super::words::Translate;

/// Fires that a preview tells at most.
const MOST_FIRES: u32 = 100;

pub(super) fn routes() -> Routes {
    Routes::new()
        .unkept(Role::Operator, routes!(create))
        .viewer(routes!(list))
        .viewer(routes!(next))
        .viewer(routes!(show))
        .operator(routes!(change))
        .operator(routes!(cancel))
        .operator(routes!(pause))
        .operator(routes!(resume))
        .operator(routes!(fire))
        .viewer(routes!(occurrences))
        .viewer(routes!(history))
        .operator(routes!(refill))
}

/// Set an alarm
#[utoipa::path(post, path = "/v1/alarms", operation_id = "set_alarm", tag = "alarms",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as the field idempotency_key", min_length = 1, max_length = 256, pattern = "^[!-~]+$")),
    request_body = wire::NewAlarm,
    responses((status = 201, description = "It is set", body = wire::AlarmMade, headers(("location" = String, description = "The alarm"))),
              (status = 200, description = "It was set before, by the same request under the same key", body = wire::AlarmMade, headers(("location" = String, description = "The alarm"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn create(
    Shared(state): Shared<State>,
    caller: Caller,
    key: IdempotencyKey,
    Json(mut request): Json<wire::NewAlarm>,
) -> Result<impl IntoResponse, Problem> {
    request.idempotency_key = key.or_of_body(request.idempotency_key)?;
    let workspace = caller.may_use(request.workspace_id)?;
    super::check_label(&request.label)?;
    check_target(&state.targets, request.target_url.as_deref())?;
    let request = alarm_terms::request(workspace, request)?;
    let database = caller.database(&state);
    let answer = set::set(&database, &request, &caller.actor).await?;
    let found = find(&database, answer.alarm()).await?;
    let (status, duplicate) = match answer {
        set::Answer::New(_) => (StatusCode::CREATED, false),
        set::Answer::Before(_) => (StatusCode::OK, true),
    };
    let location = [(header::LOCATION, format!("/v1/alarms/{}", found.id))];
    let wire::AlarmDetails { alarm, upcoming } = details(found);
    let made = wire::AlarmMade {
        alarm,
        upcoming,
        duplicate,
    };
    Ok((status, location, Answer(made)))
}

/// Alarms, newest first
#[utoipa::path(get, path = "/v1/alarms", operation_id = "list_alarms", tag = "alarms", params(wire::AlarmQuery),
    responses((status = 200, description = "A page of alarms", body = wire::Page<wire::Alarm>)))]
async fn list(
    Shared(state): Shared<State>,
    caller: Caller,
    Query(query): Query<wire::AlarmQuery>,
) -> Result<Answer<wire::Page<wire::Alarm>>, Problem> {
    let list = List::new("alarms", &query);
    let limit = cursor::limit(query.limit)?;
    let filter = inspect::Filter {
        workspace: caller.may_ask(query.workspace_id)?,
        text: search(query.search.as_deref())?,
        status: query.status.map(Translate::translate),
        kind: query.kind.map(Translate::translate),
        before: list.position(query.cursor.as_deref(), cursor::uuid)?.map(AlarmId),
        limit: i64::from(limit) + 1,
    };
    let rows = inspect::alarms(&caller.database(&state), &filter).await?;
    Ok(list.page(rows, limit, |alarm| alarm.id.0.as_bytes().to_vec(), alarm))
}

/// When an expression would fire; nothing is set
#[utoipa::path(get, path = "/v1/alarms/next", operation_id = "preview_fires", tag = "alarms", params(wire::NextQuery),
    responses((status = 200, description = "The next fires", body = wire::NextFires)))]
async fn next(
    _caller: Caller,
    Query(query): Query<wire::NextQuery>,
) -> Result<Answer<wire::NextFires>, Problem> {
    let count = match query.count.unwrap_or(10) {
        count @ 1..=MOST_FIRES => count as usize,
        _ => return Err(Problem::field("count", format!("1 to {MOST_FIRES}"))),
    };
    let cron = Cron::parse(&query.expr)
        .map_err(|error| expression("expr", &query.expr, &error.message, error.at.clone()))?;
    let zone = zone(query.zone.as_deref().unwrap_or("UTC"))
        .map_err(|error| Problem::field("zone", error.to_string()))?;
    let after = query.after.unwrap_or_else(Timestamp::now);
    let (description, timezone) = (cron.describe(), zone.name().to_owned());
    let series = Series {
        cron,
        zone,
        dst: query.dst.map(Translate::translate).unwrap_or_default(),
        start: None,
        end: None,
        anchor: after,
    };
    let fires: Vec<Fire> = series.fires(after).take(count).collect();
    Ok(Answer(wire::NextFires {
        description,
        timezone,
        items: fires.into_iter().map(upcoming).collect(),
    }))
}

/// One alarm and its next ten fires
#[utoipa::path(get, path = "/v1/alarms/{id}", operation_id = "show_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    responses((status = 200, description = "The alarm", body = wire::AlarmDetails, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer)))]
async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::AlarmDetails>, Problem> {
    let found = find(&caller.database(&state), AlarmId(id)).await?;
    Ok(Tagged(alarm_tag(&found), details(found)))
}

/// Change what an alarm says, where it goes or when it fires; what is left out stays as it is
#[utoipa::path(patch, path = "/v1/alarms/{id}", operation_id = "change_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    request_body = wire::AlarmChange,
    responses((status = 200, description = "The alarm as it is now", body = wire::AlarmDetails, headers(("etag" = String, description = "For If-Match"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer),
              (status = 412, response = super::ProblemAnswer), (status = 428, response = super::ProblemAnswer)))]
async fn change(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
    Json(change): Json<wire::AlarmChange>,
) -> Result<Tagged<wire::AlarmDetails>, Problem> {
    super::check_label(change.label.as_deref().unwrap_or_default())?;
    check_target(
        &state.targets,
        change.target_url.as_ref().and_then(Option::as_deref),
    )?;
    let decide = |before: &Alarm| {
        check(&expected, before)?;
        alarm_terms::change(before, change)
    };
    let database = caller.database(&state);
    let after = edit::edit_by(&database, AlarmId(id), &caller.actor, decide).await?;
    Ok(Tagged(alarm_tag(&after), details(after)))
}

/// Cancel an alarm for good
#[utoipa::path(delete, path = "/v1/alarms/{id}", operation_id = "cancel_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    responses((status = 204, description = "It is cancelled"), (status = 404, response = super::ProblemAnswer),
              (status = 409, response = super::ProblemAnswer), (status = 412, response = super::ProblemAnswer),
              (status = 428, response = super::ProblemAnswer)))]
async fn cancel(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    expected: Expected,
) -> Result<StatusCode, Problem> {
    let database = caller.database(&state);
    let cancelled = operate::cancel(&database, AlarmId(id), &caller.actor, expected.of(alarm_tag)).await?;
    match cancelled {
        AlarmStatus::Cancelled => Ok(StatusCode::NO_CONTENT),
        status => {
            let words = format!("alarm {id} has ended before: it is {status}");
            Err(Problem::new(Kind::Conflict, words))
        }
    }
}

/// Fire nothing more of an alarm
#[utoipa::path(post, path = "/v1/alarms/{id}/pause", operation_id = "pause_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    responses((status = 200, description = "The alarm as it is now", body = wire::Alarm), (status = 404, response = super::ProblemAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn pause(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Alarm>, Problem> {
    let database = caller.database(&state);
    let now = operate::pause(&database, AlarmId(id), &caller.actor).await?;
    Ok(Tagged(alarm_tag(&now), alarm(now)))
}

/// Fire again, from the next instant on; what was missed is on record
#[utoipa::path(post, path = "/v1/alarms/{id}/resume", operation_id = "resume_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    responses((status = 200, description = "The alarm as it is now", body = wire::Alarm), (status = 404, response = super::ProblemAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn resume(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<Tagged<wire::Alarm>, Problem> {
    let database = caller.database(&state);
    let now = operate::resume(&database, AlarmId(id), &caller.actor).await?;
    Ok(Tagged(alarm_tag(&now), alarm(now)))
}

/// Fire an alarm now, beside its schedule
#[utoipa::path(post, path = "/v1/alarms/{id}/fire", operation_id = "fire_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    responses((status = 202, description = "It is due now", body = wire::FiredByHand), (status = 404, response = super::ProblemAnswer),
              (status = 409, response = super::ProblemAnswer)))]
async fn fire(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
) -> Result<impl IntoResponse, Problem> {
    let database = caller.database(&state);
    let scheduled_for = operate::fire(&database, AlarmId(id), &caller.actor).await?;
    let fired = wire::FiredByHand {
        alarm_id: id,
        scheduled_for,
    };
    Ok((StatusCode::ACCEPTED, Answer(fired)))
}

/// The occurrences of an alarm, newest first
#[utoipa::path(get, path = "/v1/alarms/{id}/occurrences", operation_id = "list_occurrences", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm"), wire::OccurrenceQuery),
    responses((status = 200, description = "A page of occurrences", body = wire::Page<wire::Occurrence>), (status = 404, response = super::ProblemAnswer)))]
async fn occurrences(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<wire::OccurrenceQuery>,
) -> Result<Answer<wire::Page<wire::Occurrence>>, Problem> {
    let list = List::new(&format!("occurrences {id}"), &query);
    let limit = cursor::limit(query.limit)?;
    let instant = |bytes: &[u8]| Timestamp::from_microsecond(cursor::number(bytes)?).ok();
    let before = list.position(query.cursor.as_deref(), instant)?;
    let database = caller.database(&state);
    find(&database, AlarmId(id)).await?;
    let status = query.status.map(Translate::translate);
    let rows = inspect::occurrences(&database, AlarmId(id), status, before, i64::from(limit) + 1).await?;
    let position = |row: &inspect::Occurrence| row.scheduled_for.as_microsecond().to_be_bytes().to_vec();
    Ok(list.page(rows, limit, position, occurrence))
}

/// What was done to an alarm, newest first, with who did it
#[utoipa::path(get, path = "/v1/alarms/{id}/history", operation_id = "show_alarm_history", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm"), wire::PageQuery),
    responses((status = 200, description = "A page of what was done", body = wire::Page<wire::AlarmEvent>), (status = 404, response = super::ProblemAnswer)))]
async fn history(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    Query(query): Query<wire::PageQuery>,
) -> Result<Answer<wire::Page<wire::AlarmEvent>>, Problem> {
    let list = List::new(&format!("history of alarm {id}"), &query);
    let limit = cursor::limit(query.limit)?;
    let before = list.position(query.cursor.as_deref(), cursor::number)?;
    let database = caller.database(&state);
    find(&database, AlarmId(id)).await?;
    let rows = inspect::history(&database, AlarmId(id), before, i64::from(limit) + 1).await?;
    let event = |event: inspect::Event| wire::AlarmEvent {
        id: event.id,
        at: event.at,
        event: event.event,
        actor: event.actor,
        detail: event.detail,
    };
    Ok(list.page(rows, limit, |row| row.id.to_be_bytes().to_vec(), event))
}

/// Fire occurrences of the past; with `dry_run`, only tell which
#[utoipa::path(post, path = "/v1/alarms/{id}/backfill", operation_id = "backfill_alarm", tag = "alarms",
    params(("id" = Uuid, Path, description = "The alarm")),
    request_body = wire::Backfill,
    responses((status = 200, description = "What would be fired", body = wire::Backfilled),
              (status = 202, description = "What is fired now", body = wire::Backfilled),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn refill(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<Uuid>,
    Json(range): Json<wire::Backfill>,
) -> Result<impl IntoResponse, Problem> {
    let database = caller.database(&state);
    let id = AlarmId(id);
    let mut planned = backfill::preview(&database, id, range.from, range.to).await?;
    let mut status = StatusCode::OK;
    if !range.dry_run {
        status = StatusCode::ACCEPTED;
        let made = backfill::backfill(&database, id, range.from, range.to, &caller.actor).await?;
        for item in &mut planned {
            item.fires = made.contains(&item.scheduled_for);
        }
    }
    let answer = wire::Backfilled {
        dry_run: range.dry_run,
        items: planned.into_iter().map(backfill_item).collect(),
    };
    Ok((status, Answer(answer)))
}

/// An occurrence of a backfill on the wire.
pub(crate) fn backfill_item(planned: backfill::Planned) -> wire::BackfillItem {
    wire::BackfillItem {
        scheduled_for: planned.scheduled_for,
        note: planned.note,
        status: planned.status.map_or("none", OccurrenceStatus::as_str).to_owned(),
        fires: planned.fires,
    }
}

fn check(expected: &Expected, before: &Alarm) -> Result<(), Problem> {
    if expected.holds(Some(&alarm_tag(before))) {
        return Ok(());
    }
    Err(operate::Error::Unexpected.into())
}

/// The alarm, when the caller may see it.
async fn find(database: &Database, id: AlarmId) -> Result<Alarm, Problem> {
    let alarm = inspect::alarm(database, id).await?;
    Ok(alarm.ok_or(operate::Error::NotFound(id))?)
}
