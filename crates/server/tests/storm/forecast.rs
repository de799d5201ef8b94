//! What happens when, told by a seed and nothing else. Pure.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::Direction;
use crate::world::{ALTERABLE, ROOMS, SERIES};

/// Longer than the lease of a server.
const STOPPED: std::ops::Range<u64> = 6_000..9_000;
/// Between two events.
const GAP: std::ops::Range<u64> = 800..2_200;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// kill -9, and another is started.
    Kill(usize),
    /// kill -9 of all at once, and for a while nobody is there.
    Landslide { away: Duration },
    /// SIGSTOP past the lease, then SIGCONT.
    Stop { server: usize, time: Duration },
    /// SIGTERM, and another is started once it has left.
    Leave(usize),
    /// PostgreSQL crashes and comes back.
    Crash { away: Duration },
    /// The connections of a server to the database are closed.
    Cut(usize),
    /// They go silent, and nobody is told.
    Silence(usize),
    /// They are half open: nothing passes in this direction, and nobody is told.
    HalfOpen { server: usize, lost: Direction },
    /// Everything between a server and the database is late, in both directions.
    Delay {
        server: usize,
        by: Duration,
        time: Duration,
    },
    /// No more than so many bytes a second pass there, on each connection.
    Throttle {
        server: usize,
        bytes: u32,
        time: Duration,
    },
    /// A workspace gets another limit.
    Limit { room: usize, limit: i32 },
    /// A workspace is paused, and resumed.
    Pause { room: usize, time: Duration },
    /// A series of alarms is paused, and resumed.
    PauseSeries { series: usize, time: Duration },
    /// Some items are cancelled, whatever they do.
    Cancel { items: usize },
    /// Some that ended badly are put back.
    Retry { items: usize },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forecast {
    pub(crate) events: Vec<Event>,
}

impl Forecast {
    /// Faults are dealt like cards: each kind comes before any comes twice as often as it should.
    pub(crate) fn new(seed: u64, length: Duration, servers: usize) -> Self {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut deck = Vec::new();
        let mut at = Duration::from_secs(2);
        let mut events = Vec::new();
        while at < length {
            if deck.is_empty() {
                deck = cards(&mut chance, servers);
            }
            events.extend(deck.pop().map(|fault| Event { at, fault }));
            at += Duration::from_millis(chance.random_range(GAP));
        }
        Self { events }
    }
}

fn cards(chance: &mut StdRng, servers: usize) -> Vec<Fault> {
    let mut deck = vec![Fault::Landslide {
        away: Duration::from_millis(chance.random_range(3_500..6_000)),
    }];
    for _ in 0..4 {
        deck.push(Fault::Kill(chance.random_range(0..servers)));
    }
    for _ in 0..2 {
        let mut server = || chance.random_range(0..servers);
        let (stopped, leaves, cut) = (server(), server(), server());
        deck.push(Fault::Leave(leaves));
        deck.push(Fault::Cut(cut));
        deck.push(Fault::Stop {
            server: stopped,
            time: Duration::from_millis(chance.random_range(STOPPED)),
        });
        deck.push(Fault::Crash {
            away: Duration::from_millis(chance.random_range(200..2_500)),
        });
        deck.push(Fault::Limit {
            room: chance.random_range(ALTERABLE),
            limit: chance.random_range(1..6),
        });
        deck.push(Fault::Cancel {
            items: chance.random_range(4..9),
        });
        deck.push(Fault::Retry {
            items: chance.random_range(1..4),
        });
    }
    deck.push(Fault::Silence(chance.random_range(0..servers)));
    deck.push(Fault::HalfOpen {
        server: chance.random_range(0..servers),
        lost: if chance.random() {
            Direction::Requests
        } else {
            Direction::Answers
        },
    });
    deck.push(Fault::Delay {
        server: chance.random_range(0..servers),
        by: Duration::from_millis(chance.random_range(20..200)),
        time: Duration::from_millis(chance.random_range(3_000..8_000)),
    });
    deck.push(Fault::Throttle {
        server: chance.random_range(0..servers),
        bytes: chance.random_range(16..128) * 1024,
        time: Duration::from_millis(chance.random_range(3_000..8_000)),
    });
    deck.push(Fault::Pause {
        room: chance.random_range(0..ROOMS),
        time: Duration::from_millis(chance.random_range(1_000..4_000)),
    });
    deck.push(Fault::PauseSeries {
        series: chance.random_range(0..SERIES.len()),
        time: Duration::from_millis(chance.random_range(2_000..6_000)),
    });
    deck.shuffle(chance);
    deck
}

#[test]
fn a_seed_tells_the_whole_schedule_and_another_one_another() {
    let forecast = |seed| Forecast::new(seed, Duration::from_mins(5), 4);
    assert_eq!(forecast(3), forecast(3));
    assert_ne!(forecast(3), forecast(4));
    assert!(forecast(3).events.len() > 100);
}

#[test]
fn the_short_storm_has_every_kind_of_weather() {
    let kinds = |events: &[Event]| -> std::collections::HashSet<_> {
        let kind = |event: &Event| std::mem::discriminant(&event.fault);
        events.iter().map(kind).collect()
    };
    let short = Forecast::new(crate::SEED, crate::LENGTH, crate::SERVERS);
    let long = Forecast::new(crate::SEED, Duration::from_mins(5), crate::SERVERS);
    assert_eq!(kinds(&short.events), kinds(&long.events));
}
