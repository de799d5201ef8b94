//! kill -9 of the owner: a standby takes over within the lease and a little, and the old run ends before the new one starts.
//!
//! Three trials here; `STATIONMASTER_TEST_TAKEOVERS=20 cargo xtask test -p stationmaster --test dispatchers takeover -- --nocapture`
//! makes more of them and prints the table.

use std::time::{Duration, Instant};

use temporalio_common::protos::temporal::api::enums::v1::EventType;

use crate::line::{LEASE, Line};
use crate::support::Process;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_takes_over_within_the_lease_and_two_seconds_and_the_old_run_ends_before_the_new_one_starts()
 {
    let trials: i64 = std::env::var("STATIONMASTER_TEST_TAKEOVERS").map_or(3, |text| text.parse().unwrap());
    let line = Line::new().await;
    let mut servers: Vec<Process> = vec![line.owner().await, line.launch.start_ready().await];
    let mut latencies = Vec::new();
    let mut sent = 0;
    for trial in 1..=trials {
        line.until_registered(2).await;
        let before = line.until_owned(trial).await;
        let owner = owner_of(&line, &servers).await;
        let mut killed = servers.remove(owner);
        killed.kill();
        let began = Instant::now();
        line.send(10).await;
        sent += 10;
        let after = line.until_owned(trial + 1).await;
        let latency = began.elapsed();
        latencies.push(latency);
        assert_ne!(before.owner, after.owner);
        let (ended, at) = line.end_of(before.run_id.as_deref().unwrap()).await;
        assert_eq!(ended, EventType::WorkflowExecutionTerminated);
        // One transaction of Temporal ends the one and makes the other; no step of the new one comes before.
        let first_step = line.first_step_of(after.run_id.as_deref().unwrap()).await;
        assert!(
            at <= first_step,
            "the old run ended at {at:?}, the new one began at {first_step:?}"
        );
        line.until_routed(sent).await;
        servers.push(line.launch.start_ready().await);
    }
    println!("takeovers after kill -9, with a lease of {LEASE:?}:");
    for (trial, latency) in latencies.iter().enumerate() {
        println!("  {:>2}  {:.2} s", trial + 1, latency.as_secs_f64());
    }
    latencies.sort();
    println!(
        "  median {:.2} s, most {:.2} s",
        latencies[latencies.len() / 2].as_secs_f64(),
        latencies.last().unwrap().as_secs_f64()
    );
    // What is promised is lease + 2 s. A machine that does much else holds one trial up now and then, but not most of them;
    // and the standby itself, by the database's clock, has the row within two seconds of the lease's end.
    let (promised, most) = (LEASE + Duration::from_secs(2), LEASE + Duration::from_secs(6));
    assert!(latencies[latencies.len() / 2] < promised, "{latencies:?}");
    assert!(latencies.iter().all(|latency| *latency < most), "{latencies:?}");
    let vacant = "select max((detail->>'vacant_for')::double precision * 1000)::bigint from stationmaster.dispatcher_events
                  where event = 'takeover'";
    let vacant = line.database.number(vacant).await;
    assert!((0..2_000).contains(&vacant), "nobody owned it for {vacant} ms");
}

/// Which of the servers owns the dispatcher.
async fn owner_of(line: &Line, servers: &[Process]) -> usize {
    let mut owner = None;
    crate::support::eventually("one of them says that it owns it", async || {
        for (index, server) in servers.iter().enumerate() {
            if server.metric("dispatcher_active ").await > 0.0 {
                owner = Some(index);
            }
        }
        owner.is_some()
    })
    .await;
    assert_eq!(line.open_runs().await, 1, "one effective dispatcher");
    owner.unwrap()
}
