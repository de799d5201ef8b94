//! What runs in a server, and that it ends with it.

use crate::common::Testbed;
use crate::support::{Dispatch, Server};

#[tokio::test]
async fn a_server_with_every_lane_has_one_prober_and_no_task_twice() {
    let testbed = Testbed::new().await;
    let dispatch = Dispatch {
        executions: true,
        alarms: true,
        ..Dispatch::default()
    };
    let server = Server::with(&testbed, dispatch).await;
    let mut names: Vec<&str> = server.station.pulses().map(|pulse| pulse.name).collect();
    names.sort_unstable();
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once);
    for lane in [
        "heartbeat",
        "prober",
        "executions",
        "alarms",
        "ownership of dispatchers",
    ] {
        assert!(names.contains(&lane), "{lane} is not among {names:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_only_dispatches_asks_for_its_engine_once_too() {
    let testbed = Testbed::new().await;
    let server = Server::start(&testbed).await;
    let probers = server.station.pulses().filter(|pulse| pulse.name == "prober");
    assert_eq!(probers.count(), 1);
    server.stop().await;
}
