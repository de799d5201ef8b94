//! Clocks that move twice within an hour. No zone has had such a day since 1970, so these are made up; real ones are compared
//! with a scan in `tests/dst`.

use jiff::tz::TimeZone;

use super::*;

/// From 02:00 UTC on 10 April the clock shows 02:00 again, and fifteen minutes later it is put forward from 02:15 to 03:15.
const BACK_AND_FORWARD: &str = "AAA0BBB-1,J100/2:15,J100/3";
/// At 02:00 UTC on 10 April the clock is put forward to 03:00, and half an hour later back from 03:30 to 02:30.
const FORWARD_AND_BACK: &str = "AAA0BBB-1,J100/2,J100/3:30";

/// The fires of 10 April, hours and minutes in UTC, all at once and each asked for by itself.
fn fires(rule: &str, text: &str, dst: DstPolicy) -> Vec<String> {
    let series = Series {
        cron: Cron::parse(text).unwrap(),
        zone: Zone::made_up(TimeZone::posix(rule).unwrap()),
        dst,
        start: Some("2025-04-10T00:00:00Z".parse().unwrap()),
        end: Some("2025-04-10T12:00:00Z".parse().unwrap()),
        anchor: Timestamp::UNIX_EPOCH,
    };
    let start = "2025-04-09T00:00:00Z".parse().unwrap();
    let at_once: Vec<Timestamp> = series.fires(start).map(|fire| fire.at).collect();
    let mut by_minute = Vec::new();
    for minute in 0..12 * 60 {
        let just_before = Timestamp::from_second(1_744_243_200 + minute * 60 - 1).unwrap();
        let next = series.next_after(just_before).map(|fire| fire.at);
        by_minute.extend(next.filter(|at| at.duration_since(just_before).as_secs() == 1));
    }
    assert_eq!(at_once, by_minute, "{text} {dst}");
    at_once.iter().map(|at| at.strftime("%R").to_string()).collect()
}

#[test]
fn a_time_that_was_shown_is_not_moved_out_of_a_later_gap() {
    for dst in [DstPolicy::Vixie, DstPolicy::Skip] {
        assert_eq!(fires(BACK_AND_FORWARD, "30 2 * * *", dst), ["01:30"]);
        assert_eq!(fires(BACK_AND_FORWARD, "10 2 * * *", dst), ["01:10"]);
    }
    assert_eq!(fires(BACK_AND_FORWARD, "30 2 * * *", DstPolicy::Both), ["01:30"]);
    assert_eq!(
        fires(BACK_AND_FORWARD, "10 2 * * *", DstPolicy::Both),
        ["01:10", "02:10"]
    );
    // Only these fifteen minutes were never shown.
    assert_eq!(fires(BACK_AND_FORWARD, "5 3 * * *", DstPolicy::Vixie), ["02:15"]);
    assert_eq!(fires(BACK_AND_FORWARD, "5 3 * * *", DstPolicy::Skip), [""; 0]);
}

#[test]
fn a_time_that_was_moved_out_of_a_gap_does_not_fire_again_when_the_clock_goes_back_to_it() {
    assert_eq!(fires(FORWARD_AND_BACK, "45 2 * * *", DstPolicy::Vixie), ["02:00"]);
    assert_eq!(fires(FORWARD_AND_BACK, "15 3 * * *", DstPolicy::Vixie), ["02:15"]);
    assert_eq!(
        fires(FORWARD_AND_BACK, "45 2 * * *", DstPolicy::Both),
        ["02:00", "02:45"]
    );
    assert_eq!(
        fires(FORWARD_AND_BACK, "45 * * * *", DstPolicy::Vixie)[2..4],
        ["02:45", "03:45"]
    );
}
