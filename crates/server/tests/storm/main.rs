//! A storm over all lanes: real servers on a real PostgreSQL, executions, alarms, signals and locks together, and everything that can
//! happen to them, by a schedule that a seed tells. What was acknowledged is kept in a ledger of our own; what became of it is read
//! from the public relations, from the API, and from those who were called. `cargo xtask storm` makes a long one; a short one with
//! a fixed seed is among the tests.
//!
//! ```text
//! forecast  ->  weather (faults)  \
//! ledger    <-  load (requests)    >  world  ->  watch, receiver (what was seen)  ->  check  ->  report
//! ```

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../processes/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests use the rest of it")]
mod support;

mod check;
mod forecast;
mod ledger;
mod load;
mod receiver;
mod report;
mod watch;
mod weather;
mod world;

use std::sync::Arc;
use std::time::Duration;

use forecast::Forecast;
use report::Report;
use world::{Engine, World};

/// With this one the short storm has every kind of weather.
const SEED: u64 = 7;
/// Of the short storm.
const LENGTH: Duration = Duration::from_secs(40);
const SERVERS: usize = 3;

/// What storm is asked for.
#[derive(Debug, Clone)]
struct Storm {
    seed: u64,
    length: Duration,
    servers: usize,
    engine: Engine,
}

impl Storm {
    /// Runs it and tells what was found.
    async fn run(&self) -> Report {
        let forecast = Forecast::new(self.seed, self.length, self.servers);
        eprintln!(
            "the storm of seed {}, {:?}, {} servers, {:?}:",
            self.seed, self.length, self.servers, self.engine
        );
        for event in &forecast.events {
            eprintln!("  {:>6.1} s  {:?}", event.at.as_secs_f64(), event.fault);
        }
        let world = Arc::new(World::new(self).await);
        let watch = watch::begin(&world);
        let load = load::begin(&world, self.seed);
        weather::rage(&world, &forecast, self.length).await;
        load.end().await;
        let calm = weather::calm(&world).await;
        let seen = watch.end().await;
        let violations = check::all(&world, &seen, calm).await;
        Report::new(self, &world, &seen, violations)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_storm_over_all_lanes_breaks_no_promise() {
    let storm = Storm {
        seed: SEED,
        length: LENGTH,
        servers: SERVERS,
        engine: Engine::Embedded,
    };
    let report = storm.run().await;
    report.print();
    report.assert_calm();
    report.assert_busy();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "as long as one likes: cargo xtask storm"]
async fn the_storm_that_was_asked_for() {
    let asked = |name: &str| support::setting(&format!("STATIONMASTER_STORM_{name}"));
    let storm = Storm {
        seed: asked("SEED").parse().expect("a seed is a number"),
        length: Duration::from_secs(asked("SECONDS").parse().expect("a length in seconds")),
        servers: asked("SERVERS").parse().expect("a number of servers"),
        engine: asked("ENGINE").parse().expect("an engine"),
    };
    let report = storm.run().await;
    report.print();
    if let Ok(path) = std::env::var("STATIONMASTER_STORM_REPORT") {
        std::fs::write(path, report.json()).expect("the report can be written");
    }
    report.assert_calm();
}
