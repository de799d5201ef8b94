//! A database that is restored from a backup: what has happened since on the engine is found there, and does not happen a second time.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;
use uuid::Uuid;

use crate::support::receiver::{Received, Reply};
use crate::support::{
    Alarms, ENDLESS, Launch, Redis, Temporal, TestDatabase, eventually, free_port, setting,
};

fn tool(name: &str, arguments: &[&str]) {
    let program = Path::new(&setting("STATIONMASTER_TEST_POSTGRES_BIN")).join(name);
    let output = Command::new(program).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
}

/// A backup as people make it.
pub(crate) fn dump(database: &TestDatabase, file: &Path) {
    let file = format!("--file={}", file.display());
    tool("pg_dump", &["--no-owner", &file, &database.url]);
}

/// A database that was made of a dump.
pub(crate) struct Restored {
    pub(crate) url: String,
    name: String,
    admin: PgConnection,
}

impl Restored {
    pub(crate) async fn from(dump: &Path) -> Self {
        let mut url: Url = setting("STATIONMASTER_TEST_DATABASE_URL").parse().unwrap();
        let name = format!("restored_{}", Uuid::now_v7().simple());
        let mut admin = PgConnection::connect(url.as_str()).await.unwrap();
        sqlx::query(AssertSqlSafe(format!("create database {name}")))
            .execute(&mut admin)
            .await
            .unwrap();
        url.set_path(&name);
        let file = format!("--file={}", dump.display());
        tool("psql", &["--quiet", "--set=ON_ERROR_STOP=1", &file, url.as_str()]);
        Self {
            url: url.into(),
            name,
            admin,
        }
    }

    pub(crate) async fn remove(mut self) {
        let drop = format!("drop database if exists {} with (force)", self.name);
        eventually("the restored database can go", async || {
            let drop = sqlx::query(AssertSqlSafe(drop.clone()));
            drop.execute(&mut self.admin).await.is_ok()
        })
        .await;
    }
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
    dump(&database, &backup);
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

    let again = Restored::from(&backup).await;
    {
        let restored = TestDatabase::at(&again.url).await;
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
    again.remove().await;
}

/// Servers with every lane, and heartbeats in Redis.
struct System {
    alarms: Alarms,
    temporal: Temporal,
    _redis: Redis,
    redis_port: u16,
}

impl System {
    async fn new() -> Self {
        let redis_port = free_port();
        let system = Self {
            alarms: Alarms::new().await,
            temporal: Temporal::shared().await,
            _redis: Redis::start(redis_port),
            redis_port,
        };
        let (_, definition) = system.alarms.database.workflow(100, ENDLESS).await;
        system
            .alarms
            .run(&format!(
                "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', '{definition}')"
            ))
            .await;
        system
    }

    fn launch(&self, database: &TestDatabase) -> Launch {
        self.alarms
            .launch_on(database)
            .temporal(&self.temporal.address, &self.temporal.namespace)
            .with("HEARTBEATS", "redis")
            .with("REDIS_URL", &format!("redis://127.0.0.1:{}/0", self.redis_port))
            .with("DISPATCHERS__LEASE", "3s")
            .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
            .with("DISPATCHERS__STALE_AFTER", "4s")
            .with("DISPATCHERS__SCAN_INTERVAL", "1s")
            .with("DISPATCHERS__SECOND_LOOK", "500ms")
            .with("DISPATCHERS__CHECK_INTERVAL", "1s")
            .with("DISPATCHERS__SLA", "15s")
    }

    /// How often each execution runs on Temporal.
    async fn runs(&self) -> BTreeMap<String, usize> {
        let mut runs: BTreeMap<String, usize> = self.temporal.runs_by_id().await.into_iter().collect();
        runs.retain(|id, _| id.starts_with("execution-"));
        runs
    }

    /// The epoch of the heartbeat that Redis holds.
    async fn epoch_in_redis(&self) -> u64 {
        let mut redis = TcpStream::connect(("127.0.0.1", self.redis_port)).await.unwrap();
        let ask = b"GET dispatcher:heartbeat:dispatcher-shop-default\r\nQUIT\r\n";
        redis.write_all(ask).await.unwrap();
        let mut answer = String::new();
        redis.read_to_string(&mut answer).await.unwrap();
        let value = answer.lines().find(|line| line.starts_with('{'));
        let value = value.and_then(|value| serde_json::from_str::<serde_json::Value>(value).ok());
        value.and_then(|value| value["epoch"].as_u64()).unwrap_or(0)
    }
}

async fn send(database: &TestDatabase, signals: i32) {
    let query =
        "insert into stationmaster.signals (project, name) select 'shop', 'paid' from generate_series(1, $1)";
    let query = sqlx::query(query).bind(signals);
    query.execute(&database.pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_alarms_and_signals_led_to_after_a_backup_is_found_again_and_nothing_is_lost_silently() {
    let system = System::new().await;
    let (alarms, database) = (&system.alarms, &system.alarms.database);
    let series = alarms.set("/tick", "cron_expr => '* * * * * *'").await;
    let mut before = system.launch(database).start_ready().await;
    send(database, 4).await;
    database.until_count("RUNNING", 4).await;
    let ticks = |at_least: usize| {
        let receiver = &alarms.receiver;
        async move {
            eventually("the series goes on", async || {
                receiver.at("/tick").len() >= at_least
            })
            .await
        }
    };
    ticks(2).await;

    // While the series fires, the backup is made: of signals that wait, and of a wake that is under way.
    alarms.receiver.next("/once", [Reply::held()]);
    let once = alarms.now("/once").await;
    eventually("the wake is under way", async || {
        let open = alarms.occurrences(once).await;
        open.first().is_some_and(|open| open.status == "claimed")
    })
    .await;
    let routes = database
        .lock("select from stationmaster.dispatchers where project = 'shop' for update")
        .await;
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup.sql");
    send(database, 5).await;
    dump(database, &backup);
    routes.rollback().await.unwrap();
    alarms.receiver.let_go();

    // After the backup all of that happens, and more.
    database.until_count("RUNNING", 9).await;
    alarms.until(once, "fired").await;
    ticks(alarms.receiver.at("/tick").len() + 2).await;
    before.kill();
    eventually("all runs are listed", async || system.runs().await.len() == 9).await;
    let runs = system.runs().await;

    let again = Restored::from(&backup).await;
    {
        let restored = TestDatabase::at(&again.url).await;
        let waiting = "select count(*) from stationmaster_internal.signals_pending";
        assert_eq!(
            restored.number(waiting).await,
            5,
            "as it was at the time of the backup"
        );
        let mut after = system.launch(&restored).start_ready().await;
        assert_eq!(after.said("tokens and epochs go far ahead"), 1, "{}", after.log());
        restored.until_count("RUNNING", 9).await;
        assert_eq!(
            system.runs().await,
            runs,
            "what ran is known again, and nothing else runs"
        );
        let fates =
            "select count(*) from stationmaster.signals where status = 'ROUTED' and execution_id is not null";
        assert_eq!(restored.number(fates).await, 9);
        send(&restored, 3).await;
        restored.until_count("RUNNING", 12).await;
        eventually("those that came since are listed", async || {
            system.runs().await.len() == 12
        })
        .await;
        assert!(system.runs().await.values().all(|times| *times == 1));
        eventually("its heartbeats replace those of the time before", async || {
            system.epoch_in_redis().await > 1_000_000
        })
        .await;
        ticks(alarms.receiver.at("/tick").len() + 2).await;
        eventually(
            "the wake that was under way comes again when its server counts as lost",
            async || alarms.receiver.at("/once").len() >= 2,
        )
        .await;
        after.signal(nix::sys::signal::Signal::SIGTERM);
        after.ended().await;
        assert_every_instant_is_on_record(&restored, series).await;
        restored.pool.close().await;
    }
    again.remove().await;
    // The wake that was under way at the time of the backup came twice, as the same.
    let ids: Vec<String> = alarms.receiver.at("/once").iter().map(Received::id).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert_eq!(ids[0], ids[1]);
}

/// From the first instant of a series to its last there is one for every second: fired, or recorded with why it was not.
async fn assert_every_instant_is_on_record(database: &TestDatabase, series: Uuid) {
    let query = "select sum(covers)::bigint,
                        extract(epoch from max(coalesce(until, scheduled_for)) - min(scheduled_for))::bigint + 1,
                        count(*) filter (where status <> 'fired' and reason is null)
                 from stationmaster.alarm_occurrences where alarm_id = $1";
    let query = sqlx::query_as::<_, (i64, i64, i64)>(query).bind(series);
    let (recorded, instants, unexplained) = query.fetch_one(&database.pool).await.unwrap();
    assert_eq!((recorded, unexplained), (instants, 0));
}
