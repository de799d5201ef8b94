//! The rules for moving clocks, told again in the plainest way: look at the clock minute by minute, remember what it has shown
//! or jumped over, and decide for each minute by itself. Knows the zone data, and nothing of the product but the names of the
//! policies.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stationmaster_schedule::DstPolicy;

use crate::cases::Case;

const HOUR: i64 = 3_600;
/// Moves that are further apart than this cannot meet.
const APART: i64 = 4 * 24 * HOUR;

/// A clock is put forward or back.
pub(crate) struct Moved {
    /// When.
    pub(crate) at: i64,
    /// What it would have shown then, and what it shows.
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl Moved {
    /// All moves from 1970 to 2040. Zones also change their names or laws without touching the clock; that is no move.
    pub(crate) fn all(zone: &TimeZone) -> impl Iterator<Item = Self> {
        let from: Timestamp = "1970-01-01T00:00:00Z".parse().unwrap();
        let to: Timestamp = "2041-01-01T00:00:00Z".parse().unwrap();
        let transitions = zone.following(from).map(|transition| transition.timestamp());
        transitions.take_while(move |at| *at < to).filter_map(|at| {
            let at = at.as_second();
            let moved = Self {
                at,
                before: at + offset(zone, at - 1),
                after: at + offset(zone, at),
            };
            (moved.before != moved.after).then_some(moved)
        })
    }

    fn length(&self) -> i64 {
        (self.after - self.before).abs()
    }
}

fn offset(zone: &TimeZone, at: i64) -> i64 {
    zone.to_offset(Timestamp::from_second(at).unwrap())
        .seconds()
        .into()
}

/// What a clock shows around a move.
pub(crate) struct Clock {
    /// Instants, and what the clock shows.
    ticks: Vec<(i64, i64)>,
    /// From tick to tick: a minute, or a second where the offset is not in whole minutes.
    step: i64,
    /// The lowest local time on it.
    lowest: i64,
    /// How many local times there are from the lowest to the highest.
    length: usize,
    /// The instants to compare; the others are there for what comes before and after.
    pub(crate) core: Range<i64>,
}

impl Clock {
    pub(crate) fn around(zone: &TimeZone, moved: &Moved) -> Self {
        let margin = moved.length() + 4 * HOUR;
        let core = moved.at - margin..moved.at + margin;
        let near = zone
            .following(Timestamp::from_second(moved.at - APART).unwrap())
            .map(|transition| transition.timestamp().as_second())
            .take_while(|at| *at < moved.at + APART);
        let near: Vec<i64> = near.collect();
        let seen = if near.len() > 1 {
            core.start - APART..core.end + APART
        } else {
            core.clone()
        };
        let whole = |seconds: i64| seconds % 60 == 0;
        let in_minutes = near
            .iter()
            .all(|at| whole(*at) && whole(offset(zone, *at)) && whole(offset(zone, at - 1)));
        let step = if in_minutes { 60 } else { 1 };
        let instants = (seen.start..seen.end).step_by(usize::try_from(step).unwrap());
        let ticks: Vec<(i64, i64)> = instants.map(|at| (at, at + offset(zone, at))).collect();
        let lowest = ticks.iter().map(|(_, local)| *local).min().unwrap();
        let highest = ticks.iter().map(|(_, local)| *local).max().unwrap();
        Self {
            step,
            lowest,
            length: usize::try_from((highest - lowest) / step).unwrap() + 1,
            ticks,
            core,
        }
    }

    fn place(&self, local: i64) -> usize {
        usize::try_from((local - self.lowest) / self.step).unwrap()
    }
}

/// What a move did to a fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    None,
    Moved(u32),
    Skipped(u32),
    Once,
    First,
    Second,
}

/// The fires of a case, found by looking at every tick.
pub(crate) fn scan(clock: &Clock, case: &Case, dst: DstPolicy) -> Vec<(i64, Effect)> {
    let mut to_come = vec![0_u8; clock.length];
    for (_, local) in &clock.ticks {
        to_come[clock.place(*local)] += 1;
    }
    let mut shown = vec![false; clock.length];
    let mut jumped_over = vec![false; clock.length];
    let mut fires = Vec::new();
    let mut skipped = 0;
    let mut previous: Option<i64> = None;
    for &(at, local) in &clock.ticks {
        let mut missing = Vec::new();
        let mut over = previous.map_or(local, |previous| previous + clock.step);
        while over < local {
            let place = clock.place(over);
            if !shown[place] && !jumped_over[place] && case.matches(over) {
                missing.push(over);
            }
            jumped_over[place] = true;
            over += clock.step;
        }
        previous = Some(local);

        let place = clock.place(local);
        let again = shown[place] || jumped_over[place];
        let was_shown = shown[place];
        shown[place] = true;
        to_come[place] -= 1;
        let comes_again = to_come[place] > 0;

        // An hour that is named and has lost all it had is made up for, like a fixed time.
        let is_moved = |one: &i64| {
            let hour_is_lost =
                || case.names_hours && case.matches_of_hour(*one).all(|other| missing.contains(&other));
            dst != DstPolicy::Skip && (!case.wildcard || hour_is_lost())
        };
        let moved = u32::try_from(missing.iter().filter(|one| is_moved(one)).count()).unwrap();
        let left_out = u32::try_from(missing.len()).unwrap() - moved;
        let fires_here = case.matches(local) && (case.wildcard || dst == DstPolicy::Both || !again);
        if !clock.core.contains(&at) {
            continue;
        }
        skipped += left_out;
        if moved == 0 && !fires_here {
            continue;
        }
        let effect = if moved > 0 {
            Effect::Moved(moved)
        } else if skipped > 0 {
            Effect::Skipped(std::mem::take(&mut skipped))
        } else if was_shown {
            Effect::Second
        } else if !comes_again {
            Effect::None
        } else if case.wildcard || dst == DstPolicy::Both {
            Effect::First
        } else {
            Effect::Once
        };
        fires.push((at, effect));
    }
    fires
}
