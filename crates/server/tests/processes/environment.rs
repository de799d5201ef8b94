//! What surrounds a server runs out, or is set by somebody else: the disk of the database, the disk of the log, connections, time limits of
//! a role, the clock.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool};

use crate::postgres::{cluster, cluster_of};
use crate::support::receiver::Received;
use crate::support::{
    Alarms, ENDLESS, Launch, Process, SHORT, TestDatabase, eventually, free_port, get, setting,
};

async fn run(pool: &PgPool, statement: &str) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(statement.to_owned()))
        .execute(pool)
        .await
        .map(drop)
}

// The disk of the database

/// A file system with little room, for as long as the value lives.
struct SmallDisk {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl SmallDisk {
    fn new(megabytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let size = format!("size={megabytes}m,mode=0777");
        let arguments = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            &size,
            "tmpfs",
            path.to_str().unwrap(),
        ];
        assert!(
            privileged(&arguments),
            "a small file system cannot be mounted: run this test as root, or where `sudo -n mount` works"
        );
        Self {
            path,
            _folder: folder,
        }
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let mut ballast = File::create(self.path.join("ballast")).unwrap();
        for size in [1 << 20, 4096] {
            while ballast.write_all(&vec![1; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        privileged(&["umount", "-l", self.path.to_str().unwrap()]);
    }
}

/// Runs a command that only root may, by itself or by sudo.
fn privileged(arguments: &[&str]) -> bool {
    let sudo = [&["sudo", "-n"], arguments].concat();
    [arguments, &sudo].iter().any(|arguments| {
        let status = Command::new(arguments[0]).args(&arguments[1..]).status();
        status.is_ok_and(|status| status.success())
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_databases_disk_is_full_servers_say_so_and_go_on_when_there_is_room_and_nothing_is_lost() {
    let disk = SmallDisk::new(128);
    let (cluster, whole) = cluster().await;
    let place = disk.path.join("tables");
    std::fs::create_dir(&place).unwrap();
    let owner = std::fs::metadata(cluster.folder().await.join("cluster")).unwrap();
    std::os::unix::fs::chown(&place, Some(owner.uid()), Some(owner.gid())).unwrap();
    run(
        &whole.pool,
        &format!("create tablespace small location '{}'", place.display()),
    )
    .await
    .unwrap();
    run(&whole.pool, "create database small tablespace small")
        .await
        .unwrap();
    let database = TestDatabase::at(&whole.url.replace("/postgres?", "/small?")).await;
    let workflow = database.workflow(8, SHORT).await;
    let launch = Launch::on(&database);
    let mut servers = [launch.start_ready().await, launch.start_ready().await];
    let mut acknowledged = 2000;
    database.enqueue(workflow, 2000).await;
    database.until_count("COMPLETED", 20).await;

    disk.fill();
    // Enqueued as long as there is room; what was answered counts.
    let insert = "insert into stationmaster.workflow_execution_queue (workspace_id, workflow_definition_id, input)
                  select $1, $2, jsonb_build_object('x', repeat(md5(random()::text), 20)) from generate_series(1, 10)";
    let refused = loop {
        let query = sqlx::query(insert).bind(workflow.0).bind(workflow.1);
        match query.execute(&database.pool).await {
            Ok(_) => acknowledged += 10,
            Err(error) => break error,
        }
    };
    println!("{acknowledged} acknowledged, then: {refused}");
    let code = refused
        .as_database_error()
        .and_then(|error| error.code().map(String::from));
    assert_eq!(code.as_deref(), Some("53100"), "{refused}");
    let says_so = async |server: &Process| {
        let (status, body) = server.readiness().await;
        status == 503
            && body.contains("the database has no room to write")
            && body.contains("No space left on device")
    };
    eventually("one of them says that there is no room", async || {
        says_so(&servers[0]).await || says_so(&servers[1]).await
    })
    .await;
    let before = database.count("COMPLETED").await;
    assert!(before < acknowledged, "it was full under load");
    tokio::time::sleep(Duration::from_secs(8)).await;
    for server in &mut servers {
        server.assert_alive();
    }

    disk.make_room();
    let took = database.until_count("COMPLETED", acknowledged).await;
    println!("all of it completed {took:?} after there was room");
    for server in &mut servers {
        eventually("it is ready again", async || server.readiness().await.0 == 200).await;
        server.assert_alive();
    }
    let items = "select count(*) from stationmaster.workflow_execution_queue";
    assert_eq!(database.number(items).await, acknowledged);
    let ended = "select count(distinct item_id) from stationmaster_internal.executions_finished
                 where superseded_at is null and status = 'COMPLETED'";
    assert_eq!(database.number(ended).await, acknowledged, "every item completed");
    database.assert_no_slot_is_used().await;
    drop(servers);
    database.pool.close().await;
    whole.pool.close().await;
}

// The disk of the log

async fn ready_at(address: &str, server: &mut Process) {
    eventually("the server is ready", async || {
        server.assert_alive();
        get(address, "/readyz")
            .await
            .is_some_and(|(status, _)| status == 200)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_log_cannot_be_written_works_and_ends_in_order() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(4, SHORT).await;
    let address = format!("127.0.0.1:{}", free_port());
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let launch = Launch::on(&database).with("LISTEN", &address);
    let mut server = launch.start_logging_to(full);
    ready_at(&address, &mut server).await;
    database.enqueue(workflow, 50).await;
    database.until_count("COMPLETED", 50).await;
    database.assert_all_completed_once(50).await;
    server.signal(Signal::SIGTERM);
    let (status, _) = server.ended().await;
    assert_eq!(status.code(), Some(0));

    // A refusal that nobody can read still has its exit code.
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut refused = launch.with("DATABASE_URL", "nothing").start_logging_to(full);
    assert_eq!(refused.ended().await.0.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_log_nobody_reads_is_not_held_up() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(4, SHORT).await;
    let address = format!("127.0.0.1:{}", free_port());
    let (nobody, pipe) = std::io::pipe().unwrap();
    let mut server = Launch::on(&database)
        .with("LISTEN", &address)
        .with("LOG__LEVEL", "debug")
        .start_logging_to(pipe);
    ready_at(&address, &mut server).await;
    // Each has some lines, and a pipe holds 64 KiB.
    database.enqueue(workflow, 1000).await;
    database.until_count("COMPLETED", 1000).await;
    ready_at(&address, &mut server).await;
    database.assert_all_completed_once(1000).await;
    server.signal(Signal::SIGTERM);
    let (status, took) = server.ended().await;
    assert_eq!(status.code(), Some(0));
    assert!(took < Duration::from_secs(20), "{took:?}");
    drop(nobody);
}

// Connections

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_others_eat_all_connections_a_server_waits_for_room_and_says_so() {
    let bin = PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN"));
    let (_cluster, database) = cluster_of(&bin, |settings| settings.max_connections = 40).await;
    let workflow = database.workflow(4, SHORT).await;
    let launch = Launch::on(&database).with("HTTP__DATABASE_POOL", "2");
    let mut first = launch.start_ready().await;
    database.enqueue(workflow, 10).await;
    database.until_count("COMPLETED", 10).await;
    let mut eaters = Vec::new();
    let mut eat_all = async || {
        while let Ok(eater) = PgConnection::connect(&database.url).await {
            eaters.push(eater);
        }
        eaters.len()
    };
    println!("{} connections were free", eat_all().await);
    // It goes on with those that it has.
    database.enqueue(workflow, 10).await;
    database.until_count("COMPLETED", 20).await;
    let mut second = launch.start();
    eventually("the second one waits", async || {
        second.assert_alive();
        second.said("The database is not there yet") == 1
    })
    .await;
    // And when those are lost, and somebody else is quicker.
    let end =
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stationmaster'";
    let begun = Instant::now();
    eventually("the first one says that there is no room", async || {
        assert!(begun.elapsed() < Duration::from_secs(50));
        run(&database.pool, end).await.unwrap();
        eat_all().await;
        let (status, body) = first.readiness().await;
        status == 503 && body.contains("too many clients")
    })
    .await;
    database.enqueue(workflow, 10).await;
    first.assert_alive();
    second.assert_alive();

    drop(eaters);
    let took = database.until_count("COMPLETED", 30).await;
    println!("claims again {took:?} after there was room");
    for server in [&mut first, &mut second] {
        eventually("it is ready", async || server.readiness().await.0 == 200).await;
        server.assert_alive();
    }
    database.assert_all_completed_once(30).await;
    drop((first, second));
    database.pool.close().await;
}

// What a role or a database brings along

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_that_an_operator_gave_the_role_are_not_those_of_our_sessions() {
    let (_cluster, whole) = cluster().await;
    run(&whole.pool, "create role tight superuser login password 'tight'")
        .await
        .unwrap();
    for limit in [
        "statement_timeout = '1ms'",
        "lock_timeout = '1ms'",
        "idle_in_transaction_session_timeout = '1ms'",
        "idle_session_timeout = '300ms'",
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
    ] {
        run(&whole.pool, &format!("alter role tight set {limit}"))
            .await
            .unwrap();
    }
    run(&whole.pool, "create database line").await.unwrap();
    let mut url: url::Url = whole.url.replace("/postgres?", "/line?").parse().unwrap();
    let own = PgPoolOptions::new().connect_lazy(url.as_str()).unwrap();
    url.set_username("tight").unwrap();
    url.set_password(Some("tight")).unwrap();
    // It makes the tables too.
    let launch = Launch::on(&whole).with("DATABASE_URL", url.as_str());
    let mut server = launch.with("EXECUTIONS__POLL_INTERVAL", "1h").start_ready().await;
    let database = TestDatabase::at(&whole.url.replace("/postgres?", "/line?")).await;
    let workflow = database.workflow(4, SHORT).await;
    database.enqueue(workflow, 200).await;
    database.until_count("COMPLETED", 200).await;
    // Long enough for every session to have been idle too long.
    tokio::time::sleep(Duration::from_secs(3)).await;
    database.enqueue(workflow, 1).await;
    let took = database.until_count("COMPLETED", 201).await;
    assert!(took < Duration::from_secs(10), "it listens: {took:?}");
    assert_eq!(server.readiness().await.0, 200);
    server.assert_alive();
    for words in [
        "statement timeout",
        "lock timeout",
        "idle-session timeout",
        "could not serialize",
        "read-only",
    ] {
        assert_eq!(server.said(words), 0, "{words}: {}", server.log());
    }
    database.assert_all_completed_once(201).await;
    drop(server);
    for pool in [&own, &database.pool, &whole.pool] {
        pool.close().await;
    }
}

// The clock

/// PostgreSQL's programs, with a server whose clock stands as far off as a file says.
struct Bent {
    bin: PathBuf,
    offset: PathBuf,
    _folder: tempfile::TempDir,
}

impl Bent {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (bin, offset) = (folder.path().join("bin"), folder.path().join("offset"));
        std::fs::create_dir(&bin).unwrap();
        let real = PathBuf::from(setting("STATIONMASTER_TEST_POSTGRES_BIN"));
        for program in std::fs::read_dir(&real).unwrap() {
            let program = program.unwrap();
            if program.file_name() != "postgres" {
                std::os::unix::fs::symlink(program.path(), bin.join(program.file_name())).unwrap();
            }
        }
        let library = setting("STATIONMASTER_TEST_FAKETIME");
        let script = format!(
            "#!/bin/sh\nFAKETIME_TIMESTAMP_FILE={} FAKETIME_NO_CACHE=1 DONT_FAKE_MONOTONIC=1 LD_PRELOAD={library} \
             exec {}/postgres \"$@\"\n",
            offset.display(),
            real.display(),
        );
        std::fs::write(bin.join("postgres"), script).unwrap();
        std::fs::set_permissions(bin.join("postgres"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let bent = Self {
            bin,
            offset,
            _folder: folder,
        };
        bent.by(0);
        bent
    }

    /// For all of PostgreSQL's processes in the same instant: two that differ by a minute would each be right to take the other's
    /// servers for dead.
    fn by(&self, seconds: i32) {
        let next = self.offset.with_extension("next");
        std::fs::write(&next, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(&next, &self.offset).unwrap();
    }
}

/// How far the database's clock is ahead of ours.
async fn ahead(database: &TestDatabase) -> f64 {
    let query = "select extract(epoch from clock_timestamp())::float8";
    let theirs: f64 = sqlx::query_scalar(query).fetch_one(&database.pool).await.unwrap();
    theirs - jiff::Timestamp::now().as_duration().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_databases_clock_is_set_back_by_a_minute_work_goes_on_and_no_instant_fires_twice() {
    let clock = Bent::new();
    let (_cluster, database) = cluster_of(&clock.bin, |_| ()).await;
    let alarms = Alarms::on(database).await;
    let database = &alarms.database;
    let (short, held) = (
        database.workflow(4, SHORT).await,
        database.workflow(3, ENDLESS).await,
    );
    let mut servers = [
        alarms.launch().start_ready().await,
        alarms.launch().start_ready().await,
    ];
    let series = alarms.set("/series", "cron_expr => '* * * * * *'").await;
    database.enqueue(held, 3).await;
    database.enqueue(short, 10).await;
    database.until_count("COMPLETED", 10).await;
    database.until_count("RUNNING", 3).await;
    alarms.until_arrived(3).await;

    clock.by(-60);
    eventually("the clock was set back", async || ahead(database).await < -50.0).await;
    database.enqueue(short, 50).await;
    let took = database.until_count("COMPLETED", 60).await;
    println!("50 more completed in {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let once = alarms.now("/once").await;
    alarms.until(once, "fired").await;
    // Longer than a lease: nobody is lost for what the clock did.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(database.count("RUNNING").await, 3);
    let recovered = "select coalesce(sum(recoveries), 0)::bigint from stationmaster.workflow_executions";
    assert_eq!(
        database.number(recovered).await,
        0,
        "what runs was left where it runs"
    );
    for server in &mut servers {
        assert_eq!(server.readiness().await.0, 200, "{}", server.log());
        assert_eq!(server.said("lease had run out"), 0, "{}", server.log());
    }
    let before = alarms.receiver.at("/series").len();
    // The instants that were met already are not met again; when their minute is over, the series goes on.
    eventually("the series goes on", async || {
        alarms.receiver.at("/series").len() >= before + 2
    })
    .await;
    let mut instants: Vec<String> = alarms.receiver.at("/series").iter().map(Received::id).collect();
    let all = instants.len();
    instants.sort();
    instants.dedup();
    assert_eq!(instants.len(), all, "each instant once");
    let gaps = format!(
        "select count(*) from (
             select scheduled_for - lag(scheduled_for) over (order by scheduled_for) as gap
             from stationmaster.alarm_occurrences where alarm_id = '{series}') steps
         where gap <> interval '1 second'"
    );
    let gaps: i64 = sqlx::query_scalar(AssertSqlSafe(gaps))
        .fetch_one(&database.pool)
        .await
        .unwrap();
    assert_eq!(gaps, 0, "every second is there");
    database.assert_counters_agree().await;
    drop(servers);
    database.pool.close().await;
}

// Whom to trust

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_knows_no_authorities_serves_all_the_same_and_says_once_what_it_lacks() {
    const BARE: &str = "/nonexistent";
    let alarms = Alarms::new().await;
    let launch = alarms.launch().with("HTTP__OPEN", "true");
    let launch = launch.beside("SSL_CERT_FILE", BARE);
    let server = launch.beside("SSL_CERT_DIR", BARE).start_ready().await;
    let wake = alarms.now("/plain").await;
    alarms.until(wake, "fired").await;
    let words = "This machine knows no certificate authorities";
    assert_eq!(server.said(words), 1, "{}", server.log());
    let asked = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
        .args(["servers", "list", "--url"])
        .arg(format!("http://{}", server.address().unwrap()))
        .env_clear()
        .envs([("SSL_CERT_FILE", BARE), ("SSL_CERT_DIR", BARE)])
        .output()
        .unwrap();
    assert!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
}

// Roles, which no dump of a database holds

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_makes_the_role_anew_that_a_database_restored_elsewhere_lacks() {
    let (_cluster, database) = cluster().await;
    for statement in ["drop owned by stationmaster_api", "drop role stationmaster_api"] {
        run(&database.pool, statement).await.unwrap();
    }
    let migrate = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
        .arg("migrate")
        .env_clear()
        .env("STATIONMASTER_DATABASE_URL", &database.url)
        .status();
    assert!(migrate.unwrap().success());
    let stands = "select count(*) from pg_roles r where r.rolname = 'stationmaster_api'
                  and has_table_privilege(r.oid, 'stationmaster.workspaces', 'update')
                  and not has_table_privilege(r.oid, 'stationmaster_internal.tokens', 'select')";
    assert_eq!(
        database.number(stands).await,
        1,
        "it has its rights, and no others"
    );
    database.pool.close().await;
}
