//! A checker in the manner of Jepsen's test of Chronos: servers are killed, targets fail, and in the end every instant of every
//! series was met by an accepted wake of its own; whatever came more often came under the same id.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use stationmaster_core::id::AlarmId;
use stationmaster_core::presence::Presence;
use stationmaster_schedule::{Cron, DstPolicy, Series, zone};
use stationmaster_wire::{Misfire, NewAlarm};

use crate::bed::Bed;
use crate::common::eventually;
use crate::common::receiver::{Received, Reply};
use crate::common::server::Mortal;

const SERIES: [&str; 4] = [
    "* * * * * *",
    "*/2 * * * * *",
    "*/3 * * * * *",
    "1-59/5 * * * * *",
];
const LENGTH: SignedDuration = SignedDuration::from_secs(12);

async fn start(bed: &Bed) -> Mortal {
    let presence = Presence::with_lease("mortal", Duration::from_secs(1));
    Mortal::start_alarms(&bed.testbed.url, bed.settings(), presence).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_instant_is_met_by_an_accepted_wake_of_its_own_through_kills_and_failures() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let bed = Bed::new().await;
    for (place, _) in SERIES.iter().enumerate() {
        let replies = (0..200).map(|_| Reply::status(if chance.random_bool(0.2) { 500 } else { 200 }));
        bed.receiver
            .next(&format!("/{place}"), replies.collect::<Vec<_>>());
    }
    let begin = Timestamp::now();
    let end = begin + LENGTH;
    let mut alarms: HashMap<AlarmId, &str> = HashMap::new();
    for (place, expression) in SERIES.iter().enumerate() {
        let request = NewAlarm {
            misfire: Some(Misfire::CatchUp),
            catch_up: Some(1000),
            max_failures: Some(100),
            start_at: Some(begin + SignedDuration::from_secs(1)),
            end_at: Some(end),
            ..bed.cron(expression, &format!("/{place}"))
        };
        alarms.insert(bed.set(request).await, expression);
    }
    let mut servers = [Some(start(&bed).await), Some(start(&bed).await)];
    while Timestamp::now() < end {
        tokio::time::sleep(Duration::from_millis(chance.random_range(300..1200))).await;
        let place = chance.random_range(0..2);
        match servers[place].take() {
            Some(server) => server.kill(),
            None => servers[place] = Some(start(&bed).await),
        }
    }
    let last = start(&bed).await;
    eventually("every series is over", async || {
        bed.testbed
            .run("update stationmaster_internal.occurrences_open set ready_at = now() where holder is null and ready_at > now()")
            .await;
        let running = "select count(*) from stationmaster_internal.alarm_standings where status = 'active'";
        bed.testbed.number(running).await == 0
    })
    .await;
    check(&bed, &alarms, begin, end).await;
    drop(last);
}

async fn check(bed: &Bed, alarms: &HashMap<AlarmId, &str>, begin: Timestamp, end: Timestamp) {
    let received = bed.receiver.received();
    let accepted: HashSet<String> = received
        .iter()
        .filter(|wake| wake.status == 200)
        .map(Received::id)
        .collect();
    let mut wanted = HashSet::new();
    for (id, expression) in alarms {
        let series = Series {
            cron: Cron::parse(expression).unwrap(),
            zone: zone("UTC").unwrap(),
            dst: DstPolicy::Vixie,
            start: Some(begin + SignedDuration::from_secs(1)),
            end: Some(end),
            anchor: begin,
        };
        wanted.extend(series.fires(begin).map(|fire| format!("{id}:{}", fire.at)));
    }
    assert!(wanted.len() > 20, "{}", wanted.len());
    let lost: Vec<&String> = wanted.difference(&accepted).collect();
    assert!(lost.is_empty(), "never met: {lost:?}");
    let strange: Vec<String> = received
        .iter()
        .map(Received::id)
        .filter(|id| !wanted.contains(id))
        .collect();
    assert!(strange.is_empty(), "nobody asked for: {strange:?}");
    let unfired = "select count(*) from stationmaster_internal.occurrences_finished where status <> 'fired'";
    assert_eq!(bed.testbed.number(unfired).await, 0);
    println!(
        "{} instants, {} wakes, {} accepted ids",
        wanted.len(),
        received.len(),
        accepted.len()
    );
}
