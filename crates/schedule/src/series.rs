//! The instants at which an expression fires in a zone. Local times come from the calendar, stretches of equal offset from the
//! clock; this module puts them together by the rule of the policy:
//!
//! * A *fixed* time fires when the clock first reaches or passes it. So a time in a gap fires at the first instant after the gap
//!   (not at all under `skip`), and a time that comes again does not fire again (it does under `both`).
//! * An expression that leaves the hour or the minute to the clock fires whenever the clock shows a match. Where it names its
//!   hours, one that is lost in a gap with all its matches fires once at the first instant after the gap (not at all under
//!   `skip`): whoever asks for `*/30 2 * * *` wants something to happen every night.
//!
//! Fires grow strictly: no instant comes twice.

use std::ops::Range;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Timestamp, Zoned};

use crate::calendar::Calendar;
use crate::clock::{Order, Stretch, local, shown};
use crate::cron::{Cron, Rule};
use crate::dst::{DstPolicy, Note};
use crate::zone::Zone;

/// An expression in a zone, with its policy and its bounds.
#[derive(Debug, Clone)]
pub struct Series {
    /// What fires.
    pub cron: Cron,
    /// Whose clock is meant.
    pub zone: Zone,
    /// What becomes of local times that do not exist or come twice.
    pub dst: DstPolicy,
    /// The first instant at which it may fire.
    pub start: Option<Timestamp>,
    /// The last instant at which it may fire.
    pub end: Option<Timestamp>,
    /// From here `@every` counts, in both directions: it fires at whole periods away from it.
    pub anchor: Timestamp,
}

/// One instant of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Fire {
    /// When.
    pub at: Timestamp,
    /// The same as the zone's clock shows it.
    pub local: Zoned,
    /// What a moving clock did to it.
    pub note: Option<Note>,
}

impl Fire {
    pub(crate) fn new(at: Timestamp, zone: &Zone, note: Option<Note>) -> Self {
        let local = at.to_zoned(zone.time_zone().clone());
        Self { at, local, note }
    }

    /// The instant with the zone's offset, as in `2026-03-29T03:00:00+02:00`. That format has no seconds in offsets, which a
    /// few zones had long ago; then the nearest whole minute stands for the offset, and the instant is still the same.
    pub fn rfc3339(&self) -> String {
        let minutes = (self.local.offset().seconds() + 30).div_euclid(60);
        let offset = Offset::from_seconds(minutes * 60).unwrap_or(Offset::UTC);
        self.at.display_with_offset(offset).to_string()
    }
}

impl Series {
    /// The first fire strictly after an instant. None: there will never be another.
    pub fn next_after(&self, after: Timestamp) -> Option<Fire> {
        self.fires(after).next()
    }

    /// The fires strictly after an instant, in order.
    pub fn fires(&self, after: Timestamp) -> impl Iterator<Item = Fire> + '_ {
        let fires: Box<dyn Iterator<Item = Fire>> = match self.cron.rule() {
            Rule::Calendar(calendar) => Box::new(Walk::new(self, calendar, after)),
            Rule::Every(seconds) => Box::new(self.ticks(*seconds, after)),
        };
        fires.take_while(|fire| self.end.is_none_or(|end| fire.at <= end))
    }

    /// Whole periods away from the anchor.
    fn ticks(&self, seconds: i64, after: Timestamp) -> impl Iterator<Item = Fire> + '_ {
        let (period, anchor) = (i128::from(seconds) * 1_000_000_000, self.anchor.as_nanosecond());
        let before_start = self.start.map(|start| start.as_nanosecond() - 1);
        let after = before_start.map_or(after.as_nanosecond(), |start| start.max(after.as_nanosecond()));
        let passed = (after - anchor).div_euclid(period);
        (1..).map_while(move |count| {
            let at = Timestamp::from_nanosecond(anchor + (passed + count) * period).ok()?;
            Some(Fire::new(at, &self.zone, None))
        })
    }
}

/// Local times in a gap: the first, and how many.
#[derive(Debug, Clone, Copy)]
struct Missing {
    first: DateTime,
    times: u32,
}

/// A walk along the clock of a zone, from fire to fire.
struct Walk<'a> {
    series: &'a Series,
    calendar: &'a Calendar,
    /// The instant at which to look next, in seconds.
    at: i64,
    /// Holds that instant. None when the walk is over.
    stretch: Option<Stretch>,
    /// What was swallowed by gaps since the last fire.
    skipped: Option<Missing>,
    /// The last look into the calendar: from where, and what was found.
    seen: Option<(i64, i64)>,
}

impl<'a> Walk<'a> {
    fn new(series: &'a Series, calendar: &'a Calendar, after: Timestamp) -> Self {
        let at = floor(after) + 1;
        let at = series.start.map_or(at, |start| at.max(ceiling(start)));
        Self {
            series,
            calendar,
            at,
            stretch: Some(Stretch::around(series.zone.time_zone(), at)),
            skipped: None,
            seen: None,
        }
    }

    fn is_fixed(&self) -> bool {
        !self.calendar.wildcard
    }

    /// Whether a local time that comes again fires again.
    fn repeats(&self) -> bool {
        !self.is_fixed() || self.series.dst == DstPolicy::Both
    }

    /// Whether a local time in the gap at the beginning of a stretch fires after it.
    fn moves(&mut self, missing: i64, stretch: &Stretch) -> bool {
        self.series.dst != DstPolicy::Skip
            && (self.is_fixed() || (self.calendar.names_hours && self.is_lost(hour_of(missing), stretch)))
    }

    /// Whether an hour has all its matches in the gap at the beginning of a stretch.
    fn is_lost(&mut self, hour: Range<i64>, stretch: &Stretch) -> bool {
        let is_outside = |found: Option<i64>| found.is_none_or(|found| found >= hour.end);
        self.next_match(hour.start)
            .is_some_and(|first| first >= stretch.passed)
            && is_outside(self.next_match(stretch.local_start()))
    }

    /// The first local time that matches and is not before this one.
    fn next_match(&mut self, from: i64) -> Option<i64> {
        if let Some((looked_from, found)) = self.seen
            && (looked_from..=found).contains(&from)
        {
            return Some(found);
        }
        let found = local(self.calendar.next_from(shown(from)?)?)?;
        self.seen = Some((from, found));
        Some(found)
    }

    /// What matches in the gap at the beginning of a stretch and fires after it, once for all. What does not is remembered.
    fn moved(&mut self, stretch: &Stretch) -> Option<Missing> {
        if !stretch.begins_with_a_gap() {
            return None;
        }
        let mut moved = None;
        let mut next = self.next_match(stretch.passed);
        while let Some(found) = next.filter(|found| *found < stretch.local_start()) {
            if self.moves(found, stretch) {
                count(&mut moved, found);
            } else {
                count(&mut self.skipped, found);
            }
            next = self.next_match(found + 1);
        }
        moved
    }

    /// The first fire of a stretch from here on.
    fn within(&mut self, stretch: &Stretch) -> Option<(i64, Option<Note>)> {
        if self.at == stretch.start
            && let Some(Missing { first: wanted, times }) = self.moved(stretch)
        {
            return Some((stretch.start, Some(Note::MovedOutOfGap { wanted, times })));
        }
        let mut from = self.at + stretch.offset;
        if !self.repeats() {
            from = from.max(stretch.passed);
        }
        let found = self
            .next_match(from)
            .filter(|found| *found < stretch.local_end())?;
        let at = found - stretch.offset;
        Some((at, self.note(stretch, at)))
    }

    fn note(&mut self, stretch: &Stretch, at: i64) -> Option<Note> {
        if let Some(Missing { first: wanted, times }) = self.skipped.take() {
            return Some(Note::SkippedBefore { wanted, times });
        }
        match stretch.order(self.series.zone.time_zone(), at) {
            Order::Only => None,
            Order::Later => Some(Note::SecondOfTwo),
            Order::First if self.repeats() => Some(Note::FirstOfTwo),
            Order::First => Some(Note::OnceOfTwo),
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Fire;

    fn next(&mut self) -> Option<Fire> {
        let end = self.series.end.map_or(i64::MAX, floor);
        loop {
            let stretch = self.stretch.filter(|_| self.at <= end)?;
            if let Some((at, note)) = self.within(&stretch) {
                self.at = at + 1;
                if self.at >= stretch.end {
                    self.stretch = stretch.following(self.series.zone.time_zone());
                }
                let at = Timestamp::from_second(at).ok()?;
                return Some(Fire::new(at, &self.series.zone, note));
            }
            self.at = stretch.end;
            self.stretch = stretch.following(self.series.zone.time_zone());
        }
    }
}

/// One more local time that does not exist.
fn count(missing: &mut Option<Missing>, found: i64) {
    match (missing.as_mut(), shown(found)) {
        (Some(missing), _) => missing.times = missing.times.saturating_add(1),
        (None, Some(first)) => *missing = Some(Missing { first, times: 1 }),
        (None, None) => {}
    }
}

/// The hour that a local time is in.
fn hour_of(local: i64) -> Range<i64> {
    let start = local - local.rem_euclid(3_600);
    start..start + 3_600
}

/// The last whole second that is not after an instant.
fn floor(at: Timestamp) -> i64 {
    at.as_second() - i64::from(at.subsec_nanosecond() < 0)
}

/// The first whole second that is not before an instant.
fn ceiling(at: Timestamp) -> i64 {
    at.as_second() + i64::from(at.subsec_nanosecond() > 0)
}

#[cfg(test)]
mod tests;
