//! Servers that are killed at each step of a wake: it fires again, under the same id, and no try is spent.

use crate::support::receiver::{Received, Reply};
use crate::support::{Alarms, Occurrence, Process, eventually};

struct Stage {
    alarms: Alarms,
    first: Process,
}

impl Stage {
    async fn set() -> Self {
        let alarms = Alarms::new().await;
        let first = alarms.launch().start_ready().await;
        Self { alarms, first }
    }

    /// In the end it is fired, and every wake had the same id.
    async fn assert_fired(&self, alarm: uuid::Uuid, recoveries: i32) {
        self.alarms.until(alarm, "fired").await;
        let fired = Occurrence {
            status: "fired".to_owned(),
            attempts: 0,
            recoveries,
            reason: None,
        };
        assert_eq!(self.alarms.occurrences(alarm).await, [fired]);
        let wakes = self.alarms.receiver.at("/wake");
        let ids: Vec<String> = wakes.iter().map(Received::id).collect();
        assert!(
            ids.iter()
                .all(|id| *id == ids[0] && id.starts_with(&alarm.to_string())),
            "{ids:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_in_the_middle_of_a_claim_leaves_the_alarm_as_it_was() {
    let mut stage = Stage::set().await;
    let lock = stage
        .alarms
        .database
        .lock("lock table stationmaster_internal.occurrences_open in share mode")
        .await;
    let alarm = stage.alarms.now("/wake").await;
    eventually("the claim waits for the table", async || {
        stage
            .alarms
            .database
            .is_waited_for("stationmaster_internal.occurrences_open")
            .await
    })
    .await;
    stage.first.kill();
    lock.rollback().await.unwrap();
    let _second = stage.alarms.launch().start_ready().await;
    stage.assert_fired(alarm, 0).await;
    assert_eq!(stage.alarms.receiver.arrived(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_after_the_occurrence_is_committed_and_before_anything_is_sent_loses_nothing() {
    let mut stage = Stage::set().await;
    let lock = stage
        .alarms
        .database
        .lock("lock table stationmaster_internal.wake_keys in access exclusive mode")
        .await;
    let alarm = stage.alarms.now("/wake").await;
    eventually("the key of the target is being read", async || {
        stage
            .alarms
            .database
            .is_waited_for("stationmaster_internal.wake_keys")
            .await
    })
    .await;
    let claimed = stage.alarms.occurrences(alarm).await;
    assert_eq!(claimed[0].status, "claimed", "the intent is committed");
    stage.first.kill();
    lock.rollback().await.unwrap();
    assert_eq!(stage.alarms.receiver.arrived(), 0, "nothing was sent");
    let second = stage.alarms.launch().start_ready().await;
    stage.assert_fired(alarm, 1).await;
    eventually("the recovery is counted", async || {
        second.metric("stationmaster_alarms_recovered_total").await > 0.5
    })
    .await;
    assert_eq!(stage.alarms.receiver.arrived(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_before_the_answer_sends_again_under_the_same_id() {
    let mut stage = Stage::set().await;
    stage.alarms.receiver.next("/wake", [Reply::held()]);
    let alarm = stage.alarms.now("/wake").await;
    stage.alarms.until_arrived(1).await;
    stage.first.kill();
    let _second = stage.alarms.launch().start_ready().await;
    stage.assert_fired(alarm, 1).await;
    stage.alarms.receiver.let_go();
    assert_eq!(stage.alarms.receiver.arrived(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_between_the_answer_and_its_settlement_sends_again_under_the_same_id() {
    let mut stage = Stage::set().await;
    let lock = stage
        .alarms
        .database
        .lock("lock table stationmaster_internal.occurrence_tries in share mode")
        .await;
    let settle = stage
        .alarms
        .database
        .lock("lock table stationmaster_internal.occurrences_finished in share mode")
        .await;
    let alarm = stage.alarms.now("/wake").await;
    stage.alarms.until_arrived(1).await;
    eventually("the settlement waits", async || {
        stage
            .alarms
            .database
            .is_waited_for("stationmaster_internal.occurrences_finished")
            .await
            || stage
                .alarms
                .database
                .is_waited_for("stationmaster_internal.occurrence_tries")
                .await
    })
    .await;
    stage.first.kill();
    drop((lock, settle));
    let _second = stage.alarms.launch().start_ready().await;
    stage.assert_fired(alarm, 1).await;
    assert_eq!(
        stage.alarms.receiver.at("/wake").len(),
        2,
        "at least once, and extras under the same id"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_after_the_settlement_leaves_nothing_to_do() {
    let mut stage = Stage::set().await;
    let alarm = stage.alarms.now("/wake").await;
    stage.alarms.until(alarm, "fired").await;
    stage.first.kill();
    let _second = stage.alarms.launch().start_ready().await;
    let other = stage.alarms.now("/other").await;
    stage.alarms.until(other, "fired").await;
    stage.assert_fired(alarm, 0).await;
    assert_eq!(stage.alarms.receiver.at("/wake").len(), 1);
}
