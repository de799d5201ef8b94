//! Idempotency keys: the same request again is the first item, another request under the key is a conflict.

use std::sync::Arc;

use stationmaster_core::executions::enqueue::{self, Enqueue, Enqueued, Error};
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};
use tokio::sync::Barrier;

use crate::common::{NOOP, Testbed, brisk, raw};

fn keyed((workspace, definition): (WorkspaceId, DefinitionId), key: &str, input: &str) -> Enqueue {
    Enqueue {
        input: Some(raw(input)),
        idempotency_key: Some(key.to_owned()),
        ..Enqueue::new(workspace.0, definition.0)
    }
}

#[tokio::test]
async fn the_same_request_again_is_the_first_item_even_after_it_has_ended() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    // The same JSON, spelled differently; a time finer than the database's.
    let run_at = Some(jiff::Timestamp::now() - jiff::SignedDuration::from_nanos(1));
    let first = Enqueue {
        run_at,
        ..keyed(tenant, "k", r#"{"a":1,"b":2}"#)
    };
    let again = Enqueue {
        run_at,
        ..keyed(tenant, "k", r#"{ "b": 2, "a": 1 }"#)
    };
    let first = enqueue::enqueue(&testbed.database, first, "tester")
        .await
        .unwrap();
    assert!(!first.duplicate, "the first is new");
    let before = Enqueued {
        duplicate: true,
        ..first
    };
    let repeated = enqueue::enqueue(&testbed.database, again.clone(), "tester")
        .await
        .unwrap();
    assert_eq!(repeated, before);

    let server = testbed.server(brisk()).await;
    testbed.reaches(ItemId(before.id), "COMPLETED").await;
    let repeated = enqueue::enqueue(&testbed.database, again, "tester")
        .await
        .unwrap();
    assert_eq!(repeated, before);
    assert_eq!(testbed.count("executions_finished").await, 1);
    server.stop().await;
}

#[tokio::test]
async fn another_request_under_the_same_key_is_a_conflict() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let other_definition = (tenant.0, testbed.definition(tenant.0, NOOP).await);
    testbed.ask(keyed(tenant, "k", "1")).await;
    let others = [
        keyed(tenant, "k", "2"),
        keyed(other_definition, "k", "1"),
        Enqueue {
            priority: 1,
            ..keyed(tenant, "k", "1")
        },
        Enqueue {
            run_at: Some(jiff::Timestamp::now()),
            ..keyed(tenant, "k", "1")
        },
    ];
    for other in others {
        let answer = enqueue::enqueue(&testbed.database, other, "tester").await;
        assert!(
            matches!(&answer, Err(Error::Conflict { key, .. }) if key == "k"),
            "{answer:?}"
        );
    }
    assert_eq!(testbed.count("queue_items").await, 1);
}

#[tokio::test]
async fn a_key_belongs_to_its_workspace() {
    let testbed = Testbed::new().await;
    let (here, there) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, NOOP).await);
    let first = testbed.ask(keyed(here, "k", "1")).await;
    let second = testbed.ask(keyed(there, "k", "2")).await;
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_key_twice_in_one_bulk_is_one_item_or_a_conflict_that_leaves_nothing() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let bulk = [
        keyed(tenant, "k", "1"),
        keyed(tenant, "other", "1"),
        keyed(tenant, "k", "1"),
    ];
    let answers = enqueue::enqueue_all(&testbed.database, &bulk, "tester")
        .await
        .unwrap();
    let duplicates: Vec<bool> = answers.iter().map(|answer| answer.duplicate).collect();
    assert_eq!(duplicates, [false, false, true]);
    assert_ne!(answers[1].id, answers[0].id);
    assert_eq!(answers[2].id, answers[0].id);
    assert_eq!(testbed.count("queue_items").await, 2);

    let bulk = [keyed(tenant, "new", "1"), keyed(tenant, "new", "2")];
    let answer = enqueue::enqueue_all(&testbed.database, &bulk, "tester").await;
    assert!(
        matches!(answer, Err(Error::Conflict { index: 1, .. })),
        "{answer:?}"
    );
    assert_eq!(testbed.count("queue_items").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_duplicates_make_one_item() {
    const CALLERS: usize = 8;
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    for round in 0..10 {
        let barrier = Arc::new(Barrier::new(CALLERS));
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (database, barrier) = (testbed.database.clone(), Arc::clone(&barrier));
                let request = keyed(tenant, &format!("round-{round}"), "{}");
                tokio::spawn(async move {
                    barrier.wait().await;
                    if caller % 2 == 0 {
                        let answer = enqueue::enqueue(&database, request, "tester").await;
                        return ItemId(answer.unwrap().id);
                    }
                    let query = "select stationmaster.enqueue_execution($1, $2, '{}', idempotency_key => $3)";
                    let query = sqlx::query_scalar::<_, ItemId>(query);
                    let query = query
                        .bind(request.workspace_id)
                        .bind(request.workflow_definition_id);
                    query
                        .bind(request.idempotency_key)
                        .fetch_one(&database.pool())
                        .await
                        .unwrap()
                })
            })
            .collect();
        let mut items = Vec::new();
        for caller in callers {
            items.push(caller.await.unwrap());
        }
        items.dedup();
        assert_eq!(items.len(), 1, "one item for all callers");
    }
    assert_eq!(testbed.count("queue_items").await, 10);
    assert_eq!(testbed.count("queue_pending").await, 10);
}

#[tokio::test]
async fn the_sql_function_knows_the_same_request_from_another_one() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let query = "select stationmaster.enqueue_execution($1, $2, $3::jsonb, idempotency_key => 'k')";
    let ask = async |input: &str| {
        let query = sqlx::query_scalar::<_, ItemId>(query)
            .bind(workspace)
            .bind(definition)
            .bind(input);
        query.fetch_one(testbed.pool()).await
    };
    let first = ask("1").await.unwrap();
    assert_eq!(ask("1").await.unwrap(), first);
    let conflict = ask("2").await.unwrap_err();
    let conflict = conflict.as_database_error().unwrap();
    assert_eq!(conflict.code().as_deref(), Some("23505"));
    let message = "the idempotency key \"k\" was used in this workspace with another request";
    assert_eq!(conflict.message(), message);
}

/// Two bulks that name the same keys in opposite orders wait for each other's rows; neither caller has done anything wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulks_with_the_same_keys_in_opposite_orders_both_succeed() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    for round in 0..2 {
        let forward: Vec<Enqueue> = (0..400)
            .map(|number| keyed(tenant, &format!("{round}-{number}"), "{}"))
            .collect();
        let backward: Vec<Enqueue> = forward.iter().rev().cloned().collect();
        let (first, second) = tokio::join!(
            enqueue::enqueue_all(&testbed.database, &forward, "one"),
            enqueue::enqueue_all(&testbed.database, &backward, "other"),
        );
        let (first, mut second) = (first.unwrap(), second.unwrap());
        second.reverse();
        let same = first.iter().zip(&second).all(|(one, other)| one.id == other.id);
        assert!(same, "both callers got the same items");
    }
    assert_eq!(testbed.count("queue_items").await, 2 * 400);
}
