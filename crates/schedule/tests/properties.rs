//! What holds for every expression, zone and instant.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

use std::time::Instant;

use jiff::Timestamp;
use jiff::civil::DateTime;
use proptest::prelude::*;
use stationmaster_schedule::{Cron, DstPolicy, Note, Series, resolve, zone, zones};

/// A field out of pieces that are mostly right.
fn field(first: u8, last: u8) -> impl Strategy<Value = String> {
    let value = move || first..=last;
    let part = prop_oneof![
        3 => Just("*".to_owned()),
        3 => value().prop_map(|value| value.to_string()),
        2 => (value(), value()).prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (1..=last).prop_map(|step| format!("*/{step}")),
        1 => (value(), 1..=last).prop_map(|(from, step)| format!("{from}/{step}")),
        1 => (value(), value(), 1..=last).prop_map(|(from, to, step)| format!("{from}-{to}/{step}")),
    ];
    prop::collection::vec(part, 1..3).prop_map(|parts| parts.join(","))
}

fn day_of_month() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => field(1, 31),
        1 => Just("L".to_owned()),
        1 => Just("LW".to_owned()),
        1 => (1..=30).prop_map(|before| format!("L-{before}")),
        1 => (1..=31).prop_map(|day| format!("{day}W")),
        1 => Just("?".to_owned()),
    ]
}

fn day_of_week() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => field(0, 7),
        1 => (0..=7).prop_map(|day| format!("{day}L")),
        1 => (0..=7, 1..=5).prop_map(|(day, nth)| format!("{day}#{nth}")),
        1 => Just("MON-FRI".to_owned()),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let second =
        prop_oneof![3 => Just(String::new()), 1 => field(0, 59).prop_map(|second| format!("{second} "))];
    (
        second,
        field(0, 59),
        field(0, 23),
        day_of_month(),
        field(1, 12),
        day_of_week(),
    )
        .prop_map(|(second, minute, hour, day, month, weekday)| {
            format!("{second}{minute} {hour} {day} {month} {weekday}")
        })
}

fn policy() -> impl Strategy<Value = DstPolicy> {
    prop::sample::select(DstPolicy::ALL.to_vec())
}

/// 1950 to 2100.
fn instants() -> impl Strategy<Value = Timestamp> {
    (-631_152_000_i64..4_102_444_800).prop_map(|second| Timestamp::from_second(second).unwrap())
}

/// Reads a field in the plainest way, to judge whether a number belongs to it.
fn allows(field: &str, first: i64, last: i64, value: i64) -> bool {
    field.split(',').any(|part| {
        let (base, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: i64 = step.parse().unwrap();
        let (from, to) = match base.split_once('-') {
            _ if base == "*" => (first, last),
            Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap()),
            None if part.contains('/') => (base.parse().unwrap(), last),
            None => (base.parse().unwrap(), base.parse().unwrap()),
        };
        let size = last - first + 1;
        let to = if from <= to { to } else { to + size };
        (0..=(to - from) / step).any(|count| first + (from + count * step - first) % size == value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_panics_and_a_complaint_has_a_place(text in "\\PC{0,40}|[-*/,#LW?@0-9a-zA-Z \\t]{0,30}") {
        if let Err(error) = Cron::parse(&text) {
            prop_assert!(text.get(error.at.clone()).is_some(), "{error:?}");
            prop_assert!(!error.message.is_empty());
            let pointed = error.pointed(&text);
            let carets = pointed.rsplit('\n').next().unwrap_or_default().trim_start();
            prop_assert!(!carets.is_empty() && carets.chars().all(|caret| caret == '^'), "{pointed}");
        }
    }

    #[test]
    fn what_is_read_has_words_and_fires(text in expression(), after in instants()) {
        if let Ok(cron) = Cron::parse(&text) {
            prop_assert!(!cron.describe().is_empty());
            let series = Series { cron, zone: zone("UTC").unwrap(), dst: DstPolicy::Vixie, start: None, end: None, anchor: after };
            prop_assert!(series.next_after(after).is_some(), "{text} was accepted and never fires");
        }
    }

    #[test]
    fn fires_grow_and_each_follows_from_the_one_before(
        text in expression(), dst in policy(), name in prop::sample::select(zones()), after in instants(),
    ) {
        let Ok(cron) = Cron::parse(&text) else { return Ok(()) };
        let series = Series { cron, zone: zone(&name).unwrap(), dst, start: None, end: None, anchor: after };
        let fires: Vec<_> = series.fires(after).take(12).collect();
        let mut last = after;
        for fire in &fires {
            prop_assert!(fire.at > last, "{} is not after {last}", fire.at);
            let again = series.next_after(last).unwrap();
            prop_assert_eq!(again.at, fire.at);
            prop_assert_eq!(&again.note, &fire.note);
            // Whoever asks from just before finds the same.
            let just_before = fire.at.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap();
            prop_assert_eq!(series.next_after(just_before).unwrap().at, fire.at);
            last = fire.at;
        }
    }

    #[test]
    fn every_fire_matches_unless_it_was_moved(
        text in expression(), dst in policy(), name in prop::sample::select(zones()), after in instants(),
    ) {
        let Ok(cron) = Cron::parse(&text) else { return Ok(()) };
        let series = Series { cron, zone: zone(&name).unwrap(), dst, start: None, end: None, anchor: after };
        let mut fields: Vec<&str> = text.split(' ').collect();
        if fields.len() == 5 {
            fields.insert(0, "0");
        }
        for fire in series.fires(after).take(12) {
            let shown: DateTime = match fire.note {
                Some(Note::MovedOutOfGap { wanted, .. }) => wanted,
                _ => fire.local.datetime(),
            };
            prop_assert!(allows(fields[0], 0, 59, shown.second().into()), "{text}: {shown}");
            prop_assert!(allows(fields[1], 0, 59, shown.minute().into()), "{text}: {shown}");
            prop_assert!(allows(fields[2], 0, 23, shown.hour().into()), "{text}: {shown}");
            prop_assert!(allows(fields[4], 1, 12, shown.month().into()), "{text}: {shown}");
            if !fields[3].contains(['L', 'W', '?']) && !fields[5].contains(['L', '#', 'M']) {
                let of_month = allows(fields[3], 1, 31, shown.day().into());
                let of_week = allows(fields[5], 0, 6, shown.weekday().to_sunday_zero_offset().into());
                let star = fields[3].contains('*') || fields[5].contains('*');
                prop_assert!(if star { of_month && of_week } else { of_month || of_week }, "{text}: {shown}");
            }
        }
    }

    #[test]
    fn one_local_time_is_the_fire_of_the_expression_that_names_it(
        seconds in -631_152_000_i64..4_102_444_800, dst in policy(), name in prop::sample::select(zones()),
    ) {
        let civil = jiff::tz::Offset::UTC.to_datetime(Timestamp::from_second(seconds).unwrap());
        let text = format!("{} {} {} {} {} *", civil.second(), civil.minute(), civil.hour(), civil.day(), civil.month());
        let zone = zone(&name).unwrap();
        let after = Timestamp::from_second(seconds - 60 * 3_600).unwrap();
        let series = Series { cron: Cron::parse(&text).unwrap(), zone: zone.clone(), dst, start: None, end: None, anchor: after };
        let fire = resolve(civil, &zone, dst).fire();
        let next = series.next_after(after).filter(|fire| fire.at.as_second() < seconds + 60 * 3_600);
        prop_assert_eq!(fire.map(|fire| fire.at), next.map(|fire| fire.at));
    }
}

#[test]
fn the_rarest_expressions_are_answered_quickly() {
    // A thousand rounds of these took 10 to 30 seconds in libraries that look at every day; it is some milliseconds here.
    let started = Instant::now();
    let from: Timestamp = "2072-03-01T00:00:00Z".parse().unwrap();
    for _ in 0..1_000 {
        assert!(Cron::parse("0 0 30 2 *").is_err());
    }
    let rare = Series {
        cron: Cron::parse("0 0 * 2 1#5").unwrap(),
        zone: zone("Europe/Paris").unwrap(),
        dst: DstPolicy::Vixie,
        start: None,
        end: None,
        anchor: from,
    };
    for _ in 0..100 {
        assert_eq!(
            rare.next_after(from).unwrap().rfc3339(),
            "2112-02-29T00:00:00+01:00"
        );
    }
    eprintln!("took {:?}", started.elapsed());
    assert!(
        started.elapsed().as_secs() < 10,
        "it took {:?}",
        started.elapsed()
    );
}
