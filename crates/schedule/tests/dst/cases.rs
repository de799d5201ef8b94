//! Expressions that hit the local times which a move leaves out or repeats, each with its meaning told a second time, by
//! hand.

use crate::scan::Moved;

/// An expression and the minutes of a day that it means.
pub(crate) struct Case {
    pub(crate) text: String,
    minutes: [bool; 60],
    hours: [bool; 24],
    /// Month and day, when it is not every day.
    date: Option<(i8, i8)>,
    /// A star or an open step in the hour or the minute.
    pub(crate) wildcard: bool,
    /// Neither in the hour.
    pub(crate) names_hours: bool,
}

impl Case {
    fn new(
        text: String,
        minute: impl Fn(usize) -> bool,
        hour: impl Fn(usize) -> bool,
        wildcard: bool,
    ) -> Self {
        Self {
            minutes: std::array::from_fn(minute),
            hours: std::array::from_fn(hour),
            date: None,
            names_hours: !text.split(' ').nth(1).unwrap().contains('*'),
            text,
            wildcard,
        }
    }

    /// The local times that match within the hour of a local time.
    pub(crate) fn matches_of_hour(&self, local: i64) -> impl Iterator<Item = i64> + '_ {
        let hour = local - local.rem_euclid(3_600);
        (hour..hour + 3_600)
            .step_by(60)
            .filter(|local| self.matches(*local))
    }

    /// Whether a local time matches, in seconds of the local clock since 1970.
    pub(crate) fn matches(&self, local: i64) -> bool {
        let day = usize::try_from(local.rem_euclid(86_400)).unwrap();
        if day % 60 != 0 || !self.hours[day / 3_600] || !self.minutes[day / 60 % 60] {
            return false;
        }
        self.date.is_none_or(|date| date == date_of(local))
    }
}

fn date_of(local: i64) -> (i8, i8) {
    let date = jiff::Timestamp::from_second(local).unwrap();
    let date = jiff::tz::Offset::UTC.to_datetime(date);
    (date.month(), date.day())
}

/// The cases of a move: fixed, list, range, step, wildcard, at the edges and in the middle.
pub(crate) fn cases(moved: &Moved) -> Vec<Case> {
    let (low, high) = (moved.before.min(moved.after), moved.before.max(moved.after));
    let middle = i64::midpoint(low, high);
    let minute = |local: i64| usize::try_from(local.rem_euclid(3_600) / 60).unwrap();
    let hour = |local: i64| usize::try_from(local.rem_euclid(86_400) / 3_600).unwrap();
    let mut cases = Vec::new();
    for at in [low - 60, low, middle, high - 60, high] {
        let (m, h) = (minute(at), hour(at));
        cases.push(Case::new(format!("{m} {h} * * *"), |x| x == m, |x| x == h, false));
    }
    let (m, h, (month, day)) = (minute(middle), hour(middle), date_of(middle));
    let dated = Case::new(format!("{m} {h} {day} {month} *"), |x| x == m, |x| x == h, false);
    cases.push(Case {
        date: Some((month, day)),
        ..dated
    });
    let (first, last) = (hour(low), hour(high));
    // On a clock that moves by a whole day, the hours from the first to the last are one hour.
    let within = |x: usize| {
        if first <= last {
            (first..=last).contains(&x)
        } else {
            x >= first || x <= last
        }
    };
    let either = |x: usize| x == first || x == last;
    cases.extend([
        Case::new(
            format!("{m},0,30,45 {first},{last} * * *"),
            |x| x == m || [0, 30, 45].contains(&x),
            either,
            false,
        ),
        Case::new(
            format!("10-50 {first}-{last} * * *"),
            |x| (10..=50).contains(&x),
            within,
            false,
        ),
        Case::new(
            format!("0-59/15 {first} * * *"),
            |x| x % 15 == 0,
            |x| x == first,
            false,
        ),
        Case::new(format!("0 {first}-{last}/1 * * *"), |x| x == 0, within, false),
        Case::new(
            format!("*/20 {first} * * *"),
            |x| x % 20 == 0,
            |x| x == first,
            true,
        ),
        Case::new(format!("{m} */2 * * *"), |x| x == m, |x| x % 2 == 0, true),
        Case::new(
            format!("7/10 {h} * * *"),
            |x| x >= 7 && (x - 7) % 10 == 0,
            |x| x == h,
            true,
        ),
        Case::new(format!("{m} * * * *"), |x| x == m, |_| true, true),
        Case::new("* * * * *".to_owned(), |_| true, |_| true, true),
    ]);
    cases
}
