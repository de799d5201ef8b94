//! Temporal answers and refuses.

use crate::support::{ENDLESS, Launch, Temporal, TestDatabase, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_start_fails_after_three_tries_with_the_reason_and_frees_its_slot() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (workspace, definition) = database.workflow(1, ENDLESS).await;
    let refused = database.definition(workspace, ENDLESS).await;
    let too_long =
        "update stationmaster.workflow_definitions set workflow_type = repeat('x', 2000) where id = $1";
    sqlx::query(too_long)
        .bind(refused)
        .execute(&database.pool)
        .await
        .unwrap();
    let launch = Launch::on(&database).temporal(&temporal.address, &temporal.namespace);
    let launch = launch
        .with("EXECUTIONS__RETRY_BASE", "100ms")
        .with("EXECUTIONS__RETRY_CAP", "200ms");
    let server = launch.start_ready().await;
    database.enqueue((workspace, refused), 1).await;
    database.until_count("FAILED", 1).await;
    let row = database
        .rows()
        .await
        .into_iter()
        .find(|row| row.status == "FAILED")
        .unwrap();
    assert_eq!((row.attempts, row.reason.as_deref()), (3, Some("refused")));
    let error: String =
        sqlx::query_scalar("select last_error from stationmaster.workflow_execution_queue where id = $1")
            .bind(row.item)
            .fetch_one(&database.pool)
            .await
            .unwrap();
    assert!(
        error.to_lowercase().contains("workflow"),
        "Temporal's own words: {error}"
    );
    // Counted once the database has answered.
    eventually("the failure is counted", async || {
        server
            .metric("queue_items_failed_total{reason=\"refused\"}")
            .await
            >= 1.0
    })
    .await;

    database.enqueue((workspace, definition), 1).await;
    database.until_count("RUNNING", 1).await;
    assert_eq!(
        server.readiness().await.0,
        200,
        "a refusal is an answer: the engine is not away"
    );
    let running = database
        .rows()
        .await
        .into_iter()
        .find(|row| row.status == "RUNNING")
        .unwrap();
    temporal.assert_one_run_each([running.id]).await;
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_does_not_exist_spends_nothing_and_readiness_names_it() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let workflow = database.workflow(1, ENDLESS).await;
    let server = Launch::on(&database)
        .temporal(&temporal.address, "no-such-line")
        .start_listening()
        .await;
    database.enqueue(workflow, 1).await;
    eventually("the server has asked", async || {
        server.said("The engine is away") > 0
    })
    .await;
    let (status, body) = server.readiness().await;
    assert_eq!(status, 503);
    assert!(body.contains("no-such-line"), "{body}");
    assert_eq!(database.attempts().await, 0);
    assert!(database.rows().await.is_empty());
}
