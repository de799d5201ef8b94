//! Migrations of each kind that the rules allow, on tables with rows in them, while work goes on. With a few thousand rows among the tests;
//! `cargo xtask upgrade` does the same with five million.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::migrate::Migrator;
use sqlx::{Connection as _, PgConnection};
use stationmaster_core::db::Database;
use stationmaster_core::schema::plan::{Effort, Lock, Plan};
use uuid::Uuid;

use crate::scene::repository_path;
use crate::support::{Launch, SHORT, TestDatabase, eventually};

/// Rows, when nobody says how many.
const FEW: i64 = 20_000;
/// How long somebody else uses the tables when the first step comes.
const IN_USE: Duration = Duration::from_secs(10);
/// A step waits 2 s for its lock and then lets the others go first. A statement that had to wait until the tables are free would take far longer.
const LONGEST_WAIT: Duration = Duration::from_secs(6);

/// What follows on the program's own versions: one of each kind.
const STEPS: [(&str, &str); 5] = [
    (
        "9001_a_column.sql",
        "alter table stationmaster_internal.queue_door add column weight integer not null default 1;
         alter table stationmaster_internal.executions_finished add column weight integer;",
    ),
    (
        "9002_an_index.sql",
        "-- no-transaction
         create index concurrently executions_finished_by_definition
             on stationmaster_internal.executions_finished (workflow_definition_id, execution_id)",
    ),
    (
        "9003_a_backfill.sql",
        "-- no-transaction
         do $$
         declare
             done uuid := '00000000-0000-0000-0000-000000000000';
         begin
             loop
                 with batch as (
                     select execution_id from stationmaster_internal.executions_finished
                     where execution_id > done order by execution_id limit 2000
                 ), written as (
                     update stationmaster_internal.executions_finished e set weight = 1
                     from batch b where e.execution_id = b.execution_id
                 )
                 select (array_agg(execution_id order by execution_id desc))[1] into done from batch;
                 exit when done is null;
                 commit;
             end loop;
         end
         $$",
    ),
    (
        "9004_a_constraint.sql",
        "alter table stationmaster_internal.executions_finished add constraint weight_is_positive check (weight > 0) not valid;",
    ),
    (
        "9005_its_validation.sql",
        "alter table stationmaster_internal.executions_finished validate constraint weight_is_positive;",
    ),
];

/// The program's own versions, and those that follow.
async fn with_steps(folder: &Path) -> Migrator {
    for entry in std::fs::read_dir(repository_path("crates/core/migrations")).unwrap() {
        let file = entry.unwrap().path();
        std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    for (name, sql) in STEPS {
        std::fs::write(folder.join(name), sql).unwrap();
    }
    Migrator::new(folder).await.unwrap()
}

/// Items that ended in the course of a day, straight into the tables.
async fn fill(database: &TestDatabase, (workspace, definition): (Uuid, Uuid), rows: i64) {
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    for statement in [
        "set session_replication_role = replica",
        "set synchronous_commit = off",
    ] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    let items =
        "insert into stationmaster_internal.queue_items (workspace_id, workflow_definition_id, created_at)
                 select $1, $2, now() - interval '2 days' from generate_series(1, $3)";
    let ended = "insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id,
                     item_status, status, attempts, recoveries, finished_at, finished_by)
                 select id, id, workspace_id, workflow_definition_id, 'DISPATCHED', 'COMPLETED', 0, 0,
                        now() - interval '1 day' * row_number() over () / $1::bigint, 'the fill'
                 from stationmaster_internal.queue_items";
    let items = sqlx::query(items).bind(workspace).bind(definition).bind(rows);
    items.execute(&mut connection).await.unwrap();
    sqlx::query(ended)
        .bind(rows)
        .execute(&mut connection)
        .await
        .unwrap();
    let analyze = "analyze stationmaster_internal.queue_items, stationmaster_internal.executions_finished";
    sqlx::query(analyze).execute(&mut connection).await.unwrap();
}

/// Enqueues one after the other until told to stop; how many, and how long the slowest took.
async fn keep_enqueuing(
    database: &TestDatabase,
    (workspace, definition): (Uuid, Uuid),
    enough: &AtomicBool,
) -> (i64, Duration) {
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    let (mut count, mut slowest) = (0, Duration::ZERO);
    while !enough.load(Ordering::Acquire) {
        let query = "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id) values ($1, $2)";
        let asked = Instant::now();
        let query = sqlx::query(query).bind(workspace).bind(definition);
        query.execute(&mut connection).await.unwrap();
        slowest = slowest.max(asked.elapsed());
        count += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (count, slowest)
}

/// An index that somebody broke off: it is there, and not whole.
async fn break_off_an_index(database: &TestDatabase) {
    let mut connection = PgConnection::connect(&database.url).await.unwrap();
    sqlx::query("set statement_timeout = '500ms'")
        .execute(&mut connection)
        .await
        .unwrap();
    let index = "create index concurrently executions_finished_by_definition
                 on stationmaster_internal.executions_finished (workflow_definition_id, execution_id)";
    assert!(sqlx::query(index).execute(&mut connection).await.is_err());
    let broken = "select count(*) from pg_index where not indisvalid and indexrelid::regclass::text like '%by_definition'";
    assert_eq!(database.number(broken).await, 1);
}

/// The plan names each step, what it locks and what it does to the rows.
fn assert_is_told(plan: &Plan) {
    let told = plan.migrations.iter().map(|step| {
        for table in &step.tables {
            println!("{} {table:?}", step.version);
        }
        let last = step.tables.last().unwrap();
        assert!(last.table.ends_with("executions_finished"), "{last:?}");
        (step.version, last.lock, last.effort)
    });
    let told: Vec<(i64, Lock, Effort)> = told.collect();
    assert_eq!(
        told,
        [
            (9001, Lock::Everything, Effort::Nothing),
            (9002, Lock::None, Effort::Reads),
            (9003, Lock::None, Effort::Writes),
            (9004, Lock::Everything, Effort::Nothing),
            (9005, Lock::None, Effort::Reads),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_of_each_kind_hold_nobody_up_while_work_goes_on_and_old_servers_stay_ready() {
    let rows = std::env::var("STATIONMASTER_TEST_UPGRADE_ROWS").map_or(FEW, |rows| rows.parse().unwrap());
    let database = TestDatabase::new().await;
    let workflow = database.workflow(1_000, SHORT).await;
    let began = Instant::now();
    fill(&database, database.workflow(1, SHORT).await, rows).await;
    println!(
        "{rows} items and as many executions made in {:.1?}",
        began.elapsed()
    );
    let folder = tempfile::tempdir().unwrap();
    let migrations = with_steps(folder.path()).await;
    let server = Launch::on(&database).start_ready().await;

    let enough = AtomicBool::new(false);
    let ((one, slowest), (other, slower), ()) = tokio::join!(
        keep_enqueuing(&database, workflow, &enough),
        keep_enqueuing(&database, workflow, &enough),
        async {
            // A report that takes its time, and reads both tables.
            let mut report = database.pool.begin().await.unwrap();
            let still = sqlx::query("set transaction isolation level repeatable read");
            still.execute(&mut *report).await.unwrap();
            for table in ["queue_items", "executions_finished"] {
                let read = format!("select 1 from stationmaster_internal.{table} limit 1");
                let read = sqlx::query(sqlx::AssertSqlSafe(read));
                read.execute(&mut *report).await.unwrap();
            }
            break_off_an_index(&database).await;
            let newer = Database::new(&database.url, 1).unwrap();
            assert_is_told(&newer.plan_by(&migrations).await.unwrap());
            let (migrated, ()) = tokio::join!(newer.migrate_by(&migrations), async {
                tokio::time::sleep(IN_USE).await;
                report.rollback().await.unwrap();
            });
            migrated.unwrap();
            newer.pool().close().await;
            enough.store(true, Ordering::Release);
        }
    );
    let steps: Vec<(i64, String, f64)> = sqlx::query_as(
        "select version, description, execution_time / 1e9::float8 from stationmaster_internal._sqlx_migrations
         where version > 9000 order by version",
    )
    .fetch_all(&database.pool)
    .await
    .unwrap();
    assert_eq!(steps.len(), STEPS.len());
    for (version, description, seconds) in &steps {
        println!("{version} {description}: {seconds:.2} s");
    }
    let slowest = slowest.max(slower);
    let wait = "select max(extract(epoch from e.dispatched_at - q.created_at))::float8
                from stationmaster_internal.executions_finished e join stationmaster_internal.queue_items q on q.id = e.item_id
                where e.finished_by <> 'the fill'";
    let done =
        "select count(*) from stationmaster_internal.executions_finished where finished_by <> 'the fill'";
    eventually("all that was enqueued meanwhile has run", async || {
        database.number(done).await == one + other
    })
    .await;
    let claimed: f64 = sqlx::query_scalar(wait).fetch_one(&database.pool).await.unwrap();
    println!(
        "{} items enqueued meanwhile; the slowest enqueue took {slowest:.1?}, and the one that waited longest was dispatched after {claimed:.2} s",
        one + other
    );
    assert!(slowest < LONGEST_WAIT, "an enqueue was held up: {slowest:?}");
    assert!(
        claimed < 2.0 * LONGEST_WAIT.as_secs_f64(),
        "claims were held up: {claimed} s"
    );

    let left = "select count(*) from stationmaster_internal.executions_finished where weight is null and finished_by = 'the fill'";
    assert_eq!(database.number(left).await, 0, "the backfill left nothing out");
    let whole = "select count(*) from pg_index where indisvalid and indexrelid::regclass::text like '%executions_finished_by_definition'";
    assert_eq!(database.number(whole).await, 1);
    assert_eq!(
        server.readiness().await.0,
        200,
        "a server of the version before goes on"
    );
    database.enqueue(workflow, 3).await;
    eventually("it claims more", async || {
        database.number(done).await == one + other + 3
    })
    .await;
}
