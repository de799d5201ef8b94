//! The local times that an expression means: seconds, minutes, hours, months as sets, and days by rules that differ from
//! month to month. Knows nothing of zones; a local time is what a clock on the wall shows.

use jiff::civil::{Date, DateTime, Time, Weekday};

use crate::values::Values;

/// The local times that match.
#[derive(Debug, Clone)]
pub(crate) struct Calendar {
    pub(crate) seconds: Values,
    pub(crate) minutes: Values,
    pub(crate) hours: Values,
    pub(crate) months: Values,
    pub(crate) days: Days,
    /// The hour or the minute is left to the clock.
    pub(crate) wildcard: bool,
    /// The hour is not.
    pub(crate) names_hours: bool,
}

/// The days that match, for each shape of a month.
#[derive(Debug, Clone)]
pub(crate) struct Days {
    pub(crate) of_month: Month,
    pub(crate) of_week: Weekdays,
    /// By length (28 to 31) and by the weekday of the first.
    shapes: [[Values; 7]; 4],
}

/// Days counted within the month.
#[derive(Debug, Clone, Default)]
pub(crate) struct Month {
    /// Told by a star, perhaps with a step.
    pub(crate) star: bool,
    pub(crate) days: Values,
    /// So many days before the last.
    pub(crate) last: Values,
    /// The day from Monday to Friday nearest to this one, within the month.
    pub(crate) nearest_weekday: Values,
    /// The same of so many days before the last.
    pub(crate) last_weekday: Values,
}

/// Days counted within the week, Sunday being 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Weekdays {
    /// Told by a star, perhaps with a step.
    pub(crate) star: bool,
    pub(crate) days: Values,
    /// The first, second ... fifth of the month.
    pub(crate) nth: [Values; 5],
    /// The last of the month.
    pub(crate) last: Values,
}

/// What a month looks like: how many days it has, and the weekday of its first.
#[derive(Debug, Clone, Copy)]
struct Shape {
    length: u8,
    first: u8,
}

impl Shape {
    fn weekday(self, day: u8) -> u8 {
        (self.first + day - 1) % 7
    }

    fn all() -> impl Iterator<Item = Self> {
        (28..=31).flat_map(|length| (0..7).map(move |first| Self { length, first }))
    }

    /// The day from Monday to Friday that is nearest to a day; it does not leave the month. None when the month has no such day.
    fn nearest_weekday(self, day: u8) -> Option<u8> {
        if !(1..=self.length).contains(&day) {
            return None;
        }
        Some(match self.weekday(day) {
            6 if day > 1 => day - 1,
            6 => day + 2,
            0 if day < self.length => day + 1,
            0 => day - 2,
            _ => day,
        })
    }
}

impl Month {
    fn within(&self, shape: Shape) -> Values {
        let before_last = |before: u8| shape.length.checked_sub(before).filter(|day| *day >= 1);
        let plain = self.days.and(Values::span(1, shape.length));
        let last = self.last.iter().filter_map(before_last);
        let nearest = self
            .nearest_weekday
            .iter()
            .chain(self.last_weekday.iter().filter_map(before_last))
            .filter_map(|day| shape.nearest_weekday(day));
        plain.or(last.collect()).or(nearest.collect())
    }

    pub(crate) fn is_every_day(&self) -> bool {
        self.days == Values::span(1, 31)
    }
}

impl Weekdays {
    fn within(&self, shape: Shape) -> Values {
        let matches = |&day: &u8| {
            let weekday = shape.weekday(day);
            self.days.contains(weekday)
                || self.nth[usize::from((day - 1) / 7)].contains(weekday)
                || (day + 7 > shape.length && self.last.contains(weekday))
        };
        (1..=shape.length).filter(matches).collect()
    }

    pub(crate) fn is_every_day(&self) -> bool {
        self.days == Values::span(0, 6)
    }
}

impl Days {
    pub(crate) fn new(of_month: Month, of_week: Weekdays) -> Self {
        let mut days = Self {
            of_month,
            of_week,
            shapes: Default::default(),
        };
        for shape in Shape::all() {
            let (of_month, of_week) = (days.of_month.within(shape), days.of_week.within(shape));
            let both = if days.either() {
                of_month.or(of_week)
            } else {
                of_month.and(of_week)
            };
            days.shapes[usize::from(shape.length - 28)][usize::from(shape.first)] = both;
        }
        days
    }

    /// Two fields that both name days mean the days of either; a star in one leaves it to the other.
    pub(crate) fn either(&self) -> bool {
        !self.of_month.star && !self.of_week.star
    }

    fn within(&self, shape: Shape) -> Values {
        self.shapes[usize::from(shape.length - 28)][usize::from(shape.first)]
    }
}

impl Calendar {
    /// Whether some date of some year matches. Within 400 years, after which the calendar repeats itself, every month comes
    /// in every length that it can have, beginning on every weekday; so it is enough to look at these shapes.
    pub(crate) fn ever_comes(&self) -> bool {
        let comes = |shape: Shape| {
            let in_month = |month: u8| lengths(month).contains(&shape.length);
            self.months.iter().any(in_month) && !self.days.within(shape).is_empty()
        };
        Shape::all().any(comes)
    }

    /// The first match that is not before this time. None when there is none up to the end of the year 9999.
    pub(crate) fn next_from(&self, from: DateTime) -> Option<DateTime> {
        if let Some(date) = self.date_from(from.year(), from.month(), from.day())
            && date == from.date()
            && let Some(time) = self.time_from(from.time())
        {
            return Some(date.to_datetime(time));
        }
        let date = self.date_from(from.year(), from.month(), from.day() + 1)?;
        Some(date.to_datetime(self.time_from(Time::midnight())?))
    }

    /// The first date that matches, from a day on that may lie just behind the month's last.
    fn date_from(&self, mut year: i16, month: i8, day: i8) -> Option<Date> {
        // Dates of jiff count months and days with a sign, and never use it.
        let (mut month, mut day) = (month.unsigned_abs(), day.unsigned_abs());
        loop {
            if let Some(next) = self.months.first_from(month) {
                day = if next == month { day } else { 1 };
                month = next;
                let first = Date::new(year, next.cast_signed(), 1).ok()?;
                let shape = Shape {
                    length: first.days_in_month().unsigned_abs(),
                    first: sunday_zero(first.weekday()),
                };
                if let Some(day) = self.days.within(shape).first_from(day) {
                    return Date::new(year, month.cast_signed(), day.cast_signed()).ok();
                }
                month += 1;
            } else {
                year = year.checked_add(1)?;
                month = 1;
            }
            day = 1;
        }
    }

    /// The first time of a day that matches and is not before this one.
    fn time_from(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (
            from.hour().unsigned_abs(),
            from.minute().unsigned_abs(),
            from.second().unsigned_abs(),
        );
        let (first_minute, first_second) = (self.minutes.first_from(0)?, self.seconds.first_from(0)?);
        let found = if self.hours.contains(hour) {
            let second = self
                .seconds
                .first_from(second)
                .filter(|_| self.minutes.contains(minute));
            let this_minute = second.map(|second| (hour, minute, second));
            this_minute.or_else(|| Some((hour, self.minutes.first_from(minute + 1)?, first_second)))
        } else {
            None
        };
        let (hour, minute, second) =
            found.or_else(|| Some((self.hours.first_from(hour + 1)?, first_minute, first_second)))?;
        Time::new(hour.cast_signed(), minute.cast_signed(), second.cast_signed(), 0).ok()
    }
}

/// How long a month can be.
fn lengths(month: u8) -> &'static [u8] {
    match month {
        2 => &[28, 29],
        4 | 6 | 9 | 11 => &[30],
        _ => &[31],
    }
}

fn sunday_zero(weekday: Weekday) -> u8 {
    weekday.to_sunday_zero_offset().unsigned_abs()
}

#[cfg(test)]
mod tests;
