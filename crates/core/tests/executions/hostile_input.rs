//! Input that is meant to break something is refused with words, or kept as it is, and never hurts anybody else.

use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::enqueue::{self, Enqueue, Error};
use stationmaster_core::executions::operate::{self, Complete};
use stationmaster_core::id::ExecutionId;

use crate::common::{NOOP, Testbed, brisk, eventually, raw, wait};

#[tokio::test]
async fn what_postgresql_cannot_keep_is_refused_with_the_reason() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let inputs = [
        r#"{"a": "\u0000"}"#,
        r#"{"\u0000": 1}"#,
        "1e200000",
        r#""\ud800""#,
        &deep,
    ];
    for input in inputs {
        let request = Enqueue {
            input: Some(raw(input)),
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        };
        let answer = enqueue::enqueue(&testbed.database, request, "tester").await;
        let start = &input[..input.len().min(40)];
        assert!(matches!(answer, Err(Error::BadInput(_))), "{start}: {answer:?}");
    }
    assert_eq!(testbed.count("queue_items").await, 0);
}

/// A few letters can stand for a number of a hundred thousand digits. Some kilobytes of them are stored as little, and
/// read back as hundreds of megabytes: the limit must hold for what the engine gets.
#[tokio::test]
async fn numbers_that_unfold_beyond_the_limit_are_refused() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let bomb = format!("[{}]", vec!["1e131071"; 2000].join(","));
    let request = Enqueue {
        input: Some(raw(&bomb)),
        ..Enqueue::new(tenant.0.0, tenant.1.0)
    };
    let answer = enqueue::enqueue(&testbed.database, request, "tester").await;
    assert!(
        matches!(answer, Err(Error::BadInput(_) | Error::TooLarge { .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn strange_but_valid_input_is_kept_and_run() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, NOOP).await;
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let inputs = [
        "null",
        "\"'; drop table stationmaster_internal.queue_items; --\"",
        "123456789012345678901234567890.12345678901234567890",
        "1e400",
        r#"{"": {"": []}}"#,
        r#""\ud83d\ude80 \u202e""#,
        &deep,
    ];
    let mut items = Vec::new();
    for input in inputs {
        let request = Enqueue {
            input: Some(raw(input)),
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        };
        items.push(testbed.ask(request).await);
    }
    let server = testbed.server(brisk()).await;
    for item in items {
        testbed.reaches(item, "COMPLETED").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn keys_that_are_empty_too_long_or_hold_a_nul_are_refused_by_name() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let long = "k".repeat(257);
    for key in ["", long.as_str(), "a\0b"] {
        let plain = Enqueue::new(tenant.0.0, tenant.1.0);
        let key = Some(key.to_owned());
        let requests = [
            (
                "idempotency_key",
                Enqueue {
                    idempotency_key: key.clone(),
                    ..plain.clone()
                },
            ),
            (
                "traceparent",
                Enqueue {
                    traceparent: key.clone(),
                    ..plain.clone()
                },
            ),
            (
                "correlation_id",
                Enqueue {
                    correlation_id: key,
                    ..plain
                },
            ),
        ];
        for (name, request) in requests {
            let answer = enqueue::enqueue(&testbed.database, request, "tester").await;
            assert!(
                matches!(answer, Err(Error::BadKey { field, .. }) if field == name),
                "{answer:?}"
            );
        }
    }
    let longest = Enqueue {
        idempotency_key: Some("ü".repeat(256)),
        ..Enqueue::new(tenant.0.0, tenant.1.0)
    };
    assert!(
        enqueue::enqueue(&testbed.database, longest, "tester")
            .await
            .is_ok(),
        "characters count, not bytes"
    );

    let statement = "select stationmaster.enqueue_execution($1, $2, idempotency_key => $3)";
    let query = sqlx::query(statement).bind(tenant.0).bind(tenant.1).bind(long);
    let refused = query.execute(testbed.pool()).await.unwrap_err().to_string();
    assert!(
        refused.contains("the idempotency key has 257 characters"),
        "{refused}"
    );
    assert_eq!(testbed.count("queue_items").await, 1);
}

#[tokio::test]
async fn an_outcome_that_cannot_be_stored_does_not_keep_the_slot() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, &wait(600.0)).await;
    let item = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    let completion = Complete {
        force: false,
        status: CloseStatus::Completed,
        output: Some(raw(r#"{"a": "\u0000"}"#)),
        error: None,
    };
    operate::complete(&testbed.database, ExecutionId(execution), completion, "tester")
        .await
        .unwrap();
    let ended = testbed.execution_by_id(ExecutionId(execution)).await;
    assert_eq!(ended.status.as_str(), "COMPLETED");
    assert!(ended.error.unwrap().get().contains("could not be stored"));
    server.stop().await;
}

/// The lowest and the highest priority are numbers at the edge of their type.
#[tokio::test]
async fn extreme_priorities_keep_their_order() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let mut items = Vec::new();
    for priority in [i32::MIN, 0, i32::MAX, -1, 1] {
        let request = Enqueue {
            priority,
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        };
        let item = testbed.ask(request).await;
        assert_eq!(testbed.item(item).await.priority, priority);
        items.push((priority, item));
    }
    let server = testbed.server(brisk()).await;
    eventually("all are done", async || {
        testbed.count("executions_finished").await == 5
    })
    .await;
    items.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
    assert_eq!(
        testbed.claim_order().await,
        items.iter().map(|(_, item)| *item).collect::<Vec<_>>()
    );
    server.stop().await;
}
