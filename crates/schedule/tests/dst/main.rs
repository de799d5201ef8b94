//! The fires around every move of every clock, against a scan that goes from minute to minute and knows nothing of how the
//! product computes. A sample runs with the other tests; `cargo xtask dst` runs the whole.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may fail as tests do")]

mod cases;
mod scan;

use std::time::Instant;

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use stationmaster_schedule::{Cron, DstPolicy, Note, Series, zone, zones};

use cases::{Case, cases};
use scan::{Clock, Effect, Moved, scan};

/// The moves of these clocks are out of the ordinary: whole days, half hours, midnights, odd seconds, two moves a month.
const ODD: [&str; 9] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Australia/Lord_Howe",
    "Europe/Lisbon",
    "Pacific/Apia",
    "Pacific/Kwajalein",
];

/// What was compared.
#[derive(Debug, Default)]
struct Counted {
    zones: usize,
    moves: usize,
    series: usize,
    fires: usize,
    differences: Vec<String>,
}

#[test]
fn a_sample_of_all_moves_of_all_clocks_equals_the_scan() {
    let mut counted = Counted::default();
    for (index, name) in zones().iter().enumerate() {
        let odd = ODD.contains(&name.as_str());
        compare(name, |number| odd || (index * 7 + number) % 67 == 0, &mut counted);
    }
    conclude(&counted);
    // So that a change which empties the sample is seen.
    assert!(counted.zones > 550 && counted.moves > 1_000, "{counted:?}");
}

#[test]
#[ignore = "takes minutes: run it with `cargo xtask dst`"]
fn all_moves_of_all_clocks_equal_the_scan() {
    let started = Instant::now();
    let mut counted = Counted::default();
    let names = zones();
    for (index, name) in names.iter().enumerate() {
        compare(name, |_| true, &mut counted);
        if index % 25 == 24 || index + 1 == names.len() {
            eprintln!(
                "{} of {} zones, {} moves, {} series, {} fires, {} differences, {:.0} s",
                index + 1,
                names.len(),
                counted.moves,
                counted.series,
                counted.fires,
                counted.differences.len(),
                started.elapsed().as_secs_f64()
            );
        }
    }
    conclude(&counted);
}

fn conclude(counted: &Counted) {
    let Counted {
        zones,
        moves,
        series,
        fires,
        differences,
    } = counted;
    eprintln!(
        "{zones} zones, {moves} moves, {series} series, {fires} fires, {} differences",
        differences.len()
    );
    let shown = &differences[..differences.len().min(20)];
    assert!(differences.is_empty(), "{}", shown.join("\n"));
}

/// Compares the chosen moves of one clock.
fn compare(name: &str, chosen: impl Fn(usize) -> bool, counted: &mut Counted) {
    let time_zone = TimeZoneDatabase::bundled().get(name).unwrap();
    counted.zones += 1;
    for (number, moved) in Moved::all(&time_zone).enumerate() {
        if !chosen(number) {
            continue;
        }
        counted.moves += 1;
        let clock = Clock::around(&time_zone, &moved);
        for case in cases(&moved) {
            for dst in DstPolicy::ALL {
                let expected = scan(&clock, &case, dst);
                let found = computed(name, &case, dst, &clock);
                counted.series += 1;
                counted.fires += expected.len();
                if expected != found {
                    counted
                        .differences
                        .push(difference(name, &case, dst, &expected, &found));
                }
            }
        }
    }
}

/// What the product says.
fn computed(name: &str, case: &Case, dst: DstPolicy, clock: &Clock) -> Vec<(i64, Effect)> {
    let series = Series {
        cron: Cron::parse(&case.text).unwrap(),
        zone: zone(name).unwrap(),
        dst,
        start: None,
        end: Some(Timestamp::from_second(clock.core.end - 1).unwrap()),
        anchor: Timestamp::UNIX_EPOCH,
    };
    let after = Timestamp::from_second(clock.core.start - 1).unwrap();
    let effect = |note: &Option<Note>| match note {
        None => Effect::None,
        Some(Note::MovedOutOfGap { times, .. }) => Effect::Moved(*times),
        Some(Note::SkippedBefore { times, .. }) => Effect::Skipped(*times),
        Some(Note::OnceOfTwo) => Effect::Once,
        Some(Note::FirstOfTwo) => Effect::First,
        Some(Note::SecondOfTwo) => Effect::Second,
    };
    series
        .fires(after)
        .map(|fire| (fire.at.as_second(), effect(&fire.note)))
        .collect()
}

fn difference(
    name: &str,
    case: &Case,
    dst: DstPolicy,
    expected: &[(i64, Effect)],
    found: &[(i64, Effect)],
) -> String {
    let differs = |(a, b): &(Option<&(i64, Effect)>, Option<&(i64, Effect)>)| a != b;
    let length = expected.len().max(found.len());
    let first = (0..length)
        .map(|index| (expected.get(index), found.get(index)))
        .find(differs);
    let told = |fire: Option<&(i64, Effect)>| {
        fire.map(|(at, effect)| format!("{} {effect:?}", Timestamp::from_second(*at).unwrap()))
    };
    let (expected, found) = first
        .map(|(expected, found)| (told(expected), told(found)))
        .unwrap();
    format!(
        "{name} `{}` {dst}: the scan has {expected:?}, the series has {found:?}",
        case.text
    )
}
