//! PostgreSQL crashes under load.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::Signal;
use stationmaster_postgres::{Binaries, Server, Settings, Shutdown};

use crate::support::{
    ENDLESS, Launch, LimitWatch, Process, Proxy, SHORT, Temporal, TestDatabase, eventually, free_port, get,
    setting,
};

/// A PostgreSQL of the test's own, to be treated badly.
pub(crate) struct Cluster(Arc<Mutex<Server>>);

impl Cluster {
    /// It ends as in a crash.
    pub(crate) async fn halt(&self) {
        self.with(|server| server.halt(Shutdown::Immediate)).await;
    }

    pub(crate) async fn resume(&self) {
        self.with(|server| server.resume().expect("it comes back")).await;
    }

    /// Where its files are.
    pub(crate) async fn folder(&self) -> PathBuf {
        self.with(|server| server.folder().to_owned()).await
    }

    async fn with<T: Send + 'static>(&self, act: impl FnOnce(&mut Server) -> T + Send + 'static) -> T {
        let server = Arc::clone(&self.0);
        let act = move || act(&mut server.lock().unwrap());
        tokio::task::spawn_blocking(act).await.unwrap()
    }
}

pub(crate) async fn cluster() -> (Cluster, TestDatabase) {
    cluster_of(&PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN")), |_| ()).await
}

/// One of these programs, and with settings of its own.
pub(crate) async fn cluster_of(bin: &Path, change: impl FnOnce(&mut Settings)) -> (Cluster, TestDatabase) {
    let mut settings = Settings::throw_away(Path::new(env!("CARGO_TARGET_TMPDIR")));
    change(&mut settings);
    let bin = bin.to_owned();
    let start = move || {
        let binaries = Binaries::find(Some(&bin)).expect("PostgreSQL is installed");
        Server::start(&binaries, &settings).expect("it starts")
    };
    let server = tokio::task::spawn_blocking(start).await.unwrap();
    let database = TestDatabase::at(&server.url("postgres")).await;
    (Cluster(Arc::new(Mutex::new(server))), database)
}

/// Waits until a server without its database knows that it may not act any more.
async fn until_lapsed(server: &Process) {
    eventually("the server knows that its lease is over", async || {
        server.readiness().await.1.contains("lease has run out")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_live_through_crashes_of_postgresql_and_everything_completes_once() {
    let items = 300;
    let (cluster, database) = cluster().await;
    let (narrow, wide) = (
        database.workflow(2, SHORT).await,
        database.workflow(5, SHORT).await,
    );
    database.enqueue(narrow, items / 3).await;
    database.enqueue(wide, items - items / 3).await;
    let watch = LimitWatch::on(&database.pool);
    let launch = Launch::on(&database);
    let mut servers = [launch.start_ready().await, launch.start_ready().await];
    for done in [20, 120] {
        database.until_count("COMPLETED", done).await;
        cluster.halt().await;
        cluster.resume().await;
    }
    let took = database.until_count("COMPLETED", i64::from(items)).await;
    println!("the rest completed {took:?} after the last crash");
    for server in &mut servers {
        server.assert_alive();
        assert_eq!(server.readiness().await.0, 200);
    }
    watch.assert_kept(&HashMap::from([(narrow.0, 2), (wide.0, 5)]));
    database.assert_all_completed_once(i64::from(items)).await;
    drop(servers);
    database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_whose_leases_ran_out_while_postgresql_was_away_come_back_and_lose_nothing() {
    let items = 120;
    let (cluster, database) = cluster().await;
    let (short, long) = (
        database.workflow(4, SHORT).await,
        database.workflow(2, ENDLESS).await,
    );
    let launch = Launch::on(&database);
    let mut servers = [launch.start_ready().await, launch.start_ready().await];
    database.enqueue(long, 2).await;
    database.until_count("RUNNING", 2).await;
    database.enqueue(short, items).await;
    database.until_count("COMPLETED", 5).await;
    cluster.halt().await;
    for server in &servers {
        until_lapsed(server).await;
    }
    cluster.resume().await;
    let took = database.until_count("COMPLETED", i64::from(items)).await;
    println!("the rest completed {took:?} after PostgreSQL was back");
    eventually("the long ones run again", async || {
        let alive = "select count(*) from stationmaster_internal.executions_active a
                     join stationmaster_internal.servers s on s.id = a.holder and s.lease_until > now() where a.state = 'RUNNING'";
        database.number(alive).await == 2
    })
    .await;
    for server in &mut servers {
        server.assert_alive();
        eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    }
    let ends = "select count(*) from stationmaster_internal.executions_finished where status = 'COMPLETED' and superseded_at is null";
    assert_eq!(database.number(ends).await, i64::from(items));
    assert_eq!(
        database
            .number("select count(*) from stationmaster_internal.executions_active")
            .await,
        2
    );
    database.assert_counters_agree().await;
    database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn starts_that_temporal_answers_while_postgresql_is_away_are_settled_when_it_is_back() {
    let ((cluster, database), temporal) = (cluster().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(20, ENDLESS).await;
    let mut server = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    proxy.hold_answers();
    database.enqueue(workflow, 20).await;
    database.until_count("STARTING", 20).await;
    for row in database.rows().await {
        temporal.until_started(row.id).await;
    }
    cluster.halt().await;
    proxy.open();
    eventually("the settlement finds no database", async || {
        server.said("Could not settle") > 0
    })
    .await;
    until_lapsed(&server).await;
    cluster.resume().await;
    let took = database.until_count("RUNNING", 20).await;
    println!("settled {took:?} after PostgreSQL was back");
    let rows = database.rows().await;
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    assert!(rows.iter().all(|row| row.attempts == 0), "{rows:?}");
    database.assert_counters_agree().await;
    server.assert_alive();
    database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_waits_for_postgresql_at_its_start_and_ends_in_time_without_it() {
    let (cluster, database) = cluster().await;
    let workflow = database.workflow(2, ENDLESS).await;
    database.enqueue(workflow, 2).await;
    cluster.halt().await;
    let door = format!("127.0.0.1:{}", free_port());
    let waits = Launch::on(&database).with("SHUTDOWN_TIMEOUT", "3s");
    let mut server = waits
        .with("LISTEN", &door)
        .with("MIGRATE_AT_START", "false")
        .start();
    eventually("it says what it waits for", async || {
        server.said("The database is not there yet") > 0
    })
    .await;
    server.assert_alive();
    assert_eq!(
        get(&door, "/livez").await.unwrap().0,
        200,
        "nobody ends it for that"
    );
    for path in ["/readyz", "/v1/queue"] {
        let (status, words) = get(&door, path).await.unwrap();
        assert_eq!(status, 503, "{path}");
        assert!(words.contains("waits for its database"), "{words}");
    }
    cluster.resume().await;
    database.until_count("RUNNING", 2).await;

    cluster.halt().await;
    server.signal(Signal::SIGTERM);
    let (status, took) = server.ended().await;
    println!("left in {took:?}");
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert!(took < Duration::from_secs(7), "{took:?}");
    cluster.resume().await;
    let _next = Launch::on(&database).start_ready().await;
    eventually("the next one runs what it left", async || {
        let rows = database.rows().await;
        rows.iter()
            .filter(|row| row.status == "RUNNING" && row.recoveries == 1)
            .count()
            == 2
    })
    .await;
    database.assert_counters_agree().await;
    database.pool.close().await;
}

/// At whichever step of the start it happens, and however PostgreSQL leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_connection_breaks_in_the_middle_of_its_start_waits_and_starts() {
    let database = TestDatabase::new().await;
    let mut url: url::Url = database.url.parse().unwrap();
    let proxy = Proxy::before(&format!("127.0.0.1:{}", url.port().unwrap())).await;
    let port = proxy.address.rsplit(':').next().unwrap().parse().unwrap();
    url.set_port(Some(port)).unwrap();
    let launch = Launch::on(&database).with("DATABASE_URL", url.as_str());
    let steps = [
        (
            "stationmaster.workspaces",
            "lock table stationmaster.workspaces in access exclusive mode",
        ),
        (
            "stationmaster_internal.servers",
            "lock table stationmaster_internal.servers in exclusive mode",
        ),
    ];
    for (table, lock) in steps {
        for crash in [true, false] {
            let held = database.lock(lock).await;
            let mut server = launch.start();
            let waits = async || database.is_waited_for(table).await;
            eventually("the start has come so far", waits).await;
            if crash {
                let end = "select count(pg_terminate_backend(pid)) from pg_locks where not granted";
                database.number(end).await;
            } else {
                proxy.cut();
            }
            eventually("it says that it waits", async || {
                server.assert_alive();
                server.said("waiting for it") > 0
            })
            .await;
            held.rollback().await.unwrap();
            eventually("it is ready", async || server.readiness().await.0 == 200).await;
            assert_eq!(
                server.said("Row-level security does not stand"),
                0,
                "{}",
                server.log()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_in_the_exclusive_mode_lives_through_a_crash_of_postgresql_and_goes_on_with_its_turns() {
    let (cluster, database) = cluster().await;
    let workflow = database.workflow(100, SHORT).await;
    let launch = Launch::on(&database)
        .with("EXECUTIONS__EXCLUSIVE", "true")
        .with("EXECUTIONS__POLL_INTERVAL", "100ms")
        .with("EXECUTIONS__EXCLUSIVE_AT_MOST", "3s")
        .with("EXECUTIONS__EXCLUSIVE_AT_LEAST", "1ms");
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 100).await;
    database.until_count("COMPLETED", 20).await;
    cluster.halt().await;
    eventually("its turns fail", async || {
        server.metric("shedlock_acquisition_failures").await > 0.0
    })
    .await;
    cluster.resume().await;
    database.until_count("COMPLETED", 100).await;
    server.assert_alive();
    database.assert_all_completed_once(100).await;
    drop(server);
    database.pool.close().await;
}
