//! Starting, asking, cancelling and terminating.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use stationmaster_core::engine::{CloseStatus, Engine, OpenRun, RunState, StartOutcome, StartRequest};
use stationmaster_core::graph::Graph;
use stationmaster_core::id::ExecutionId;
use stationmaster_temporal::{TemporalConfig, TemporalEngine};
use temporalio_client::tonic::IntoRequest;
use temporalio_common::protos::temporal::api::common::v1::WorkflowType;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_common::protos::temporal::api::workflowservice::v1::StartWorkflowExecutionRequest;

use crate::support::{PATIENCE, Puppet, json, queue, request, server_and_engine, start_running};

#[tokio::test]
async fn an_execution_started_by_many_at_once_is_one_run_and_all_say_running() {
    let (_server, engine) = server_and_engine().await;
    let request = request();
    let outcomes = join_all((0..8).map(|_| engine.start(&request, PATIENCE))).await;
    let again = engine.start(&request, PATIENCE).await;
    let runs: Vec<String> = outcomes
        .into_iter()
        .chain([again])
        .map(|outcome| match outcome {
            StartOutcome::Running { run_id } => run_id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(runs.iter().all(|run_id| *run_id == runs[0]), "{runs:?}");
}

#[tokio::test]
async fn a_closed_run_answers_closed_and_never_runs_again() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let request = request();
    start_running(&engine, &request).await;
    puppet.complete(&request, "json/plain", br#"{"sum": 1.10}"#).await;

    for _ in 0..2 {
        let StartOutcome::Closed(close) = engine.start(&request, PATIENCE).await else {
            panic!("not closed")
        };
        assert_eq!(close.execution_id, request.execution_id);
        assert_eq!(close.status, CloseStatus::Completed);
        assert_eq!(close.output.unwrap().get(), r#"{"sum": 1.10}"#);
    }
    let events = puppet.history(&request).await;
    let last = events.last().unwrap().attributes.as_ref().unwrap();
    assert!(
        matches!(last, Attributes::WorkflowExecutionCompletedEventAttributes(_)),
        "{last:?}"
    );
}

#[tokio::test]
async fn a_run_that_somebody_else_started_under_our_id_is_refused_and_never_taken_for_ours() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let request = request();
    let foreign = StartWorkflowExecutionRequest {
        namespace: "default".to_owned(),
        workflow_id: request.execution_id.workflow_id(),
        workflow_type: Some(WorkflowType {
            name: "other".to_owned(),
        }),
        task_queue: Some(queue(&request)),
        request_id: "another request".to_owned(),
        ..StartWorkflowExecutionRequest::default()
    };
    let foreign = puppet
        .service()
        .start_workflow_execution(foreign.into_request())
        .await
        .unwrap()
        .into_inner();

    let refused = async || match engine.start(&request, PATIENCE).await {
        StartOutcome::Refused { message } => message,
        other => panic!("a stranger's run was taken for ours: {other:?}"),
    };
    assert!(refused().await.contains("not started by Stationmaster"));
    let states = engine.describe(&[request.execution_id]).await.unwrap();
    assert!(matches!(states[..], [RunState::NotFound]), "{states:?}");
    // Nor is it ours to end, whatever became of our execution, and its end is none of ours.
    let marker = crate::support::request();
    start_running(&engine, &marker).await;
    let open = listed_open(&engine, marker.execution_id).await;
    assert!(!open.contains(&request.execution_id));
    let since = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(1);
    puppet.fail(&request, "Sad", "it did not work").await;
    puppet.complete(&marker, "json/plain", b"1").await;
    let mut told = Vec::new();
    let begun = std::time::Instant::now();
    while !told.contains(&marker.execution_id) || begun.elapsed() < Duration::from_secs(2) {
        let (closes, _) = engine.closed_since(since).await.unwrap();
        told.extend(closes.into_iter().map(|close| close.execution_id));
        assert!(begun.elapsed() < PATIENCE, "our own end is told");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!told.contains(&request.execution_id), "a stranger's end was told");
    assert!(!foreign.run_id.is_empty());
    assert!(refused().await.contains("not started by Stationmaster"));
}

#[tokio::test]
async fn the_input_arrives_verbatim_with_the_nodes_in_topological_order() {
    let (server, engine) = server_and_engine().await;
    let graph = r#"{"nodes": [{"id": "last"}, {"id": "first"}, {"id": "mid"}],
                    "edges": [{"from": "first", "to": "mid"}, {"from": "mid", "to": "last"}]}"#;
    let input = r#"{"z": 1.10, "a": 12345678901234567890, "ü✓": ["\u00e9é", {"deep": {"er": [null, -0.0, 1e400]}}],  "m": ""}"#;
    let request = StartRequest {
        graph: Arc::new(Graph::parse(graph).unwrap()),
        input: json(input),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        ..request()
    };
    start_running(&engine, &request).await;

    let events = Puppet::on(&server.address).await.history(&request).await;
    let Some(Attributes::WorkflowExecutionStartedEventAttributes(started)) = &events[0].attributes else {
        panic!("{events:?}")
    };
    let payloads = &started.input.as_ref().unwrap().payloads;
    let expected = format!(
        r#"{{"executionId":"{}","workspaceId":"{}","workflowDefinitionId":"{}","workflowVersionId":"{}","nodeIds":["first","mid","last"],"input":{input}}}"#,
        request.execution_id, request.workspace_id, request.definition_id, request.version_id,
    );
    assert_eq!(payloads.len(), 1);
    assert_eq!(String::from_utf8_lossy(&payloads[0].data), expected);
    assert_eq!(payloads[0].metadata["encoding"], b"json/plain");
    assert_eq!(
        started.workflow_type.as_ref().unwrap().name,
        request.workflow_type
    );
    assert_eq!(started.identity, "stationmaster");
    let header = &started.header.as_ref().unwrap().fields;
    let traceparent = request.traceparent.as_ref().unwrap();
    assert_eq!(
        header["traceparent"].data,
        format!("{traceparent:?}").into_bytes()
    );
}

#[tokio::test]
async fn a_namespace_that_does_not_exist_is_the_engines_absence_and_makes_no_run_look_lost() {
    let (server, _engine) = server_and_engine().await;
    let nowhere = TemporalConfig {
        namespace: "nowhere".to_owned(),
        ..TemporalConfig::new(&server.address)
    };
    let engine = TemporalEngine::new(&nowhere).unwrap();
    let outcome = engine.start(&request(), PATIENCE).await;
    assert!(
        matches!(&outcome, StartOutcome::Unavailable { message } if message.contains("nowhere")),
        "{outcome:?}"
    );
    engine.check().await.unwrap_err();
    let unknown = OpenRun {
        execution_id: ExecutionId::new(),
        run_id: ExecutionId::new().to_string(),
    };
    engine.describe(&[unknown.execution_id]).await.unwrap_err();
    engine.cancel(unknown.execution_id, "test").await.unwrap_err();
    engine.terminate(&unknown, "test").await.unwrap_err();
}

#[tokio::test]
async fn an_input_beyond_what_the_server_takes_is_refused_and_is_no_outage() {
    let (_server, engine) = server_and_engine().await;
    // The first breaks the limit of a payload, the second that of a message.
    for megabytes in [3, 6] {
        let input = json(&format!("\"{}\"", noise(megabytes * 1024 * 1024)));
        let request = StartRequest { input, ..request() };
        let outcome = engine.start(&request, PATIENCE).await;
        assert!(
            matches!(outcome, StartOutcome::Refused { .. }),
            "{megabytes} MB: {outcome:?}"
        );
    }
}

/// Text that compression does not shrink much, the same in every run.
fn noise(length: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let letters = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap())
    });
    letters.take(length).collect()
}

#[tokio::test]
async fn runs_are_described_in_the_order_asked_and_an_unknown_one_is_not_found() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let (running, closed) = (request(), request());
    let run_id = start_running(&engine, &running).await;
    start_running(&engine, &closed).await;
    puppet.complete(&closed, "json/plain", b"7").await;

    let unknown = ExecutionId::new();
    let states = engine
        .describe(&[unknown, closed.execution_id, running.execution_id])
        .await
        .unwrap();
    let [
        RunState::NotFound,
        RunState::Closed(close),
        RunState::Running { run_id: described },
    ] = &states[..]
    else {
        panic!("{states:?}")
    };
    assert_eq!(close.output.as_ref().unwrap().get(), "7");
    assert_eq!(*described, run_id);
    assert!(engine.describe(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn terminating_with_a_wrong_run_id_changes_nothing() {
    let (_server, engine) = server_and_engine().await;
    let request = request();
    let run_id = start_running(&engine, &request).await;
    let other = ExecutionId::new().to_string();
    let wrong = OpenRun {
        execution_id: request.execution_id,
        run_id: other,
    };
    engine.terminate(&wrong, "not this one").await.unwrap();
    let states = engine.describe(&[request.execution_id]).await.unwrap();
    assert!(
        matches!(&states[0], RunState::Running { run_id: still } if *still == run_id),
        "{states:?}"
    );

    let right = OpenRun {
        execution_id: request.execution_id,
        run_id,
    };
    engine.terminate(&right, "this one").await.unwrap();
    let states = engine.describe(&[request.execution_id]).await.unwrap();
    assert!(
        matches!(&states[0], RunState::Closed(close) if close.status == CloseStatus::Terminated),
        "{states:?}"
    );
    engine.terminate(&right, "again").await.unwrap();
}

#[tokio::test]
async fn cancelling_is_asked_once_and_an_unknown_run_is_no_error() {
    let (server, engine) = server_and_engine().await;
    let request = request();
    start_running(&engine, &request).await;
    engine.cancel(request.execution_id, "enough").await.unwrap();
    engine.cancel(request.execution_id, "enough").await.unwrap();
    let events = Puppet::on(&server.address).await.history(&request).await;
    let asked = events
        .iter()
        .filter_map(|event| match event.attributes.as_ref()? {
            Attributes::WorkflowExecutionCancelRequestedEventAttributes(asked) => Some(&asked.cause),
            _ => None,
        })
        .collect::<Vec<_>>();
    assert_eq!(asked, ["enough"]);

    let unknown = OpenRun {
        execution_id: ExecutionId::new(),
        run_id: ExecutionId::new().to_string(),
    };
    engine.cancel(unknown.execution_id, "unknown").await.unwrap();
    engine.terminate(&unknown, "unknown").await.unwrap();
}

#[tokio::test]
async fn a_run_that_continued_as_new_is_still_ours_although_temporal_began_it() {
    let (server, engine) = server_and_engine().await;
    let puppet = Puppet::on(&server.address).await;
    let request = request();
    let first = start_running(&engine, &request).await;
    puppet.continue_as_new(&request).await;
    let newest = start_running(&engine, &request).await;
    assert_ne!(newest, first);
    let states = engine.describe(&[request.execution_id]).await.unwrap();
    assert!(matches!(states[..], [RunState::Running { .. }]), "{states:?}");
    // It is listed too, although the worker has not passed on our mark.
    listed_open(&engine, request.execution_id).await;
}

#[tokio::test]
async fn an_engine_that_is_bound_to_another_namespace_sends_nothing() {
    let (server, engine) = server_and_engine().await;
    let other = TemporalEngine::new(&TemporalConfig {
        namespace: "temporal-system".to_owned(),
        ..TemporalConfig::new(&server.address)
    })
    .unwrap();
    let (mine, theirs) = (engine.identity().await.unwrap(), other.identity().await.unwrap());
    assert_ne!(mine.key, theirs.key);
    let request = request();
    for bound in [None, Some(&theirs)] {
        engine.bind_to(bound);
        let outcome = engine.start(&request, PATIENCE).await;
        assert!(matches!(outcome, StartOutcome::Unavailable { .. }), "{outcome:?}");
        engine.describe(&[request.execution_id]).await.unwrap_err();
        engine.open_runs(None).await.unwrap_err();
    }
    engine.bind_to(Some(&mine));
    start_running(&engine, &request).await;
}

/// The open runs, once this one is among them: the store lags.
async fn listed_open(engine: &TemporalEngine, awaited: ExecutionId) -> Vec<ExecutionId> {
    let begun = std::time::Instant::now();
    loop {
        let (mut runs, mut page) = (Vec::new(), None);
        loop {
            let listed = engine.open_runs(page).await.unwrap();
            runs.extend(listed.rows.into_iter().map(|run| run.execution_id));
            page = listed.next;
            if page.is_none() {
                break;
            }
        }
        if runs.contains(&awaited) {
            return runs;
        }
        assert!(begun.elapsed() < PATIENCE, "{awaited} is not listed");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
