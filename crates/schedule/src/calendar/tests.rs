//! The dates that match, counted out on real calendars.

use jiff::civil::{DateTime, date};

use crate::Cron;
use crate::cron::Rule;

/// The next matches from a date on.
fn dates(text: &str, from: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(text).unwrap();
    let Rule::Calendar(calendar) = cron.rule() else {
        panic!("{text} has no calendar")
    };
    let mut from: Option<DateTime> = Some(from.parse().unwrap());
    let mut dates = Vec::new();
    while let Some(found) = from
        .filter(|_| dates.len() < count)
        .and_then(|from| calendar.next_from(from))
    {
        dates.push(found.strftime("%F %R").to_string());
        from = found.checked_add(jiff::Span::new().seconds(1)).ok();
    }
    dates
}

#[test]
fn the_days_at_the_end_of_the_month_are_found() {
    assert_eq!(
        dates("0 0 L * *", "2024-01-31T00:01", 3),
        ["2024-02-29 00:00", "2024-03-31 00:00", "2024-04-30 00:00"]
    );
    // February has no day 30 before its last.
    assert_eq!(
        dates("0 0 L-28 * *", "2025-02-01", 2),
        ["2025-03-03 00:00", "2025-04-02 00:00"]
    );
    // 31 August 2024 is a Saturday, 30 June a Sunday.
    assert_eq!(
        dates("0 0 LW 6,8 *", "2024-06-01", 2),
        ["2024-06-28 00:00", "2024-08-30 00:00"]
    );
}

#[test]
fn the_nearest_working_day_stays_within_the_month() {
    // 1 June 2024 is a Saturday, 1 September a Sunday, 15 June a Saturday, 30 June a Sunday.
    assert_eq!(
        dates("0 0 1W 6,9 *", "2024-06-01", 2),
        ["2024-06-03 00:00", "2024-09-02 00:00"]
    );
    assert_eq!(dates("0 0 15W 6 *", "2024-06-01", 1), ["2024-06-14 00:00"]);
    assert_eq!(dates("0 0 30W 6 *", "2024-06-01", 1), ["2024-06-28 00:00"]);
    // A month without a day 31 has none that is nearest to it.
    assert_eq!(dates("0 0 31W * *", "2024-06-01", 1), ["2024-07-31 00:00"]);
}

#[test]
fn weekdays_are_counted_within_the_month() {
    assert_eq!(
        dates("0 0 * * MON#2", "2024-06-01", 2),
        ["2024-06-10 00:00", "2024-07-08 00:00"]
    );
    assert_eq!(
        dates("0 0 * * 7L", "2024-06-01", 2),
        ["2024-06-30 00:00", "2024-07-28 00:00"]
    );
    assert_eq!(
        dates("0 0 * * 0L", "2024-06-01", 2),
        dates("0 0 * * SUNL", "2024-06-01", 2)
    );
    assert_eq!(
        dates("0 0 * * 6#5", "2024-06-01", 2),
        ["2024-06-29 00:00", "2024-08-31 00:00"]
    );
}

#[test]
fn two_restricted_days_mean_either_and_a_star_leaves_it_to_the_other() {
    assert_eq!(
        dates("0 0 13 * FRI", "2024-09-10", 3),
        ["2024-09-13 00:00", "2024-09-20 00:00", "2024-09-27 00:00"]
    );
    assert_eq!(
        dates("0 0 */13 * FRI", "2024-01-01", 2),
        ["2024-03-01 00:00", "2024-06-14 00:00"]
    );
}

#[test]
fn rare_dates_are_found_over_the_years() {
    assert_eq!(dates("0 0 29 2 *", "2097-01-01", 1), ["2104-02-29 00:00"]);
    // A 29 February on a Monday, which is then the fifth: every 28 years, but for 2100.
    assert_eq!(
        dates("0 0 * 2 1#5", "2024-03-01", 3),
        ["2044-02-29 00:00", "2072-02-29 00:00", "2112-02-29 00:00"]
    );
    assert_eq!(dates("0 0 1 1 *", "9999-01-01T00:00:01", 1), [""; 0]);
}

#[test]
fn ranges_wrap_and_steps_go_on_over_the_end() {
    assert_eq!(
        dates("0 22-2/2 * * *", "2024-01-01", 4),
        [
            "2024-01-01 00:00",
            "2024-01-01 02:00",
            "2024-01-01 22:00",
            "2024-01-02 00:00"
        ]
    );
    // 5 January 2024 is a Friday.
    let days = [
        "2024-01-05 00:00",
        "2024-01-06 00:00",
        "2024-01-07 00:00",
        "2024-01-08 00:00",
        "2024-01-12 00:00",
    ];
    assert_eq!(dates("0 0 * * FRI-MON", "2024-01-02", 5), days);
    assert_eq!(dates("0 0 * * 5-7,1", "2024-01-02", 5), days);
    assert_eq!(dates("0 0 * * 7-1,5-6", "2024-01-02", 5), days);
}

#[test]
fn every_match_is_found_in_order_and_nothing_else() {
    let cron = Cron::parse("7,20 */5 3-20/4 1-9,L 1,6 TUE").unwrap();
    let Rule::Calendar(calendar) = cron.rule() else {
        panic!()
    };
    let mut next = date(2024, 1, 1).at(0, 0, 0, 0);
    let matches = |at: DateTime| {
        let day = at.day() <= 9
            || at.date() == at.date().last_of_month()
            || at.weekday() == jiff::civil::Weekday::Tuesday;
        [7, 20].contains(&at.second())
            && at.minute() % 5 == 0
            && [3, 7, 11, 15, 19].contains(&at.hour())
            && day
            && [1, 6].contains(&at.month())
    };
    let mut expected = next;
    while expected.month() < 3 {
        if matches(expected) {
            next = calendar.next_from(next).unwrap();
            assert_eq!(next, expected);
            next = next.checked_add(jiff::Span::new().seconds(1)).unwrap();
        }
        expected = expected.checked_add(jiff::Span::new().seconds(1)).unwrap();
    }
}
