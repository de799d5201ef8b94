//! Single requests that come at the same time go together, and none suffers from another.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use stationmaster_core::executions::enqueue::{Enqueue, Error};
use stationmaster_core::executions::gather::Gather;
use stationmaster_core::session::Scope;
use uuid::Uuid;

use crate::common::{NOOP, Testbed, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_single_requests_at_once_are_each_enqueued_once_in_few_transactions() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let gather = Gather::default();
    let requests = (0..400).map(|_| {
        let request = Enqueue::new(workspace.0, definition.0);
        gather.enqueue(&testbed.database, request, "tester")
    });
    let made: Vec<Uuid> = join_all(requests)
        .await
        .into_iter()
        .map(|answer| answer.unwrap().id)
        .collect();
    assert_eq!(made.iter().collect::<HashSet<_>>().len(), 400);
    assert_eq!(testbed.count("queue_items").await, 400);
    let together = "select count(distinct xmin::text) from stationmaster_internal.queue_items";
    let transactions = testbed.number(together).await;
    println!("{transactions} transactions");
    assert!(transactions < 100, "{transactions} transactions for 400 requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_refused_is_refused_alone() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let gather = Gather::default();
    let requests = (0..100).map(|number| {
        let mut request = Enqueue::new(workspace.0, definition.0);
        match number % 10 {
            3 => request.workflow_definition_id = Uuid::now_v7(),
            5 => request.correlation_id = Some(String::new()),
            7 => {
                request.idempotency_key = Some("the same".to_owned());
                request.priority = if number == 7 { 0 } else { number };
            }
            _ => {}
        }
        gather.enqueue(&testbed.database, request, "tester")
    });
    let answers = join_all(requests).await;
    let mut kept = 0;
    for (number, answer) in answers.iter().enumerate() {
        match (number % 10, answer) {
            (3, Err(Error::Unknown(_)))
            | (5, Err(Error::BadKey { .. }))
            | (7, Err(Error::Conflict { .. })) => {}
            (7, Ok(answer)) => {
                kept += 1;
                assert!(!answer.duplicate);
            }
            (3 | 5 | 7, other) => panic!("{number}: {other:?}"),
            (_, answer) => assert!(answer.is_ok(), "{number}: {answer:?}"),
        }
    }
    assert_eq!(
        kept, 1,
        "of those with the same key and another request one is enqueued"
    );
    assert_eq!(testbed.count("queue_items").await, 71);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_hung_up_on_before_its_turn_is_not_enqueued_with_later_ones() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let gather = Gather::default();
    let ask = || {
        let request = Enqueue::new(workspace.0, definition.0);
        let (gather, database) = (gather.clone(), testbed.database.clone());
        async move { gather.enqueue(&database, request, "tester").await }
    };
    // While the table is locked those that have a place keep it.
    let mut lock = testbed.connection().await;
    sqlx::raw_sql("begin; lock table stationmaster_internal.queue_items in exclusive mode")
        .execute(&mut lock)
        .await
        .unwrap();
    let blocked = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'";
    // The pool may be used up by those that wait.
    let mut eye = testbed.connection().await;
    let mut first = Vec::new();
    for places in 1..=4 {
        first.push(tokio::spawn(ask()));
        eventually("it has a place", async || {
            let query = sqlx::query_scalar::<_, i64>(blocked);
            query.fetch_one(&mut eye).await.unwrap() == places
        })
        .await;
    }
    let hung_up = join_all((0..10).map(|_| ask()));
    let waited = tokio::time::timeout(Duration::from_millis(300), hung_up).await;
    assert!(waited.is_err(), "there is no place for them");
    sqlx::raw_sql("commit").execute(&mut lock).await.unwrap();
    for one in first {
        one.await.unwrap().unwrap();
    }
    ask().await.unwrap();
    assert_eq!(testbed.count("queue_items").await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_together_only_with_those_of_the_same_caller() {
    let testbed = Testbed::new().await;
    let (one, other) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, NOOP).await);
    testbed.database.raise_wall().await.unwrap();
    let gather = Gather::default();
    let requests = (0..60).map(async |number| {
        let (name, (workspace, definition)) = if number % 2 == 0 {
            ("token:ann", one)
        } else {
            ("token:bob", other)
        };
        let database = testbed.database.on_behalf(name, Scope::Only(vec![workspace]));
        // Every tenth asks for what is the other's.
        let workspace = if number % 10 == 9 { one.0 } else { workspace };
        let request = Enqueue::new(workspace.0, definition.0);
        gather.enqueue(&database, request, name).await
    });
    let answers = join_all(requests).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer.is_ok(), number % 10 != 9, "{number}: {answer:?}");
    }
    let mixed = "select count(*) from stationmaster_internal.queue_items
                 where enqueued_by <> case workspace_id when (select id from stationmaster.workspaces order by id limit 1)
                                           then 'token:ann' else 'token:bob' end";
    assert_eq!(testbed.number(mixed).await, 0);
}
