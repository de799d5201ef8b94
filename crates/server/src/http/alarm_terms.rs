//! Alarms between the wire and the core: what is asked for is read strictly, and a refusal names the field.

use std::ops::Range;
use std::time::Duration;

use serde::Serialize;
use stationmaster_client::wire;
use stationmaster_core::alarms::edit::{self, Edit};
use stationmaster_core::alarms::set::{self, SetAlarm, When};
use stationmaster_core::alarms::{Misfire, inspect, operate};
use stationmaster_core::id::WorkspaceId;
use stationmaster_core::wake::guard::Guard;
use stationmaster_schedule::{Fire, zone};

use super::etag::Changeable;
use super::problem::{Kind, Problem, Result};

/// Fires to come that are told with an alarm.
const TOLD: usize = 10;
/// How many missed occurrences are caught up with when nobody says.
const CATCH_UP: u32 = 10;

/// A request for an alarm, as the core takes it.
pub(crate) fn request(workspace: WorkspaceId, request: wire::NewAlarm) -> Result<SetAlarm> {
    let given = Given {
        fire_at: request.fire_at,
        delay: request.delay,
        civil_at: request.civil_at,
        cron_expr: request.cron_expr,
        zone: request.timezone,
    };
    let Some(when) = given.when("UTC")? else {
        let words = "give exactly one of fire_at, delay, civil_at and cron_expr";
        return Err(Problem::field("/cron_expr", words));
    };
    Ok(SetAlarm {
        workspace_id: workspace,
        label: request.label,
        when,
        target_url: request.target_url,
        user_id: request.user_id,
        conversation_id: request.conversation_id,
        message: request.message,
        payload: request.payload,
        idempotency_key: request.idempotency_key,
        max_failures: request.max_failures,
        misfire: misfire(
            request.misfire.unwrap_or(wire::Misfire::Coalesce),
            request.catch_up,
        ),
        misfire_window: seconds("/misfire_window", request.misfire_window)?,
        overlap: request.overlap.unwrap_or_default(),
        dst: request.dst.unwrap_or_default().into(),
        jitter: seconds("/jitter", request.jitter)?.unwrap_or_default(),
        start_at: request.start_at,
        end_at: request.end_at,
        pause_after: request.pause_after,
        traceparent: request.traceparent,
    })
}

/// A change of an alarm, as the core takes it.
pub(crate) fn change(alarm: &wire::Alarm, change: wire::AlarmChange) -> Result<Edit> {
    if change.misfire.is_none() && change.catch_up.is_some() {
        return Err(Problem::field("/catch_up", "it goes with misfire"));
    }
    let has_zone = change.timezone.is_some();
    let mut given = Given {
        fire_at: change.fire_at,
        delay: change.delay,
        civil_at: change.civil_at,
        cron_expr: change.cron_expr,
        zone: change.timezone,
    };
    if has_zone && given.count() == 0 {
        // Another zone for what the alarm says already.
        given.civil_at.clone_from(&alarm.civil_at);
        given.cron_expr.clone_from(&alarm.cron_expr);
    }
    let window = change
        .misfire_window
        .map(|window| seconds("/misfire_window", window));
    Ok(Edit {
        label: change.label,
        when: given.when(alarm.timezone.as_deref().unwrap_or("UTC"))?,
        target_url: change.target_url,
        user_id: change.user_id,
        conversation_id: change.conversation_id,
        message: change.message,
        payload: change.payload,
        max_failures: change.max_failures,
        misfire: change.misfire.map(|name| misfire(name, change.catch_up)),
        misfire_window: window.transpose()?,
        overlap: change.overlap,
        dst: change.dst.map(Into::into),
        jitter: seconds("/jitter", change.jitter)?,
        start_at: change.start_at,
        end_at: change.end_at,
        pause_after: change.pause_after,
    })
}

/// When an alarm is to fire, as it was given.
struct Given {
    fire_at: Option<jiff::Timestamp>,
    delay: Option<f64>,
    civil_at: Option<String>,
    cron_expr: Option<String>,
    zone: Option<String>,
}

impl Given {
    fn count(&self) -> usize {
        usize::from(self.fire_at.is_some())
            + usize::from(self.delay.is_some())
            + usize::from(self.civil_at.is_some())
            + usize::from(self.cron_expr.is_some())
    }

    /// `None`: nothing was given. In this zone, when none is named.
    fn when(self, usual: &str) -> Result<Option<When>> {
        if self.count() > 1 {
            let words = "give one of fire_at, delay, civil_at and cron_expr, not several";
            return Err(Problem::field("/cron_expr", words));
        }
        if let Some(name) = &self.zone {
            zone(name).map_err(|error| Problem::field("/timezone", error.to_string()))?;
            if self.civil_at.is_none() && self.cron_expr.is_none() {
                let words = "a zone goes with civil_at or cron_expr";
                return Err(Problem::field("/timezone", words));
            }
        }
        let zone = self.zone.unwrap_or_else(|| usual.to_owned());
        Ok(match (self.fire_at, self.delay, self.civil_at, self.cron_expr) {
            (Some(at), ..) => Some(When::At(at)),
            (_, Some(delay), ..) => seconds("/delay", Some(delay))?.map(When::In),
            (_, _, Some(civil), _) => {
                let words = "a local time without a zone, such as 2026-03-29T02:30:00";
                let at = civil.parse().map_err(|_| Problem::field("/civil_at", words))?;
                Some(When::Civil { at, zone })
            }
            (.., Some(expression)) => Some(When::Cron { expression, zone }),
            _ => None,
        })
    }
}

fn seconds(field: &str, seconds: Option<f64>) -> Result<Option<Duration>> {
    /// More than thirty years is a mistake.
    const MOST: f64 = 1e9;
    match seconds {
        None => Ok(None),
        Some(seconds) if (0.0..=MOST).contains(&seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        Some(_) => Err(Problem::field(field, format!("seconds, from 0 to {MOST}"))),
    }
}

fn misfire(name: wire::Misfire, catch_up: Option<u32>) -> Misfire {
    match name {
        wire::Misfire::Coalesce => Misfire::Coalesce,
        wire::Misfire::CatchUp => Misfire::CatchUp(catch_up.unwrap_or(CATCH_UP)),
        wire::Misfire::Skip => Misfire::Skip,
    }
}

/// A target that could never be woken is refused at once; what a name stands for is looked at when it is called.
pub(super) fn check_target(targets: &Guard, url: Option<&str>) -> Result<()> {
    let Some(Ok(url)) = url.map(str::parse::<url::Url>) else {
        return Ok(());
    };
    targets
        .check_url(&url)
        .map_err(|forbidden| Problem::field("/target_url", forbidden.to_string()))
}

/// An expression that is none, and the place.
pub(super) fn expression(field: &str, text: &str, message: &str, at: Range<usize>) -> Problem {
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
            Error::Invalid(words) => match field(&words) {
                Some(field) => Self::field(field, words),
                None => Self::new(Kind::Invalid, words),
            },
            Error::Conflict => Self::new(Kind::IdempotencyConflict, words),
            Error::UnknownWorkspace(_) => Self::not_found(words),
            Error::Database(error) => error.into(),
        }
    }
}

/// Which field a constraint of the database speaks of: it is named by what it demands.
fn field(words: &str) -> Option<&'static str> {
    let fields = [
        ("the label", "/label"),
        ("the target", "/target_url"),
        ("the expression", "/cron_expr"),
        ("the time zone", "/timezone"),
        ("the misfire window", "/misfire_window"),
        ("the message", "/message"),
        ("the payload", "/payload"),
        ("the end", "/end_at"),
        ("the idempotency key", "/idempotency_key"),
        ("the trace context", "/traceparent"),
        ("catch up", "/catch_up"),
        ("max failures", "/max_failures"),
        ("pause after", "/pause_after"),
        ("jitter", "/jitter"),
        ("user id", "/user_id"),
        ("conversation id", "/conversation_id"),
        ("the clocks", "/civil_at"),
    ];
    let found = fields.into_iter().find(|(start, _)| words.starts_with(start));
    found.map(|(_, field)| field)
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

/// An alarm on the wire, with its coming fires.
pub(crate) fn details(alarm: wire::Alarm) -> wire::AlarmDetails {
    let fires = inspect::upcoming(&alarm, jiff::Timestamp::now(), TOLD);
    let mut upcoming: Vec<wire::Upcoming> = fires.into_iter().map(self::upcoming).collect();
    if let (true, Some(at)) = (upcoming.is_empty(), alarm.next_fire_at) {
        upcoming.push(wire::Upcoming {
            at,
            local: at.to_string(),
            note: None,
        });
    }
    wire::AlarmDetails { alarm, upcoming }
}

pub(super) fn upcoming(fire: Fire) -> wire::Upcoming {
    wire::Upcoming {
        at: fire.at,
        local: fire.rfc3339(),
        note: fire.note.map(|note| note.to_string()),
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
