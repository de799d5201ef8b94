//! Complete: somebody who knows says that an execution is over, and its slot is free.

use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::operate::{self, Complete, Error};
use stationmaster_core::id::{ExecutionId, ItemId};

use crate::common::counting::wrong_counters;
use crate::common::listener::Listener;
use crate::common::{NOOP, Testbed, UNKNOWN_TYPE, brisk, eventually, raw, wait, woken_only};

fn completed() -> Complete {
    Complete {
        force: false,
        status: CloseStatus::Completed,
        output: Some(raw(r#"{"done": true}"#)),
        error: None,
    }
}

#[tokio::test]
async fn a_completed_execution_keeps_its_result_and_its_slot_goes_to_the_next() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let items = testbed.enqueue_many(tenant, 2).await;
    let server = testbed.server(woken_only()).await;
    testbed.reaches(items[0], "RUNNING").await;
    let execution = testbed.execution(items[0]).await.id;
    operate::complete(&testbed.database, ExecutionId(execution), completed(), "alice")
        .await
        .unwrap();
    let ended = testbed.execution_by_id(ExecutionId(execution)).await;
    assert_eq!(ended.status.as_str(), "COMPLETED");
    assert_eq!(ended.output.unwrap().get(), r#"{"done": true}"#);
    assert_eq!(testbed.status(items[0]).await, "DISPATCHED");
    testbed.reaches(items[1], "RUNNING").await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn every_way_to_end_can_be_told() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, &wait(600.0)).await;
    let items = testbed.enqueue_many(tenant, 5).await;
    let server = testbed.server(brisk()).await;
    let statuses = [
        CloseStatus::Completed,
        CloseStatus::Failed,
        CloseStatus::Cancelled,
        CloseStatus::Terminated,
        CloseStatus::TimedOut,
    ];
    for (item, status) in items.into_iter().zip(statuses) {
        testbed.reaches(item, "RUNNING").await;
        let execution = testbed.execution(item).await.id;
        let completion = Complete {
            force: false,
            status,
            output: None,
            error: Some(raw(r#"{"message": "so"}"#)),
        };
        operate::complete(&testbed.database, ExecutionId(execution), completion, "alice")
            .await
            .unwrap();
        assert_eq!(testbed.outcome(item).await, status.as_str());
    }
    server.stop().await;
}

#[tokio::test]
async fn what_is_unknown_over_or_not_running_cannot_be_completed() {
    let testbed = Testbed::new().await;
    let (quick, refused) = (
        testbed.tenant(1, NOOP).await,
        testbed.tenant(1, UNKNOWN_TYPE).await,
    );
    let (done, backing_off) = (testbed.enqueue(quick).await, testbed.enqueue(refused).await);
    let retry = stationmaster_core::retry::Backoff {
        base: std::time::Duration::from_hours(1),
        cap: std::time::Duration::from_hours(1),
    };
    let server = testbed
        .server(stationmaster_core::executions::Settings { retry, ..brisk() })
        .await;
    testbed.reaches(done, "COMPLETED").await;
    testbed.reaches(backing_off, "PENDING").await;
    let complete =
        async |execution| operate::complete(&testbed.database, execution, completed(), "alice").await;
    let unknown = complete(ExecutionId::new()).await;
    assert!(matches!(unknown, Err(Error::NotFound(_))), "{unknown:?}");
    let status_of = async |item: ItemId| {
        let execution = testbed.execution(item).await.id;
        match complete(ExecutionId(execution)).await {
            Err(Error::WrongState(words)) => words,
            other => panic!("expected a refusal, got {other:?}"),
        }
    };
    assert!(status_of(done).await.contains("is COMPLETED"));
    assert!(status_of(backing_off).await.contains("is PENDING"));
    server.stop().await;
}

/// The slot is free and the next item runs in it: then the former run must not run on beside it.
#[tokio::test]
async fn a_run_that_somebody_ended_does_not_go_on_in_the_engine() {
    let testbed = Testbed::new().await;
    let listener = Listener::start().await;
    let node =
        |id: &str, path: &str| serde_json::json!({"id": id, "type": "http", "url": listener.url(path)});
    let graph = serde_json::json!({"nodes": [node("a", "/held"), node("b", "/after")]});
    let tenant = testbed.tenant(1, &graph.to_string()).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    eventually("the first node is called", async || listener.calls("/held") == 1).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    operate::complete(&testbed.database, ExecutionId(execution), completed(), "alice")
        .await
        .unwrap();
    listener.let_go();
    eventually("the engine has let go of the run", async || {
        server.open_runs().await.is_empty()
    })
    .await;
    assert_eq!(
        listener.calls("/after"),
        0,
        "the next node was called although the execution is over"
    );
    server.stop().await;
}
