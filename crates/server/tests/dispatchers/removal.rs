//! On Temporal a dispatcher that is removed takes its run along, and a signal makes it anew.

use crate::line::{DISPATCHER, Line};
use crate::support::{command, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_is_removed_leaves_no_run_behind_and_the_next_signal_is_routed() {
    let line = Line::new().await;
    let servers = [line.launch.start_ready().await, line.launch.start_ready().await];
    line.send(3).await;
    line.until_routed(3).await;
    let before = line.row().await;
    let would = command(
        &line.database,
        &["dispatchers", "remove", DISPATCHER, "--dry-run"],
    );
    assert_eq!(would["id"], DISPATCHER);
    assert_eq!(line.row().await, before, "a dry run changes nothing");
    command(&line.database, &["dispatchers", "remove", DISPATCHER, "--yes"]);
    let rows = "select count(*) from stationmaster.dispatchers";
    eventually("it is gone", async || line.database.number(rows).await == 0).await;
    assert_eq!(line.open_runs().await, 0, "and its run went before");
    line.send(2).await;
    line.until_routed(5).await;
    assert_eq!(line.story().await[..4], ["fresh", "rested", "removed", "fresh"]);
    let epochs = "select count(*) from (select epoch from stationmaster.dispatcher_events where event = 'fresh' group by epoch) e";
    assert_eq!(line.database.number(epochs).await, 2, "no epoch comes twice");
    drop(servers);
}
