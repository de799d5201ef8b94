//! One field of an expression: lists, ranges, steps and names become a set of values. What only days know (`L`, `W`, `#`) is
//! read here too and becomes rules, because its meaning differs from month to month.

use super::ParseError;
use super::word::Word;
use crate::calendar::{Month, Weekdays};
use crate::values::Values;

/// What a field may hold.
#[derive(Debug)]
pub(super) struct Field {
    /// In a sentence.
    name: &'static str,
    first: u8,
    last: u8,
    /// Names of the values, from the first on.
    names: &'static [&'static str],
}

pub(super) const SECOND: Field = Field::of("second", 0, 59);
pub(super) const MINUTE: Field = Field::of("minute", 0, 59);
pub(super) const HOUR: Field = Field::of("hour", 0, 23);
const DAY: Field = Field::of("day of the month", 1, 31);
pub(super) const MONTH: Field = Field {
    names: &[
        "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
    ],
    ..Field::of("month", 1, 12)
};
const WEEKDAY: Field = Field {
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
    ..Field::of("weekday", 0, 6)
};

/// The values of a field, and how they were told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) values: Values,
    /// By `*` or `?`, with or without a step.
    pub(super) star: bool,
    /// By a step without an end, such as `5/15`.
    open: bool,
}

impl Told {
    /// Left to the clock: by a star, or by a step without an end, which is a star that begins later.
    pub(super) fn is_wildcard(&self) -> bool {
        self.star || self.open
    }
}

impl Field {
    const fn of(name: &'static str, first: u8, last: u8) -> Self {
        Self {
            name,
            first,
            last,
            names: &[],
        }
    }

    /// Reads a whole field.
    pub(super) fn read(&self, field: Word<'_>) -> Result<Told, ParseError> {
        let mut told = Told::default();
        for part in field.split(b',') {
            self.read_part(part, &mut told)?;
        }
        Ok(told)
    }

    /// Reads a value, a range, a star, or one of them with a step.
    fn read_part(&self, part: Word<'_>, told: &mut Told) -> Result<(), ParseError> {
        let (base, step) = match part.split_once(b'/') {
            Some((base, step)) => (base, Some(self.step(step)?)),
            None => (part, None),
        };
        let every = usize::from(step.unwrap_or(1));
        if base.text == "*" || (base.text == "?" && step.is_none() && self.is_day()) {
            told.star = true;
            self.add(self.first..=self.last, every, told);
        } else if let Some((from, to)) = base.split_once(b'-') {
            let (from, to) = (self.value(from)?, self.value(to)?);
            self.add_range(from, to, every, told);
        } else {
            let value = self.value(base)? % self.modulus();
            told.open |= step.is_some();
            let last = if step.is_some() { self.last } else { value };
            self.add(value..=last, every, told);
        }
        Ok(())
    }

    /// A range whose end lies before its beginning goes on from the first value: `22-2`, `FRI-MON`.
    fn add_range(&self, from: u8, to: u8, every: usize, told: &mut Told) {
        if from <= to {
            self.add(from..=to, every, told);
        } else {
            self.add((from..=self.last).chain(self.first..=to), every, told);
        }
    }

    fn add(&self, values: impl Iterator<Item = u8>, every: usize, told: &mut Told) {
        for value in values.step_by(every) {
            told.values.insert(value % self.modulus());
        }
    }

    fn is_day(&self) -> bool {
        self.name == DAY.name || self.is_weekday()
    }

    fn is_weekday(&self) -> bool {
        self.name == WEEKDAY.name
    }

    /// Sunday is 0 and 7.
    fn modulus(&self) -> u8 {
        if self.is_weekday() { 7 } else { u8::MAX }
    }

    /// A number or a name.
    fn value(&self, word: Word<'_>) -> Result<u8, ParseError> {
        let highest = if self.is_weekday() { 7 } else { self.last };
        if word.text.is_empty() {
            return Err(word.wrong(format!("a {} is missing here", self.name)));
        }
        if word.text.bytes().all(|byte| byte.is_ascii_digit()) {
            let value = word.text.parse().ok();
            let value = value.filter(|value| (self.first..=highest).contains(value));
            return value.ok_or_else(|| {
                word.wrong(format!(
                    "the {} goes from {} to {highest}, not {}",
                    self.name, self.first, word.text
                ))
            });
        }
        let value = (self.first..)
            .zip(self.names)
            .find(|(_, name)| name.eq_ignore_ascii_case(word.text));
        value.map(|(value, _)| value).ok_or_else(|| {
            let names = match self.names {
                [first, .., last] => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            let (name, first) = (self.name, self.first);
            word.wrong(format!(
                "{:?} is not a {name}: write {first} to {highest}{names}",
                word.text
            ))
        })
    }

    fn step(&self, word: Word<'_>) -> Result<u8, ParseError> {
        let size = self.last - self.first + 1;
        let number = digits(word)
            .ok_or_else(|| word.wrong(format!("{:?} is not a step: write a number from 1", word.text)))?;
        match u8::try_from(number).ok().filter(|step| *step <= size) {
            Some(0) => Err(word.wrong("a step of 0 never moves on: write a number from 1")),
            Some(step) => Ok(step),
            None => Err(word.wrong(format!(
                "a step of {} is longer than the field, whose {size} values begin again each time; a plain period is \
                 written as in `@every 90m`",
                word.text
            ))),
        }
    }
}

/// A number without a sign; beyond what fits, the largest that does.
pub(super) fn digits(word: Word<'_>) -> Option<u32> {
    let is_number = !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.text.parse().unwrap_or(u32::MAX))
}

/// Reads the days of the month.
pub(super) fn days_of_month(field: Word<'_>) -> Result<Month, ParseError> {
    let (mut month, mut told) = (Month::default(), Told::default());
    for part in field.split(b',') {
        if let Some(rest) = part.after_letter('L') {
            let (rest, nearest) = match rest.before_letter('W') {
                Some(rest) => (rest, true),
                None => (rest, false),
            };
            let before = days_before_the_last(rest)?;
            let last = if nearest {
                &mut month.last_weekday
            } else {
                &mut month.last
            };
            last.insert(before);
        } else if let Some(day) = part.before_letter('W') {
            if day.text.is_empty() {
                return Err(part.wrong("`W` needs a day before it, as in `15W`"));
            }
            month.nearest_weekday.insert(DAY.value(day)?);
        } else {
            DAY.read_part(part, &mut told)?;
        }
    }
    month.star = told.star;
    month.days = told.values;
    Ok(month)
}

/// What follows the `L`: nothing, or `-3`.
fn days_before_the_last(rest: Word<'_>) -> Result<u8, ParseError> {
    if rest.text.is_empty() {
        return Ok(0);
    }
    let before = rest.after_letter('-').and_then(digits);
    let before = before.and_then(|before| u8::try_from(before).ok());
    before.filter(|before| (1..=30).contains(before)).ok_or_else(|| {
        rest.wrong("after `L` comes nothing, `W`, or how many days earlier, from `-1` to `-30`")
    })
}

/// Reads the days of the week.
pub(super) fn days_of_week(field: Word<'_>) -> Result<Weekdays, ParseError> {
    let (mut weekdays, mut told) = (Weekdays::default(), Told::default());
    for part in field.split(b',') {
        if let Some((day, nth)) = part.split_once(b'#') {
            let day = WEEKDAY.value(day)? % 7;
            let number = digits(nth).filter(|number| (1..=5).contains(number));
            let number = number.ok_or_else(|| {
                nth.wrong("after `#` comes which one of the month, from 1 to 5, as in `MON#2`")
            })?;
            weekdays.nth[number as usize - 1].insert(day);
        } else if let Some(day) = part.before_letter('L') {
            if day.text.is_empty() {
                return Err(
                    part.wrong("`L` needs a weekday before it here: `5L` is the last Friday of the month")
                );
            }
            weekdays.last.insert(WEEKDAY.value(day)? % 7);
        } else {
            WEEKDAY.read_part(part, &mut told)?;
        }
    }
    weekdays.star = told.star;
    weekdays.days = told.values;
    Ok(weekdays)
}
