//! Servers that stand still, and a dispatcher whose only owner is gone.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::runbook::Place;
use crate::support::receiver::Reply;
use crate::support::{Alarms, SHORT, eventually, free_port};
use crate::trial::Watch;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_writes_and_a_dispatcher_that_nobody_may_own_are_noticed() {
    let alarms = Alarms::new().await;
    let database = &alarms.database;
    let (_, definition) = database.workflow(1_000, SHORT).await;
    alarms
        .run(&format!(
            "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', '{definition}')"
        ))
        .await;
    alarms
        .run("insert into stationmaster.dispatchers (id, project, task_queue) values ('dispatcher-shop-default', 'shop', 'default')")
        .await;
    let place = format!("127.0.0.1:{}", free_port());
    let owner = alarms
        .launch()
        .with("LISTEN", &place)
        .with("HTTP__OPEN", "true")
        .with("DISPATCHERS__LEASE", "3s")
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .with("DISPATCHERS__STALE_AFTER", "4s")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s");
    let mut first = owner.start_ready().await;
    let ownership = "select count(*) from stationmaster.dispatchers where owner is not null";
    eventually("it is owned", async || database.number(ownership).await == 1).await;
    let address = first.address().unwrap();

    // Twelve wakes are under way when the first server is stopped, and another one sends them again.
    let wakes: Vec<String> = (0..12).map(|n| format!("/wake-{n}")).collect();
    for wake in &wakes {
        alarms.receiver.next(wake, [Reply::held()]);
    }
    let mut set = Vec::new();
    for wake in &wakes {
        set.push(alarms.now(wake).await);
    }
    alarms.until_arrived(12).await;
    let other = alarms
        .launch()
        .with("DISPATCHERS__ENABLED", "false")
        .with("HTTP__OPEN", "true")
        .start_ready()
        .await;
    let servers = [address.as_str(), &other.address().unwrap()];
    let look = Place::at(servers[1]);
    let watch = Watch::on(&servers, Duration::from_secs(1)).await;
    let mut trial = watch.begin(&["StaleWrites"]).await;
    first.stop();
    for alarm in set {
        alarms.until(alarm, "fired").await;
    }
    alarms.receiver.let_go();
    first.signal(Signal::SIGCONT);
    trial.fire(&look).await;
    // It is a server again, and nothing is held any more.
    trial.clear().await;
    eventually("it owns the dispatcher again", async || {
        first.readiness().await.0 == 200 && database.number(ownership).await == 1
    })
    .await;

    let mut trial = watch.begin(&["DispatcherUnattended"]).await;
    first.kill();
    alarms
        .run("insert into stationmaster.signals (project, name) values ('shop', 'paid')")
        .await;
    trial.fire(&look).await;
    let _again = owner.start_ready().await;
    trial.clear().await;
}
