//! The instant of one local time, for alarms that fire once. The same rule as for a series: when the clock first reaches or
//! passes it.

use jiff::Timestamp;
use jiff::civil::DateTime;

use crate::clock::{Order, REACH, Stretch, local};
use crate::dst::{DstPolicy, Note};
use crate::series::Fire;
use crate::zone::Zone;

/// What becomes of a local time.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// It is this instant.
    At(Fire),
    /// The clock never shows it: it lies in a gap and the policy is to skip, or beyond the year 9999.
    Never {
        /// The local time that does not exist.
        wanted: DateTime,
    },
}

impl Resolved {
    /// The fire, when there is one.
    pub fn fire(self) -> Option<Fire> {
        match self {
            Self::At(fire) => Some(fire),
            Self::Never { .. } => None,
        }
    }
}

/// The instant of a local time. It fires once, so that `both` takes the first of two instants as `vixie` does.
pub fn resolve(civil: DateTime, zone: &Zone, dst: DstPolicy) -> Resolved {
    let never = Resolved::Never { wanted: civil };
    let Some(local) = local(civil) else {
        return never;
    };
    let mut stretch = Stretch::around(zone.time_zone(), local - REACH);
    while stretch.local_end() <= local
        && let Some(following) = stretch.following(zone.time_zone())
    {
        stretch = following;
    }
    if local < stretch.local_start() {
        return match (dst, Timestamp::from_second(stretch.start)) {
            (DstPolicy::Vixie | DstPolicy::Both, Ok(at)) => {
                let note = Note::MovedOutOfGap {
                    wanted: civil,
                    times: 1,
                };
                Resolved::At(Fire::new(at, zone, Some(note)))
            }
            _ => never,
        };
    }
    let seconds = local - stretch.offset;
    let note = (stretch.order(zone.time_zone(), seconds) == Order::First).then_some(Note::OnceOfTwo);
    // Counted from the second below, in every year.
    let nanoseconds = i128::from(seconds) * 1_000_000_000 + i128::from(civil.subsec_nanosecond());
    Timestamp::from_nanosecond(nanoseconds).map_or(never, |at| Resolved::At(Fire::new(at, zone, note)))
}
