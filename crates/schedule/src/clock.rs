//! How the local clock of a zone runs: stretches of time with one offset, one after the other. Where two meet, the clock is
//! put forward or back. Everything counts in whole seconds, as offsets do: an *instant* in seconds since 1970 in UTC, a *local*
//! time in the seconds since 1970 that its clock shows.
//!
//! The one idea on which the rules stand: a stretch knows the highest local time that the clock has *passed* before it. What lies
//! between that and the first local time of the stretch does not exist; what lies below it comes again.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// Offsets lie between -26 and +26 hours, so that nothing which is further away in time can show the same local time.
pub(crate) const REACH: i64 = 2 * 26 * 3_600;

/// A time in which the offset of a zone does not change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    /// The first instant.
    pub(crate) start: i64,
    /// The first instant after it.
    pub(crate) end: i64,
    pub(crate) offset: i64,
    /// The clock has shown or passed every local time below this one before the stretch begins.
    pub(crate) passed: i64,
}

impl Stretch {
    /// The stretch that holds an instant.
    pub(crate) fn around(zone: &TimeZone, at: i64) -> Self {
        let start = zone.preceding(instant(at.saturating_add(1))).next();
        let start = start.map_or(i64::MIN, |transition| transition.timestamp().as_second());
        let near = zone
            .preceding(instant(start))
            .map(|transition| transition.timestamp().as_second())
            .take_while(|near| *near > start.saturating_sub(REACH));
        let passed = [start].into_iter().chain(near).filter(|near| *near > i64::MIN);
        let passed = passed.map(|near| near + offset_at(zone, near - 1)).max();
        Self {
            start,
            end: end_of(zone, at),
            offset: offset_at(zone, at),
            passed: passed.unwrap_or(i64::MIN),
        }
    }

    /// The stretch after this one. None after the last.
    pub(crate) fn following(&self, zone: &TimeZone) -> Option<Self> {
        (self.end != i64::MAX).then(|| Self {
            start: self.end,
            end: end_of(zone, self.end),
            offset: offset_at(zone, self.end),
            passed: self.passed.max(self.local_end()),
        })
    }

    pub(crate) fn local_start(&self) -> i64 {
        self.start.saturating_add(self.offset)
    }

    /// The first local time that the clock does not show any more.
    pub(crate) fn local_end(&self) -> i64 {
        if self.end == i64::MAX {
            i64::MAX
        } else {
            self.end + self.offset
        }
    }

    /// Whether the local times between what was passed and the first of this stretch do not exist.
    pub(crate) fn begins_with_a_gap(&self) -> bool {
        self.passed > i64::MIN && self.passed < self.local_start()
    }

    /// Whether the clock shows the local time of an instant of this stretch at another instant too, and if so, in which order.
    pub(crate) fn order(&self, zone: &TimeZone, at: i64) -> Order {
        if self.end.saturating_sub(at) > REACH && at.saturating_sub(self.start) > REACH {
            return Order::Only;
        }
        let local = at + self.offset;
        let near = zone
            .following(instant(at - REACH))
            .map(|transition| transition.timestamp().as_second())
            .take_while(|near| *near <= at + REACH);
        let mut order = Order::Only;
        for offset in near.flat_map(|near| [offset_at(zone, near - 1), offset_at(zone, near)]) {
            let other = local - offset;
            if other != at && offset_at(zone, other) == offset {
                if other < at {
                    return Order::Later;
                }
                order = Order::First;
            }
        }
        order
    }
}

/// How often the clock shows a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Once.
    Only,
    /// It comes again.
    First,
    /// It was there before.
    Later,
}

fn end_of(zone: &TimeZone, at: i64) -> i64 {
    let end = zone.following(instant(at)).next();
    end.map_or(i64::MAX, |transition| transition.timestamp().as_second())
}

fn offset_at(zone: &TimeZone, at: i64) -> i64 {
    zone.to_offset(instant(at)).seconds().into()
}

/// The instant, or the nearest that there is.
fn instant(seconds: i64) -> Timestamp {
    let nearest = if seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_second(seconds).unwrap_or(nearest)
}

/// What a clock shows. None beyond the years that there are.
pub(crate) fn shown(local: i64) -> Option<DateTime> {
    let as_utc = Timestamp::from_second(local).ok()?;
    Some(Offset::UTC.to_datetime(as_utc))
}

/// The other way round; parts of a second are left away.
pub(crate) fn local(shown: DateTime) -> Option<i64> {
    let as_utc = Offset::UTC.to_timestamp(shown.with().subsec_nanosecond(0).build().ok()?);
    Some(as_utc.ok()?.as_second())
}
