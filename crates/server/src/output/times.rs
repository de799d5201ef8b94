//! Times as they are shown: how long ago, or exactly.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Times, looks};

/// How long ago, or how long until, in as little room as possible: `2h5m`.
pub(crate) fn age(at: Timestamp) -> String {
    let passed = Timestamp::now().duration_since(at);
    let length = length(passed.unsigned_abs());
    if passed.is_negative() {
        format!("in {length}")
    } else {
        length
    }
}

/// A time for a table.
pub(crate) fn ago(at: Timestamp) -> String {
    match looks().times {
        Times::Relative => relative(at, Timestamp::now()),
        times => exact(at, times),
    }
}

/// The exact time, and for people at a terminal how far away it is.
pub(crate) fn moment(at: Timestamp) -> String {
    moment_at(at, Timestamp::now(), looks().times)
}

fn moment_at(at: Timestamp, now: Timestamp, times: Times) -> String {
    match times {
        Times::Relative => format!("{} ({})", exact(at, Times::Utc), relative(at, now)),
        times => exact(at, times),
    }
}

/// To the second: whoever needs more asks for JSON.
fn exact(at: Timestamp, times: Times) -> String {
    match times {
        Times::Local => at
            .to_zoned(TimeZone::system())
            .strftime("%Y-%m-%dT%H:%M:%S%:z")
            .to_string(),
        Times::Relative | Times::Utc => at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}

/// As people say it, in one unit.
fn relative(at: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(at);
    let seconds = passed.unsigned_abs().as_secs();
    let length = match seconds {
        0..100 => format!("{seconds} s"),
        100..6_000 => format!("{} min", seconds / 60),
        6_000..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    };
    if passed.is_negative() {
        format!("in {length}")
    } else {
        format!("{length} ago")
    }
}

/// In its two largest units.
fn length(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (large, small) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3_600 => ((60, "m"), (1, "s")),
        3_600..86_400 => ((3_600, "h"), (60, "m")),
        _ => ((86_400, "d"), (3_600, "h")),
    };
    match seconds % large.0 / small.0 {
        0 => format!("{}{}", seconds / large.0, large.1),
        rest => format!("{}{}{rest}{}", seconds / large.0, large.1, small.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_people_say_them_and_exactly_where_they_must_not_change() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        for (at, told) in [
            ("2026-03-01T11:59:18Z", "42 s ago"),
            ("2026-03-01T11:56:30Z", "3 min ago"),
            ("2026-03-01T10:00:00Z", "2 h ago"),
            ("2026-02-27T09:30:00Z", "2 days ago"),
            ("2026-03-01T14:00:00Z", "in 2 h"),
        ] {
            let time = at.parse().unwrap();
            assert_eq!(relative(time, now), told);
            assert_eq!(moment_at(time, now, Times::Relative), format!("{at} ({told})"));
            assert_eq!(moment_at(time, now, Times::Utc), at);
        }
        let local = exact(now, Times::Local);
        assert_eq!(local.parse::<Timestamp>().unwrap(), now, "{local}");
    }

    #[test]
    fn lengths_are_told_in_two_units() {
        for (seconds, told) in [(42, "42s"), (3_599, "59m59s"), (172_800, "2d"), (181_800, "2d2h")] {
            assert_eq!(length(Duration::from_secs(seconds)), told);
        }
    }
}
