//! What a crash, or an older deployment, leaves behind.

use std::time::Instant;

use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::common::v1::WorkflowType;
use temporalio_common::protos::temporal::api::enums::v1::WorkflowExecutionStatus;
use temporalio_common::protos::temporal::api::taskqueue::v1::TaskQueue;
use temporalio_common::protos::temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;

use crate::line::{Line, SLA};
use crate::support::{command, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_standby_the_run_and_the_heartbeat_of_a_killed_owner_are_gone_within_the_sla() {
    let line = Line::new().await;
    let mut owner = line.owner().await;
    let watcher = line.launch.clone().with("DISPATCHERS__ENABLED", "false");
    let watcher = watcher.start_ready().await;
    let heartbeats = "select count(*) from stationmaster_internal.dispatcher_heartbeats";
    eventually("it has a heartbeat", async || {
        line.database.number(heartbeats).await == 1
    })
    .await;
    let first = line.row().await.run_id.unwrap();
    owner.kill();
    let began = Instant::now();
    eventually("nobody owns it by its row", async || {
        line.row().await.owner.is_none()
    })
    .await;
    let took = began.elapsed();
    println!("nothing was left {took:?} after the kill; the SLA of the settings is {SLA:?}");
    assert_eq!(line.database.number(heartbeats).await, 0);
    eventually("no run is open", async || line.open_runs().await == 0).await;
    let story = line.story().await;
    let place = |event: &str| {
        story
            .iter()
            .position(|one| one == event)
            .unwrap_or_else(|| panic!("{event} in {story:?}"))
    };
    assert!(place("run_terminated") < place("heartbeat_removed"), "{story:?}");
    let audited = "select count(*) from stationmaster.audit where action = 'dispatcher.run_terminated' and detail->>'run_id' is not null";
    assert_eq!(line.database.number(audited).await, 1);
    eventually("the termination is counted", async || {
        watcher.metric("dispatcher_terminations_total").await > 0.0
    })
    .await;
    for words in [
        "Terminated a run that was left behind",
        "Removed a heartbeat that was left behind",
    ] {
        assert_eq!(watcher.said(words), 1, "{words}");
    }
    assert!(took < SLA, "{took:?}");
    let (ended, _) = line.end_of(&first).await;
    assert_eq!(format!("{ended:?}"), "WorkflowExecutionTerminated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_that_only_observes_says_once_what_it_would_do_and_ends_no_run() {
    let line = Line::new().await;
    let mut owner = line.owner().await;
    let observer = line
        .launch
        .clone()
        .with("DISPATCHERS__ENABLED", "false")
        .with("DISPATCHERS__OBSERVE_ONLY", "true");
    let observer = observer.start_ready().await;
    let heartbeats = "select count(*) from stationmaster_internal.dispatcher_heartbeats";
    eventually("it has a heartbeat", async || {
        line.database.number(heartbeats).await == 1
    })
    .await;
    owner.kill();
    let words = "The supervisor would clean this up, and only observes";
    eventually("it says what it would do", async || {
        observer.said(words) >= 3 && observer.said("they would be evicted, and that is switched off") == 1
    })
    .await;
    let looks = async || observer.metric("stationmaster_supervisor_looks_total").await;
    let so_far = looks().await;
    eventually("it looks again and again", async || looks().await >= so_far + 6.0).await;
    assert_eq!(
        observer.said(words),
        3,
        "the run, the heartbeat and the row, once each"
    );
    assert_eq!(line.story().await, ["fresh"]);
    assert_eq!(
        (line.open_runs().await, line.database.number(heartbeats).await),
        (1, 1)
    );
    assert!(observer.metric("dispatcher_terminations_total").await < 0.5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_that_fails_is_counted_and_what_it_should_have_removed_stays_counted_until_it_succeeds() {
    let line = Line::new().await;
    let mut owner = line.owner().await;
    let watcher = line
        .launch
        .clone()
        .with("DISPATCHERS__ENABLED", "false")
        .with("DISPATCHERS__CLEANUP_TIMEOUT", "1s");
    let watcher = watcher.start_ready().await;
    owner.kill();
    // Somebody's transaction: the row cannot be released.
    let lock = line
        .database
        .lock("select from stationmaster.dispatchers for update")
        .await;
    eventually("the act fails", async || {
        watcher.metric("dispatcher_cleanup_errors_total").await > 0.0
    })
    .await;
    assert!(watcher.metric("dispatcher_stale").await > 0.0);
    lock.rollback().await.unwrap();
    eventually("nothing is left", async || {
        line.row().await.owner.is_none() && watcher.metric("dispatcher_stale").await == 0.0
    })
    .await;
    assert!(watcher.said("The supervisor could not clean up; it tries again") > 0);
}

async fn leave_behind(line: &Line, workflow_id: &str) {
    let message = StartWorkflowExecutionRequest {
        namespace: line.temporal.namespace.clone(),
        workflow_id: workflow_id.to_owned(),
        workflow_type: Some(WorkflowType {
            name: "DispatcherWorkflow".to_owned(),
        }),
        task_queue: Some(TaskQueue {
            name: "nobody".to_owned(),
            ..TaskQueue::default()
        }),
        request_id: workflow_id.to_owned(),
        ..StartWorkflowExecutionRequest::default()
    };
    let started = line
        .temporal
        .service()
        .start_workflow_execution(message.into_request())
        .await;
    started.unwrap();
}

async fn open(line: &Line) -> Vec<String> {
    let runs = line.temporal.runs().await.into_iter();
    let mut open: Vec<String> = runs
        .filter(|run| run.status() == WorkflowExecutionStatus::Running)
        .map(|run| run.execution.unwrap().workflow_id)
        .collect();
    open.sort();
    open
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_deployment_left_is_removed_when_told_to_and_nothing_else_is() {
    let line = Line::new().await;
    let _owner = line.owner().await;
    let kept = [
        "dispatcher-crm-default-7hK2m9Qx",
        "dispatcher-shop-default",
        "dispatcher-shop-orders",
    ];
    let legacy = [
        "dispatcher-shop-default-2abC9dEf01",
        "dispatcher-shop-default-5d41402a-bc4b-2a76-b971-9d911017c592",
    ];
    for id in kept
        .iter()
        .chain(&legacy)
        .filter(|id| **id != "dispatcher-shop-default")
    {
        leave_behind(&line, id).await;
    }
    eventually("Temporal lists them", async || open(&line).await.len() == 5).await;
    let reconcile = |more: &[&str]| {
        let settings = [
            "dispatchers",
            "reconcile",
            "--engine",
            "temporal",
            "--temporal-address",
            &line.temporal.address,
            "--temporal-namespace",
            &line.temporal.namespace,
        ];
        command(&line.database, &[&settings, more].concat())
    };
    let classes = |report: &serde_json::Value| {
        let findings = report["findings"].as_array().unwrap();
        findings
            .iter()
            .filter(|finding| finding["class"] == "legacy")
            .count()
    };
    let shown = reconcile(&["--yes"]);
    assert_eq!(
        (classes(&shown), shown["done"].as_array().unwrap().len()),
        (2, 0),
        "{shown}"
    );
    let dry = reconcile(&["--legacy", "--dry-run"]);
    assert_eq!(dry["done"].as_array().unwrap().len(), 0, "{dry}");
    assert_eq!(open(&line).await.len(), 5, "they are only shown");
    let done = reconcile(&["--legacy", "--yes"]);
    assert_eq!(done["done"].as_array().unwrap().len(), 2, "{done}");
    eventually("they are gone", async || open(&line).await == kept).await;
    assert_eq!(line.story().await, ["fresh"], "the owner was not touched");
    let audited = "select count(*) from stationmaster.audit where action = 'dispatcher.run_terminated' and actor like 'cli:%'";
    assert_eq!(line.database.number(audited).await, 2);
}
