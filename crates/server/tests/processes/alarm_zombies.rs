//! Servers with wakes in their hands that are stopped past their lease and go on.

use nix::sys::signal::Signal;

use crate::support::receiver::Reply;
use crate::support::{Alarms, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_late_settlement_of_a_wake_is_refused() {
    let alarms = Alarms::new().await;
    alarms.receiver.next("/wake", [Reply::held()]);
    let zombie = alarms.launch().start_ready().await;
    let alarm = alarms.now("/wake").await;
    alarms.until_arrived(1).await;
    zombie.stop();
    let _other = alarms.launch().start_ready().await;
    alarms.until(alarm, "fired").await;
    let before = alarms.occurrences(alarm).await;
    alarms.receiver.let_go();
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie's write is refused", async || {
        zombie
            .metric("stationmaster_stale_writes_refused_total{write=\"alarm\"}")
            .await
            > 0.0
    })
    .await;
    assert_eq!(alarms.occurrences(alarm).await, before, "nothing has changed");
    let wakes = alarms.receiver.at("/wake");
    assert!(wakes.iter().all(|wake| wake.id() == wakes[0].id()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_stopped_past_its_lease_sends_no_wake_that_it_had_claimed() {
    let alarms = Alarms::new().await;
    let zombie = alarms.launch().start_ready().await;
    let lock = alarms
        .database
        .lock("lock table stationmaster_internal.wake_keys in access exclusive mode")
        .await;
    let alarm = alarms.now("/wake").await;
    eventually("the key of the target is being read", async || {
        alarms
            .database
            .is_waited_for("stationmaster_internal.wake_keys")
            .await
    })
    .await;
    zombie.stop();
    lock.rollback().await.unwrap();
    let _other = alarms.launch().start_ready().await;
    alarms.until(alarm, "fired").await;
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie is a server again", async || {
        zombie.said("comes_back_as") > 0 && zombie.readiness().await.0 == 200
    })
    .await;
    // A sign of life of its wakes, after which anything older would have come.
    let other = alarms.now("/other").await;
    alarms.until(other, "fired").await;
    assert_eq!(
        alarms.receiver.at("/wake").len(),
        1,
        "it knew that its lease was over"
    );
}
