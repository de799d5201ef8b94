//! What a late series does, by example.

use stationmaster_schedule::{Cron, DstPolicy, zone};

use super::*;

const GRACE: Duration = Duration::from_secs(30);

fn at(text: &str) -> Timestamp {
    format!("2026-03-01T{text}Z").parse().unwrap()
}

fn every(expression: &str) -> Schedule {
    Schedule::Cron(Box::new(Series {
        cron: Cron::parse(expression).unwrap(),
        zone: zone("UTC").unwrap(),
        dst: DstPolicy::Vixie,
        start: None,
        end: None,
        anchor: at("00:00:00"),
    }))
}

fn terms(misfire: Misfire) -> Terms {
    Terms {
        misfire,
        window: Duration::from_hours(24),
        grace: GRACE,
        overlap: Overlap::Allow,
        jitter: Duration::ZERO,
    }
}

fn step(schedule: &Schedule, terms: Terms, first: &str, now: &str) -> Step {
    late(schedule, terms, first, now).step()
}

/// A series of every five minutes, whose occurrence of noon was not fired until now.
fn since_noon(misfire: Misfire, now: &str) -> Step {
    step(&every("*/5 * * * *"), terms(misfire), "12:00:00", now)
}

fn late<'a>(schedule: &'a Schedule, terms: Terms, first: &str, now: &str) -> Late<'a> {
    Late {
        alarm: AlarmId::new(),
        terms,
        first: Upcoming {
            at: at(first),
            note: None,
        },
        free_at: None,
        now: at(now),
        schedule,
    }
}

fn fired(step: &Step) -> Vec<Timestamp> {
    step.fire.iter().map(|fire| fire.at).collect()
}

fn missed(step: &Step) -> Vec<(Timestamp, OccurrenceStatus)> {
    step.missed
        .iter()
        .map(|missed| (missed.from, missed.status))
        .collect()
}

fn next(step: &Step) -> Option<Timestamp> {
    step.next.as_ref().map(|next| next.at)
}

#[test]
fn in_time_the_one_that_is_due_fires_and_the_following_is_next() {
    for misfire in [Misfire::Coalesce, Misfire::CatchUp(3), Misfire::Skip] {
        let step = since_noon(misfire, "12:00:00");
        assert_eq!(fired(&step), [at("12:00:00")]);
        assert_eq!((missed(&step), next(&step)), (vec![], Some(at("12:05:00"))));
    }
}

#[test]
fn late_within_the_grace_everything_that_is_due_fires_under_every_policy() {
    for misfire in [Misfire::Coalesce, Misfire::CatchUp(1), Misfire::Skip] {
        let step = step(&every("*/10 * * * * *"), terms(misfire), "12:00:00", "12:00:29");
        assert_eq!(fired(&step), [at("12:00:00"), at("12:00:10"), at("12:00:20")]);
        assert_eq!((missed(&step), next(&step)), (vec![], Some(at("12:00:30"))));
    }
}

#[test]
fn after_an_outage_coalesce_fires_the_newest_once_and_records_the_others() {
    let step = since_noon(Misfire::Coalesce, "12:17:00");
    assert_eq!(fired(&step), [at("12:15:00")]);
    assert_eq!(
        missed(&step),
        [
            (at("12:00:00"), OccurrenceStatus::Coalesced),
            (at("12:05:00"), OccurrenceStatus::Coalesced),
            (at("12:10:00"), OccurrenceStatus::Coalesced)
        ]
    );
    assert_eq!(step.missed[0].reason, "coalesced into 2026-03-01T12:15:00Z");
    assert_eq!(next(&step), Some(at("12:20:00")));
}

#[test]
fn one_wake_comes_of_an_outage_even_when_the_newest_is_hardly_late() {
    let step = since_noon(Misfire::Coalesce, "12:15:01");
    assert_eq!(fired(&step), [at("12:15:00")]);
    assert_eq!(step.missed.len(), 3);
}

#[test]
fn catching_up_fires_the_newest_in_order_and_records_the_others() {
    let step = since_noon(Misfire::CatchUp(2), "12:17:00");
    assert_eq!(fired(&step), [at("12:10:00"), at("12:15:00")]);
    assert_eq!(
        missed(&step),
        [
            (at("12:00:00"), OccurrenceStatus::Skipped),
            (at("12:05:00"), OccurrenceStatus::Skipped)
        ]
    );
    assert_eq!(next(&step), Some(at("12:20:00")));
    let all = since_noon(Misfire::CatchUp(9), "12:17:00");
    assert_eq!((fired(&all).len(), all.missed.len()), (4, 0));
}

#[test]
fn skipping_fires_only_what_is_hardly_late() {
    let step = since_noon(Misfire::Skip, "12:17:00");
    assert_eq!(
        (fired(&step), step.missed.len(), next(&step)),
        (vec![], 4, Some(at("12:20:00")))
    );
    let hardly = since_noon(Misfire::Skip, "12:15:10");
    assert_eq!((fired(&hardly), hardly.missed.len()), (vec![at("12:15:00")], 3));
}

#[test]
fn what_lies_before_the_window_is_not_made_up_for() {
    let mut short = terms(Misfire::CatchUp(100));
    short.window = Duration::from_mins(10);
    let step = step(&every("*/5 * * * *"), short, "12:00:00", "12:17:00");
    assert_eq!(fired(&step), [at("12:10:00"), at("12:15:00")]);
    assert_eq!(
        missed(&step),
        [
            (at("12:00:00"), OccurrenceStatus::Skipped),
            (at("12:05:00"), OccurrenceStatus::Skipped)
        ]
    );
    assert!(
        step.missed[0].reason.contains("window of 10 min"),
        "{:?}",
        step.missed[0]
    );
    let mut tiny = terms(Misfire::Coalesce);
    tiny.window = Duration::from_mins(1);
    let none = super::tests::step(&every("*/5 * * * *"), tiny, "12:00:00", "12:17:00");
    assert_eq!(
        (fired(&none), none.missed.len(), next(&none)),
        (vec![], 4, Some(at("12:20:00")))
    );
}

#[test]
fn a_long_row_of_missed_ones_is_one_line_and_costs_little() {
    let began = std::time::Instant::now();
    let step = step(
        &every("* * * * * *"),
        terms(Misfire::Coalesce),
        "00:00:00",
        "23:59:00",
    );
    assert_eq!(fired(&step), [at("23:59:00")]);
    let [row] = &step.missed[..] else {
        panic!("one line: {:?}", step.missed);
    };
    assert_eq!(
        (row.from, row.until, row.covers),
        (at("00:00:00"), Some(at("23:59:00")), None)
    );
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let hundreds = super::tests::step(
        &every("* * * * * *"),
        terms(Misfire::Coalesce),
        "00:00:00",
        "00:05:00",
    );
    assert_eq!((hundreds.missed.len(), hundreds.missed[0].covers), (1, Some(300)));
}

#[test]
fn for_once_it_fires_however_late_it_is_unless_it_is_to_be_skipped() {
    let once = Schedule::At(at("00:00:00"));
    for misfire in [Misfire::Coalesce, Misfire::CatchUp(1)] {
        let step = step(&once, terms(misfire), "00:00:00", "23:00:00");
        assert_eq!((fired(&step), next(&step)), (vec![at("00:00:00")], None));
    }
    let skipped = step(&once, terms(Misfire::Skip), "00:00:00", "23:00:00");
    assert_eq!(
        (fired(&skipped), missed(&skipped)),
        (vec![], vec![(at("00:00:00"), OccurrenceStatus::Skipped)])
    );
}

#[test]
fn by_the_overlap_policy_skip_what_came_meanwhile_is_skipped() {
    let schedule = every("*/5 * * * *");
    let mut skip = terms(Misfire::Coalesce);
    skip.overlap = Overlap::Skip;
    let mut late = late(&schedule, skip, "12:05:00", "12:16:00");
    late.free_at = Some(at("12:16:00"));
    let step = late.step();
    assert_eq!(fired(&step), []);
    assert_eq!(missed(&step).len(), 3);
    assert!(
        step.missed
            .iter()
            .all(|missed| missed.reason.contains("still under way"))
    );
    assert_eq!(next(&step), Some(at("12:20:00")));
    late.free_at = Some(at("12:14:00"));
    late.now = at("12:15:05");
    let step = late.step();
    assert_eq!(
        (fired(&step), step.missed.len(), next(&step)),
        (vec![at("12:15:00")], 2, Some(at("12:20:00")))
    );
}

#[test]
fn a_series_that_is_over_has_no_next() {
    let Schedule::Cron(mut series) = every("*/5 * * * *") else {
        unreachable!("it is a series");
    };
    series.end = Some(at("12:07:00"));
    let schedule = Schedule::Cron(series);
    let last = step(&schedule, terms(Misfire::Coalesce), "12:05:00", "12:05:01");
    assert_eq!((fired(&last), next(&last)), (vec![at("12:05:00")], None));
    let missed = step(&schedule, terms(Misfire::Skip), "12:05:00", "13:00:00");
    assert_eq!(
        (fired(&missed), missed.missed.len(), next(&missed)),
        (vec![], 1, None)
    );
}

/// Whatever the policy and however late: every instant of the series is fired, missed or still to come, once.
#[test]
fn no_instant_is_lost_and_none_comes_twice() {
    for expression in [
        "*/5 * * * *",
        "*/7 * * * * *",
        "0 */2 * * *",
        "13 3 * * *",
        "0 0 1 * *",
    ] {
        let schedule = every(expression);
        let Schedule::Cron(series) = &schedule else {
            unreachable!("it is a series");
        };
        for misfire in [
            Misfire::Coalesce,
            Misfire::CatchUp(1),
            Misfire::CatchUp(5),
            Misfire::Skip,
        ] {
            for overlap in [Overlap::Allow, Overlap::Queue, Overlap::Skip] {
                for late_by in [0, 1, 29, 31, 100, 601, 3600, 7201, 90_000, 200_000] {
                    let first = series.next_after(at("00:00:00")).unwrap().at;
                    let now = first + SignedDuration::from_secs(late_by);
                    let mut late = late(&schedule, terms(misfire), "00:00:00", "00:00:00");
                    late.terms.overlap = overlap;
                    (late.first.at, late.now) = (first, now);
                    let what = format!("{expression} {misfire:?} {overlap:?} {late_by}");
                    check(series, &late.step(), first, now, &what);
                }
            }
        }
    }
}

fn check(series: &Series, step: &Step, first: Timestamp, now: Timestamp, what: &str) {
    let due: Vec<Timestamp> = std::iter::once(first)
        .chain(series.fires(first).map(|fire| fire.at))
        .take_while(|at| *at <= now)
        .collect();
    let covers = |at: Timestamp| {
        let fired = step.fire.iter().filter(|fire| fire.at == at).count();
        let missed = step.missed.iter().filter(|missed| match missed.until {
            None => missed.from == at,
            Some(until) => missed.from <= at && at < until,
        });
        fired + missed.count()
    };
    for at in &due {
        assert_eq!(covers(*at), 1, "{what}: {at} in {step:?}");
    }
    let following = series.next_after(*due.last().unwrap()).map(|fire| fire.at);
    assert_eq!(next(step), following, "{what}");
}
