//! The primary is lost and a replica takes its place: with everything, and without the last commits.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::PgPool;
use stationmaster_postgres::{Binaries, Server, Settings, Shutdown};
use uuid::Uuid;

use crate::support::{
    ENDLESS, Launch, LimitWatch, Process, Temporal, TestDatabase, Work, Worker, command, eventually,
    get_with, setting,
};

/// From the promotion to the next end on record; a server looks for a primary every few seconds at least.
const AGAIN: Duration = Duration::from_secs(15);

/// A primary and a replica that follows it.
struct Pair {
    binaries: Binaries,
    primary: Option<Server>,
    replica: Server,
    /// The one address of both.
    url: String,
}

impl Pair {
    async fn start() -> (Self, TestDatabase) {
        let (binaries, primary) = blocking(|| {
            let bin = PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN"));
            let binaries = Binaries::find(Some(&bin)).expect("PostgreSQL is installed");
            let server = Server::start(&binaries, &throw_away()).expect("it starts");
            (binaries, server)
        })
        .await;
        let database = TestDatabase::at(&primary.url("postgres")).await;
        let (binaries, primary, replica) = blocking(move || {
            let replica = primary.replica(&binaries, &throw_away()).expect("it follows");
            (binaries, primary, replica)
        })
        .await;
        let both = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
        let url = primary
            .url("postgres")
            .replace(&format!("127.0.0.1:{}", primary.port()), &both);
        let pair = Self {
            binaries,
            primary: Some(primary),
            replica,
            url,
        };
        (pair, database)
    }

    /// The replica as it is seen from now on.
    fn pool(&self) -> PgPool {
        PgPool::connect_lazy(&self.replica.url("postgres")).unwrap()
    }

    /// The replica hears no more of what is committed.
    async fn cut_off(&self) {
        let pool = self.pool();
        for statement in [
            "alter system set primary_conninfo = ''",
            "select pg_reload_conf()",
        ] {
            sqlx::query(statement).execute(&pool).await.unwrap();
        }
        eventually("the replica is on its own", async || {
            let receivers = "select count(*) from pg_stat_wal_receiver";
            sqlx::query_scalar::<_, i64>(receivers)
                .fetch_one(&pool)
                .await
                .unwrap()
                == 0
        })
        .await;
    }

    /// The primary is gone, and the replica takes writes.
    async fn fail_over(&mut self, how: Shutdown) -> TestDatabase {
        let mut primary = self.primary.take().expect("it fails over once");
        let replica = self.replica.url("postgres");
        blocking(move || {
            primary.halt(how);
            primary
        })
        .await;
        self.replica.promote(&self.binaries).expect("it is promoted");
        TestDatabase::at(&replica).await
    }
}

fn throw_away() -> Settings {
    Settings::throw_away(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(act).await.unwrap()
}

async fn servers(pair: &Pair, temporal: &Temporal, database: &TestDatabase) -> [Process; 2] {
    let launch = Launch::on(database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("DATABASE_URL", &pair.url)
        .with("EXECUTIONS__CLOSE_INTERVAL", "50ms");
    [launch.start_ready().await, launch.start_ready().await]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_replica_takes_over_the_servers_follow_and_everything_completes_once() {
    let (mut pair, database) = Pair::start().await;
    let temporal = Temporal::shared().await;
    let workflow = database.workflow(5, ENDLESS).await;
    let mut servers = servers(&pair, &temporal, &database).await;
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::from_millis(50)));
    database.enqueue(workflow, 150).await;
    database.until_count("COMPLETED", 20).await;
    // In order: the replica has everything.
    let database = pair.fail_over(Shutdown::Fast).await;
    let watch = LimitWatch::on(&database.pool);
    let done = database.count("COMPLETED").await;
    let took = database.until_count("COMPLETED", done + 1).await;
    println!("the next end came {took:?} after the promotion");
    assert!(took < AGAIN, "{took:?}");
    database.until_count("COMPLETED", 150).await;
    for server in &mut servers {
        server.assert_alive();
        eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    }
    watch.assert_kept(&HashMap::from([(workflow.0, 5)]));
    database.assert_all_completed_once(150).await;
    let executions = database.rows().await;
    temporal
        .assert_one_run_each(executions.iter().map(|row| row.id))
        .await;
    drop(servers);
    database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_last_commits_are_lost_nothing_runs_twice_and_no_number_is_given_out_again() {
    let (mut pair, database) = Pair::start().await;
    let temporal = Temporal::shared().await;
    let workflow = database.workflow(3, ENDLESS).await;
    let mut servers = servers(&pair, &temporal, &database).await;
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::from_millis(50)));
    database.enqueue(workflow, 60).await;
    database.until_count("COMPLETED", 10).await;
    pair.cut_off().await;
    // None of what happens from here on is known afterwards: these ends, and these items.
    let known = database.count("COMPLETED").await;
    database.enqueue(workflow, 5).await;
    database.until_count("COMPLETED", known + 15).await;
    let token = "select last_value from stationmaster_internal.claim_token";
    let given_out = database.number(token).await;
    let database = pair.fail_over(Shutdown::Immediate).await;
    let lost = known + 15 - database.count("COMPLETED").await;
    assert!(lost > 5, "the test is about lost commits, and {lost} ends were");
    database.until_count("COMPLETED", 60).await;
    for server in &mut servers {
        server.assert_alive();
        eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    }
    database.assert_all_completed_once(60).await;
    let reused = database.number(token).await;
    assert!(
        reused > given_out + 500_000,
        "tokens go far ahead: {given_out}, {reused}"
    );
    // What was started before the loss was found again, not started anew; what was enqueued after the cut is on the engine's record only.
    let ours: HashSet<String> = database
        .rows()
        .await
        .iter()
        .map(|row| execution(row.id))
        .collect();
    eventually("visibility has caught up", async || {
        let runs = temporal.runs_by_id().await;
        ours.iter().all(|id| runs.contains_key(id))
    })
    .await;
    let runs = temporal.runs_by_id().await;
    assert!(runs.values().all(|count| *count == 1), "{runs:?}");
    drop(servers);
    database.pool.close().await;
}

/// Nobody works on them, so what was started in the time that is gone is open still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_were_lost_with_the_old_primary_are_told_and_ended_by_name_when_somebody_says_so() {
    let (mut pair, database) = Pair::start().await;
    let temporal = Temporal::shared().await;
    let workflow = database.workflow(5, ENDLESS).await;
    let launch = Launch::on(&database)
        .temporal(&temporal.address, &temporal.namespace)
        .with("DATABASE_URL", &pair.url)
        .with("EXECUTIONS__RECONCILE_INTERVAL", "1s");
    let servers = [launch.start_ready().await, launch.start_ready().await];
    database.enqueue(workflow, 1).await;
    database.until_count("RUNNING", 1).await;
    let known = database.the_execution("RUNNING").await.id;
    pair.cut_off().await;
    database.enqueue(workflow, 2).await;
    database.until_count("RUNNING", 3).await;
    let mut lost: Vec<Uuid> = database.rows().await.iter().map(|row| row.id).collect();
    lost.retain(|id| *id != known);
    lost.sort();
    let database = pair.fail_over(Shutdown::Immediate).await;

    let strays = || {
        let listed = command(&database, &["executions", "strays"]);
        let strays = listed.as_array().unwrap().iter();
        let mut ids: Vec<Uuid> = strays
            .map(|stray| stray["execution_id"].as_str().unwrap().parse().unwrap())
            .collect();
        ids.sort();
        ids
    };
    eventually("both are told", async || strays() == lost).await;
    let told = "select count(*) from stationmaster.audit where action = 'execution.stray'";
    assert_eq!(database.number(told).await, 2, "each once");
    eventually("the metric tells how many", async || {
        (servers[0].metric("stationmaster_stray_runs").await - 2.0).abs() < 0.5
    })
    .await;
    let viewer = command(&database, &["tokens", "create", "ops", "--role", "viewer"]);
    let (address, viewer) = (servers[0].address().unwrap(), viewer["secret"].as_str().unwrap());
    let (_, overview) = get_with(&address, "/v1/overview", viewer).await.unwrap();
    assert!(overview.contains(&lost[0].to_string()), "{overview}");
    assert_eq!(temporal.open().await.len(), 3, "and nothing is ended by itself");

    let ended = execution(lost[0]);
    let would = command(&database, &["executions", "end-stray", &ended, "--dry-run"]);
    assert_eq!(would["execution_id"], lost[0].to_string());
    assert_eq!(strays(), lost, "a dry run ends nothing");
    command(
        &database,
        &[
            "executions",
            "end-stray",
            &ended,
            "--note",
            "enqueued again",
            "--yes",
        ],
    );
    eventually("it is ended", async || !temporal.open().await.contains(&lost[0])).await;
    eventually("and only the other is left", async || strays() == [lost[1]]).await;
    let mut open = temporal.open().await;
    open.sort();
    let mut left = vec![known, lost[1]];
    left.sort();
    assert_eq!(open, left);
    assert_eq!(database.the_execution("RUNNING").await.id, known);
    drop(servers);
    database.pool.close().await;
}

fn execution(id: Uuid) -> String {
    format!("execution-{id}")
}
