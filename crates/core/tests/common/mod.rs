//! What every test of the core stands on: a database of its own, servers over it, and ways to wait and to count.

#![allow(dead_code, reason = "each test program uses its own part of this")]
#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test, and the panic says where"
)]

use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgPool};
use stationmaster_core::catalogue::{self, WorkflowChange, WorkspaceChange};
use stationmaster_core::db::Database;
use stationmaster_core::executions::enqueue::{self, Enqueue};
use stationmaster_core::executions::{Settings, inspect};
use stationmaster_core::id::{DefinitionId, ExecutionId, ItemId, WorkspaceId};
use tokio::sync::OnceCell;
use uuid::Uuid;

pub(crate) mod counting;
pub(crate) mod listener;
pub(crate) mod receiver;
pub(crate) mod scripted;
pub(crate) mod server;

pub(crate) use server::Server;

/// A graph that is over as soon as it begins.
pub(crate) const NOOP: &str = r#"{"nodes": [{"id": "a", "type": "noop"}]}"#;
/// A graph that the embedded engine refuses to run.
pub(crate) const UNKNOWN_TYPE: &str = r#"{"nodes": [{"id": "a", "type": "from-another-world"}]}"#;
/// A graph that fails.
pub(crate) const FAIL: &str = r#"{"nodes": [{"id": "a", "type": "fail", "message": "as told"}]}"#;

/// The longest that a condition may take to become true; far beyond what it takes, so that a slow machine passes.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A graph that waits.
pub(crate) fn wait(seconds: f64) -> String {
    format!(r#"{{"nodes": [{{"id": "a", "type": "wait", "seconds": {seconds}}}]}}"#)
}

/// Settings with short intervals. The poll is short, so a test about waking up must set its own.
pub(crate) fn brisk() -> Settings {
    Settings {
        poll_interval: Duration::from_millis(200),
        ..Settings::default()
    }
}

/// Settings under which only a notification wakes a server: a lost one would cost longer than any test waits.
pub(crate) fn woken_only() -> Settings {
    Settings {
        poll_interval: Duration::from_mins(10),
        ..Settings::default()
    }
}

/// Polls until the condition holds; fails with the words when it does not become true.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFnMut() -> bool) {
    within(PATIENCE, what, condition).await;
}

/// The same with a limit of its own, where the time is what is tested. Answers how long it took.
pub(crate) async fn within(
    limit: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) -> Duration {
    let began = Instant::now();
    loop {
        // Asked at least once after the time is over, so that a stall of the machine between two looks is no failure.
        let late = began.elapsed() > limit;
        if condition().await {
            return began.elapsed();
        }
        assert!(!late, "not within {limit:?}: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn admin_options() -> PgConnectOptions {
    let url = std::env::var("STATIONMASTER_TEST_DATABASE_URL")
        .expect("STATIONMASTER_TEST_DATABASE_URL is not set: run the tests by `cargo xtask test`");
    url.parse()
        .expect("STATIONMASTER_TEST_DATABASE_URL is not the URL of a PostgreSQL database")
}

async fn create_database(name: &str, template: Option<&str>) {
    let mut admin = PgConnection::connect_with(&admin_options())
        .await
        .expect("the test PostgreSQL answers");
    let template = template
        .map(|template| format!(" template {template}"))
        .unwrap_or_default();
    sqlx::query(AssertSqlSafe(format!("create database {name}{template}")))
        .execute(&mut admin)
        .await
        .unwrap();
    admin.close().await.unwrap();
}

fn url_of(database: &str) -> String {
    let mut url = admin_options().database(database).to_url_lossy();
    // Options of the pool are ours to choose; nothing of the admin's is needed.
    url.set_query(None);
    url.to_string()
}

/// A migrated database that the others are copied from; made once by each test program.
async fn template() -> &'static str {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let make = || async {
        let name = format!("stationmaster_test_{}_template", Uuid::now_v7().simple());
        create_database(&name, None).await;
        let database = Database::new(&url_of(&name), 1).unwrap();
        database.migrate().await.unwrap();
        // Nobody may be connected to a template while it is copied.
        database.pool().close().await;
        name
    };
    TEMPLATE.get_or_init(make).await
}

/// A database of one's own, and makers for what stands in it.
pub(crate) struct Testbed {
    pub(crate) url: String,
    pub(crate) database: Database,
    pool: PgPool,
}

impl Testbed {
    /// The same database by other connections.
    pub(crate) fn at(url: &str) -> Self {
        let database = Database::new(url, 4).unwrap();
        Self {
            url: url.to_owned(),
            pool: database.pool(),
            database,
        }
    }

    /// A fresh, migrated database.
    pub(crate) async fn new() -> Self {
        let name = format!("stationmaster_test_{}", Uuid::now_v7().simple());
        create_database(&name, Some(template().await)).await;
        Self::at(&url_of(&name))
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// A connection of one's own, for transactions that stay open.
    pub(crate) async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Starts a server with the embedded engine.
    pub(crate) async fn server(&self, settings: Settings) -> Server {
        Server::start(&self.url, settings).await
    }

    /// A workspace with a limit of its own.
    pub(crate) async fn workspace(&self, limit: i32) -> WorkspaceId {
        let id = WorkspaceId::new();
        let change = WorkspaceChange {
            max_concurrent: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        catalogue::put_workspace(&self.database, id, change, None)
            .await
            .unwrap();
        id
    }

    /// A workspace with the limit and the weight of its plan.
    pub(crate) async fn workspace_on(&self, plan: &str) -> WorkspaceId {
        let id = WorkspaceId::new();
        let change = WorkspaceChange {
            plan: Some(plan.to_owned()),
            ..WorkspaceChange::default()
        };
        catalogue::put_workspace(&self.database, id, change, None)
            .await
            .unwrap();
        id
    }

    /// A definition with one version.
    pub(crate) async fn definition(&self, workspace: WorkspaceId, graph: &str) -> DefinitionId {
        let id = DefinitionId::new();
        catalogue::put_definition(&self.database, id, WorkflowChange::of(workspace.0), None)
            .await
            .unwrap();
        catalogue::add_version(&self.database, id, graph).await.unwrap();
        id
    }

    /// A workspace and a definition of it.
    pub(crate) async fn tenant(&self, limit: i32, graph: &str) -> (WorkspaceId, DefinitionId) {
        let workspace = self.workspace(limit).await;
        (workspace, self.definition(workspace, graph).await)
    }

    /// One ordinary item.
    pub(crate) async fn enqueue(&self, (workspace, definition): (WorkspaceId, DefinitionId)) -> ItemId {
        self.ask(Enqueue::new(workspace.0, definition.0)).await
    }

    /// One item that must be accepted.
    pub(crate) async fn ask(&self, request: Enqueue) -> ItemId {
        let answer = enqueue::enqueue(&self.database, request, "tester").await;
        ItemId(answer.unwrap().id)
    }

    /// One that comes by the function, as its own hint.
    pub(crate) async fn enqueue_alone(&self, (workspace, definition): (WorkspaceId, DefinitionId)) -> ItemId {
        let query = "select stationmaster.enqueue_execution($1, $2)";
        let query = sqlx::query_scalar(query).bind(workspace).bind(definition);
        query.fetch_one(self.pool()).await.unwrap()
    }

    /// Many ordinary items, in one statement.
    pub(crate) async fn enqueue_many(
        &self,
        (workspace, definition): (WorkspaceId, DefinitionId),
        count: usize,
    ) -> Vec<ItemId> {
        let requests = vec![Enqueue::new(workspace.0, definition.0); count];
        let answers = enqueue::enqueue_all(&self.database, &requests, "tester")
            .await
            .unwrap();
        answers.into_iter().map(|answer| ItemId(answer.id)).collect()
    }

    /// The item as people see it; it must be there.
    pub(crate) async fn item(&self, item: ItemId) -> inspect::QueueItem {
        inspect::item(&self.database, item)
            .await
            .unwrap()
            .expect("the item is in the queue or ended")
    }

    /// The status of an item.
    pub(crate) async fn status(&self, item: ItemId) -> String {
        self.item(item).await.status.to_string()
    }

    /// The execution of an item, which must have one.
    pub(crate) async fn execution(&self, item: ItemId) -> inspect::Execution {
        let id = self
            .item(item)
            .await
            .execution_id
            .expect("the item has an execution");
        self.execution_by_id(ExecutionId(id)).await
    }

    /// An execution, which must be there.
    pub(crate) async fn execution_by_id(&self, id: ExecutionId) -> inspect::Execution {
        inspect::execution(&self.database, id)
            .await
            .unwrap()
            .expect("the execution is on record")
    }

    /// The status of an item's execution; `NONE` while it has none.
    pub(crate) async fn outcome(&self, item: ItemId) -> String {
        match self.item(item).await.execution_id {
            Some(id) => self.execution_by_id(ExecutionId(id)).await.status.to_string(),
            None => "NONE".to_owned(),
        }
    }

    /// Waits until the execution of an item is in this status.
    pub(crate) async fn reaches(&self, item: ItemId, status: &str) {
        let what = format!("the execution of item {item} is {status}");
        eventually(&what, async || self.outcome(item).await == status).await;
    }

    /// Waits until this many executions are finished.
    pub(crate) async fn finishes(&self, count: i64) {
        let what = format!("{count} executions are finished");
        eventually(&what, async || self.count("executions_finished").await >= count).await;
    }

    /// The items that have ended, in the order in which they were claimed.
    pub(crate) async fn claim_order(&self) -> Vec<ItemId> {
        let query = "select item_id from stationmaster_internal.executions_finished order by claimed_at";
        sqlx::query_scalar(query).fetch_all(self.pool()).await.unwrap()
    }

    /// The number of rows in one of our tables, or in a public view.
    pub(crate) async fn count(&self, relation: &str) -> i64 {
        let schema = if ["alarms", "audit", "signals"].contains(&relation) {
            "stationmaster"
        } else {
            "stationmaster_internal"
        };
        self.number(&format!("select count(*) from {schema}.{relation}"))
            .await
    }

    /// The answer of a query that gives one number.
    pub(crate) async fn number(&self, query: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(self.pool())
            .await
            .unwrap()
    }

    /// Runs statements that take no parameters. Answers how many rows the last one changed.
    pub(crate) async fn run(&self, statements: &str) -> u64 {
        let done = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(self.pool())
            .await;
        done.unwrap_or_else(|error| panic!("{error}: {statements}"))
            .rows_affected()
    }

    /// Changes a workspace.
    pub(crate) async fn change(&self, workspace: WorkspaceId, change: WorkspaceChange) {
        catalogue::put_workspace(&self.database, workspace, change, None)
            .await
            .unwrap();
    }

    /// Pauses or resumes a workspace.
    pub(crate) async fn pause(&self, workspace: WorkspaceId, paused: bool) {
        self.change(
            workspace,
            WorkspaceChange {
                paused: Some(paused),
                ..WorkspaceChange::default()
            },
        )
        .await;
    }

    /// Gives a workspace a limit of its own.
    pub(crate) async fn limit(&self, workspace: WorkspaceId, limit: i32) {
        let change = WorkspaceChange {
            max_concurrent: Some(Some(limit)),
            ..WorkspaceChange::default()
        };
        self.change(workspace, change).await;
    }

    /// Pauses or resumes a definition.
    pub(crate) async fn pause_definition(
        &self,
        (workspace, definition): (WorkspaceId, DefinitionId),
        paused: bool,
    ) {
        let change = WorkflowChange {
            paused: Some(paused),
            ..WorkflowChange::of(workspace.0)
        };
        catalogue::put_definition(&self.database, definition, change, None)
            .await
            .unwrap();
    }

    /// Sets the number of refused starts after which items of a definition fail.
    pub(crate) async fn max_attempts(&self, (workspace, definition): (WorkspaceId, DefinitionId), most: i32) {
        let change = WorkflowChange {
            max_attempts: Some(most),
            ..WorkflowChange::of(workspace.0)
        };
        catalogue::put_definition(&self.database, definition, change, None)
            .await
            .unwrap();
    }
}

/// JSON as it came, without a look at it.
pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}
