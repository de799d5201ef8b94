//! An owner that is stopped past its lease and goes on.

use nix::sys::signal::Signal;

use crate::line::Line;
use crate::support::eventually;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_writes_of_an_owner_that_was_stopped_past_its_lease_are_refused() {
    let line = Line::new().await;
    let zombie = line.owner().await;
    line.send(10).await;
    line.until_routed(10).await;
    let standby = line.launch.start_ready().await;
    line.until_registered(2).await;
    // It is stopped while it routes: the row that it has to share is kept from it until it stands still.
    let lock = line
        .database
        .lock("lock table stationmaster.signals_settled in access exclusive mode")
        .await;
    line.send(50).await;
    eventually("a route waits for the table", async || {
        line.database.is_waited_for("stationmaster.signals_settled").await
    })
    .await;
    zombie.stop();
    lock.rollback().await.unwrap();
    let taken = line.until_owned(2).await;
    line.send(50).await;
    line.until_routed(110).await;
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie's late writes were refused", async || {
        zombie.metric("stale_writes_refused_total").await > 0.0
    })
    .await;
    line.send(50).await;
    line.until_routed(160).await;
    assert_eq!(line.row().await, taken, "nothing has changed hands");
    assert!(zombie.metric("dispatcher_active ").await < 0.5);
    let late = "select count(*) from stationmaster.signals_settled a, stationmaster.signals_settled b
                where a.epoch < b.epoch and a.settled_at > b.settled_at";
    assert_eq!(
        line.database.number(late).await,
        0,
        "nothing was routed under the old epoch after the new one began"
    );
    assert_eq!(line.open_runs().await, 1);
    drop(standby);
}
