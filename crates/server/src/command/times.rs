//! Times as people write them, read in one place: how far away, a day and an hour, or exactly.

use std::sync::LazyLock;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, ToSpan as _, Zoned};

use crate::config::duration;

const EXAMPLES: &str = "write it like 1h, 90m ago, in 2 hours, yesterday 14:00, tomorrow 9:00 Europe/Berlin, 2026-11-15, \
                        2026-11-15T14:00:00Z or now";

/// Which way a length of time goes that does not say it itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Toward {
    Past,
    Future,
}

/// A time to look back from: `1h` is an hour ago.
pub(super) fn past(text: &str) -> Result<Timestamp, String> {
    read(text, Toward::Past, now())
}

/// A time to come: `1h` is in an hour.
pub(super) fn future(text: &str) -> Result<Timestamp, String> {
    read(text, Toward::Future, now())
}

/// One moment for all times of a command: what is read again means the same.
fn now() -> &'static Zoned {
    static NOW: LazyLock<Zoned> = LazyLock::new(Zoned::now);
    &NOW
}

fn read(text: &str, toward: Toward, now: &Zoned) -> Result<Timestamp, String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = text.to_lowercase();
    if lower == "now" {
        return Ok(now.timestamp());
    }
    if let Ok(exact) = text.parse() {
        return Ok(exact);
    }
    let away = [
        (lower.strip_prefix("in "), Toward::Future),
        (lower.strip_suffix(" ago"), Toward::Past),
        (lower.strip_prefix('-'), Toward::Past),
        (lower.strip_prefix('+'), Toward::Future),
    ];
    let said = away
        .into_iter()
        .find_map(|(length, toward)| Some((length?, toward)));
    let (length, toward) = said.unwrap_or((&lower, toward));
    // 9:05:30 is an hour of the day.
    let length_of = |text: &str| {
        if text.contains(':') {
            Err(String::new())
        } else {
            duration(text)
        }
    };
    match length_of(length) {
        Ok(length) => {
            let at = match toward {
                Toward::Past => now.timestamp().checked_sub(length),
                Toward::Future => now.timestamp().checked_add(length),
            };
            at.map_err(|_| "that is too far away".to_owned())
        }
        Err(_) if said.is_some() => Err(format!("{length:?} is not a length of time: {EXAMPLES}")),
        Err(_) => on_a_day(&text, now),
    }
}

/// A day, an hour of it, or both, by the clocks of a zone or of this machine.
fn on_a_day(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let not_a_time = || format!("not a time: {EXAMPLES}");
    let mut words: Vec<&str> = text.split(' ').collect();
    let zone = match words.last().and_then(|word| zone_of(word)) {
        Some(zone) => {
            words.pop();
            zone.map_err(|unknown| format!("{unknown}: {EXAMPLES}"))?
        }
        None => now.time_zone().clone(),
    };
    let today = now.with_time_zone(zone.clone()).date();
    let shown = match words[..] {
        [one] => match (day(one, today), hour(one), one.parse::<DateTime>()) {
            (Some(day), ..) => return start_of(day, &zone),
            (_, Some(hour), _) => today.to_datetime(hour),
            (.., Ok(both)) if one.contains(['T', 't']) => both,
            _ => return Err(not_a_time()),
        },
        [date, time] => match (day(date, today), hour(time)) {
            (Some(day), Some(time)) => day.to_datetime(time),
            _ => return Err(not_a_time()),
        },
        _ => return Err(not_a_time()),
    };
    let name = zone.iana_name().unwrap_or("this zone").to_owned();
    let at = zone.to_ambiguous_timestamp(shown).unambiguous();
    at.map_err(|_| {
        format!("clocks in {name} show {shown} twice or never: write it with an offset, like {shown}+01:00")
    })
}

fn start_of(day: Date, zone: &TimeZone) -> Result<Timestamp, String> {
    let start = day.to_zoned(zone.clone());
    start
        .map(|start| start.timestamp())
        .map_err(|_| "that is too far away".to_owned())
}

fn day(word: &str, today: Date) -> Option<Date> {
    match word.to_lowercase().as_str() {
        "today" => Some(today),
        "yesterday" => today.checked_sub(1.day()).ok(),
        "tomorrow" => today.checked_add(1.day()).ok(),
        date if date.len() == "2026-11-15".len() => date.parse().ok(),
        _ => None,
    }
}

/// `9:00`, `14:30` or `14:30:15`.
fn hour(word: &str) -> Option<Time> {
    let parts: Vec<&str> = word.split(':').collect();
    let number = |part: &str, digits: std::ops::RangeInclusive<usize>| {
        let plain = digits.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| part.parse::<i8>().ok()).flatten()
    };
    let (hours, minutes, seconds) = match parts[..] {
        [hours, minutes] => (hours, minutes, "00"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return None,
    };
    Time::new(
        number(hours, 1..=2)?,
        number(minutes, 2..=2)?,
        number(seconds, 2..=2)?,
        0,
    )
    .ok()
}

/// Nothing when the word is no zone at all; an error when it can only be one, and there is none of that name.
fn zone_of(word: &str) -> Option<Result<TimeZone, String>> {
    if ["utc", "z", "gmt"].contains(&word.to_lowercase().as_str()) {
        return Some(Ok(TimeZone::UTC));
    }
    if let Some((hours, minutes)) = word
        .strip_prefix(['+', '-'])
        .and_then(|rest| rest.split_once(':'))
    {
        let sign = if word.starts_with('-') { -1 } else { 1 };
        let seconds = |hours: i32, minutes: i32| sign * (hours * 60 + minutes) * 60;
        let offset = Offset::from_seconds(seconds(hours.parse().ok()?, minutes.parse().ok()?)).ok()?;
        return Some(Ok(TimeZone::fixed(offset)));
    }
    if !word.contains('/') {
        return None;
    }
    let known = stationmaster_schedule::zone(word).map_err(|unknown| unknown.to_string());
    Some(known.and_then(|known| TimeZone::get(known.name()).map_err(|error| error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-15T12:00:00+01:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, back, ahead) in [
            ("1h", "2026-11-15T10:00:00Z", "2026-11-15T12:00:00Z"),
            ("90m", "2026-11-15T09:30:00Z", "2026-11-15T12:30:00Z"),
            ("2 days", "2026-11-13T11:00:00Z", "2026-11-17T11:00:00Z"),
        ] {
            let at = |toward| read(text, toward, &now()).unwrap().to_string();
            assert_eq!(
                (at(Toward::Past).as_str(), at(Toward::Future).as_str()),
                (back, ahead)
            );
        }
        for (text, at) in [
            ("now", "2026-11-15T11:00:00Z"),
            ("-15m", "2026-11-15T10:45:00Z"),
            ("+15m", "2026-11-15T11:15:00Z"),
            ("in 2 hours", "2026-11-15T13:00:00Z"),
            ("IN  2 hours", "2026-11-15T13:00:00Z"),
            ("1h 30m ago", "2026-11-15T09:30:00Z"),
            ("yesterday 14:00", "2026-11-14T13:00:00Z"),
            ("Yesterday", "2026-11-13T23:00:00Z"),
            ("today 9:05", "2026-11-15T08:05:00Z"),
            ("9:05:30", "2026-11-15T08:05:30Z"),
            ("tomorrow 9:00 Europe/Berlin", "2026-11-16T08:00:00Z"),
            ("tomorrow 9:00 America/New_York", "2026-11-16T14:00:00Z"),
            ("2026-11-15", "2026-11-14T23:00:00Z"),
            ("2026-11-15 UTC", "2026-11-15T00:00:00Z"),
            ("2026-11-15 14:00", "2026-11-15T13:00:00Z"),
            ("2026-11-15T14:00", "2026-11-15T13:00:00Z"),
            ("2026-11-15 14:00 Z", "2026-11-15T14:00:00Z"),
            ("2026-11-15 14:00 +05:30", "2026-11-15T08:30:00Z"),
            ("2026-07-15 14:00", "2026-07-15T12:00:00Z"),
            ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"),
            ("2026-01-31T09:30:00+01:00", "2026-01-31T08:30:00Z"),
        ] {
            for toward in [Toward::Past, Toward::Future] {
                let read = read(text, toward, &now());
                assert_eq!(read.map(|read| read.to_string()).as_deref(), Ok(at), "{text}");
            }
        }
    }

    #[test]
    fn what_cannot_be_a_time_is_met_with_examples() {
        for text in [
            "",
            "soon",
            "1",
            "yesterday 25:00",
            "14:0",
            "tomorrow noon",
            "2026-02-30",
            "in",
            "in a while",
            "-",
            "--",
            "tomorrow 9:00 Europe/Berlim",
            "2026-11-15 14:00 UTC extra",
            "20261115",
            "ago",
        ] {
            let refused = read(text, Toward::Past, &now()).unwrap_err();
            assert!(refused.contains("yesterday 14:00"), "{text}: {refused}");
        }
    }

    #[test]
    fn an_hour_that_clocks_show_twice_or_never_is_not_guessed() {
        for text in [
            "2026-03-29 02:30",
            "2026-10-25 02:30",
            "2026-10-25T02:30 Europe/Berlin",
        ] {
            let refused = read(text, Toward::Past, &now()).unwrap_err();
            assert!(
                refused.contains("Europe/Berlin") && refused.contains("offset"),
                "{refused}"
            );
        }
        assert!(read("2026-10-25T02:30:00+01:00", Toward::Past, &now()).is_ok());
    }
}
