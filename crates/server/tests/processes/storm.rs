//! kill -9, again and again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::{Launch, LimitWatch, TestDatabase};

const STORM: Duration = Duration::from_secs(15);
const LIMITS: [i32; 6] = [1, 1, 2, 2, 3, 4];
/// Enough to keep every slot busy for longer than the storm.
const ITEMS_PER_SLOT: i32 = 90;
/// The kill that takes all servers at once: whoever holds the work then, dies with it.
const LANDSLIDE: usize = 7;
const GRAPH: &str = r#"{"nodes": [{"id": "nap", "type": "wait", "seconds": 0.2}]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_storm_of_kills_limits_hold_and_everything_completes_once() {
    let seed = std::env::var("STATIONMASTER_TEST_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(rand::random);
    println!("STATIONMASTER_TEST_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let database = TestDatabase::new().await;
    let mut limits = HashMap::new();
    for limit in LIMITS {
        let workflow = database.workflow(limit, GRAPH).await;
        limits.insert(workflow.0, i64::from(limit));
        database.enqueue(workflow, limit * ITEMS_PER_SLOT).await;
    }
    let watch = LimitWatch::on(&database.pool);
    let launch = Launch::on(&database);
    let mut servers = [launch.start(), launch.start(), launch.start()];
    database.until_count("COMPLETED", 1).await;
    let begun = Instant::now();
    let mut kills = 0;
    while begun.elapsed() < STORM {
        tokio::time::sleep(Duration::from_millis(chance.random_range(500..900))).await;
        let chosen = chance.random_range(0..servers.len());
        let victims = match kills {
            LANDSLIDE => 0..servers.len(),
            _ => chosen..chosen + 1,
        };
        for victim in &mut servers[victims.clone()] {
            victim.assert_alive();
            victim.kill();
        }
        for victim in &mut servers[victims] {
            *victim = launch.start();
        }
        kills += 1;
    }
    let items = i64::from(LIMITS.iter().sum::<i32>() * ITEMS_PER_SLOT);
    let before = database.count("COMPLETED").await;
    let took = database.until_count("COMPLETED", items).await;
    let recovered = database
        .number("select sum(recoveries) from stationmaster_internal.executions_finished")
        .await;
    println!(
        "{kills} kills; {before} of {items} completed in the storm, the rest {took:?} after it; {recovered} recoveries"
    );
    assert!(recovered > 0, "the kills hit servers at work");
    watch.assert_kept(&limits);
    database.assert_all_completed_once(items).await;
    assert_eq!(database.attempts().await, 0, "a kill is not a refusal");
    for server in &mut servers {
        server.assert_alive();
    }
}
