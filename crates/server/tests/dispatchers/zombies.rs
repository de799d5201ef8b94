//! An owner that is stopped past its lease and goes on.

use nix::sys::signal::Signal;
use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::common::v1::{Memo, Payload, WorkflowType};
use temporalio_common::protos::temporal::api::enums::v1::{
    EventType, WorkflowExecutionStatus, WorkflowIdConflictPolicy,
};
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::SignalWithStartWorkflowExecutionRequest;
use uuid::Uuid;

use crate::line::{DISPATCHER, Line};
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
        .lock("lock table stationmaster_internal.signals_settled in access exclusive mode")
        .await;
    line.send(50).await;
    eventually("a route waits for the table", async || {
        line.database
            .is_waited_for("stationmaster_internal.signals_settled")
            .await
    })
    .await;
    zombie.stop();
    lock.rollback().await.unwrap();
    let taken = line.until_owned(2).await;
    line.send(50).await;
    line.until_routed(110).await;
    zombie.signal(Signal::SIGCONT);
    eventually("the zombie's late writes were refused", async || {
        zombie.metric("stationmaster_stale_writes_refused_total").await > 0.0
    })
    .await;
    line.send(50).await;
    line.until_routed(160).await;
    assert_eq!(line.row().await, taken, "nothing has changed hands");
    assert!(zombie.metric("dispatcher_active ").await < 0.5);
    let late = "select count(*) from stationmaster_internal.signals_settled a, stationmaster_internal.signals_settled b
                where a.epoch < b.epoch and a.settled_at > b.settled_at";
    assert_eq!(
        line.database.number(late).await,
        0,
        "nothing was routed under the old epoch after the new one began"
    );
    assert_eq!(line.open_runs().await, 1);
    drop(standby);
}

/// The start of a former owner, as it was under way when that owner died.
fn late_start(line: &Line, epoch: i64) -> SignalWithStartWorkflowExecutionRequest {
    let json = |text: String| Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: text.into_bytes(),
        ..Payload::default()
    };
    let memo = [
        ("epoch".to_owned(), json(epoch.to_string())),
        ("serverId".to_owned(), json(format!("\"{}\"", Uuid::now_v7()))),
    ];
    SignalWithStartWorkflowExecutionRequest {
        namespace: line.temporal.namespace.clone(),
        workflow_id: DISPATCHER.to_owned(),
        workflow_type: Some(WorkflowType {
            name: "stationmaster-dispatcher".to_owned(),
        }),
        task_queue: Some(TaskQueue {
            name: "of-the-dead".to_owned(),
            ..TaskQueue::default()
        }),
        request_id: format!("{DISPATCHER}:{epoch}:0"),
        workflow_id_conflict_policy: WorkflowIdConflictPolicy::TerminateExisting.into(),
        signal_name: "register".to_owned(),
        memo: Some(Memo { fields: memo.into() }),
        ..SignalWithStartWorkflowExecutionRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_of_a_dead_owner_that_arrives_late_and_ends_its_successors_run_is_made_good() {
    let line = Line::new().await;
    let mut dead = line.owner().await;
    dead.kill();
    let successor = line.launch.start_ready().await;
    let taken = line.until_owned(2).await;
    let late = late_start(&line, 1);
    let mut service = line.temporal.service();
    let late = service
        .signal_with_start_workflow_execution(late.into_request())
        .await;
    let late = late.unwrap().into_inner().run_id;
    let (ended, _) = line.end_of(taken.run_id.as_deref().unwrap()).await;
    assert_eq!(
        ended,
        EventType::WorkflowExecutionTerminated,
        "it has ended the successor's run"
    );
    line.send(10).await;
    line.until_routed(10).await;
    let row = line.row().await;
    assert_eq!(
        (row.owner, row.epoch),
        (taken.owner, 2),
        "the same owner, under the same epoch"
    );
    let (ended, _) = line.end_of(&late).await;
    assert_eq!(ended, EventType::WorkflowExecutionTerminated);
    eventually("the one open run is the successor's", async || {
        let runs = line.runs().await;
        let open: Vec<_> = runs
            .iter()
            .filter(|run| run.status() == WorkflowExecutionStatus::Running)
            .collect();
        open.len() == 1 && Some(open[0].execution.as_ref().unwrap().run_id.as_str()) == row.run_id.as_deref()
    })
    .await;
    drop(successor);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_run_beside_an_owner_is_counted_until_the_supervisor_has_ended_it() {
    let mut line = Line::new().await;
    // The owner itself does not look for its run: the supervisor has to.
    line.launch = line.launch.clone().with("DISPATCHERS__CHECK_INTERVAL", "1m");
    let owner = line.owner().await;
    let mut service = line.temporal.service();
    let late = service
        .signal_with_start_workflow_execution(late_start(&line, 0).into_request())
        .await;
    late.unwrap();
    eventually("the older run is counted", async || {
        owner.metric("stationmaster_dispatchers_duplicate").await > 0.5
    })
    .await;
    eventually("it is gone, and counted no more", async || {
        owner.metric("dispatcher_terminations_total").await > 0.5
            && owner.metric("stationmaster_dispatchers_duplicate").await < 0.5
    })
    .await;
}
