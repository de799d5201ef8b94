//! `/v1/alarms`: setting alarms, looking at them, and what people do to them.

use std::ops::Range;

use axum::Json as Answer;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use stationmaster_client::wire::{self, Reference};
use stationmaster_core::access::Role;
use stationmaster_core::alarms::inspect::{self, details};
use stationmaster_core::alarms::{AlarmStatus, backfill, calendar, edit, operate, set};
use stationmaster_core::db::Database;
use stationmaster_core::id::AlarmId;
use stationmaster_core::wake::guard::Guard;
use stationmaster_schedule::{Cron, Series, zone};
use utoipa_axum::routes;

use super::caller::Visit;
use super::cursor::List;
use super::etag::{Changeable, Expected, Tagged};
use super::extract::{IdempotencyKey, Json, Path, Query};
use super::names;
use super::problem::{Kind, Problem, Reply, Result, Wrong};
use super::queue::search;
use super::routes::{Routes, conditional, long, tagged};
use super::trace::TraceParent;

/// Hours that a calendar goes ahead at most.
const LONGEST_CALENDAR: u32 = 168;
/// Fires that a preview tells at most.
const MOST_FIRES: u32 = 100;

pub(super) fn routes() -> Routes {
    Routes::of("alarm")
        .named()
        .unkept(Role::Operator, routes!(create))
        .viewer(long(routes!(list)))
        .viewer(long(routes!(coming)))
        .viewer(routes!(next))
        .viewer(tagged(routes!(show)))
        .operator(conditional(routes!(change)))
        .operator(conditional(routes!(cancel)))
        .operator(routes!(pause))
        .operator(routes!(resume))
        .operator(routes!(fire))
        .viewer(long(routes!(occurrences)))
        .viewer(long(routes!(history)))
        .operator(routes!(refill))
}

/// Set an alarm
#[utoipa::path(post, path = "/v1/alarms", operation_id = "set_alarm", tag = "alarms",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same as the field idempotency_key", min_length = 1, max_length = 256, pattern = "^[!-~]+$")),
    request_body = wire::asked::NewAlarm,
    responses((status = 201, description = "It is set", body = wire::AlarmMade, headers(("location" = String, description = "The alarm"))),
              (status = 200, description = "It was set before, by the same request under the same key", body = wire::AlarmMade, headers(("location" = String, description = "The alarm"))),
              (status = 404, response = super::ProblemAnswer), (status = 409, response = super::ProblemAnswer)))]
async fn create(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    key: IdempotencyKey,
    trace: TraceParent,
    Json(mut request): Json<wire::asked::NewAlarm>,
) -> Result<impl IntoResponse> {
    let mut wrong = Wrong::default();
    request.idempotency_key = wrong.see(key.or_of_body(request.idempotency_key)).flatten();
    request.traceparent = wrong.see(trace.or_of_body(request.traceparent, "")).flatten();
    let workspace = names::workspace(&database, &caller, &request.workspace_id).await;
    wrong.see(super::check_label(&request.label));
    wrong.see(names::given("/name", request.name.as_deref()));
    wrong.see(check_target(&state.targets, request.target_url.as_deref()));
    let id = workspace.as_ref().map(|id| id.0).unwrap_or_default();
    let request = request.with_ids(id);
    for problem in set::problems(&request) {
        wrong.see::<(), _>(Err(problem));
    }
    wrong.see(workspace);
    wrong.told()?;
    let set = set::set(&database, &request, &caller.actor).await?;
    let found = find(&database, set.alarm()).await?;
    let (status, duplicate) = match set {
        set::Set::New(_) => (StatusCode::CREATED, false),
        set::Set::Before(_) => (StatusCode::OK, true),
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
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::AlarmQuery>,
) -> Reply<wire::Page<wire::Alarm>> {
    let list = List::new("alarms", &query)?;
    let workspace = names::asked(&database, &caller, query.workspace_id.as_ref()).await?;
    search(query.search.as_deref())?;
    let before = list.position()?.map(AlarmId);
    let page = inspect::alarms(&database, &query, workspace, before, list.limit()).await?;
    Ok(list.ending_at(page.rows, page.next))
}

/// The coming fires of all alarms: how many in each step, the soonest one by one, and what moving clocks do
#[utoipa::path(get, path = "/v1/alarms/calendar", operation_id = "show_alarm_calendar", tag = "alarms", params(wire::CalendarQuery),
    responses((status = 200, description = "The calendar", body = wire::Calendar)))]
async fn coming(
    Visit { caller, database, .. }: Visit,
    Query(query): Query<wire::CalendarQuery>,
) -> Reply<wire::Calendar> {
    let hours = query.hours.unwrap_or(24);
    if !(1..=LONGEST_CALENDAR).contains(&hours) {
        return Err(Problem::field("hours", format!("1 to {LONGEST_CALENDAR}")));
    }
    let workspace = names::asked(&database, &caller, query.workspace_id.as_ref()).await?;
    let hour = |hours: i64| SignedDuration::from_hours(hours);
    // Whole hours, so that what is asked for again is the same.
    let from = Timestamp::from_second(Timestamp::now().as_second() / 3600 * 3600).unwrap_or_default();
    let to = from.saturating_add(hour(i64::from(hours))).unwrap_or(from);
    let step = if hours > 48 { hour(3) } else { hour(1) };
    Ok(Answer(
        calendar::calendar(&database, workspace, from, to, step).await?,
    ))
}

/// When an expression would fire; nothing is set
#[utoipa::path(get, path = "/v1/alarms/next", operation_id = "preview_fires", tag = "alarms", params(wire::NextQuery),
    responses((status = 200, description = "The next fires", body = wire::NextFires)))]
async fn next(_: Visit, Query(query): Query<wire::NextQuery>) -> Reply<wire::NextFires> {
    let mut wrong = Wrong::default();
    let count = match query.count.unwrap_or(10) {
        count @ 1..=MOST_FIRES => Ok(count as usize),
        _ => Err(Problem::field("count", format!("1 to {MOST_FIRES}"))),
    };
    let count = wrong.see(count);
    let cron = Cron::parse(&query.expr)
        .map_err(|error| expression("expr", &query.expr, &error.message, error.at.clone()));
    let cron = wrong.see(cron);
    let zone = zone(query.zone.as_deref().unwrap_or("UTC"))
        .map_err(|error| Problem::field("zone", error.to_string()));
    let zone = wrong.see(zone);
    let (Some(count), Some(cron), Some(zone)) = (count, cron, zone) else {
        return Err(wrong.whole());
    };
    let after = query.after.unwrap_or_else(Timestamp::now);
    let (description, timezone) = (cron.describe(), zone.name().to_owned());
    let series = Series {
        cron,
        zone,
        dst: query.dst.unwrap_or_default().into(),
        start: None,
        end: None,
        anchor: after,
    };
    let fires = series.fires(after).take(count);
    Ok(Answer(wire::NextFires {
        description,
        timezone,
        items: fires.map(wire::Upcoming::from).collect(),
    }))
}

/// One alarm and its next ten fires
#[utoipa::path(get, path = "/v1/alarms/{id}", operation_id = "show_alarm", tag = "alarms",
    responses((status = 200, description = "The alarm", body = wire::AlarmDetails)))]
async fn show(
    Visit { database, .. }: Visit,
    Path(id): Path<Reference>,
) -> Result<Tagged<wire::AlarmDetails>> {
    let id = names::alarm(&database, &id).await?;
    let found = find(&database, id).await?;
    Ok(Tagged(details(found)))
}

/// Change what an alarm says, where it goes or when it fires; what is left out stays as it is
#[utoipa::path(patch, path = "/v1/alarms/{id}", operation_id = "change_alarm", tag = "alarms", request_body = wire::AlarmChange,
    responses((status = 200, description = "The alarm as it is now", body = wire::AlarmDetails),
              (status = 409, response = super::ProblemAnswer)))]
async fn change(
    Visit {
        state,
        caller,
        database,
    }: Visit,
    Path(id): Path<Reference>,
    expected: Expected,
    Json(change): Json<wire::AlarmChange>,
) -> Result<Tagged<wire::AlarmDetails>> {
    let id = names::alarm(&database, &id).await?;
    let mut wrong = Wrong::default();
    wrong.see(names::given(
        "/name",
        change.name.as_ref().and_then(Option::as_deref),
    ));
    wrong.see(super::check_label(change.label.as_deref().unwrap_or_default()));
    wrong.see(check_target(
        &state.targets,
        change.target_url.as_ref().and_then(Option::as_deref),
    ));
    for problem in edit::problems(&change, &find(&database, id).await?) {
        wrong.see::<(), _>(Err(problem));
    }
    wrong.told()?;
    let after = edit::edit(&database, id, &change, &caller.actor, expected.of()).await?;
    Ok(Tagged(details(after)))
}

/// Cancel an alarm for good
#[utoipa::path(delete, path = "/v1/alarms/{id}", operation_id = "cancel_alarm", tag = "alarms",
    responses((status = 204, description = "It is cancelled"), (status = 409, response = super::ProblemAnswer)))]
async fn cancel(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Reference>,
    expected: Expected,
) -> Result<StatusCode> {
    let id = names::alarm(&database, &id).await?;
    let cancelled = operate::cancel(&database, id, &caller.actor, expected.of()).await?;
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
    responses((status = 200, description = "The alarm as it is now", body = wire::Alarm),
              (status = 409, response = super::ProblemAnswer)))]
async fn pause(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Reference>,
) -> Result<Tagged<wire::Alarm>> {
    let id = names::alarm(&database, &id).await?;
    Ok(Tagged(operate::pause(&database, id, &caller.actor).await?))
}

/// Fire again, from the next instant on; what was missed is on record
#[utoipa::path(post, path = "/v1/alarms/{id}/resume", operation_id = "resume_alarm", tag = "alarms",
    responses((status = 200, description = "The alarm as it is now", body = wire::Alarm),
              (status = 409, response = super::ProblemAnswer)))]
async fn resume(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Reference>,
) -> Result<Tagged<wire::Alarm>> {
    let id = names::alarm(&database, &id).await?;
    Ok(Tagged(operate::resume(&database, id, &caller.actor).await?))
}

/// Fire an alarm now, beside its schedule
#[utoipa::path(post, path = "/v1/alarms/{id}/fire", operation_id = "fire_alarm", tag = "alarms",
    responses((status = 202, description = "It is due now", body = wire::FiredByHand),
              (status = 409, response = super::ProblemAnswer)))]
async fn fire(Visit { caller, database, .. }: Visit, Path(id): Path<Reference>) -> Result<impl IntoResponse> {
    let id = names::alarm(&database, &id).await?;
    let scheduled_for = operate::fire(&database, id, &caller.actor).await?;
    let fired = wire::FiredByHand {
        alarm_id: id.0,
        scheduled_for,
    };
    Ok((StatusCode::ACCEPTED, Answer(fired)))
}

/// The occurrences of an alarm, newest first
#[utoipa::path(get, path = "/v1/alarms/{id}/occurrences", operation_id = "list_occurrences", tag = "alarms",
    params(wire::OccurrenceQuery),
    responses((status = 200, description = "A page of occurrences", body = wire::Page<wire::Occurrence>)))]
async fn occurrences(
    Visit { database, .. }: Visit,
    Path(id): Path<Reference>,
    Query(query): Query<wire::OccurrenceQuery>,
) -> Reply<wire::Page<wire::Occurrence>> {
    let id = names::alarm(&database, &id).await?;
    let list = List::new(&format!("occurrences {id}"), &query)?;
    let before = list.position()?;
    find(&database, id).await?;
    let page = inspect::occurrences(&database, id, query.status, before, list.limit()).await?;
    Ok(list.ending_at(page.rows, page.next))
}

/// What was done to an alarm, newest first, with who did it
#[utoipa::path(get, path = "/v1/alarms/{id}/history", operation_id = "show_alarm_history", tag = "alarms", params(wire::PageQuery),
    responses((status = 200, description = "A page of what was done", body = wire::Page<wire::AlarmEvent>)))]
async fn history(
    Visit { database, .. }: Visit,
    Path(id): Path<Reference>,
    Query(query): Query<wire::PageQuery>,
) -> Reply<wire::Page<wire::AlarmEvent>> {
    let id = names::alarm(&database, &id).await?;
    let list = List::new(&format!("history of alarm {id}"), &query)?;
    let before = list.position()?;
    find(&database, id).await?;
    let rows = inspect::history(&database, id, before, list.rows()).await?;
    Ok(list.page(rows, |row| row.id))
}

/// Fire occurrences of the past; with `dry_run`, only tell which
#[utoipa::path(post, path = "/v1/alarms/{id}/backfill", operation_id = "backfill_alarm", tag = "alarms",
    request_body = wire::Backfill,
    responses((status = 200, description = "What would be fired", body = wire::Backfilled),
              (status = 202, description = "What is fired now", body = wire::Backfilled),
              (status = 409, response = super::ProblemAnswer)))]
async fn refill(
    Visit { caller, database, .. }: Visit,
    Path(id): Path<Reference>,
    Json(range): Json<wire::Backfill>,
) -> Result<impl IntoResponse> {
    let id = names::alarm(&database, &id).await?;
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
        items: planned,
    };
    Ok((status, Answer(answer)))
}

/// The alarm, when the caller may see it.
async fn find(database: &Database, id: AlarmId) -> Result<wire::Alarm> {
    let alarm = inspect::alarm(database, id).await?;
    Ok(alarm.ok_or(operate::Error::NotFound(id))?)
}

/// A target that could never be woken is refused at once; what a name stands for is looked at when it is called.
fn check_target(targets: &Guard, url: Option<&str>) -> Result<()> {
    let Some(Ok(url)) = url.map(str::parse::<url::Url>) else {
        return Ok(());
    };
    targets
        .check_url(&url)
        .map_err(|forbidden| Problem::field("/target_url", forbidden.to_string()))
}

/// An expression that is none, and the place.
fn expression(field: &str, text: &str, message: &str, at: Range<usize>) -> Problem {
    let part = text.get(at.clone()).unwrap_or_default();
    let place = if part.is_empty() {
        format!("at {}", at.start)
    } else {
        format!("at {} to {}, {part:?}", at.start, at.end)
    };
    Problem::field(field, format!("{message} ({place})"))
}

impl From<set::Error> for Problem {
    fn from(error: set::Error) -> Self {
        use set::Error;
        let words = error.to_string();
        match error {
            Error::Expression { pointed, at, .. } => {
                let text = pointed.lines().next().unwrap_or_default();
                expression("/cron_expr", text, &words, at)
            }
            Error::Invalid(wrong) => match wrong.field {
                Some(field) => Self::field(format!("/{field}"), words),
                None => Self::new(Kind::Invalid, words),
            },
            Error::Conflict => Self::new(Kind::IdempotencyConflict, words),
            Error::NameTaken(_) => Self::new(Kind::Conflict, words),
            Error::UnknownWorkspace(_) => Self::not_found(words),
            Error::Database(error) => error.into(),
        }
    }
}

impl From<operate::Error> for Problem {
    fn from(error: operate::Error) -> Self {
        match error {
            operate::Error::NotFound(_) => Self::not_found(error.to_string()),
            operate::Error::WrongState(words) => Self::new(Kind::Conflict, words),
            operate::Error::Invalid(words) => Self::new(Kind::Invalid, words),
            operate::Error::Unexpected => Self::new(Kind::PreconditionFailed, error.to_string()),
            operate::Error::Database(error) => error.into(),
        }
    }
}

impl From<edit::Error> for Problem {
    fn from(error: edit::Error) -> Self {
        match error {
            edit::Error::Request(error) => error.into(),
            edit::Error::Operation(error) => error.into(),
        }
    }
}

impl Changeable for wire::Alarm {
    fn changeable(&self) -> impl Serialize {
        let when = (
            self.kind,
            &self.cron_expr,
            &self.timezone,
            &self.civil_at,
            self.fire_at,
            self.start_at,
            self.end_at,
            self.jitter,
            self.dst,
        );
        let what = (
            &self.label,
            &self.target_url,
            &self.user_id,
            &self.conversation_id,
            &self.message,
            &self.payload,
        );
        let how = (
            self.max_failures,
            self.misfire,
            self.catch_up,
            self.misfire_window,
            self.overlap,
            self.pause_after,
            self.status,
        );
        (when, what, how)
    }
}

impl Changeable for wire::AlarmDetails {
    fn changeable(&self) -> impl Serialize {
        self.alarm.changeable()
    }
}
