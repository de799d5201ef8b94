//! What is in the way of a start, on a real server that is asked as an older one would understand it: one that does not know that what
//! runs is to be terminated, and one that says that there was such a run already.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "the tests beside this crate use the rest of it")]
#[path = "../../tests/temporal/support/dev_server.rs"]
mod dev_server;

use stationmaster_core::engine::Engine as _;
use stationmaster_core::engine::dispatchers::Tenure;
use temporalio_common::protos::temporal::api::enums::v1::{WorkflowIdConflictPolicy, WorkflowIdReusePolicy};

use super::*;

/// Long enough for any call on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

fn request(epoch: i64) -> RunRequest {
    RunRequest {
        tenure: Tenure {
            dispatcher_id: DispatcherId("dispatcher-older-default".to_owned()),
            project: "older".to_owned(),
            task_queue: "default".to_owned(),
            owner: ServerId(Uuid::now_v7()),
            epoch: Epoch(epoch),
        },
        attempt: 1,
        check_interval: Duration::from_secs(10),
        evict_batch: 10,
        continue_after: 4_000,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_a_start_finds_another_run_that_one_is_terminated_and_the_start_repeated() {
    let server = dev_server::DevServer::start(dev_server::free_port());
    let config = TemporalConfig::new(&server.address);
    let engine = Arc::new(TemporalEngine::new(&config).unwrap());
    let begun = Instant::now();
    while engine.check().await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "the server does not come up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let dispatchers = TemporalDispatchers::new(engine, &config).unwrap();
    let ends_at = || Instant::now() + PATIENCE;
    let message = |request: &RunRequest| {
        let engine = &dispatchers.engine;
        message::start(request, &engine.namespace, &engine.identity, "nobody-polls").unwrap()
    };
    let is_running = async |request: &RunRequest, run_id: &str| {
        let run = Run {
            dispatcher_id: request.tenure.dispatcher_id.clone(),
            run_id: run_id.to_owned(),
        };
        dispatchers.run_state(&run).await.unwrap() == RunState::Running
    };
    let first = request(1);
    let one = dispatchers
        .send(&first, message(&first), ends_at())
        .await
        .unwrap();
    assert!(is_running(&first, &one).await);

    // As an older server: what runs there is only signalled.
    let second = request(2);
    let mut sent = message(&second);
    sent.workflow_id_conflict_policy = WorkflowIdConflictPolicy::UseExisting.into();
    let two = dispatchers.send(&second, sent, ends_at()).await.unwrap();
    assert_ne!(one, two);
    assert!(!is_running(&first, &one).await, "it was in the way");
    assert!(is_running(&second, &two).await);
    let newest = dispatchers
        .engine
        .newest_run("dispatcher-older-default", ends_at())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(message::read_memo(&newest).0, Some(Epoch(2)));

    // It says each time that there was one: the start gives up, for this time, and nothing else is started.
    let third = request(3);
    let mut sent = message(&third);
    sent.workflow_id_reuse_policy = WorkflowIdReusePolicy::RejectDuplicate.into();
    sent.workflow_id_conflict_policy = WorkflowIdConflictPolicy::UseExisting.into();
    let refused = dispatchers.send(&third, sent.clone(), ends_at()).await;
    assert_eq!(
        refused.unwrap_err().reason(),
        "other runs under the same id are in the way again and again"
    );
    assert!(!is_running(&second, &two).await, "what was in the way was ended");
    assert!(
        dispatchers.in_doubt.lock().is_empty(),
        "what was answered is not in doubt"
    );
    let three = dispatchers
        .send(&third, message(&third), ends_at())
        .await
        .unwrap();
    assert!(is_running(&third, &three).await);
}
