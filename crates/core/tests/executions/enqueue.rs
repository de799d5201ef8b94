//! Enqueue through the API: one, many, and what is refused.

use std::time::{Duration, Instant};

use stationmaster_core::catalogue::{self, WorkflowChange};
use stationmaster_core::executions::enqueue::{self, Enqueue, Error, MAX_INPUT};
use stationmaster_core::id::{DefinitionId, WorkspaceId};

use crate::common::{NOOP, Testbed, brisk, raw};

#[tokio::test]
async fn an_item_keeps_what_was_asked_and_is_run() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let request = Enqueue {
        input: Some(raw(r#"{"order": 17}"#)),
        priority: 3,
        idempotency_key: Some("order-17".to_owned()),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        correlation_id: Some("ours".to_owned()),
        ..Enqueue::new(tenant.0.0, tenant.1.0)
    };
    let item = testbed.ask(request).await;

    let asked = testbed.item(item).await;
    assert_eq!(asked.status.as_str(), "PENDING");
    assert_eq!(asked.priority, 3);
    assert_eq!(asked.idempotency_key.as_deref(), Some("order-17"));
    assert_eq!(asked.correlation_id.as_deref(), Some("ours"));
    assert_eq!(asked.enqueued_by, "tester");
    assert_eq!(asked.execution_id, None);

    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    let execution = testbed.execution(item).await;
    assert_eq!(execution.input.unwrap().get(), r#"{"order": 17}"#);
    assert_eq!(testbed.status(item).await, "DISPATCHED");
    server.stop().await;
}

#[tokio::test]
async fn twenty_thousand_requests_are_one_call_answered_in_their_order() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let requests: Vec<Enqueue> = (0..20_000)
        .map(|number| Enqueue {
            input: Some(raw(&format!(r#"{{"number": {number}}}"#))),
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .collect();

    let began = Instant::now();
    let answers = enqueue::enqueue_all(&testbed.database, &requests, "tester")
        .await
        .unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "took {:?}",
        began.elapsed()
    );

    assert_eq!(testbed.count("queue_pending").await, 20_000);
    let items: Vec<uuid::Uuid> = answers.iter().map(|answer| answer.id).collect();
    let query = "select count(*) from unnest($1::uuid[]) with ordinality as asked (id, place)
                 join stationmaster_internal.queue_items i using (id)
                 where (i.input->>'number')::bigint = asked.place - 1";
    let in_order: i64 = sqlx::query_scalar(query)
        .bind(&items)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(in_order, 20_000);
}

#[tokio::test]
async fn nothing_asked_is_nothing_done() {
    let testbed = Testbed::new().await;
    assert!(
        enqueue::enqueue_all(&testbed.database, &[], "tester")
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn one_bad_request_of_many_leaves_nothing_behind() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let good = Enqueue::new(tenant.0.0, tenant.1.0);
    let bad = Enqueue::new(tenant.0.0, DefinitionId::new().0);
    let answer = enqueue::enqueue_all(&testbed.database, &[good.clone(), bad, good], "tester").await;
    assert!(matches!(answer, Err(Error::Unknown(_))), "{answer:?}");
    assert_eq!(testbed.count("queue_items").await, 0);
    assert_eq!(testbed.count("queue_pending").await, 0);
    assert_eq!(testbed.count("queue_hints").await, 0);
}

#[tokio::test]
async fn an_unknown_workspace_a_foreign_definition_and_a_missing_version_are_told_apart() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let foreign = testbed.tenant(1, NOOP).await.1;
    let unversioned = DefinitionId::new();
    let change = WorkflowChange::of(workspace.0);
    catalogue::put_definition(&testbed.database, unversioned, change, None)
        .await
        .unwrap();

    let refusal = async |workspace: WorkspaceId, definition: DefinitionId| {
        let request = Enqueue::new(workspace.0, definition.0);
        match enqueue::enqueue(&testbed.database, request, "tester").await {
            Err(Error::Unknown(message)) => message,
            other => panic!("expected a refusal, got {other:?}"),
        }
    };
    let nowhere = WorkspaceId::new();
    assert_eq!(
        refusal(nowhere, definition).await,
        format!("there is no workspace {nowhere}")
    );
    let message = format!("workspace {workspace} has no workflow definition {foreign}");
    assert_eq!(refusal(workspace, foreign).await, message);
    let message = format!("workflow definition {unversioned} has no published version");
    assert_eq!(refusal(workspace, unversioned).await, message);
    assert_eq!(testbed.count("queue_items").await, 0);
}

#[tokio::test]
async fn an_input_that_is_too_large_is_refused_with_its_size_and_the_limit() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let largest = format!("\"{}\"", "x".repeat(MAX_INPUT - 2));
    let request = |input: &str| Enqueue {
        input: Some(raw(input)),
        ..Enqueue::new(tenant.0.0, tenant.1.0)
    };

    let too_large = format!("\"{}\"", "x".repeat(MAX_INPUT - 1));
    let error = enqueue::enqueue(&testbed.database, request(&too_large), "tester")
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::TooLarge { index: 0, size } if size == MAX_INPUT + 1),
        "{error}"
    );
    assert!(
        error.to_string().contains("262145 bytes; the limit is 262144"),
        "{error}"
    );

    // A string takes a few bytes more in the database than it has here.
    let fits = &largest.replace("xxxxxxxxxxxxxxxx", "");
    assert!(
        enqueue::enqueue(&testbed.database, request(fits), "tester")
            .await
            .is_ok()
    );
}

/// The limit is told in bytes of JSON, so every input below it must be accepted, whatever PostgreSQL makes of it.
#[tokio::test]
async fn an_input_below_the_limit_is_accepted_whatever_it_is_made_of() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let numbers = format!("[{}]", vec!["1"; 100_000].join(","));
    assert!(numbers.len() < MAX_INPUT);
    let request = Enqueue {
        input: Some(raw(&numbers)),
        ..Enqueue::new(tenant.0.0, tenant.1.0)
    };
    let answer = enqueue::enqueue(&testbed.database, request, "tester").await;
    assert!(answer.is_ok(), "{}", answer.unwrap_err());
}
