//! Faults of single workspaces, alarms, signals and requests, all at the same time: one of them does not hide another.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use uuid::Uuid;

use crate::runbook::Place;
use crate::support::receiver::{Receiver, Reply};
use crate::support::{Alarms, ENDLESS, SHORT, TestDatabase, eventually, free_port, post};
use crate::trial::Watch;

const FAILING: &str = r#"{"nodes": [{"id": "a", "type": "fail", "message": "as asked"}]}"#;
/// A node that only Temporal could run.
const UNKNOWN: &str = r#"{"nodes": [{"id": "a", "type": "unheard_of"}]}"#;

/// Somebody's transaction, on a connection of its own, until it is ended as a runbook says.
struct Open {
    _connection: PgConnection,
    /// As PostgreSQL names it.
    pid: i32,
}

impl Open {
    async fn with(database: &TestDatabase, statement: &str) -> Self {
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        let pid = sqlx::query_scalar("select pg_backend_pid()");
        let pid = pid.fetch_one(&mut connection).await.unwrap();
        let statement = format!("begin; {statement}");
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
        Self {
            _connection: connection,
            pid,
        }
    }
}

async fn run(database: &TestDatabase, statement: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement.to_owned()));
    statement.execute(&database.pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_wrong_with_work_is_noticed() {
    let alarms = Alarms::new().await;
    let server = alarms
        .launch()
        .with("HTTP__OPEN", "true")
        .with("EXECUTIONS__RETRY_BASE", "10ms")
        .with("EXECUTIONS__RETRY_CAP", "20ms")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s")
        .start_ready()
        .await;
    let address = server.address().unwrap();
    let watch = Watch::on(&[&address], Duration::from_secs(1)).await;
    let database = &alarms.database;
    let look = &Place::at(&address).knowing(&[("DATABASE", &database.url)]);
    tokio::join!(
        stalled_and_full(&watch, database, look),
        failures(&watch, database, look),
        overshoot(&watch, database, look),
        alarms_late(&watch, &alarms, look),
        wakes(&watch, &alarms, look),
        broken_target(&watch, &alarms, look),
        dead_letters(&watch, database, look),
        old_transaction(&watch, database, look),
    );
    // Afterwards: without a connection the server answers nobody who looks.
    connections_and_locks(&watch, database, look).await;
}

/// The item that is kept waiting is also an old one, so these two are over together.
async fn stalled_and_full(watch: &Watch, database: &TestDatabase, look: &Place) {
    let (kept, full) = (
        database.workflow(5, SHORT).await,
        database.workflow(1, ENDLESS).await,
    );
    let mut trial = watch.begin(&["DispatchStalled", "QueueAge"]).await;
    let statement = format!(
        "select from stationmaster_internal.workspace_capacity where workspace_id = '{}' for update",
        kept.0
    );
    let held = Open::with(database, &statement).await;
    database.enqueue(full, 2).await;
    let waits = "select id from stationmaster.workflow_execution_queue where workspace_id = $1 and status = 'PENDING'";
    let mut waiting = Vec::new();
    eventually("one of the two runs", async || {
        let query = sqlx::query_scalar::<_, Uuid>(waits).bind(full.0);
        waiting = query.fetch_all(&database.pool).await.unwrap();
        waiting.len() == 1
    })
    .await;
    database.enqueue(kept, 1).await;
    let item = sqlx::query_scalar::<_, Uuid>(waits).bind(kept.0);
    let item = item.fetch_one(&database.pool).await.unwrap();
    let look = look.knowing(&[
        ("ITEM", &item),
        ("WAITING", &waiting[0]),
        ("FULL", &full.0),
        ("PID", &held.pid),
    ]);
    trial.fire(&look).await;
    trial.mend(&look).await;
    trial.clear().await;
}

async fn failures(watch: &Watch, database: &TestDatabase, look: &Place) {
    let refused = database.workflow(20, SHORT).await;
    // It was accepted when it was made, by way of an engine that was left behind.
    let swap = format!(
        "alter table stationmaster.workflow_definition_versions disable trigger versions_are_immutable;
         update stationmaster.workflow_definition_versions set workflow = '{UNKNOWN}' where workflow_definition_id = '{}';
         alter table stationmaster.workflow_definition_versions enable trigger versions_are_immutable",
        refused.1
    );
    run(database, &swap).await;
    let failing = database.workflow(20, FAILING).await;
    let mut trial = watch.begin(&["ItemsFailed", "FailuresRising"]).await;
    database.enqueue(refused, 2).await;
    database.enqueue(failing, 20).await;
    let look = look.knowing(&[("FAILING", &failing.1)]);
    trial.fire(&look).await;
    trial.mend(&look).await;
    trial.clear().await;
}

async fn overshoot(watch: &Watch, database: &TestDatabase, look: &Place) {
    let (workspace, definition) = database.workflow(4, ENDLESS).await;
    database.enqueue((workspace, definition), 2).await;
    let active = "select active from stationmaster_internal.workspace_capacity where workspace_id = $1";
    eventually("both run", async || {
        let active = sqlx::query_scalar::<_, i32>(active).bind(workspace);
        active.fetch_one(&database.pool).await.unwrap() == 2
    })
    .await;
    let counter = |by: &str| {
        format!(
            "update stationmaster_internal.workspace_capacity set active = active {by} where workspace_id = '{workspace}'"
        )
    };
    let mut trial = watch.begin(&["LimitOvershoot"]).await;
    run(database, &counter("- 1")).await;
    trial.fire(look).await;
    run(database, &counter("+ 1")).await;
    trial.clear().await;
}

async fn alarms_late(watch: &Watch, alarms: &Alarms, look: &Place) {
    let alarm: Uuid = alarms.set("/late", "delay => '3s'").await;
    let statement =
        format!("select from stationmaster_internal.alarm_standings where alarm_id = '{alarm}' for update");
    let mut trial = watch.begin(&["AlarmsLate"]).await;
    let held = Open::with(&alarms.database, &statement).await;
    let look = look.knowing(&[("PID", &held.pid)]);
    trial.fire(&look).await;
    trial.mend(&look).await;
    alarms.until(alarm, "fired").await;
    trial.clear().await;
}

async fn wakes(watch: &Watch, alarms: &Alarms, look: &Place) {
    alarms.receiver.always("/refuses", Reply::status(400));
    let port = free_port();
    let target = format!("http://127.0.0.1:{port}/nobody");
    let mut trial = watch.begin(&["AlarmsExhausted", "TargetOpen"]).await;
    let refused = alarms.now("/refuses").await;
    // One that goes on failing, so that somebody asks the target now and then.
    let series = alarms.set_at(&target, "cron_expr => '* * * * * *'").await;
    let look = look.knowing(&[("ALARM", &series)]);
    trial.fire(&look).await;
    // The targets are mended; what was to come there has to be asked for again.
    alarms.receiver.always("/refuses", Reply::status(200));
    let _receiver = Receiver::start_at(&format!("127.0.0.1:{port}")).await;
    trial.mend(&look).await;
    alarms.until(refused, "fired").await;
    trial.clear().await;
}

async fn broken_target(watch: &Watch, alarms: &Alarms, look: &Place) {
    alarms.receiver.always("/broken", Reply::status(500));
    let mut trial = watch.begin(&["WakesFail"]).await;
    let series = alarms.set("/broken", "cron_expr => '* * * * * *'").await;
    let look = look.knowing(&[("ALARM", &series)]);
    trial.fire(&look).await;
    alarms.receiver.always("/broken", Reply::status(200));
    trial.mend(&look).await;
    trial.clear().await;
}

async fn dead_letters(watch: &Watch, database: &TestDatabase, look: &Place) {
    let mut trial = watch.begin(&["DeadLetters"]).await;
    run(
        database,
        "insert into stationmaster.signals (project, name) values ('shop', 'unheard-of')",
    )
    .await;
    let (_, workflow) = database.workflow(1, SHORT).await;
    let look = look.knowing(&[("WORKFLOW", &workflow)]);
    trial.fire(&look).await;
    trial.mend(&look).await;
    let routed = "select count(*) from stationmaster.signals where name = 'unheard-of' and status = 'ROUTED'";
    eventually("the signal is routed", async || {
        database.number(routed).await == 1
    })
    .await;
    trial.clear().await;
}

async fn old_transaction(watch: &Watch, database: &TestDatabase, look: &Place) {
    let mut trial = watch.begin(&["OldTransaction"]).await;
    // It has written, and rests: it holds no snapshot.
    let open = Open::with(
        database,
        "create table somebodys (n integer); insert into somebodys values (1)",
    )
    .await;
    let look = look.knowing(&[("PID", &open.pid)]);
    trial.fire(&look).await;
    trial.mend(&look).await;
    trial.clear().await;
}

async fn connections_and_locks(watch: &Watch, database: &TestDatabase, look: &Place) {
    let ask = async || post(look.server(), "/v1/locks/nightly", r#"{"at_most": 0.1}"#).await;
    let mut trial = watch.begin(&["ConnectionsUsedUp"]).await;
    let held = Open::with(database, "lock table shedlock in access exclusive mode").await;
    let busy = futures::future::join_all((0..16).map(|_| async {
        loop {
            ask().await;
        }
    }));
    tokio::select! {
        _ = busy => {}
        () = trial.fire(look) => {}
    }
    let known = look.knowing(&[("PID", &held.pid)]);
    trial.mend(&known).await;
    trial.clear().await;

    let mut trial = watch.begin(&["LockErrors"]).await;
    run(database, "alter table shedlock rename to somewhere_else").await;
    assert!(ask().await >= Some(500));
    trial.fire(look).await;
    trial.mend(look).await;
    assert_eq!(ask().await, Some(201));
    trial.clear().await;
}
