//! What is read and what is refused, with the place.

use super::*;

#[track_caller]
fn refused(text: &str) -> (String, String) {
    let error = Cron::parse(text).expect_err(text);
    let place = text.get(error.at.clone()).expect("a place in the expression");
    (place.to_owned(), error.message)
}

#[test]
fn the_whole_dialect_is_read() {
    for text in [
        "* * * * *",
        "*/5 * * * *",
        "0,30 2 * * *",
        "0 9-17/2 * * MON-FRI",
        "  0\t0 1,15 * *  ",
        "30 0 0 1 1 *",
        "0 0 L * ?",
        "0 0 L-3 * *",
        "0 0 LW * *",
        "0 0 L-3W * *",
        "0 0 15W * *",
        "0 0 * * 5L",
        "0 0 * * 7L",
        "0 0 * * friL",
        "0 0 * * MON#2,3#1",
        "0 0 1 jan-mar,Dec *",
        "0 22-2 * * FRI-MON",
        "5/15 * * * *",
        "0 0 29 2 *",
        "0 0 ? * 0-7",
        "@YEARLY",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 90s",
        "@every 1h30m",
        "@every 2d 12h",
    ] {
        let cron = Cron::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(cron.text(), text);
        assert!(!cron.describe().is_empty());
    }
}

#[test]
fn a_complaint_points_at_what_is_wrong() {
    for (text, place, words) in [
        ("", "", "empty"),
        (" \t", " \t", "empty"),
        ("* * *", "* * *", "too few fields, 3"),
        ("0 0 1 1 * 2026", "2026", "weekday goes from 0 to 7, not 2026"),
        ("0 0 0 1 1 * 2026 x", "2026 x", "8 fields, too many"),
        ("60 * * * *", "60", "the minute goes from 0 to 59, not 60"),
        ("0 24 * * *", "24", "the hour goes from 0 to 23"),
        ("0 0 0 * *", "0", "the day of the month goes from 1 to 31"),
        ("0 0 1 13 *", "13", "the month goes from 1 to 12"),
        ("0 0 * * 8", "8", "the weekday goes from 0 to 7"),
        (
            "0 0 1 FOO *",
            "FOO",
            "\"FOO\" is not a month: write 1 to 12, or JAN to DEC",
        ),
        ("0 0 * * MONDAY", "MONDAY", "or SUN to SAT"),
        ("0,,5 * * * *", "", "a minute is missing here"),
        ("1- * * * *", "", "a minute is missing here"),
        ("-5 * * * *", "", "a minute is missing here"),
        ("*/0 * * * *", "0", "a step of 0"),
        ("*/90 * * * *", "90", "`@every 90m`"),
        ("*/x * * * *", "x", "\"x\" is not a step"),
        ("? * * * *", "?", "\"?\" is not a minute"),
        ("1-2-3 * * * *", "2-3", "\"2-3\" is not a minute"),
        ("0 0 W * *", "W", "`W` needs a day"),
        ("0 0 32W * *", "32", "the day of the month goes from 1 to 31"),
        ("0 0 L-31 * *", "-31", "from `-1` to `-30`"),
        ("0 0 L/2 * *", "/2", "after `L` comes nothing"),
        ("0 0 * * L", "L", "`5L` is the last Friday"),
        ("0 0 * * 1#6", "6", "from 1 to 5"),
        ("0 0 * * 1#", "", "from 1 to 5"),
        ("0 0 * * 9#1", "9", "the weekday goes from 0 to 7"),
        ("L * * * *", "L", "\"L\" is not a minute"),
        (
            "99999999999999999999 * * * *",
            "99999999999999999999",
            "the minute goes from",
        ),
        ("é * * * *", "é", "is not a minute"),
        ("0 0 * * éL", "é", "is not a weekday"),
        ("@reboot", "@reboot", "@daily, @midnight, @hourly and @every"),
        ("@daily 5 6", "5 6", "nothing follows a nickname"),
        ("@every", "", "as in `@every 1h30m`"),
        ("@every 5", "5", "is not a duration"),
        ("@every 1h5x", "5x", "is not a duration"),
        ("@every 1.5h", "1.", "is not a duration"),
        ("@every 0s", "0s", "no time at all"),
        ("@every 99999999w", "99999999w", "a hundred years"),
        ("CRON_TZ=UTC 0 0 * * *", "CRON_TZ=UTC", "the zone is not part"),
    ] {
        let (found, message) = refused(text);
        assert_eq!(found, place, "{text}: {message}");
        assert!(message.contains(words), "{text}: {message}");
    }
}

#[test]
fn what_can_never_fire_is_refused_with_the_days_it_asks_for() {
    for (text, place, words) in [
        (
            "0 0 30 2 *",
            "30 2",
            "there is no day 30 of the month in February",
        ),
        (
            "0 0 31 4,6,9,11 *",
            "31 4,6,9,11",
            "no day 31 of the month in April, June, September and November",
        ),
        (
            "0 0 L-30 4 *",
            "L-30 4",
            "no 30 days before the last of the month in April",
        ),
        (
            "0 0 31W FEB ?",
            "31W FEB",
            "no working day nearest to day 31 of the month in February",
        ),
        ("0 0 */31 * 1#5", "*/31 * 1#5", "when that is the fifth Monday"),
        ("0 0 LW * */7", "LW * */7", "when that is Sunday"),
    ] {
        let (found, message) = refused(text);
        assert_eq!(found, place, "{text}: {message}");
        assert!(
            message.contains("never fires") && message.contains(words),
            "{text}: {message}"
        );
    }
    for rare in [
        "0 0 29 2 *",
        "0 0 29 2 */7",
        "0 0 * 2 1#5",
        "0 0 L-28 2 *",
        "0 0 30 2 1",
        "0 0 30,1 2 *",
    ] {
        assert!(Cron::parse(rare).is_ok(), "{rare}");
    }
}

#[test]
fn carets_stand_under_the_place() {
    let pointed = |text: &str| Cron::parse(text).unwrap_err().pointed(text);
    assert_eq!(pointed("0 0 30 2 *"), "0 0 30 2 *\n    ^^^^");
    assert_eq!(pointed("é 0 30 2 *"), "é 0 30 2 *\n^");
    assert_eq!(pointed("0\t99 * * *"), "0 99 * * *\n  ^^");
    assert_eq!(pointed("@every"), "@every\n      ^");
    assert_eq!(pointed("ü,77 * * * *"), "ü,77 * * * *\n^");
}

#[test]
fn a_text_that_is_too_long_is_not_looked_at() {
    let (_, message) = refused(&"é".repeat(501));
    assert!(message.contains("1002 bytes"), "{message}");
}

#[test]
fn stars_and_open_steps_follow_the_clock_and_fixed_times_do_not() {
    for text in [
        "* 2 * * *",
        "*/15 2 * * *",
        "30 */2 * * *",
        "5/15 2 * * *",
        "@hourly",
        "0 30 * * * *",
    ] {
        assert!(Cron::parse(text).unwrap().follows_the_clock(), "{text}");
    }
    for text in [
        "30 2 * * *",
        "0,30 2 * * *",
        "0-59/15 2 * * *",
        "0 0-23 * * *",
        "* 30 2 * * *",
        "@daily",
        "@every 1h",
    ] {
        assert!(!Cron::parse(text).unwrap().follows_the_clock(), "{text}");
    }
}
