//! A database of its own for each test, and what is asked of it in the words of the public relations.

use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection, PgPool};
use stationmaster_core::db::Database;
use url::Url;
use uuid::Uuid;

use super::{eventually, setting};

/// Runs for longer than any test.
pub(crate) const ENDLESS: &str = r#"{"nodes": [{"id": "night", "type": "wait", "seconds": 3600}]}"#;
/// Over in a moment.
pub(crate) const SHORT: &str = r#"{"nodes": [{"id": "nap", "type": "wait", "seconds": 0.05}]}"#;

/// A database with our tables. One that was made for the test is gone with it.
pub(crate) struct TestDatabase {
    pub(crate) url: String,
    pub(crate) pool: PgPool,
    made: Option<(Url, String)>,
}

/// Where an item stands.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct Row {
    pub(crate) id: Uuid,
    pub(crate) item: Uuid,
    pub(crate) status: String,
    pub(crate) holder: Option<Uuid>,
    pub(crate) run_id: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) attempts: i32,
    pub(crate) recoveries: i32,
}

async fn migrate(url: &str) {
    let database = Database::new(url, 1).expect("a URL");
    database.migrate().await.expect("the migrations can be applied");
    database.pool().close().await;
}

impl TestDatabase {
    pub(crate) async fn new() -> Self {
        let database = Self::empty().await;
        migrate(&database.url).await;
        database
    }

    /// One without our tables.
    pub(crate) async fn empty() -> Self {
        let admin: Url = setting("STATIONMASTER_TEST_DATABASE_URL")
            .parse()
            .expect("STATIONMASTER_TEST_DATABASE_URL is a URL");
        let name = format!("processes_{}", Uuid::now_v7().simple());
        administer(&admin, format!("create database {name}"))
            .await
            .expect("a database can be made");
        let mut url = admin.clone();
        url.set_path(&name);
        let mut database = Self::as_it_is(url.as_str());
        database.made = Some((admin, name));
        database
    }

    /// One that belongs to somebody else.
    pub(crate) async fn at(url: &str) -> Self {
        migrate(url).await;
        Self::as_it_is(url)
    }

    fn as_it_is(url: &str) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(4)
            .connect_lazy(url)
            .expect("a URL");
        Self {
            url: url.to_owned(),
            pool,
            made: None,
        }
    }

    pub(crate) async fn workspace(&self, limit: i32) -> Uuid {
        let query = "insert into stationmaster.workspaces (max_concurrent) values ($1) returning id";
        sqlx::query_scalar(query)
            .bind(limit)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    /// A definition that runs this graph, on the server's own task queue.
    pub(crate) async fn definition(&self, workspace: Uuid, graph: &str) -> Uuid {
        let query = "insert into stationmaster.workflow_definitions (workspace_id) values ($1) returning id";
        let id: Uuid = sqlx::query_scalar(query)
            .bind(workspace)
            .fetch_one(&self.pool)
            .await
            .unwrap();
        let query = "insert into stationmaster.workflow_definition_versions (workflow_definition_id, workflow) values ($1, $2::jsonb)";
        sqlx::query(query)
            .bind(id)
            .bind(graph)
            .execute(&self.pool)
            .await
            .unwrap();
        id
    }

    /// A workspace with this limit and a definition in it.
    pub(crate) async fn workflow(&self, limit: i32, graph: &str) -> (Uuid, Uuid) {
        let workspace = self.workspace(limit).await;
        (workspace, self.definition(workspace, graph).await)
    }

    /// Enqueues by a plain insert, all in one transaction.
    pub(crate) async fn enqueue(&self, (workspace, definition): (Uuid, Uuid), items: i32) {
        self.enqueue_with(workspace, definition, items, "{}").await;
    }

    pub(crate) async fn enqueue_with(&self, workspace: Uuid, definition: Uuid, items: i32, input: &str) {
        let query =
            "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
                     select $1, $2, $4::jsonb from generate_series(1, $3)";
        let query = sqlx::query(query)
            .bind(workspace)
            .bind(definition)
            .bind(items)
            .bind(input);
        query.execute(&self.pool).await.unwrap();
    }

    /// One item that was asked for within a trace.
    pub(crate) async fn enqueue_traced(&self, (workspace, definition): (Uuid, Uuid), traceparent: &str) {
        let query = "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, traceparent)
                     values ($1, $2, $3)";
        let query = sqlx::query(query)
            .bind(workspace)
            .bind(definition)
            .bind(traceparent);
        query.execute(&self.pool).await.unwrap();
    }

    /// Everything that has an execution.
    pub(crate) async fn rows(&self) -> Vec<Row> {
        let query = "select id, queue_item_id as item, status, holder, run_id, reason, attempts, recoveries
                     from stationmaster.workflow_executions order by id";
        sqlx::query_as(query).fetch_all(&self.pool).await.unwrap()
    }

    /// The one execution there is, once it is in this status.
    pub(crate) async fn the_execution(&self, status: &str) -> Row {
        eventually(&format!("the execution is {status}"), async || {
            self.rows().await.iter().any(|row| row.status == status)
        })
        .await;
        let rows = self.rows().await;
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows.into_iter().next().unwrap()
    }

    /// How many executions are in this status now.
    pub(crate) async fn count(&self, status: &str) -> i64 {
        let query = "select count(*) from stationmaster.workflow_executions where status = $1";
        sqlx::query_scalar(query)
            .bind(status)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }

    pub(crate) async fn until_count(&self, status: &str, at_least: i64) -> std::time::Duration {
        eventually(&format!("{at_least} executions are {status}"), async || {
            self.count(status).await >= at_least
        })
        .await
    }

    /// Refused starts of all items together.
    pub(crate) async fn attempts(&self) -> i64 {
        let query =
            "select coalesce(sum(attempt_count), 0)::bigint from stationmaster.workflow_execution_queue";
        sqlx::query_scalar(query).fetch_one(&self.pool).await.unwrap()
    }

    pub(crate) async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&self.pool).await.unwrap()
    }

    /// Every item has completed, once; no slot is in use, by the rows and by the counters.
    pub(crate) async fn assert_all_completed_once(&self, items: i64) {
        let ends =
            "select count(*) from stationmaster_internal.executions_finished where superseded_at is null";
        assert_eq!(self.number(ends).await, items, "one end for each item");
        let completed = "select count(distinct item_id) from stationmaster_internal.executions_finished
                         where superseded_at is null and status = 'COMPLETED' and item_status = 'DISPATCHED'";
        assert_eq!(self.number(completed).await, items, "every item completed");
        let twice =
            "select count(*) from stationmaster_internal.executions_finished where superseded_at is not null";
        assert_eq!(self.number(twice).await, 0, "nothing was run again");
        self.assert_no_slot_is_used().await;
    }

    pub(crate) async fn assert_no_slot_is_used(&self) {
        assert_eq!(
            self.number("select count(*) from stationmaster_internal.executions_active")
                .await,
            0
        );
        let counted =
            "select coalesce(sum(active), 0)::bigint from stationmaster_internal.workspace_capacity";
        assert_eq!(self.number(counted).await, 0, "the counters agree with the rows");
    }

    /// The counters and the rows change together.
    pub(crate) async fn assert_counters_agree(&self) {
        let differ = "select count(*) from stationmaster_internal.workspace_capacity c
                      where c.active <> (select count(*) from stationmaster_internal.executions_active a where a.workspace_id = c.workspace_id)";
        assert_eq!(self.number(differ).await, 0, "the counters agree with the rows");
    }

    /// Keeps everybody else away from a table until what is returned is rolled back or dropped.
    pub(crate) async fn lock(&self, statement: &'static str) -> sqlx::Transaction<'static, sqlx::Postgres> {
        let mut transaction = self.pool.begin().await.unwrap();
        sqlx::query(statement).execute(&mut *transaction).await.unwrap();
        transaction
    }

    /// Is somebody waiting for a lock on this table?
    pub(crate) async fn is_waited_for(&self, table: &str) -> bool {
        let query = "select exists (select from pg_locks where not granted and relation = $1::regclass)";
        sqlx::query_scalar(query)
            .bind(table)
            .fetch_one(&self.pool)
            .await
            .unwrap()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some((admin, name)) = self.made.take() else {
            return;
        };
        // The runtime of the test is busy with the test; this needs one of its own.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(administer(&admin, format!("drop database {name} with (force)")))
        });
        let dropped = dropped.join();
        assert!(
            matches!(dropped, Ok(Ok(()))) || std::thread::panicking(),
            "{dropped:?}"
        );
    }
}

async fn administer(admin: &Url, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(admin.as_str()).await?;
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .execute(&mut connection)
        .await?;
    connection.close().await
}
