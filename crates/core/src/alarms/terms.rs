//! The terms of an alarm: its policies, and its schedule as a value. Pure.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use sha2::{Digest as _, Sha256};
use stationmaster_schedule::{Cron, DstPolicy, Fire, Series, resolve, zone};
pub use stationmaster_wire::{AlarmKind, AlarmStatus, Misfire as MisfirePolicy, OccurrenceStatus, Overlap};

use crate::columns::{At, Dst, MaybeAt};
use crate::id::AlarmId;
use crate::words;

words! {
    /// Where an occurrence comes from.
    pub enum Origin {
        /// The schedule.
        Schedule = "schedule",
        /// Somebody fired the alarm by hand.
        Manual = "manual",
        /// Somebody made up for the past.
        Backfill = "backfill",
    }
}

/// What happens to occurrences that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfire {
    /// One wake for all of them: the newest.
    Coalesce,
    /// One wake each, for the newest of them, up to this many.
    CatchUp(u32),
    /// None.
    Skip,
}

impl Misfire {
    /// From its name and, for `catch_up`, how many.
    pub(crate) fn named(name: MisfirePolicy, catch_up: u32) -> Self {
        match name {
            MisfirePolicy::Coalesce => Self::Coalesce,
            MisfirePolicy::CatchUp => Self::CatchUp(catch_up),
            MisfirePolicy::Skip => Self::Skip,
        }
    }
}

/// What a late series needs to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) misfire: Misfire,
    pub(crate) window: Duration,
    pub(crate) grace: Duration,
    pub(crate) overlap: Overlap,
    pub(crate) jitter: Duration,
}

/// When an alarm fires.
#[derive(Debug, Clone)]
pub(crate) enum Schedule {
    /// Once, at an instant.
    At(Timestamp),
    /// Once, when the clocks of a zone show a time.
    Civil(Box<Fire>),
    /// Again and again.
    Cron(Box<Series>),
}

/// What is wrong with a request or with what is on record: the field that is meant, when it is one, and words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct Wrong {
    /// As the wire names it.
    pub field: Option<&'static str>,
    /// What is wrong with it.
    pub words: String,
}

impl Wrong {
    pub(super) fn of(field: &'static str, words: impl Into<String>) -> Self {
        Self {
            field: Some(field),
            words: words.into(),
        }
    }

    pub(super) fn with(words: impl Into<String>) -> Self {
        Self {
            field: None,
            words: words.into(),
        }
    }
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        wrong.words
    }
}

/// A schedule as a row holds it.
#[derive(Debug, Clone, Default, sqlx::FromRow)]
pub(crate) struct Written {
    #[sqlx(default, try_from = "MaybeAt")]
    pub(crate) fire_at: Option<Timestamp>,
    #[sqlx(default)]
    pub(crate) civil_at: Option<String>,
    pub(crate) cron_expr: Option<String>,
    pub(crate) timezone: Option<String>,
    #[sqlx(try_from = "Dst")]
    pub(crate) dst: DstPolicy,
    #[sqlx(try_from = "MaybeAt")]
    pub(crate) start_at: Option<Timestamp>,
    #[sqlx(try_from = "MaybeAt")]
    pub(crate) end_at: Option<Timestamp>,
    #[sqlx(rename = "created_at", try_from = "At")]
    pub(crate) anchor_at: Timestamp,
}

impl Written {
    /// Reads it.
    pub(crate) fn read(&self) -> Result<Schedule, Wrong> {
        let in_zone = || {
            let name = self.timezone.as_deref().unwrap_or("UTC");
            zone(name).map_err(|error| Wrong::of("timezone", error.to_string()))
        };
        if let Some(expression) = &self.cron_expr {
            let cron = Cron::parse(expression).map_err(|error| {
                let words = format!("the expression {expression:?} cannot be used: {}", error.message);
                Wrong::of("cron_expr", words)
            })?;
            return Ok(Schedule::Cron(Box::new(Series {
                cron,
                zone: in_zone()?,
                dst: self.dst,
                start: self.start_at,
                end: self.end_at,
                anchor: self.anchor_at,
            })));
        }
        if let Some(civil) = &self.civil_at {
            let civil: DateTime = civil.parse().map_err(|_| {
                let words = format!("{civil:?} is not a local time like 2026-03-29T02:30:00");
                Wrong::of("civil_at", words)
            })?;
            let zone = in_zone()?;
            let fire = resolve(civil, &zone, self.dst).fire();
            let never = || {
                let zone = zone.name();
                let words = format!("the clocks of {zone} never show {civil}, and the policy is skip");
                Wrong::of("civil_at", words)
            };
            return fire.map(Box::new).map(Schedule::Civil).ok_or_else(never);
        }
        let words = "it has neither an instant, nor a local time, nor an expression";
        let at = self.fire_at.ok_or_else(|| Wrong::with(words))?;
        Ok(Schedule::At(at))
    }
}

/// The next instant of a series, with what the clocks do to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Upcoming {
    pub(crate) at: Timestamp,
    pub(crate) note: Option<String>,
}

impl From<Fire> for Upcoming {
    fn from(fire: Fire) -> Self {
        Self {
            at: fire.at,
            note: fire.note.map(|note| note.to_string()),
        }
    }
}

impl Schedule {
    /// The first fire after an instant; one that is for once fires however late it is.
    pub(crate) fn first_after(&self, after: Timestamp) -> Option<Upcoming> {
        match self {
            Self::At(at) => Some(Upcoming { at: *at, note: None }),
            Self::Civil(fire) => Some((**fire).clone().into()),
            Self::Cron(series) => series.next_after(after).map(Upcoming::from),
        }
    }
}

/// When a nominal instant is due: with a jitter, somewhat later, always by the same amount.
pub(crate) fn due(alarm: AlarmId, nominal: Timestamp, jitter: Duration) -> Timestamp {
    let micros = u64::try_from(jitter.as_micros()).unwrap_or(u64::MAX);
    if micros == 0 {
        return nominal;
    }
    let mut hash = Sha256::new();
    hash.update(alarm.0.as_bytes());
    hash.update(nominal.as_microsecond().to_be_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let drawn = digest[..8]
        .iter()
        .fold(0, |number: u64, byte| (number << 8) | u64::from(*byte))
        % micros;
    nominal
        .checked_add(Duration::from_micros(drawn))
        .unwrap_or(nominal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_same_every_time_within_its_bounds_and_spread() {
        let alarm = AlarmId::new();
        let nominal: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let jitter = Duration::from_mins(1);
        assert_eq!(due(alarm, nominal, Duration::ZERO), nominal);
        let late = |alarm| due(alarm, nominal, jitter).duration_since(nominal).as_secs();
        assert_eq!(due(alarm, nominal, jitter), due(alarm, nominal, jitter));
        let drawn: Vec<i64> = (0..1000).map(|_| late(AlarmId::new())).collect();
        assert!(drawn.iter().all(|late| (0..60).contains(late)));
        let early = drawn.iter().filter(|late| **late < 30).count();
        assert!((350..650).contains(&early), "{early} of 1000 in the first half");
    }
}
