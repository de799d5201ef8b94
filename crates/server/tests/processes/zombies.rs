//! Servers that are stopped past their lease and go on.

use nix::sys::signal::Signal;

use crate::support::{ENDLESS, Launch, Proxy, Temporal, TestDatabase, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_late_settlement_of_a_server_that_was_stopped_past_its_lease_is_refused() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let zombie = launch
        .with("EXECUTIONS__START_TIMEOUT", "50s")
        .with("EXECUTIONS__CLAIM_LEASE", "60s");
    let zombie = zombie.start_ready().await;
    proxy.hold_answers();
    database.enqueue(workflow, 1).await;
    let claimed = database.the_execution("STARTING").await;
    temporal.until_started(claimed.id).await;
    zombie.stop();

    let other = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .start_ready()
        .await;
    let recovered = database.the_execution("RUNNING").await;
    assert!(recovered.holder != claimed.holder, "{recovered:?}");
    assert!(recovered.run_id.is_some());

    proxy.open();
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie's write is refused", async || {
        zombie.metric("stationmaster_stale_writes_refused_total").await > 0.0
    })
    .await;
    assert_eq!(zombie.said("A late settlement was refused"), 1);
    assert_eq!(
        database.the_execution("RUNNING").await,
        recovered,
        "nothing has changed"
    );
    temporal.assert_one_run_each([claimed.id]).await;
    database.assert_counters_agree().await;
    eventually("the zombie is a server again", async || {
        zombie.readiness().await.0 == 200
    })
    .await;
    drop(other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_stopped_past_its_lease_sends_nothing_of_what_it_had_claimed() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let zombie = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    let lock = database
        .lock("lock table stationmaster.workflow_definition_versions in access exclusive mode")
        .await;
    database.enqueue(workflow, 1).await;
    let claimed = database.the_execution("STARTING").await;
    eventually("the version is being read", async || {
        database
            .is_waited_for("stationmaster.workflow_definition_versions")
            .await
    })
    .await;
    zombie.stop();
    lock.rollback().await.unwrap();

    let _other = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .start_ready()
        .await;
    let recovered = database.the_execution("RUNNING").await;
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie is a server again", async || {
        zombie.said("comes_back_as") > 0 && zombie.readiness().await.0 == 200
    })
    .await;
    assert!(
        !proxy.was_sent(&claimed.id.to_string()),
        "it knew that its lease was over"
    );
    assert_eq!(database.the_execution("RUNNING").await, recovered);
    temporal.assert_one_run_each([claimed.id]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedded_run_of_a_server_that_was_stopped_past_its_lease_ends_once_and_elsewhere() {
    let database = TestDatabase::new().await;
    let graph = r#"{"nodes": [{"id": "a", "type": "wait", "seconds": 3}, {"id": "b", "type": "wait", "seconds": 3}],
                    "edges": [{"from": "a", "to": "b"}]}"#;
    let workflow = database.workflow(2, graph).await;
    let zombie = Launch::on(&database).start_ready().await;
    database.enqueue(workflow, 2).await;
    database.until_count("RUNNING", 2).await;
    let before = database.rows().await;
    zombie.stop();
    let _other = Launch::on(&database).start_ready().await;
    eventually("the other server runs them", async || {
        let rows = database.rows().await;
        rows.iter()
            .all(|row| row.status == "RUNNING" && row.holder.is_some() && row.holder != before[0].holder)
    })
    .await;
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie is a server again", async || {
        zombie.said("comes_back_as") > 0
    })
    .await;
    database.until_count("COMPLETED", 2).await;
    database.assert_all_completed_once(2).await;
    let by_zombie = "select count(*) from stationmaster_internal.executions_finished where recoveries <> 1";
    assert_eq!(
        database.number(by_zombie).await,
        0,
        "each was lost once and ended under its second holder"
    );
}
