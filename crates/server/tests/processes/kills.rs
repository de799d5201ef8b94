//! kill -9 at every step of a start, with Temporal: nothing is lost, and each execution has one run.

use std::time::Duration;

use crate::support::{ENDLESS, Launch, Process, Proxy, Temporal, TestDatabase, Work, Worker, eventually};

/// A server behind a proxy of its own, ready, with one workflow to run.
struct Stage {
    database: TestDatabase,
    temporal: Temporal,
    proxy: Proxy,
    first: Process,
    workflow: (uuid::Uuid, uuid::Uuid),
}

impl Stage {
    async fn set() -> Self {
        let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
        let proxy = Proxy::before(&temporal.address).await;
        let workflow = database.workflow(1, ENDLESS).await;
        let first = Launch::on(&database)
            .temporal(&proxy.address, &temporal.namespace)
            .start_ready()
            .await;
        Self {
            database,
            temporal,
            proxy,
            first,
            workflow,
        }
    }

    /// The server that comes after the one that was killed.
    fn second(&self) -> Process {
        Launch::on(&self.database)
            .temporal(&self.temporal.address, &self.temporal.namespace)
            .start()
    }

    /// In the end: one execution, running, one run of it, no attempt spent, one slot in use.
    async fn assert_running_once(&self) {
        let row = self.database.the_execution("RUNNING").await;
        self.temporal.assert_one_run_each([row.id]).await;
        let history = self.temporal.history(row.id).await;
        assert!(!history.is_empty());
        assert_eq!(row.attempts, 0, "{row:?}");
        self.database.assert_counters_agree().await;
        let used = self
            .database
            .number("select sum(active) from stationmaster_internal.workspace_capacity")
            .await;
        assert_eq!(used, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_in_the_middle_of_a_claim_leaves_the_item_as_it_was() {
    let mut stage = Stage::set().await;
    let lock = stage
        .database
        .lock("lock table stationmaster_internal.executions_active in share mode")
        .await;
    stage.database.enqueue(stage.workflow, 1).await;
    eventually("the claim waits for the table", async || {
        stage
            .database
            .is_waited_for("stationmaster_internal.executions_active")
            .await
    })
    .await;
    stage.first.kill();
    lock.rollback().await.unwrap();

    let second = stage.second();
    stage.assert_running_once().await;
    let row = stage.database.the_execution("RUNNING").await;
    assert_eq!(row.recoveries, 0, "it was never in anybody's hands");
    drop(second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_after_the_intent_is_committed_and_before_anything_is_sent_loses_nothing() {
    let mut stage = Stage::set().await;
    let lock = stage
        .database
        .lock("lock table stationmaster.workflow_definition_versions in access exclusive mode")
        .await;
    stage.database.enqueue(stage.workflow, 1).await;
    let intent = stage.database.the_execution("STARTING").await;
    eventually(
        "the claim is committed and the version is being read",
        async || {
            stage
                .database
                .is_waited_for("stationmaster.workflow_definition_versions")
                .await
        },
    )
    .await;
    stage.first.kill();
    lock.rollback().await.unwrap();
    assert!(!stage.proxy.was_sent(&intent.id.to_string()), "nothing was sent");

    let _second = stage.second();
    stage.assert_running_once().await;
    let row = stage.database.the_execution("RUNNING").await;
    assert_eq!(
        (row.id, row.recoveries),
        (intent.id, 1),
        "the same id in every try"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_before_its_request_arrives_loses_nothing() {
    let mut stage = Stage::set().await;
    stage.proxy.hold_requests();
    stage.database.enqueue(stage.workflow, 1).await;
    let intent = stage.database.the_execution("STARTING").await;
    eventually("the request is on its way", async || {
        stage.proxy.was_sent(&intent.id.to_string())
    })
    .await;
    stage.first.kill();
    assert!(
        stage.temporal.history(intent.id).await.is_empty(),
        "the request was held back"
    );

    let _second = stage.second();
    stage.assert_running_once().await;
    let row = stage.database.the_execution("RUNNING").await;
    assert_eq!((row.id, row.recoveries), (intent.id, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_arrives_after_its_sender_was_killed_and_replaced_starts_nothing_more() {
    let mut stage = Stage::set().await;
    stage.proxy.hold_requests();
    stage.database.enqueue(stage.workflow, 1).await;
    let intent = stage.database.the_execution("STARTING").await;
    eventually("the request is on its way", async || {
        stage.proxy.was_sent(&intent.id.to_string())
    })
    .await;
    stage.first.kill();
    let _second = stage.second();
    stage.assert_running_once().await;
    let run = stage.database.the_execution("RUNNING").await.run_id;

    stage.proxy.open();
    eventually("the late request has arrived", async || {
        stage.proxy.has_passed(&intent.id.to_string())
    })
    .await;
    let third = Launch::on(&stage.database).temporal(&stage.proxy.address, &stage.temporal.namespace);
    let _third = third.start_ready().await;
    stage.assert_running_once().await;
    assert_eq!(stage.database.the_execution("RUNNING").await.run_id, run);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_between_the_start_and_its_settlement_leaves_a_run_that_is_found() {
    let mut stage = Stage::set().await;
    stage.proxy.hold_answers();
    stage.database.enqueue(stage.workflow, 1).await;
    let intent = stage.database.the_execution("STARTING").await;
    stage.temporal.until_started(intent.id).await;
    stage.first.kill();

    let second = stage.second();
    let took = stage.database.until_count("RUNNING", 1).await;
    println!("recovered {took:?} after the kill");
    stage.assert_running_once().await;
    let row = stage.database.the_execution("RUNNING").await;
    assert_eq!(
        (row.id, row.recoveries),
        (intent.id, 0),
        "it was not lost, only not written down"
    );
    assert!(row.holder != intent.holder, "another server looks after it");
    assert!(
        took < Duration::from_secs(15),
        "the lease is 5 s, and recovery took {took:?}"
    );
    drop(second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_after_the_settlement_leaves_a_run_whose_end_is_noticed() {
    let mut stage = Stage::set().await;
    stage.database.enqueue(stage.workflow, 1).await;
    let row = stage.database.the_execution("RUNNING").await;
    stage.first.kill();

    let _second = stage.second();
    let _worker = Worker::start(&stage.temporal, Work::CompleteAfter(Duration::ZERO));
    let ended = stage.database.the_execution("COMPLETED").await;
    assert_eq!((ended.id, ended.recoveries), (row.id, 0));
    stage.temporal.assert_one_run_each([row.id]).await;
    stage.database.assert_all_completed_once(1).await;
}
