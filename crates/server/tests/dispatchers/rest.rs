//! On Temporal a dispatcher that rests has no run, and a signal brings it back.

use std::time::Duration;

use crate::line::Line;
use crate::support::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_rests_leaves_no_run_behind_and_the_next_signal_is_routed() {
    let line = Line::new().await;
    let launch = line.launch.clone().with("DISPATCHERS__REST_AFTER", "2s");
    let servers = [launch.start_ready().await, launch.start_ready().await];
    line.send(3).await;
    line.until_routed(3).await;
    eventually("it rests", async || line.open_runs().await == 0).await;
    let runs = line.runs().await.len();
    // Longer than a lease and several looks of the supervisor.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(line.runs().await.len(), runs, "nobody begins a run for nothing");
    assert_eq!(line.open_runs().await, 0);
    line.send(2).await;
    line.until_routed(5).await;
    assert_eq!(line.story().await[..3], ["fresh", "rested", "woken"]);
    drop(servers);
}
