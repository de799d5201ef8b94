//! A pooler that hands out transactions stands before PostgreSQL, as old as the one that Debian brings: nothing that a session holds
//! survives a transaction, prepared statements included.

use std::collections::HashMap;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};
use url::Url;

use crate::support::{
    Alarms, Door, Launch, LimitWatch, Process, Proxy, SHORT, TestDatabase, eventually, free_port, setting,
};

/// What it has for everybody.
const POOL: usize = 10;
/// From the silence, or its end, to the next claim.
const AGAIN: Duration = Duration::from_secs(10);

/// `PgBouncer` as a child process; ends with the value.
struct Pooler {
    child: Child,
    /// The database through it.
    url: String,
    _folder: tempfile::TempDir,
}

impl Pooler {
    fn before(database: &TestDatabase) -> Self {
        Self::with(database, "")
    }

    /// One that does not mind parameters of sessions, and does not pass them on.
    fn that_ignores_parameters(database: &TestDatabase) -> Self {
        Self::with(
            database,
            "ignore_startup_parameters = extra_float_digits,options\n",
        )
    }

    fn with(database: &TestDatabase, more: &str) -> Self {
        let direct: Url = database.url.parse().unwrap();
        let name = direct.path().trim_start_matches('/');
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let settings = format!(
            "[databases]\n\
             {name} = host=127.0.0.1 port={} user={} password={} dbname={name}\n\
             [pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\n\
             default_pool_size = {POOL}\nmax_client_conn = 500\n{more}",
            direct.port().unwrap(),
            direct.username(),
            direct.password().unwrap_or_default(),
        );
        let file = folder.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new(setting("STATIONMASTER_TEST_PGBOUNCER"));
        if nix::unistd::Uid::effective().is_root() {
            // It refuses to run as root, and reads its settings as whom it runs.
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
            command.args(["-u", "nobody"]);
        }
        let child = command
            .args(["-q"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pgbouncer runs");
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "pgbouncer does not listen"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Self {
            child,
            url: format!("postgres://anybody@127.0.0.1:{port}/{name}?sslmode=disable"),
            _folder: folder,
        }
    }

    /// A server that goes through it for everything but what needs a session of its own.
    fn launch(&self, launch: Launch, database: &TestDatabase) -> Launch {
        Self::launch_by(&self.url, launch, database)
    }

    /// The same by another way to it.
    fn launch_by(url: &str, launch: Launch, database: &TestDatabase) -> Launch {
        launch
            .with("DATABASE_URL", url)
            .with("DATABASE_DIRECT_URL", &database.url)
            .with("DATABASE_PREPARED", "false")
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executions_run_through_a_pooler_and_an_idle_server_hears_of_work_at_once() {
    let database = TestDatabase::new().await;
    let pooler = Pooler::before(&database);
    let workflow = database.workflow(3, SHORT).await;
    // Only what is heard wakes a server.
    let launch = Launch::on(&database).with("EXECUTIONS__POLL_INTERVAL", "600s");
    let launch = pooler.launch(launch, &database);
    let servers = [launch.start_ready().await, launch.start_ready().await];
    let watch = LimitWatch::on(&database.pool);
    database.enqueue(workflow, 100).await;
    database.until_count("COMPLETED", 100).await;
    // Long enough for both to be asleep.
    tokio::time::sleep(Duration::from_secs(2)).await;
    database.enqueue(workflow, 1).await;
    database.until_count("COMPLETED", 101).await;
    watch.assert_kept(&HashMap::from([(workflow.0, 3)]));
    database.assert_all_completed_once(101).await;
    for server in &servers {
        assert_eq!(server.readiness().await.0, 200);
        assert_eq!(server.said("prepared statement"), 0, "{}", server.log());
        assert_eq!(server.said("lease had run out"), 0, "{}", server.log());
    }
    // Somebody else takes all that the pooler has. The watch goes past it, so each server knows where to look.
    let mut others = Vec::new();
    for _ in 0..POOL {
        let options: PgConnectOptions = pooler.url.parse().unwrap();
        let options = options.extra_float_digits(None);
        let mut other = PgConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql("begin; select 1")
            .execute(&mut other)
            .await
            .unwrap();
        others.push(other);
    }
    for server in &servers {
        eventually("it says that it is the pooler", async || {
            let (status, words) = server.readiness().await;
            status == 503 && words.contains("through the pooler")
        })
        .await;
    }
    drop(others);
    for server in &servers {
        eventually("it is ready again", async || server.readiness().await.0 == 200).await;
    }
}

/// A pooler, a way to it that can fail, and how a server is started that takes that way.
async fn by_a_proxy(database: &TestDatabase) -> (Pooler, Proxy, Launch) {
    let pooler = Pooler::before(database);
    let mut url: Url = pooler.url.parse().unwrap();
    let proxy = Proxy::before(&format!("127.0.0.1:{}", url.port().unwrap())).await;
    let (_, port) = proxy.address.split_once(':').unwrap();
    url.set_port(Some(port.parse().unwrap())).unwrap();
    let launch = Pooler::launch_by(url.as_str(), Launch::on(database), database);
    (pooler, proxy, launch)
}

/// Waits until something is claimed that was not before, and tells how long that took.
async fn until_claimed_again(database: &TestDatabase) -> Duration {
    let since = Instant::now();
    let claims = "select count(*) from stationmaster.workflow_executions where claimed_at > now() - interval '1 second'";
    // What was under way in PostgreSQL may still be written in the first moment.
    tokio::time::sleep(Duration::from_secs(2)).await;
    eventually("it claims again", async || database.number(claims).await > 0).await;
    since.elapsed()
}

/// A server with more to do than it is asked about.
async fn busy(database: &TestDatabase, launch: &Launch) -> Process {
    let workflow = database.workflow(4, SHORT).await;
    let server = launch.start_ready().await;
    database.enqueue(workflow, 2000).await;
    database.until_count("COMPLETED", 10).await;
    server
}

async fn claims_again_in_time(database: &TestDatabase, server: &mut Process) {
    let took = until_claimed_again(database).await;
    println!("claimed again after {took:?}");
    assert!(took < AGAIN, "{took:?}\n{}", server.log());
    server.assert_alive();
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_whose_pooler_falls_silent_claims_again_within_ten_seconds() {
    let database = TestDatabase::new().await;
    let (_pooler, proxy, launch) = by_a_proxy(&database).await;
    let mut server = busy(&database, &launch).await;
    proxy.silence();
    claims_again_in_time(&database, &mut server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_was_gone_for_a_while_costs_no_more_than_ten_seconds_beyond_that() {
    let database = TestDatabase::new().await;
    let (_pooler, proxy, launch) = by_a_proxy(&database).await;
    let mut server = busy(&database, &launch).await;
    proxy.vanish();
    eventually("it says that it is the pooler", async || {
        let (status, words) = server.readiness().await;
        status == 503 && words.contains("through the pooler")
    })
    .await;
    proxy.door(Door::Open);
    claims_again_in_time(&database, &mut server).await;
}

#[tokio::test]
async fn a_server_that_is_not_told_of_a_pooler_says_which_settings_it_lacks() {
    let database = TestDatabase::new().await;
    // One lets nobody in who brings parameters; the other lets everybody in, and would run the prepared statements of others.
    for pooler in [
        Pooler::before(&database),
        Pooler::that_ignores_parameters(&database),
    ] {
        let mut server = Launch::on(&database).with("DATABASE_URL", &pooler.url).start();
        let (status, _) = server.ended().await;
        assert_eq!(status.code(), Some(2), "{}", server.log());
        for setting in ["database_prepared", "database_direct_url"] {
            assert_eq!(server.said(setting), 1, "{}", server.log());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_signals_and_locks_work_through_a_pooler() {
    let alarms = Alarms::new().await;
    let database = &alarms.database;
    let pooler = Pooler::before(database);
    let (_, definition) = database.workflow(2, SHORT).await;
    let trigger = "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', $1)";
    sqlx::query(trigger)
        .bind(definition)
        .execute(&database.pool)
        .await
        .unwrap();
    let mut server = pooler.launch(alarms.launch(), database).start_ready().await;
    let alarm = alarms.now("/once").await;
    let series = alarms.set("/series", "cron_expr => '* * * * * *'").await;
    let send = "select stationmaster.send_signal('shop', 'paid') from generate_series(1, 20)";
    sqlx::query(send).execute(&database.pool).await.unwrap();
    alarms.until(alarm, "fired").await;
    eventually("the series fires", async || {
        alarms.receiver.at("/series").len() >= 3
    })
    .await;
    database.until_count("COMPLETED", 20).await;
    let sql = format!("select stationmaster.cancel_alarm('{series}')");
    alarms.run(&sql).await;
    // A command goes the same way.
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
            .args(arguments)
            .env_clear()
            .env("STATIONMASTER_DATABASE_URL", &pooler.url)
            .env("STATIONMASTER_DATABASE_DIRECT_URL", &database.url)
            .env("STATIONMASTER_DATABASE_PREPARED", "false")
            .output()
            .expect("the binary runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {told}");
        output.stdout
    };
    run(&["lock", "run", "nightly", "--", "true"]);
    let locks: serde_json::Value = serde_json::from_slice(&run(&["locks", "list", "--json"])).unwrap();
    assert!(locks.to_string().contains("nightly"), "{locks}");
    let listed: serde_json::Value = serde_json::from_slice(&run(&["executions", "list", "--json"])).unwrap();
    assert_ne!(listed, json!([]));
    server.assert_alive();
    assert_eq!(server.said("prepared statement"), 0, "{}", server.log());
}

/// What the doctor says of this, on a database by these settings: how bad it is, what it saw, and what to do.
async fn found(id: &str, settings: &[(&str, &str)]) -> (String, String, String) {
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_stationmaster"));
    doctor.args(["doctor", "--json"]).env_clear();
    for (name, value) in settings {
        doctor.env(format!("STATIONMASTER_{name}"), value);
    }
    let output = tokio::task::spawn_blocking(move || doctor.output().unwrap())
        .await
        .unwrap();
    let report = serde_json::from_slice::<serde_json::Value>(&output.stdout);
    let noise = String::from_utf8_lossy(&output.stderr);
    let report = report.unwrap_or_else(|_| panic!("{noise}"));
    assert_eq!(noise, "", "what it meets is told in the report");
    let findings = report["findings"].as_array().unwrap();
    let one = findings.iter().find(|finding| finding["id"] == id);
    let one = one.unwrap_or_else(|| panic!("no {id} in {report:#}"));
    let word = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    (word("severity"), word("seen"), word("advice"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_a_pooler_that_hands_out_transactions_and_says_what_to_set() {
    let database = TestDatabase::new().await;
    let direct = database.url.as_str();
    let (strict, lax) = (
        Pooler::before(&database),
        Pooler::that_ignores_parameters(&database),
    );
    // It lets nobody in who brings parameters, and the doctor knows by whom it was refused.
    let (severity, seen, advice) = found("database.reachable", &[("DATABASE_URL", &strict.url)]).await;
    assert_eq!(severity, "problem", "{seen}");
    assert!(seen.contains("unsupported startup parameter"), "{seen}");
    for setting in ["database_direct_url", "database_prepared"] {
        assert!(advice.contains(setting), "{advice}");
    }
    let lax = ("DATABASE_URL", lax.url.as_str());
    let unprepared = ("DATABASE_PREPARED", "false");
    for (settings, severity, words, to_do) in [
        (
            &[lax][..],
            "problem",
            "prepared statements do not survive",
            "database_prepared",
        ),
        (
            &[lax, ("DATABASE_DIRECT_URL", direct)],
            "problem",
            "prepared statements do not survive",
            "database_prepared",
        ),
        (
            &[lax, unprepared],
            "warning",
            "there is no direct way",
            "database_direct_url",
        ),
        (
            &[lax, unprepared, ("DATABASE_DIRECT_URL", lax.1)],
            "problem",
            "leads through a pooler",
            "PostgreSQL itself",
        ),
        (
            &[
                lax,
                unprepared,
                ("DATABASE_DIRECT_URL", "postgres://127.0.0.1:1/x"),
            ],
            "problem",
            "the direct way does not lead to the database",
            "database_direct_url",
        ),
        (
            &[lax, unprepared, ("DATABASE_DIRECT_URL", direct)],
            "ok",
            "through a pooler that does not keep prepared statements",
            "",
        ),
        (
            &[("DATABASE_URL", direct)],
            "ok",
            "none that hands out transactions",
            "",
        ),
        (
            &[("DATABASE_URL", direct), unprepared],
            "warning",
            "no pooler is in the way",
            "Leave it out",
        ),
    ] {
        let (found, seen, advice) = found("database.pooler", settings).await;
        assert_eq!(found, severity, "{settings:?}: {seen}");
        assert!(seen.contains(words), "{settings:?}: {seen}");
        assert!(advice.contains(to_do), "{settings:?}: {advice}");
    }
}
