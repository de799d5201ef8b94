//! Healthy servers that come and go: nobody ends another's run.

use nix::sys::signal::Signal;

use crate::line::{DISPATCHER, Line};
use crate::support::{command, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn healthy_servers_that_boot_in_turn_never_end_each_others_run_and_the_end_of_a_standby_changes_nothing()
 {
    let line = Line::new().await;
    let owner = line.owner().await;
    let first = line.row().await;
    line.send(20).await;
    line.until_routed(20).await;
    for _ in 0..3 {
        let mut standby = line.launch.start_ready().await;
        line.until_registered(2).await;
        line.send(20).await;
        standby.signal(Signal::SIGTERM);
        assert_eq!(standby.ended().await.0.code(), Some(0), "{}", standby.log());
        line.until_registered(1).await;
    }
    line.until_routed(80).await;
    assert_eq!(line.row().await, first, "same owner, same epoch, same run");
    assert_eq!(line.story().await, ["fresh"]);
    assert_eq!(line.runs().await.len(), 1);
    let show = || command_on(&line, &["dispatchers", "show", DISPATCHER]);
    eventually("the run itself tells of all of them", async || {
        show()["run"]["routed"] == 80
    })
    .await;
    let shown = show();
    assert_eq!(
        (shown["state"].as_str(), shown["run"]["epoch"].as_i64()),
        (Some("owned"), Some(1))
    );
    drop(owner);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_told_to_stop_hands_over_at_once_and_ends_only_its_own_run() {
    let line = Line::new().await;
    let launch = line
        .launch
        .clone()
        .with("DISPATCHERS__LEASE", "50s")
        .with("DISPATCHERS__STALE_AFTER", "55s")
        .with("DISPATCHERS__SLA", "2m");
    let mut owner = launch.start_ready().await;
    let before = line.until_owned(1).await;
    let _standby = launch.start_ready().await;
    line.until_registered(2).await;
    owner.signal(Signal::SIGTERM);
    let after = line.until_owned(2).await;
    assert_eq!(owner.ended().await.0.code(), Some(0), "{}", owner.log());
    assert_ne!(before.owner, after.owner);
    assert_eq!(line.story().await, ["fresh", "handed_over", "handover"]);
    eventually("one run is open", async || line.open_runs().await == 1).await;
    line.send(30).await;
    line.until_routed(30).await;
    assert_eq!(
        line.row().await,
        after,
        "the leaving server touched nothing of its successor's"
    );
}

fn command_on(line: &Line, arguments: &[&str]) -> serde_json::Value {
    let settings = [
        "--engine",
        "temporal",
        "--temporal-address",
        &line.temporal.address,
        "--temporal-namespace",
        &line.temporal.namespace,
    ];
    command(&line.database, &[arguments, &settings].concat())
}
