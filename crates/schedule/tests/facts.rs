//! What is known of real zones: the dates and hours at which their clocks moved, and what Vixie's cron makes of them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

use jiff::Timestamp;
use jiff::civil::DateTime;
use stationmaster_schedule::{Cron, DstPolicy, Fire, Note, Resolved, Series, resolve, zone};

fn series(text: &str, name: &str, dst: DstPolicy) -> Series {
    Series {
        cron: Cron::parse(text).unwrap(),
        zone: zone(name).unwrap(),
        dst,
        start: None,
        end: None,
        anchor: Timestamp::UNIX_EPOCH,
    }
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Fires between two instants, the second included.
fn fires(text: &str, name: &str, dst: DstPolicy, from: &str, to: &str) -> Vec<String> {
    let series = Series {
        end: Some(instant(to)),
        ..series(text, name, dst)
    };
    series.fires(instant(from)).map(|fire| fire.rfc3339()).collect()
}

#[test]
fn a_fixed_time_in_a_gap_fires_at_the_first_instant_after_it() {
    // New York, 10 March 2024: 02:00 becomes 03:00.
    let day = ("2024-03-10T00:00:00-05:00", "2024-03-10T23:59:59-04:00");
    let new_york = |text, dst| fires(text, "America/New_York", dst, day.0, day.1);
    for dst in [DstPolicy::Vixie, DstPolicy::Both] {
        for text in [
            "30 2 * * *",
            "0 2 * * *",
            "0,30 2 * * *",
            "59 2 * * *",
            "0-59 2 * * *",
            "0,30 2-3 * * *",
        ] {
            assert_eq!(
                new_york(text, dst)[0],
                "2024-03-10T03:00:00-04:00",
                "{text} {dst}"
            );
        }
        assert_eq!(new_york("0,30 2 * * *", dst).len(), 1);
        // At 03:00 it fires anyway, and once.
        assert_eq!(
            new_york("0,30 2-3 * * *", dst),
            ["2024-03-10T03:00:00-04:00", "2024-03-10T03:30:00-04:00"]
        );
    }
    for text in ["30 2 * * *", "0,30 2 * * *", "0-59 2 * * *"] {
        assert_eq!(new_york(text, DstPolicy::Skip), [""; 0], "{text}");
    }
}

#[test]
fn a_fixed_time_that_comes_twice_fires_once_and_under_both_twice() {
    // New York, 3 November 2024: 02:00 becomes 01:00.
    let day = ("2024-11-03T00:00:00-04:00", "2024-11-03T23:59:59-05:00");
    let new_york = |text, dst| fires(text, "America/New_York", dst, day.0, day.1);
    for dst in [DstPolicy::Vixie, DstPolicy::Skip] {
        assert_eq!(new_york("30 1 * * *", dst), ["2024-11-03T01:30:00-04:00"]);
        assert_eq!(
            new_york("0,30 1-2 * * *", dst),
            [
                "2024-11-03T01:00:00-04:00",
                "2024-11-03T01:30:00-04:00",
                "2024-11-03T02:00:00-05:00",
                "2024-11-03T02:30:00-05:00"
            ]
        );
    }
    assert_eq!(
        new_york("30 1 * * *", DstPolicy::Both),
        ["2024-11-03T01:30:00-04:00", "2024-11-03T01:30:00-05:00"]
    );
}

#[test]
fn wildcards_follow_the_clock_under_every_policy() {
    for dst in DstPolicy::ALL {
        let new_york = |text, from, to| fires(text, "America/New_York", dst, from, to);
        assert_eq!(
            new_york(
                "30 * * * *",
                "2024-03-10T01:00:00-05:00",
                "2024-03-10T04:00:00-04:00"
            ),
            ["2024-03-10T01:30:00-05:00", "2024-03-10T03:30:00-04:00"]
        );
        assert_eq!(
            new_york(
                "30 * * * *",
                "2024-11-03T01:00:00-04:00",
                "2024-11-03T02:00:00-05:00"
            ),
            ["2024-11-03T01:30:00-04:00", "2024-11-03T01:30:00-05:00"]
        );
    }
}

#[test]
fn a_named_hour_that_a_gap_swallows_whole_fires_once_after_it_and_under_skip_not_at_all() {
    let new_york = |text, dst| {
        let day = ("2016-03-13T00:00:00-05:00", "2016-03-13T23:00:00-04:00");
        fires(text, "America/New_York", dst, day.0, day.1)
    };
    for text in ["*/30 2 * * *", "* 2 * * *", "5/20 2 * * *"] {
        for dst in [DstPolicy::Vixie, DstPolicy::Both] {
            assert_eq!(new_york(text, dst), ["2016-03-13T03:00:00-04:00"], "{text}");
        }
        assert_eq!(new_york(text, DstPolicy::Skip), [""; 0], "{text}");
    }
    // The next hour is named as well, and its first fire is the same instant.
    assert_eq!(
        new_york("*/30 2,3 * * *", DstPolicy::Vixie),
        ["2016-03-13T03:00:00-04:00", "2016-03-13T03:30:00-04:00"]
    );
    // Half of the hour is left on Lord Howe, and with it a match: nothing is lost.
    assert_eq!(
        fires(
            "*/15 2 * * *",
            "Australia/Lord_Howe",
            DstPolicy::Vixie,
            "2024-10-05T12:00:00Z",
            "2024-10-05T20:00:00Z"
        ),
        ["2024-10-06T02:30:00+11:00", "2024-10-06T02:45:00+11:00"]
    );
}

#[test]
fn clocks_that_move_at_odd_hours_or_by_odd_lengths_are_known() {
    let vixie = DstPolicy::Vixie;
    // Cairo, 26 April 2024: midnight becomes 01:00, and the day has its fire.
    assert_eq!(
        fires(
            "0 0 * * *",
            "Africa/Cairo",
            vixie,
            "2024-04-25T12:00:00Z",
            "2024-04-26T20:00:00Z"
        ),
        ["2024-04-26T01:00:00+03:00"]
    );
    // Lord Howe moves by half an hour: 7 April 2024, 02:00 becomes 01:30; 6 October, 02:00 becomes 02:30.
    let (from, to) = ("2024-04-06T13:00:00Z", "2024-04-06T17:00:00Z");
    assert_eq!(
        fires("0,45 1 * * *", "Australia/Lord_Howe", vixie, from, to),
        ["2024-04-07T01:00:00+11:00", "2024-04-07T01:45:00+11:00"]
    );
    assert_eq!(
        fires("*/15 1 * * *", "Australia/Lord_Howe", vixie, from, to).len(),
        6
    );
    assert_eq!(
        fires(
            "15,30 2 * * *",
            "Australia/Lord_Howe",
            vixie,
            "2024-10-05T13:00:00Z",
            "2024-10-05T17:00:00Z"
        ),
        ["2024-10-06T02:30:00+11:00"]
    );
    // Apia had no 30 December 2011. The noon of that day fires when the next begins.
    assert_eq!(
        fires(
            "0 12 * * *",
            "Pacific/Apia",
            vixie,
            "2011-12-29T12:00:00Z",
            "2011-12-31T12:00:00Z"
        ),
        [
            "2011-12-29T12:00:00-10:00",
            "2011-12-31T00:00:00+14:00",
            "2011-12-31T12:00:00+14:00"
        ]
    );
    assert_eq!(
        fires(
            "0 12 30 12 *",
            "Pacific/Apia",
            DstPolicy::Skip,
            "2011-12-01T12:00:00Z",
            "2012-12-31T00:00:00Z"
        ),
        ["2012-12-30T12:00:00+14:00"]
    );
    // Monrovia's clocks were 44 minutes and 30 seconds behind until 7 January 1972: midnight became 00:44:30.
    assert_eq!(
        fires(
            "30 0 7 1 *",
            "Africa/Monrovia",
            vixie,
            "1972-01-06T00:00:00Z",
            "1972-01-08T00:00:00Z"
        ),
        ["1972-01-07T00:44:30+00:00"]
    );
}

#[test]
fn notes_tell_what_a_moving_clock_did() {
    let note = |text, dst, after| {
        series(text, "America/New_York", dst)
            .next_after(instant(after))
            .unwrap()
            .note
    };
    let wanted: DateTime = "2024-03-10T02:30:00".parse().unwrap();
    let (spring, autumn) = ("2024-03-09T12:00:00Z", "2024-11-03T04:00:00Z");
    let moved = Note::MovedOutOfGap { wanted, times: 1 };
    assert_eq!(note("30 2 * * *", DstPolicy::Vixie, spring), Some(moved));
    let moved = Note::MovedOutOfGap { wanted, times: 30 };
    assert_eq!(note("30-59 2 * * *", DstPolicy::Both, spring), Some(moved));
    let skipped = Note::SkippedBefore { wanted, times: 1 };
    assert_eq!(note("30 2 * * *", DstPolicy::Skip, spring), Some(skipped.clone()));
    assert_eq!(
        note("30 */2 * * *", DstPolicy::Vixie, "2024-03-10T06:00:00Z"),
        Some(skipped.clone())
    );
    assert_eq!(
        note("30 1 * * *", DstPolicy::Vixie, autumn),
        Some(Note::OnceOfTwo)
    );
    assert_eq!(
        note("30 1 * * *", DstPolicy::Both, autumn),
        Some(Note::FirstOfTwo)
    );
    assert_eq!(
        note("30 1 * * *", DstPolicy::Both, "2024-11-03T05:30:00Z"),
        Some(Note::SecondOfTwo)
    );
    assert_eq!(note("30 4 * * *", DstPolicy::Vixie, autumn), None);
    assert_eq!(
        skipped.to_string(),
        "before this one, 02:30:00 on 2024-03-10 was skipped: it does not exist"
    );
}

#[test]
fn bounds_are_inclusive() {
    let bounded = Series {
        start: Some(instant("2024-01-02T00:00:00Z")),
        end: Some(instant("2024-01-04T00:00:00Z")),
        ..series("0 0 * * *", "UTC", DstPolicy::Vixie)
    };
    let days: Vec<i8> = bounded
        .fires(Timestamp::MIN)
        .map(|fire| fire.local.day())
        .collect();
    assert_eq!(days, [2, 3, 4]);
    assert_eq!(bounded.next_after(instant("2024-01-04T00:00:00Z")), None);
}

#[test]
fn a_period_counts_from_its_anchor_whatever_clocks_show() {
    let every = Series {
        anchor: instant("2024-03-10T06:00:00.25Z"),
        start: Some(instant("2024-03-10T05:00:00Z")),
        ..series("@every 1h30m", "America/New_York", DstPolicy::Vixie)
    };
    let fires: Vec<Fire> = every.fires(instant("2024-03-09T00:00:00Z")).take(3).collect();
    let instants: Vec<String> = fires.iter().map(|fire| fire.at.to_string()).collect();
    assert_eq!(
        instants,
        [
            "2024-03-10T06:00:00.25Z",
            "2024-03-10T07:30:00.25Z",
            "2024-03-10T09:00:00.25Z"
        ]
    );
    assert_eq!(fires[1].rfc3339(), "2024-03-10T03:30:00.25-04:00");
    assert_eq!(every.next_after(fires[0].at).unwrap(), fires[1]);
}

#[test]
fn a_local_time_becomes_an_instant() {
    let new_york = zone("America/New_York").unwrap();
    let resolved = |text: &str, dst| resolve(text.parse().unwrap(), &new_york, dst);
    let at = |text: &str, dst| {
        let fire = resolved(text, dst).fire().expect("an instant");
        (fire.rfc3339(), fire.note)
    };
    for dst in DstPolicy::ALL {
        assert_eq!(
            at("2024-07-01T12:00:00.5", dst),
            ("2024-07-01T12:00:00.5-04:00".to_owned(), None)
        );
        let first = ("2024-11-03T01:30:00-04:00".to_owned(), Some(Note::OnceOfTwo));
        assert_eq!(at("2024-11-03T01:30:00", dst), first);
        assert_eq!(
            at("2024-03-10T03:00:00", dst),
            ("2024-03-10T03:00:00-04:00".to_owned(), None)
        );
        assert_eq!(
            at("1960-01-01T12:00:00.25", dst).0,
            "1960-01-01T12:00:00.25-05:00"
        );
    }
    let wanted: DateTime = "2024-03-10T02:30:00".parse().unwrap();
    let moved = Some(Note::MovedOutOfGap { wanted, times: 1 });
    for dst in [DstPolicy::Vixie, DstPolicy::Both] {
        assert_eq!(
            at("2024-03-10T02:30:00", dst),
            ("2024-03-10T03:00:00-04:00".to_owned(), moved.clone())
        );
    }
    assert_eq!(
        resolved("2024-03-10T02:30:00", DstPolicy::Skip),
        Resolved::Never { wanted }
    );
    for wanted in [DateTime::MIN, DateTime::MAX] {
        assert_eq!(
            resolve(wanted, &new_york, DstPolicy::Vixie),
            Resolved::Never { wanted }
        );
    }
}

#[test]
fn the_end_of_time_is_the_end_of_a_series() {
    let daily = series("0 0 * * *", "Asia/Tokyo", DstPolicy::Vixie);
    let last = daily.fires(instant("9999-12-25T00:00:00Z")).last().unwrap();
    assert_eq!(last.local.date().to_string(), "9999-12-30");
    assert_eq!(daily.next_after(Timestamp::MAX), None);
    assert!(daily.next_after(Timestamp::MIN).is_some());
    let leap = series("0 0 29 2 *", "Europe/Paris", DstPolicy::Vixie);
    assert_eq!(leap.next_after(instant("9996-03-01T00:00:00Z")), None);
}

#[test]
fn far_fires_are_the_same_as_near_ones() {
    // The last rule of a zone goes on for ever: 14 March 2100 is the second Sunday of that March.
    assert_eq!(
        fires(
            "30 2 14 3 *",
            "America/New_York",
            DstPolicy::Vixie,
            "2099-06-01T00:00:00Z",
            "2100-12-31T00:00:00Z"
        ),
        ["2100-03-14T03:00:00-04:00"]
    );
}
