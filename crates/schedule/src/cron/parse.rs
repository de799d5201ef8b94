//! From the text of an expression to what it means: how many fields there are, nicknames, and whether it can ever fire.

use super::field::{HOUR, MINUTE, MONTH, SECOND, days_of_month, days_of_week};
use super::word::Word;
use super::{ParseError, Rule, every};
use crate::calendar::{Calendar, Days};
use crate::describe;
use crate::values::Values;

/// No sensible expression is longer.
const LONGEST: usize = 1_000;

const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const FIELDS: &str =
    "five fields (minute, hour, day of the month, month, weekday), or six with the second before them";

/// Reads an expression.
pub(super) fn rule(text: &str) -> Result<Rule, ParseError> {
    if text.len() > LONGEST {
        let message = format!("the expression has {} bytes, more than {LONGEST}", text.len());
        return Err(ParseError::new(LONGEST..text.len(), message));
    }
    let words = Word::whole(text).fields();
    match words[..] {
        [] => {
            let message = format!("the expression is empty: write {FIELDS}, or a nickname such as @daily");
            Err(ParseError::new(0..text.len(), message))
        }
        [first, ref rest @ ..] if first.text.starts_with('@') => nickname(first, rest),
        [first, ..] if first.text.contains("TZ=") => {
            Err(first.wrong("the zone is not part of the expression: give it beside it"))
        }
        [minute, hour, day, month, weekday] => fields(None, [minute, hour, day, month, weekday]),
        [second, minute, hour, day, month, weekday] => {
            fields(Some(second), [minute, hour, day, month, weekday])
        }
        [.., last] if words.len() > 6 => {
            let message = format!("there are {} fields, too many: write {FIELDS}", words.len());
            Err(ParseError::new(words[6].at().start..last.at().end, message))
        }
        [first, ..] => {
            let message = format!("there are too few fields, {}: write {FIELDS}", words.len());
            let end = words.last().unwrap_or(&first).at().end;
            Err(ParseError::new(first.at().start..end, message))
        }
    }
}

fn nickname(name: Word<'_>, rest: &[Word<'_>]) -> Result<Rule, ParseError> {
    if name.text.eq_ignore_ascii_case("@every") {
        return every::seconds(name, rest).map(Rule::Every);
    }
    let found = NICKNAMES
        .iter()
        .find(|(nickname, _)| nickname.eq_ignore_ascii_case(name.text));
    match (found, rest) {
        (Some((_, meaning)), []) => rule(meaning),
        (Some(_), [first, .., last]) => Err(ParseError::new(
            first.at().start..last.at().end,
            "nothing follows a nickname",
        )),
        (Some(_), [more]) => Err(more.wrong("nothing follows a nickname")),
        (None, _) => {
            let known: Vec<&str> = NICKNAMES.iter().map(|(nickname, _)| *nickname).collect();
            Err(name.wrong(format!(
                "{:?} is not a nickname: there are {} and @every",
                name.text,
                known.join(", ")
            )))
        }
    }
}

fn fields(
    second: Option<Word<'_>>,
    [minute, hour, day, month, weekday]: [Word<'_>; 5],
) -> Result<Rule, ParseError> {
    let seconds = match second {
        Some(second) => SECOND.read(second)?.values,
        None => Values::span(0, 0),
    };
    let (minutes, hours) = (MINUTE.read(minute)?, HOUR.read(hour)?);
    let days_of_month = days_of_month(day)?;
    let months = MONTH.read(month)?.values;
    let days = Days::new(days_of_month, days_of_week(weekday)?);
    let calendar = Calendar {
        seconds,
        minutes: minutes.values,
        hours: hours.values,
        months,
        days,
        wildcard: minutes.is_wildcard() || hours.is_wildcard(),
        names_hours: !hours.is_wildcard(),
    };
    if calendar.ever_comes() {
        return Ok(Rule::Calendar(Box::new(calendar)));
    }
    let last = if calendar.days.of_week.is_every_day() {
        month
    } else {
        weekday
    };
    let message = format!(
        "this never fires: there is no {}",
        describe::day_that_never_comes(&calendar)
    );
    Err(ParseError::new(day.at().start..last.at().end, message))
}
