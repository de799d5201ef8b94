//! SIGTERM: stopped in order, within the deadline, whatever is going on.

use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{ENDLESS, Launch, Proxy, SHORT, Temporal, TestDatabase, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_told_to_stop_under_load_leaves_nothing_in_its_hands_and_the_other_goes_on() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(8, SHORT).await;
    let launch = Launch::on(&database).with("SHUTDOWN_TIMEOUT", "10s");
    let mut leaving = launch.start_ready().await;
    database.enqueue(workflow, 400).await;
    database.until_count("COMPLETED", 10).await;
    let mut staying = launch.start_ready().await;
    leaving.signal(Signal::SIGTERM);
    let (status, took) = leaving.ended().await;
    println!("left in {took:?}");
    assert_eq!(status.code(), Some(0), "{}", leaving.log());
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(
        database.count("COMPLETED").await < 400,
        "it was stopped under load"
    );
    let orphans = "select count(*) from stationmaster_internal.executions_active a
                   where not exists (select from stationmaster_internal.servers s where s.id = a.holder)";
    assert_eq!(
        database.number(orphans).await,
        0,
        "nothing is left in the hands of a server that is gone"
    );
    assert_eq!(
        database
            .number("select count(*) from stationmaster_internal.servers")
            .await,
        1
    );
    database.until_count("COMPLETED", 400).await;
    staying.assert_alive();
    database.assert_all_completed_once(400).await;
    let lost = "select count(*) from stationmaster_internal.executions_finished where recoveries > 0";
    assert_eq!(database.number(lost).await, 0, "nothing had to be recovered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_runs_of_a_server_told_to_stop_are_back_in_the_queue_and_go_on_with_the_next() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(3, ENDLESS).await;
    let launch = Launch::on(&database);
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 5).await;
    database.until_count("RUNNING", 3).await;
    let ids = |rows: Vec<crate::support::Row>| rows.into_iter().map(|row| row.id).collect::<Vec<_>>();
    let before = ids(database.rows().await);
    server.signal(Signal::SIGTERM);
    let (status, took) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{}", server.log());
    println!("left in {took:?}");
    let pending = "select count(*) from stationmaster.workflow_execution_queue where status = 'PENDING' and attempt_count = 0";
    assert_eq!(database.number(pending).await, 5);
    database.assert_no_slot_is_used().await;
    assert_eq!(
        database
            .number("select count(*) from stationmaster_internal.servers")
            .await,
        0
    );

    let _next = launch.start_ready().await;
    database.until_count("RUNNING", 3).await;
    let rows = database.rows().await;
    assert!(
        rows.iter().all(|row| row.attempts == 0 && row.recoveries == 0),
        "{rows:?}"
    );
    assert_eq!(ids(rows), before, "they keep their ids and their place");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_told_twice_to_stop_does_not_wait_for_what_is_under_way() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let mut server = launch.with("SHUTDOWN_TIMEOUT", "10m").start_ready().await;
    proxy.hold_answers();
    database.enqueue(workflow, 1).await;
    let claimed = database.the_execution("STARTING").await;
    temporal.until_started(claimed.id).await;
    server.signal(Signal::SIGTERM);
    eventually("it stops", async || server.said("Stopping") == 1).await;
    server.signal(Signal::SIGINT);
    let (status, took) = server.ended().await;
    println!("left in {took:?}");
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert_eq!(server.said("hurrying"), 1, "{}", server.log());
    let gave_up = "Not everything under way could be finished in time";
    assert_eq!(
        server.said(gave_up),
        1,
        "ten minutes are not over: {}",
        server.log()
    );
    let servers = "select count(*) from stationmaster_internal.servers where lease_until > now()";
    assert_eq!(
        database.number(servers).await,
        0,
        "it has signed off all the same, so that others look after the rest at once"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_told_to_stop_while_temporal_is_silent_ends_in_time_and_its_start_is_found() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let mut server = launch.with("SHUTDOWN_TIMEOUT", "2s").start_ready().await;
    proxy.hold_answers();
    database.enqueue(workflow, 1).await;
    let claimed = database.the_execution("STARTING").await;
    temporal.until_started(claimed.id).await;
    server.signal(Signal::SIGTERM);
    let (status, took) = server.ended().await;
    println!("left in {took:?}");
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert!(took < Duration::from_secs(6), "{took:?}");

    let _next = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .start();
    let took = database.until_count("RUNNING", 1).await;
    println!("found {took:?} later");
    let row = database.the_execution("RUNNING").await;
    assert_eq!((row.id, row.attempts), (claimed.id, 0));
    temporal.assert_one_run_each([row.id]).await;
}
