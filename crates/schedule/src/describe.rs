//! Expressions in words. Made from what an expression means and not from how it was written, so that the words cannot say
//! something else than what will happen.

use std::fmt::Write as _;

use crate::calendar::{Calendar, Days, Month, Weekdays};
use crate::values::Values;

/// So many times of a day are told one by one.
const FEW: usize = 6;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// An expression with fields.
pub(crate) fn calendar(calendar: &Calendar) -> String {
    let mut words = match times(calendar) {
        Some(times) => {
            let days = days(&calendar.days).unwrap_or_else(|| "every day".to_owned());
            format!("at {times} {days}")
        }
        None => match days(&calendar.days) {
            Some(days) => format!("{} {days}", rhythm(calendar)),
            None => rhythm(calendar),
        },
    };
    if calendar.months.len() < 12 {
        // Writing to a string cannot fail.
        let _ = write!(words, " in {}", months(calendar.months));
    }
    capital(&words)
}

/// A plain period.
pub(crate) fn every(seconds: i64) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (length, unit) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            parts.push(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }));
        }
    }
    format!("Every {}", joined(&parts, "and"))
}

/// The days that an expression which never fires asks for.
pub(crate) fn day_that_never_comes(calendar: &Calendar) -> String {
    let days = days(&calendar.days).unwrap_or_default();
    let days = days.trim_start_matches("on ").trim_start_matches("the ");
    format!("{days} in {}", months(calendar.months))
}

/// The times of a day, when they are few.
fn times(calendar: &Calendar) -> Option<String> {
    let Calendar {
        seconds,
        minutes,
        hours,
        ..
    } = calendar;
    if seconds.len() * minutes.len() * hours.len() > FEW {
        return None;
    }
    let mut times = Vec::new();
    for hour in hours.iter() {
        for minute in minutes.iter() {
            for second in seconds.iter() {
                times.push(if on_the_minute(*seconds) {
                    format!("{hour:02}:{minute:02}")
                } else {
                    format!("{hour:02}:{minute:02}:{second:02}")
                });
            }
        }
    }
    Some(joined(&times, "and"))
}

fn on_the_minute(seconds: Values) -> bool {
    seconds == Values::span(0, 0)
}

/// Seconds, minutes and hours that are too many to tell one by one.
fn rhythm(calendar: &Calendar) -> String {
    let every_minute = calendar.minutes == Values::span(0, 59);
    let mut words = if on_the_minute(calendar.seconds) {
        unit(calendar.minutes, "minute")
    } else if !every_minute {
        let seconds = unit(calendar.seconds, "second");
        format!("{seconds} of {}", numbers("minute", calendar.minutes))
    } else if regular(calendar.seconds).is_some() {
        unit(calendar.seconds, "second")
    } else {
        format!("{} of every minute", unit(calendar.seconds, "second"))
    };
    let minutes_by_number = !on_the_minute(calendar.seconds) || regular(calendar.minutes).is_none();
    if calendar.hours.len() < 24 {
        let hours = spans(calendar.hours, |hour| format!("{hour:02}"));
        let plural = if calendar.hours.len() == 1 { "" } else { "s" };
        // Writing to a string cannot fail.
        let _ = write!(words, " during the hour{plural} {hours}");
    } else if !every_minute && minutes_by_number {
        words.push_str(" of every hour");
    }
    words
}

/// `every minute`, `every 15 minutes`, `at minute 5`, `at minutes 5, 20 and 35`.
fn unit(values: Values, name: &str) -> String {
    match regular(values) {
        Some(1) => format!("every {name}"),
        Some(step) => format!("every {step} {name}s"),
        None => format!("at {}", numbers(name, values)),
    }
}

/// The step of values that come evenly over the end of each minute or hour.
fn regular(values: Values) -> Option<usize> {
    let mut steps = [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30].into_iter();
    steps.find(|step| values == (0..60).step_by(*step).collect())
}

/// `minute 5`, `minutes 5, 20 and 35`.
fn numbers(name: &str, values: Values) -> String {
    let plural = if values.len() == 1 { "" } else { "s" };
    format!("{name}{plural} {}", spans(values, |value| value.to_string()))
}

fn months(months: Values) -> String {
    spans(months, |month| MONTHS[usize::from(month) - 1].to_owned())
}

/// The days. None when every day is meant.
fn days(days: &Days) -> Option<String> {
    let (every_of_month, every_of_week) = (days.of_month.is_every_day(), days.of_week.is_every_day());
    let of_month = || days_of_month(&days.of_month);
    let of_week = || days_of_week(&days.of_week);
    match (days.either(), every_of_month, every_of_week) {
        (true, false, false) => Some(format!("on {} or on {}", of_month(), of_week())),
        (true, ..) | (false, true, true) => None,
        (false, false, true) => Some(format!("on {}", of_month())),
        (false, true, false) => Some(format!("on {}", of_week())),
        (false, false, false) => Some(format!("on {} when that is {}", of_month(), of_week())),
    }
}

fn days_of_month(month: &Month) -> String {
    let mut parts = Vec::new();
    if !month.days.is_empty() {
        parts.push(numbers("day", month.days));
    }
    let before_last = |before: u8| match before {
        0 => "the last day".to_owned(),
        1 => "the day before the last".to_owned(),
        _ => format!("{before} days before the last"),
    };
    parts.extend(month.last.iter().map(before_last));
    for day in month.nearest_weekday.iter() {
        parts.push(format!("the working day nearest to day {day}"));
    }
    for before in month.last_weekday.iter() {
        parts.push(match before {
            0 => "the last working day".to_owned(),
            _ => format!("the working day nearest to {}", before_last(before)),
        });
    }
    format!("{} of the month", joined(&parts, "and"))
}

fn days_of_week(weekdays: &Weekdays) -> String {
    let name = |day: u8| WEEKDAYS[usize::from(day)].to_owned();
    let mut parts = Vec::new();
    if !weekdays.days.is_empty() {
        parts.push(week(weekdays.days));
    }
    let nth = ORDINALS
        .iter()
        .zip(weekdays.nth)
        .chain([(&"last", weekdays.last)]);
    for (ordinal, days) in nth {
        for day in days.iter() {
            parts.push(format!("the {ordinal} {} of the month", name(day)));
        }
    }
    joined(&parts, "and")
}

/// Days of the week, which for people begins with Monday.
fn week(days: Values) -> String {
    let from_monday = days.iter().map(|day| (day + 6) % 7).collect();
    spans(from_monday, |day| WEEKDAYS[usize::from(day + 1) % 7].to_owned())
}

/// Values one by one, and three or more in a row as a span.
fn spans(values: Values, name: impl Fn(u8) -> String) -> String {
    let mut parts = Vec::new();
    let mut from = 0;
    while let Some(first) = values.first_from(from) {
        let last = (first..63).find(|last| !values.contains(last + 1)).unwrap_or(63);
        match last - first {
            0 => parts.push(name(first)),
            1 => parts.extend([name(first), name(last)]),
            _ => parts.push(format!("{} to {}", name(first), name(last))),
        }
        from = last + 1;
    }
    joined(&parts, "and")
}

fn joined(parts: &[String], word: &str) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

fn capital(words: &str) -> String {
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
