//! A database that is restored from a backup: what has happened since on the engine is found there, and does not happen a second time.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;
use uuid::Uuid;

use crate::support::{ENDLESS, Launch, Temporal, TestDatabase, eventually, setting};

pub(crate) fn tool(name: &str, arguments: &[&str]) {
    let program = Path::new(&setting("STATIONMASTER_TEST_POSTGRES_BIN")).join(name);
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_started_after_a_backup_is_not_started_again_when_it_is_restored() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let launch =
        |database: &TestDatabase| Launch::on(database).temporal(&temporal.address, &temporal.namespace);
    let workflow = database.workflow(3, ENDLESS).await;
    database.enqueue(workflow, 8).await;
    let mut before = launch(&database).start_ready().await;
    database.until_count("RUNNING", 3).await;
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup.sql");
    let file = format!("--file={}", backup.display());
    tool("pg_dump", &["--no-owner", &file, &database.url]);
    // After the backup the rest is started too.
    sqlx::query("update stationmaster.workspaces set max_concurrent = 10")
        .execute(&database.pool)
        .await
        .unwrap();
    database.until_count("RUNNING", 8).await;
    before.kill();
    // Temporal lists a run a moment after it has started.
    eventually("all runs are listed", async || temporal.runs().await.len() == 8).await;
    let runs = temporal.runs().await;

    let admin: Url = setting("STATIONMASTER_TEST_DATABASE_URL").parse().unwrap();
    let name = format!("restored_{}", Uuid::now_v7().simple());
    let mut connection = PgConnection::connect(admin.as_str()).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("create database {name}")))
        .execute(&mut connection)
        .await
        .unwrap();
    let mut url = admin.clone();
    url.set_path(&name);
    let file = format!("--file={}", backup.display());
    tool("psql", &["--quiet", "--set=ON_ERROR_STOP=1", &file, url.as_str()]);
    {
        let restored = TestDatabase::at(url.as_str()).await;
        assert_eq!(
            restored.count("RUNNING").await,
            3,
            "as it was at the time of the backup"
        );
        let mut after = launch(&restored).start_ready().await;
        sqlx::query("update stationmaster.workspaces set max_concurrent = 10")
            .execute(&restored.pool)
            .await
            .unwrap();
        restored.until_count("RUNNING", 8).await;
        let ids = |runs: &[temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo]| -> HashSet<String> {
            runs.iter().map(|run| run.execution.as_ref().unwrap().run_id.clone()).collect()
        };
        assert_eq!(
            ids(&temporal.runs().await),
            ids(&runs),
            "the same runs, and no other"
        );
        let attempts = "select coalesce(sum(attempt_count), 0) from stationmaster.workflow_execution_queue";
        assert_eq!(restored.number(attempts).await, 0, "nothing was refused");
        after.kill();
        restored.pool.close().await;
    }
    eventually("the restored database can go", async || {
        let drop = AssertSqlSafe(format!("drop database if exists {name} with (force)"));
        sqlx::query(drop).execute(&mut connection).await.is_ok()
    })
    .await;
}
