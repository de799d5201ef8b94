//! The terms of an alarm: its policies, and its schedule as a value. Pure.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stationmaster_schedule::{Cron, DstPolicy, Fire, Series, resolve, zone};

use crate::id::AlarmId;

/// What happens to occurrences that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Misfire {
    /// One wake for all of them: the newest.
    #[default]
    Coalesce,
    /// One wake each, for the newest of them, up to this many.
    CatchUp(u32),
    /// None.
    Skip,
}

impl Misfire {
    /// As rows name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Coalesce => "coalesce",
            Self::CatchUp(_) => "catch_up",
            Self::Skip => "skip",
        }
    }

    /// From its name and, for `catch_up`, how many.
    pub fn named(name: &str, catch_up: u32) -> Result<Self, String> {
        match name {
            "coalesce" => Ok(Self::Coalesce),
            "catch_up" => Ok(Self::CatchUp(catch_up)),
            "skip" => Ok(Self::Skip),
            _ => Err(format!(
                "{name:?} is no misfire policy: coalesce, catch_up or skip"
            )),
        }
    }

    pub(crate) fn how_many(self) -> Option<u32> {
        match self {
            Self::CatchUp(many) => Some(many),
            Self::Coalesce | Self::Skip => None,
        }
    }
}

/// What happens when an occurrence comes while an earlier one of the same alarm is not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It fires all the same: occurrences have nothing to do with each other.
    #[default]
    Allow,
    /// It waits for the earlier one.
    Queue,
    /// It is skipped.
    Skip,
}

impl Overlap {
    /// As rows name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Queue => "queue",
            Self::Skip => "skip",
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Overlap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "allow" => Ok(Self::Allow),
            "queue" => Ok(Self::Queue),
            "skip" => Ok(Self::Skip),
            _ => Err(format!("{text:?} is no overlap policy: allow, queue or skip")),
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

/// A schedule as a row holds it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Written {
    pub(crate) fire_at: Option<Timestamp>,
    pub(crate) civil_at: Option<String>,
    pub(crate) cron_expr: Option<String>,
    pub(crate) timezone: Option<String>,
    pub(crate) dst: String,
    pub(crate) start_at: Option<Timestamp>,
    pub(crate) end_at: Option<Timestamp>,
    pub(crate) anchor_at: Timestamp,
}

impl Written {
    /// Reads it; an error says in words what is wrong with it.
    pub(crate) fn read(&self) -> Result<Schedule, String> {
        let dst: DstPolicy = self.dst.parse().map_err(|error| format!("{error}"))?;
        let in_zone = || zone(self.timezone.as_deref().unwrap_or("UTC")).map_err(|error| error.to_string());
        if let Some(expression) = &self.cron_expr {
            let cron = Cron::parse(expression).map_err(|error| error.pointed(expression))?;
            return Ok(Schedule::Cron(Box::new(Series {
                cron,
                zone: in_zone()?,
                dst,
                start: self.start_at,
                end: self.end_at,
                anchor: self.anchor_at,
            })));
        }
        if let Some(civil) = &self.civil_at {
            let civil: DateTime = civil
                .parse()
                .map_err(|_| format!("{civil:?} is not a local time like 2026-03-29T02:30:00"))?;
            let zone = in_zone()?;
            return match resolve(civil, &zone, dst).fire() {
                Some(fire) => Ok(Schedule::Civil(Box::new(fire))),
                None => Err(never(civil, zone.name())),
            };
        }
        let at = self
            .fire_at
            .ok_or("it has neither an instant, nor a local time, nor an expression")?;
        Ok(Schedule::At(at))
    }
}

fn never(civil: DateTime, zone: &str) -> String {
    format!("the clocks of {zone} never show {civil}, and the policy is skip")
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

    #[test]
    fn policies_are_read_as_they_are_written() {
        for overlap in [Overlap::Allow, Overlap::Queue, Overlap::Skip] {
            assert_eq!(overlap.as_str().parse(), Ok(overlap));
        }
        for misfire in [Misfire::Coalesce, Misfire::CatchUp(7), Misfire::Skip] {
            assert_eq!(Misfire::named(misfire.as_str(), 7), Ok(misfire));
        }
        assert!("sometimes".parse::<Overlap>().is_err());
        assert!(Misfire::named("sometimes", 1).is_err());
    }
}
