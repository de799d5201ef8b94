//! Retry: a new execution for what ended badly; the old one stays on record.

use std::sync::{Arc, Mutex};

use stationmaster_core::executions::bulk;
use stationmaster_core::executions::operate::{self, Error};
use stationmaster_core::id::{ExecutionId, ItemId};
use stationmaster_wire::{BulkRetry, RetriableStatus, StatusOf};
use tracing_subscriber::fmt::MakeWriter;

use crate::common::counting::misplaced_items;
use crate::common::{FAIL, NOOP, Testbed, UNKNOWN_TYPE, brisk, wait, woken_only};

#[tokio::test]
async fn a_failed_item_is_run_again_under_a_new_id_and_the_old_execution_stays_as_it_ended() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, FAIL).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(woken_only()).await;
    testbed.reaches(item, "FAILED").await;
    let former = testbed.execution(item).await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    let what = "there is a second execution";
    crate::common::eventually(what, async || testbed.count("executions_finished").await == 2).await;
    let latter = testbed.execution(item).await;
    assert_ne!(latter.id, former.id);
    let still = testbed.execution_by_id(ExecutionId(former.id)).await;
    assert_eq!(
        (still.status, still.completed_at),
        (former.status, former.completed_at)
    );
    assert_eq!(misplaced_items(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn a_cancelled_item_can_be_retried() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    operate::cancel(&testbed.database, item.0, None, "alice")
        .await
        .unwrap();
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    assert_eq!(testbed.status(item).await, "PENDING");
    let server = testbed.server(woken_only()).await;
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn a_retry_counts_attempts_anew() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, UNKNOWN_TYPE).await;
    testbed.max_attempts(tenant, 1).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "FAILED").await;
    operate::retry(&testbed.database, item, "alice").await.unwrap();
    let what = "the second execution failed as well";
    crate::common::eventually(what, async || testbed.count("executions_finished").await == 2).await;
    assert_eq!(testbed.execution(item).await.attempts, 1);
    server.stop().await;
}

#[tokio::test]
async fn what_is_completed_running_or_waiting_is_not_retried() {
    let testbed = Testbed::new().await;
    let (quick, slow) = (
        testbed.tenant(1, NOOP).await,
        testbed.tenant(1, &wait(600.0)).await,
    );
    let done = testbed.enqueue(quick).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(done, "COMPLETED").await;
    let both = testbed.enqueue_many(slow, 2).await;
    testbed.reaches(both[0], "RUNNING").await;
    for item in [done, both[0], both[1]] {
        let answer = operate::retry(&testbed.database, item, "alice").await;
        assert!(
            matches!(&answer, Err(Error::WrongState(words)) if words.contains(&item.to_string())),
            "{answer:?}"
        );
    }
    assert_eq!(testbed.outcome(done).await, "COMPLETED");
    assert_eq!(testbed.count("queue_pending").await, 1);
    server.stop().await;
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_retry_of_what_is_not_there_is_refused_with_a_warning() {
    let testbed = Testbed::new().await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .finish();
    let item = ItemId::new();
    let answer = {
        let _guard = tracing::subscriber::set_default(subscriber);
        operate::retry(&testbed.database, item, "alice").await
    };
    assert!(
        matches!(answer, Err(Error::NotFound(id)) if id == item.0),
        "{answer:?}"
    );
    let said = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let warned = said
        .lines()
        .any(|line| line.contains("WARN") && line.contains("Execution not found for retry"));
    assert!(warned, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_retries_at_once_make_one_new_execution() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    for _ in 0..10 {
        let item = testbed.enqueue(tenant).await;
        operate::cancel(&testbed.database, item.0, None, "alice")
            .await
            .unwrap();
        let retry = || operate::retry(&testbed.database, item, "alice");
        let (one, other) = tokio::join!(retry(), retry());
        assert!(one.is_ok() ^ other.is_ok(), "{one:?} {other:?}");
    }
    assert_eq!(testbed.count("queue_pending").await, 10);
    assert_eq!(misplaced_items(&testbed).await, []);
}

#[tokio::test]
async fn everything_that_a_filter_matches_is_retried_and_nothing_else() {
    let testbed = Testbed::new().await;
    let failing = testbed.tenant(50, FAIL).await;
    let refused = (failing.0, testbed.definition(failing.0, UNKNOWN_TYPE).await);
    testbed.max_attempts(refused, 1).await;
    let elsewhere = testbed.tenant(50, FAIL).await;
    let sound = (failing.0, testbed.definition(failing.0, NOOP).await);
    // More than one page of five hundred.
    testbed.enqueue_many(failing, 700).await;
    testbed.enqueue_many(refused, 5).await;
    testbed.enqueue_many(elsewhere, 3).await;
    testbed.enqueue_many(sound, 4).await;
    let server = testbed.server(brisk()).await;
    testbed.finishes(712).await;
    server.stop().await;
    let cancelled = testbed.enqueue_many(sound, 2).await;
    for item in cancelled {
        operate::cancel(&testbed.database, item.0, None, "alice")
            .await
            .unwrap();
    }

    let here = BulkRetry {
        workspace_id: Some(failing.0.0),
        ..BulkRetry::default()
    };
    let count = async |filter: &BulkRetry| {
        let dry_run = BulkRetry {
            dry_run: true,
            ..filter.clone()
        };
        let counted = bulk::retry(&testbed.database, &dry_run, "alice").await;
        counted.unwrap().items
    };
    let now = Some(jiff::Timestamp::now());
    assert_eq!(
        count(&BulkRetry::default()).await,
        710,
        "what was completed never matches"
    );
    assert_eq!(count(&here).await, 707);
    assert_eq!(
        count(&BulkRetry {
            status: Some(RetriableStatus::Cancelled),
            ..here.clone()
        })
        .await,
        2
    );
    // The status of an item and that of its execution are two things; who asks may mean one of them.
    let (failed, cancelled) = (RetriableStatus::Failed, RetriableStatus::Cancelled);
    for (status, status_of, items) in [
        (failed, None, 705),
        (failed, Some(StatusOf::Item), 5),
        (failed, Some(StatusOf::Execution), 705),
        (cancelled, Some(StatusOf::Item), 2),
        (cancelled, Some(StatusOf::Execution), 0),
    ] {
        let filter = BulkRetry {
            status: Some(status),
            status_of,
            ..here.clone()
        };
        assert_eq!(count(&filter).await, items, "{status} of {status_of:?}");
    }
    assert_eq!(
        count(&BulkRetry {
            end_reason: Some("refused".to_owned()),
            ..here.clone()
        })
        .await,
        5
    );
    assert_eq!(
        count(&BulkRetry {
            workflow_definition_id: Some(failing.1.0),
            ..here.clone()
        })
        .await,
        700
    );
    assert_eq!(
        count(&BulkRetry {
            ended_after: now,
            ..here.clone()
        })
        .await,
        0
    );
    assert_eq!(
        count(&BulkRetry {
            ended_before: now,
            ..here.clone()
        })
        .await,
        707
    );

    let filter = BulkRetry {
        workflow_definition_id: Some(failing.1.0),
        ..here.clone()
    };
    let retried = bulk::retry(&testbed.database, &filter, "alice").await.unwrap();
    assert_eq!((retried.items, retried.more), (700, false));
    assert_eq!(testbed.count("queue_pending").await, 700);
    assert_eq!(count(&here).await, 7, "what waits again does not match any more");
    assert_eq!(misplaced_items(&testbed).await, []);
}
