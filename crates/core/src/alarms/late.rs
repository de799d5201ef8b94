//! What a series does when its next occurrence has come, possibly late: which instants fire now, which are missed and why,
//! and which is next. Pure; the database's clock is an argument.
//!
//! Late by less than the grace is only late: everything that is due fires. Beyond it the misfire policy decides, for all
//! that is due at once, so that an outage brings one wake under `coalesce` and not one and a half. What is not fired is
//! written down; a long row of it as one line.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stationmaster_schedule::Series;

use super::terms::{Misfire, OccurrenceStatus, Overlap, Schedule, Terms, Upcoming, due};
use crate::id::AlarmId;

/// Up to this many missed occurrences are written down one by one.
const ONE_BY_ONE: usize = 100;
/// Beyond this, missed occurrences are not counted.
const COUNTED: usize = 10_000;
/// The most that fires at once because it is due within the grace.
const AT_ONCE: usize = 1_000;
/// However large the window, no more instants than this are looked at.
const LOOKED_AT: usize = 100_000;

/// Occurrences that will not fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) from: Timestamp,
    /// The first instant that this does not speak for; `None`: it speaks for one.
    pub(crate) until: Option<Timestamp>,
    /// `None`: very many.
    pub(crate) covers: Option<u64>,
    pub(crate) status: OccurrenceStatus,
    pub(crate) reason: String,
}

/// How a series moves on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// In order; the first one first.
    pub(crate) fire: Vec<Upcoming>,
    pub(crate) missed: Vec<Missed>,
    pub(crate) next: Option<Upcoming>,
    /// The instant after which the next one was looked for.
    pub(crate) follows: Timestamp,
}

/// A series whose next instant has come.
pub(crate) struct Late<'a> {
    pub(crate) alarm: AlarmId,
    pub(crate) terms: Terms,
    pub(crate) first: Upcoming,
    /// By the overlap policy: until when an earlier occurrence was under way.
    pub(crate) free_at: Option<Timestamp>,
    pub(crate) now: Timestamp,
    pub(crate) schedule: &'a Schedule,
}

impl Late<'_> {
    /// Moves the series on.
    pub(crate) fn step(&self) -> Step {
        match self.schedule {
            Schedule::At(_) | Schedule::Civil(_) => self.once(),
            Schedule::Cron(series) => self.series(series),
        }
    }

    /// The first one is: the database said so.
    fn is_due(&self, nominal: Timestamp) -> bool {
        nominal <= self.first.at || due(self.alarm, nominal, self.terms.jitter) <= self.now
    }

    fn is_missed(&self, nominal: Timestamp) -> bool {
        let late = self
            .now
            .duration_since(due(self.alarm, nominal, self.terms.jitter));
        late > signed(self.terms.grace)
    }

    fn before(&self, length: Duration) -> Timestamp {
        self.now.checked_sub(length).unwrap_or(Timestamp::MIN)
    }

    /// There is nothing that could stand for it, so it fires however late it is, unless it is to be skipped.
    fn once(&self) -> Step {
        let first = self.first.at;
        let skip = self.terms.misfire == Misfire::Skip && self.is_missed(first);
        let missed = Missed {
            from: first,
            until: None,
            covers: Some(1),
            status: OccurrenceStatus::Skipped,
            reason: self.too_late(),
        };
        Step {
            fire: if skip {
                Vec::new()
            } else {
                vec![self.first.clone()]
            },
            missed: if skip { vec![missed] } else { Vec::new() },
            next: None,
            follows: first,
        }
    }

    fn too_late(&self) -> String {
        format!("missed by more than {}", words(self.terms.grace))
    }

    fn series(&self, series: &Series) -> Step {
        let mut missed = Vec::new();
        let mut first = self.first.clone();
        if let (Overlap::Skip, Some(free_at)) = (self.terms.overlap, self.free_at)
            && first.at < free_at
        {
            let reason = "an earlier occurrence was still under way";
            missed.extend(row(series, first.at, free_at, OccurrenceStatus::Skipped, reason));
            let next = series.next_after(just_before(free_at)).map(Upcoming::from);
            match next {
                Some(next) if self.is_due(next.at) => first = next,
                next => {
                    return Step {
                        fire: Vec::new(),
                        missed,
                        next,
                        follows: just_before(free_at),
                    };
                }
            }
        }
        let (mut fire, floor) = self.chosen(series, &first);
        if self.terms.overlap == Overlap::Skip && fire.len() > 1 {
            let newest = fire.split_off(fire.len() - 1);
            missed.extend(fire.iter().map(|fire| Missed {
                from: fire.at,
                until: None,
                covers: Some(1),
                status: OccurrenceStatus::Skipped,
                reason: format!("overlaps with {}", newest[0].at),
            }));
            fire = newest;
        }
        let follows = fire
            .last()
            .map_or_else(|| self.last_due(series, &first, floor), |fire| fire.at);
        let next = series.next_after(follows).map(Upcoming::from);
        let until = fire.first().or(next.as_ref()).map_or(self.now, |fire| fire.at);
        // What the overlap policy has taken out stands between; it is on record already.
        let until = missed
            .iter()
            .map(|missed| missed.from)
            .filter(|from| *from >= first.at)
            .fold(until, Timestamp::min);
        missed.extend(self.missed(series, first.at, until, floor, fire.last()));
        Step {
            fire,
            missed,
            next,
            follows,
        }
    }

    /// What fires now, and how far back the policy looks.
    fn chosen(&self, series: &Series, first: &Upcoming) -> (Vec<Upcoming>, Timestamp) {
        let window = self.before(self.terms.window);
        if !self.is_missed(first.at) {
            let due = self.from(series, first, Timestamp::MIN).take(AT_ONCE);
            return (due.collect(), window);
        }
        match self.terms.misfire {
            Misfire::Coalesce => (self.newest(series, first, window, 1), window),
            Misfire::CatchUp(many) => (
                self.newest(series, first, window, usize::try_from(many).unwrap_or(AT_ONCE)),
                window,
            ),
            Misfire::Skip => {
                let grace = self.before(self.terms.grace);
                (self.newest(series, first, grace, AT_ONCE), grace)
            }
        }
    }

    /// What is due, from `first` or from after `floor`, whichever is later.
    fn from<'a>(
        &'a self,
        series: &'a Series,
        first: &'a Upcoming,
        floor: Timestamp,
    ) -> impl Iterator<Item = Upcoming> + 'a {
        let head = (first.at > floor).then(|| first.clone());
        head.into_iter()
            .chain(series.fires(first.at.max(floor)).map(Upcoming::from))
            .take_while(|fire| self.is_due(fire.at))
            .take(LOOKED_AT)
    }

    /// The newest of what is due after `floor`, at most `many`, in order. Looks back in growing steps, so that a dense
    /// series costs no more than a sparse one.
    fn newest(&self, series: &Series, first: &Upcoming, floor: Timestamp, many: usize) -> Vec<Upcoming> {
        let mut back = Duration::from_secs(1);
        loop {
            let from = self.before(back);
            let reached = from <= floor || from < first.at;
            let mut newest = VecDeque::new();
            for fire in self.from(series, first, from.max(floor)) {
                if newest.len() == many {
                    newest.pop_front();
                }
                newest.push_back(fire);
            }
            if reached || newest.len() == many {
                return newest.into();
            }
            back *= 2;
        }
    }

    /// With nothing to fire: the last instant that is over.
    fn last_due(&self, series: &Series, first: &Upcoming, floor: Timestamp) -> Timestamp {
        let newest = self.newest(series, first, floor, 1);
        newest.last().map_or(first.at.max(floor), |fire| fire.at)
    }

    fn missed(
        &self,
        series: &Series,
        first: Timestamp,
        until: Timestamp,
        floor: Timestamp,
        into: Option<&Upcoming>,
    ) -> Vec<Missed> {
        if first >= until {
            return Vec::new();
        }
        if self.terms.misfire == Misfire::Skip {
            return row(series, first, until, OccurrenceStatus::Skipped, &self.too_late());
        }
        let mut missed = Vec::new();
        let mut from = Some(first);
        if first <= floor {
            let reason = format!("missed by more than the window of {}", words(self.terms.window));
            let end = series.next_after(floor).map(|fire| fire.at);
            missed.extend(row(
                series,
                first,
                end.unwrap_or(until).min(until),
                OccurrenceStatus::Skipped,
                &reason,
            ));
            from = end;
        }
        let Some(from) = from.filter(|from| *from < until) else {
            return missed;
        };
        let (status, reason) = match (self.terms.misfire, into) {
            (Misfire::CatchUp(many), _) => (
                OccurrenceStatus::Skipped,
                format!("only the newest {many} are caught up with"),
            ),
            (_, Some(into)) => (OccurrenceStatus::Coalesced, format!("coalesced into {}", into.at)),
            (_, None) => (OccurrenceStatus::Skipped, self.too_late()),
        };
        missed.extend(row(series, from, until, status, &reason));
        missed
    }
}

/// The occurrences from `first` (which is one) up to, not with, `until`: one by one, or as one line.
pub(crate) fn row(
    series: &Series,
    first: Timestamp,
    until: Timestamp,
    status: OccurrenceStatus,
    reason: &str,
) -> Vec<Missed> {
    let mut fires = std::iter::once(first)
        .chain(series.fires(first).map(|fire| fire.at))
        .take_while(|at| *at < until);
    let few: Vec<Timestamp> = fires.by_ref().take(ONE_BY_ONE + 1).collect();
    let missed = |from, until, covers| Missed {
        from,
        until,
        covers,
        status,
        reason: reason.to_owned(),
    };
    if few.len() <= ONE_BY_ONE {
        return few.into_iter().map(|at| missed(at, None, Some(1))).collect();
    }
    let counted = few.len() + fires.take(COUNTED).count();
    let covers = (counted < COUNTED).then_some(counted as u64);
    vec![missed(first, Some(until), covers)]
}

fn just_before(at: Timestamp) -> Timestamp {
    at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

fn words(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds > 0 && seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds > 0 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        _ => format!("{} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
#[path = "late_tests.rs"]
mod tests;
