//! Learning which runs have closed, and which are open.

use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stationmaster_core::engine::{Close, CloseStatus, Engine, OpenRun, RunState, StartRequest};
use stationmaster_core::id::ExecutionId;
use stationmaster_temporal::TemporalEngine;
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::common::v1::WorkflowType;
use temporalio_common::protos::temporal::api::workflowservice::v1::{
    ResetWorkflowExecutionRequest, StartWorkflowExecutionRequest,
};

use crate::support::{Puppet, parsed, queue, request, run, server_and_engine, start_running, until_reported};

/// What the specification allows between a close and our knowing of it.
const VISIBLE_WITHIN: Duration = Duration::from_secs(2);

fn a_moment_ago() -> Timestamp {
    Timestamp::now() - SignedDuration::from_secs(1)
}

/// Sweeps until the close is reported, in time and with the status expected.
async fn reported(
    engine: &TemporalEngine,
    since: Timestamp,
    request: &StartRequest,
    status: CloseStatus,
) -> Close {
    let (close, took) = until_reported(engine, since, request.execution_id).await;
    assert!(took < VISIBLE_WITHIN, "{status:?} was seen after {took:?}");
    assert_eq!(close.status, status);
    close
}

#[tokio::test]
async fn a_completed_run_is_reported_in_time_with_its_output() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let since = a_moment_ago();
    for (encoding, result, output) in [
        (
            "json/plain",
            r#"{"total": 1.10, "z": "ü"}"#,
            Some(r#"{"total": 1.10, "z": "ü"}"#),
        ),
        ("binary/null", "", None),
        (
            "binary/plain",
            "\u{1}",
            Some(r#"{"data":"AQ==","encoding":"binary/plain"}"#),
        ),
    ] {
        let request = request();
        start_running(&engine, &request).await;
        puppet.complete(&request, encoding, result.as_bytes()).await;
        let close = reported(&engine, since, &request, CloseStatus::Completed).await;
        assert_eq!(
            close.output.as_deref().map(serde_json::value::RawValue::get),
            output
        );
        assert!(close.error.is_none());
    }
}

#[tokio::test]
async fn an_output_beyond_the_limit_stays_with_the_engine_and_is_told_of() {
    let (server, engine) = server_and_engine().await;
    let (since, request) = (a_moment_ago(), request());
    start_running(&engine, &request).await;
    let large = vec![b'1'; 300 * 1024];
    Puppet::on(&server.address)
        .await
        .complete(&request, "json/plain", &large)
        .await;
    let (close, _) = until_reported(&engine, since, request.execution_id).await;
    assert!(close.output.is_none());
    let omitted = close.output_omitted.unwrap();
    assert_eq!(
        (omitted.size, omitted.encoding.as_str()),
        (300 * 1024, "json/plain")
    );
}

#[tokio::test]
async fn a_failed_run_is_reported_in_time_with_its_failure() {
    let (server, engine) = server_and_engine().await;
    let (since, request) = (a_moment_ago(), request());
    start_running(&engine, &request).await;
    Puppet::on(&server.address)
        .await
        .fail(&request, "CardDeclined", "no money")
        .await;
    let close = reported(&engine, since, &request, CloseStatus::Failed).await;
    assert_eq!(
        parsed(close.error.as_deref()),
        json!({"message": "no money", "type": "CardDeclined"})
    );
}

#[tokio::test]
async fn a_cancelled_run_is_reported_in_time() {
    let (server, engine) = server_and_engine().await;
    let (since, request) = (a_moment_ago(), request());
    start_running(&engine, &request).await;
    engine.cancel(request.execution_id, "enough").await.unwrap();
    Puppet::on(&server.address).await.agree_to_cancel(&request).await;
    let close = reported(&engine, since, &request, CloseStatus::Cancelled).await;
    assert_eq!(parsed(close.error.as_deref())["message"], "the run was cancelled");
}

#[tokio::test]
async fn a_terminated_run_is_reported_in_time_with_the_reason() {
    let (_server, engine) = server_and_engine().await;
    let (since, request) = (a_moment_ago(), request());
    let run_id = start_running(&engine, &request).await;
    let run = OpenRun {
        execution_id: request.execution_id,
        run_id,
    };
    engine.terminate(&run, "it hangs").await.unwrap();
    let close = reported(&engine, since, &request, CloseStatus::Terminated).await;
    assert_eq!(
        parsed(close.error.as_deref()),
        json!({
            "message": "the run was terminated: it hangs",
            "type": "Terminated",
            "reason": "it hangs",
            "identity": "stationmaster",
        })
    );
}

#[tokio::test]
async fn a_run_that_ran_out_of_time_is_reported_in_time() {
    let (server, engine) = server_and_engine().await;
    let (since, request) = (a_moment_ago(), request());
    // Stationmaster sets no limit on a run, so this one is started by hand, under the id that our own request would have.
    let mut start = StartWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_id: request.execution_id.workflow_id(),
        workflow_type: Some(WorkflowType {
            name: request.workflow_type.clone(),
        }),
        task_queue: Some(queue(&request)),
        request_id: request.execution_id.to_string(),
        ..StartWorkflowExecutionRequest::default()
    };
    start.workflow_execution_timeout = Some(Duration::from_secs(1).try_into().unwrap());
    let mut service = Puppet::on(&server.address).await.service();
    service
        .start_workflow_execution(start.into_request())
        .await
        .unwrap();
    // The wait includes the second that the run has.
    let (close, took) = until_reported(&engine, since, request.execution_id).await;
    assert!(
        took < VISIBLE_WITHIN + Duration::from_secs(1),
        "seen after {took:?}"
    );
    assert_eq!(close.status, CloseStatus::TimedOut);
    assert_eq!(parsed(close.error.as_deref())["type"], "TimedOut");
}

#[tokio::test]
async fn a_run_that_continues_as_new_goes_on_until_its_last_run_closes() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let (since, request) = (a_moment_ago(), request());
    let first = start_running(&engine, &request).await;
    puppet.continue_as_new(&request).await;

    let states = engine.describe(&[request.execution_id]).await.unwrap();
    let [RunState::Running { run_id: second }] = &states[..] else {
        panic!("{states:?}")
    };
    assert_ne!(*second, first);
    // The first run is no longer the one to terminate, and a repeated start finds the second.
    engine
        .terminate(
            &OpenRun {
                execution_id: request.execution_id,
                run_id: first,
            },
            "",
        )
        .await
        .unwrap();
    assert_eq!(start_running(&engine, &request).await, *second);

    puppet.complete(&request, "json/plain", b"2").await;
    let close = reported(&engine, since, &request, CloseStatus::Completed).await;
    assert_eq!(close.output.unwrap().get(), "2");
    assert_eq!(
        close.run_id.as_ref(),
        Some(second),
        "the last run is the one that ended"
    );
    let closed_at = close.closed_at.unwrap();
    assert!(
        closed_at > since && closed_at <= jiff::Timestamp::now(),
        "{closed_at}"
    );
    // The run itself says the same as the list.
    let states = engine.describe(&[request.execution_id]).await.unwrap();
    let [RunState::Closed(told)] = &states[..] else {
        panic!("{states:?}")
    };
    assert_eq!(told.run_id, close.run_id);
    // The store of lists keeps microseconds.
    let microsecond = told.closed_at.unwrap().as_microsecond();
    assert_eq!(microsecond, closed_at.as_microsecond());
}

#[tokio::test]
async fn a_run_that_was_reset_goes_on_although_a_terminated_run_is_listed() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let (since, request) = (a_moment_ago(), request());
    let first = start_running(&engine, &request).await;
    puppet.answer_with(&request, Vec::new()).await;
    let reset = ResetWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_execution: Some(run(&request, &first)),
        reason: "try again".to_owned(),
        // The completion of the first workflow task: started, scheduled, started, completed.
        workflow_task_finish_event_id: 4,
        request_id: "reset".to_owned(),
        ..ResetWorkflowExecutionRequest::default()
    };
    let reset = puppet
        .service()
        .reset_workflow_execution(reset.into_request())
        .await
        .unwrap()
        .into_inner();
    assert_ne!(reset.run_id, first);

    // A close that comes later is seen, so the terminated run was listed before it, and not taken for the end.
    let later = self::request();
    start_running(&engine, &later).await;
    puppet.complete(&later, "json/plain", b"1").await;
    reported(&engine, since, &later, CloseStatus::Completed).await;
    let (closes, _) = engine.closed_since(since).await.unwrap();
    assert!(
        closes
            .iter()
            .all(|close| close.execution_id != request.execution_id),
        "{closes:?}"
    );

    puppet.complete(&request, "json/plain", b"2").await;
    reported(&engine, since, &request, CloseStatus::Completed).await;
}

#[tokio::test]
async fn a_close_is_reported_again_for_a_while_and_the_mark_never_moves_back() {
    let (server, engine) = server_and_engine().await;
    let (since, request) = (a_moment_ago(), request());
    let (closes, mark) = engine.closed_since(since).await.unwrap();
    assert!(mark >= since);
    assert!(
        closes
            .iter()
            .all(|close| close.execution_id != request.execution_id)
    );

    start_running(&engine, &request).await;
    Puppet::on(&server.address)
        .await
        .complete(&request, "json/plain", b"{}")
        .await;
    // Whoever was told may have failed to write it down: under the old mark it is told again.
    for _ in 0..2 {
        until_reported(&engine, mark, request.execution_id).await;
    }
    // A mark in the future finds nothing and stays where it is.
    let future = Timestamp::now() + SignedDuration::from_hours(1);
    let (closes, next) = engine.closed_since(future).await.unwrap();
    assert!(closes.is_empty());
    assert_eq!(next, future);
}

#[tokio::test]
async fn open_runs_are_listed_over_all_pages_and_closed_ones_are_not() {
    let (_server, engine) = server_and_engine().await;
    let requests: Vec<_> = (0..1_005).map(|_| request()).collect();
    let runs: Vec<OpenRun> = stream::iter(&requests)
        .map(|request| async {
            let run_id = start_running(&engine, request).await;
            OpenRun {
                execution_id: request.execution_id,
                run_id,
            }
        })
        .buffer_unordered(32)
        .collect()
        .await;
    engine.terminate(&runs[0], "closed").await.unwrap();
    let since = a_moment_ago();
    until_reported(&engine, since, runs[0].execution_id).await;

    let mut open: Vec<OpenRun> = Vec::new();
    let mut pages = 0;
    let mut page = None;
    loop {
        let answer = engine.open_runs(page).await.unwrap();
        open.extend(answer.rows);
        pages += 1;
        page = answer.next;
        if page.is_none() {
            break;
        }
    }
    assert!(pages > 1);
    let is_open = |run: &OpenRun| {
        open.iter()
            .any(|other| other.execution_id == run.execution_id && other.run_id == run.run_id)
    };
    assert!(!is_open(&runs[0]));
    assert!(runs[1..].iter().all(is_open));
}

#[tokio::test]
async fn a_workflow_id_of_somebody_else_is_passed_over() {
    let (server, engine) = server_and_engine().await;
    let request = request();
    let start = StartWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_id: format!("execution-of-{}", ExecutionId::new()),
        workflow_type: Some(WorkflowType {
            name: "foreign".to_owned(),
        }),
        task_queue: Some(queue(&request)),
        request_id: "foreign".to_owned(),
        ..StartWorkflowExecutionRequest::default()
    };
    let puppet = Puppet::on(&server.address).await;
    puppet
        .service()
        .start_workflow_execution(start.into_request())
        .await
        .unwrap();
    puppet.complete(&request, "json/plain", b"1").await;
    // A close of ours that comes later is seen, and the sweep has not stumbled over the other.
    let (since, ours) = (a_moment_ago(), self::request());
    start_running(&engine, &ours).await;
    puppet.complete(&ours, "json/plain", b"1").await;
    let close = reported(&engine, since, &ours, CloseStatus::Completed).await;
    assert_eq!(parsed(close.output.as_deref()), Value::from(1));
}
