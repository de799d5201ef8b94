//! Enqueue by SQL, for any language: the function, a plain INSERT in every form, COPY. All inside the caller's transaction.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use stationmaster_core::executions::enqueue::MAX_INPUT;
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};
use uuid::Uuid;

use crate::common::{NOOP, Testbed, brisk, eventually};

const ALL_DONE: &str = "everything that was enqueued is done";

async fn everything_is_done(testbed: &Testbed, items: i64) {
    eventually(ALL_DONE, async || {
        testbed.count("executions_finished").await == items
    })
    .await;
    assert_eq!(testbed.count("queue_pending").await, 0);
    assert_eq!(testbed.count("queue_items").await, items);
    let strange = "select count(*) from stationmaster_internal.executions_finished where status is distinct from 'COMPLETED'";
    assert_eq!(testbed.number(strange).await, 0);
}

#[tokio::test]
async fn the_function_enqueues_inside_the_callers_transaction() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    let server = testbed.server(brisk()).await;
    let query = "select stationmaster.enqueue_execution($1, $2, '{\"a\": 1}')";
    let mut connection = testbed.connection().await;

    let mut transaction = connection.begin().await.unwrap();
    let dropped: ItemId = sqlx::query_scalar(query)
        .bind(workspace)
        .bind(definition)
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    transaction.rollback().await.unwrap();

    let mut transaction = connection.begin().await.unwrap();
    let kept: ItemId = sqlx::query_scalar(query)
        .bind(workspace)
        .bind(definition)
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    assert_eq!(
        testbed.count("queue_items").await,
        0,
        "nothing is seen before the commit"
    );
    transaction.commit().await.unwrap();

    testbed.reaches(kept, "COMPLETED").await;
    let execution = testbed.execution(kept).await;
    assert_eq!(execution.input.unwrap().get(), r#"{"a": 1}"#);
    let left = "select count(*) from stationmaster_internal.queue_items where id = $1";
    let left: i64 = sqlx::query_scalar(left)
        .bind(dropped)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(left, 0, "what was rolled back left nothing");
    everything_is_done(&testbed, 1).await;
    server.stop().await;
}

#[tokio::test]
async fn a_plain_insert_of_the_two_ids_is_enough() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    let query = "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id)
                 values ($1, $2) returning id, status, priority, input::text";
    let (item, status, priority, input): (ItemId, String, i32, String) = sqlx::query_as(query)
        .bind(workspace)
        .bind(definition)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!((status.as_str(), priority, input.as_str()), ("PENDING", 0, "{}"));

    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn an_insert_may_give_every_public_column() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    let id = Uuid::now_v7();
    let query = "insert into stationmaster.workflow_execution_queue
                     (id, workspace_id, workflow_definition_id, input, priority, run_at, idempotency_key)
                 values ($1, $2, $3, '[1]', 9, now() + interval '1 hour', 'once')";
    sqlx::query(query)
        .bind(id)
        .bind(workspace)
        .bind(definition)
        .execute(testbed.pool())
        .await
        .unwrap();
    let item = testbed.item(ItemId(id)).await;
    assert_eq!(item.priority, 9);
    assert_eq!(item.idempotency_key.as_deref(), Some("once"));
    let ahead = item.run_at.unwrap().duration_since(item.created_at).as_secs();
    assert_eq!(ahead, 3600);

    let again = sqlx::query(query)
        .bind(Uuid::now_v7())
        .bind(workspace)
        .bind(definition)
        .execute(testbed.pool())
        .await;
    let refused = again.unwrap_err();
    assert_eq!(
        refused.as_database_error().unwrap().code().as_deref(),
        Some("23505"),
        "{refused}"
    );
}

#[tokio::test]
async fn inserts_of_many_rows_and_of_a_select_enqueue_them_all() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    testbed
        .run(&format!(
            "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
             values ('{workspace}', '{definition}', '1'), ('{workspace}', '{definition}', '2');
             insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
             select workspace_id, id, to_jsonb(n) from stationmaster.workflow_definitions, generate_series(3, 100) n"
        ))
        .await;
    let ids = "select count(distinct id) from stationmaster.workflow_execution_queue";
    assert_eq!(testbed.number(ids).await, 100);

    let server = testbed.server(brisk()).await;
    everything_is_done(&testbed, 100).await;
    let inputs = "select count(distinct input) from stationmaster.workflow_executions";
    assert_eq!(testbed.number(inputs).await, 100);
    server.stop().await;
}

#[tokio::test]
async fn copy_into_the_queue_enqueues() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    let server = testbed.server(brisk()).await;
    let mut connection = testbed.connection().await;
    let statement = "copy stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input) from stdin";
    let mut copy = connection.copy_in_raw(statement).await.unwrap();
    for n in 0..50 {
        let line = format!("{workspace}\t{definition}\t{{\"n\": {n}}}\n");
        copy.send(line.into_bytes()).await.unwrap();
    }
    assert_eq!(copy.finish().await.unwrap(), 50);
    everything_is_done(&testbed, 50).await;
    server.stop().await;
}

#[tokio::test]
async fn a_savepoint_rolled_back_takes_only_its_own_items_with_it() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    let insert = format!(
        "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id)
         values ('{workspace}', '{definition}');"
    );
    testbed
        .run(&format!(
            "begin; {insert} savepoint s; {insert} rollback to s; {insert} commit"
        ))
        .await;
    let server = testbed.server(brisk()).await;
    everything_is_done(&testbed, 2).await;
    server.stop().await;
}

/// What each way in says about a request that cannot be taken: the words, and that nothing is left.
async fn each_way_in_refuses(
    testbed: &Testbed,
    (workspace, definition): (WorkspaceId, DefinitionId),
    input: &str,
    words: &str,
) {
    let function = format!("select stationmaster.enqueue_execution('{workspace}', '{definition}', {input})");
    let insert = format!(
        "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
         values ('{workspace}', '{definition}', {input})"
    );
    for statement in [function, insert] {
        let error = testbed
            .pool()
            .execute(AssertSqlSafe(statement))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
    let text = testbed
        .pool()
        .fetch_one(AssertSqlSafe(format!("select ({input})::text")))
        .await
        .unwrap();
    let text: String = sqlx::Row::get(&text, 0);
    let mut connection = testbed.connection().await;
    let statement = "copy stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input) from stdin";
    let mut copy = connection.copy_in_raw(statement).await.unwrap();
    copy.send(format!("{workspace}\t{definition}\t{text}\n").into_bytes())
        .await
        .unwrap();
    let error = copy.finish().await.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    assert_eq!(testbed.count("queue_items").await, 0);
    assert_eq!(testbed.count("queue_hints").await, 0);
}

#[tokio::test]
async fn every_way_in_refuses_an_input_that_is_too_large_and_says_so() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let input = format!("to_jsonb(repeat('x', {MAX_INPUT}))");
    each_way_in_refuses(&testbed, tenant, &input, "the input has more than 256 KiB").await;
}

#[tokio::test]
async fn every_way_in_refuses_unknown_ids_and_says_which() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, NOOP).await;
    let nowhere = WorkspaceId::new();
    each_way_in_refuses(
        &testbed,
        (nowhere, definition),
        "'{}'::jsonb",
        &format!("there is no workspace {nowhere}"),
    )
    .await;
    let nothing = DefinitionId::new();
    let words = format!("workspace {workspace} has no workflow definition {nothing}");
    each_way_in_refuses(&testbed, (workspace, nothing), "'{}'::jsonb", &words).await;
}

/// The version is resolved at enqueue: what is published later does not change what an item runs.
#[tokio::test]
async fn an_item_runs_the_version_that_was_current_when_it_was_enqueued() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, NOOP).await;
    let first = testbed.enqueue(tenant).await;
    stationmaster_core::catalogue::add_version(&testbed.database, tenant.1, crate::common::FAIL)
        .await
        .unwrap();
    let second = testbed.enqueue(tenant).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(first, "COMPLETED").await;
    testbed.reaches(second, "FAILED").await;
    assert!(
        testbed
            .execution(second)
            .await
            .error
            .unwrap()
            .get()
            .contains("as told")
    );
    server.station.shut_down(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_time_that_never_comes_or_that_nobody_can_read_is_refused() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(5, NOOP).await;
    for run_at in ["infinity", "-infinity", "20000-01-01Z", "0044-03-15 BC"] {
        let statement = format!(
            "select stationmaster.enqueue_execution('{workspace}', '{definition}', run_at => '{run_at}')"
        );
        let error = testbed
            .pool()
            .execute(AssertSqlSafe(statement))
            .await
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("run_at lies outside the years 1 to 9999"),
            "{error}"
        );
    }
    assert_eq!(testbed.count("queue_items").await, 0);
}
