//! Programs and tables of different versions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::backup::{Restored, dump};
use crate::scene::repository_path;
use crate::support::{Alarms, Launch, Process, SHORT, TestDatabase, eventually, setting};

const THIS: &str = env!("CARGO_BIN_EXE_stationmaster");

/// The program on this database: its exit code, what it printed, what it complained of.
fn run(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    run_by(THIS, database, arguments)
}

/// The same by another binary.
fn run_by(program: &str, database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("STATIONMASTER_DATABASE_URL", &database.url)
        .env("STATIONMASTER_LISTEN", "127.0.0.1:0")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn tables_of_a_newer_version_are_refused_in_one_sentence_with_exit_code_5() {
    let database = TestDatabase::new().await;
    let newer = "insert into stationmaster_internal._sqlx_migrations (version, description, success, checksum, execution_time)
                 values (9000, 'of the future', true, '', 0)";
    sqlx::query(newer).execute(&database.pool).await.unwrap();
    for command in ["serve", "migrate"] {
        let (code, _, said) = run(&database, &[command]);
        assert_eq!(code, Some(5), "{command}: {said}");
        let error: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        let [error] = error[..] else {
            panic!("{command}: {said}");
        };
        assert!(
            error.contains("at version 9000, and this program knows them up to version"),
            "{error}"
        );
        assert!(
            said.contains("use that version of this program")
                && !said.contains("run `stationmaster migrate`"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_plan_tells_what_a_migration_would_do_and_does_nothing() {
    let database = TestDatabase::new().await;
    let (code, said, _) = run(&database, &["migrate", "--plan", "--json"]);
    let plan: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (code, plan["migrations"].as_array().unwrap().len()),
        (Some(0), 0),
        "{plan}"
    );
    // The newest migration and one part have not been applied, as far as the books know.
    for statement in [
        "delete from stationmaster_internal._sqlx_migrations where version = (select max(version) from stationmaster_internal._sqlx_migrations)",
        "delete from stationmaster_internal.schema_parts where name = (select min(name) from stationmaster_internal.schema_parts)",
    ] {
        sqlx::query(statement).execute(&database.pool).await.unwrap();
    }
    let (code, said, _) = run(&database, &["migrate", "--plan", "--json"]);
    let plan: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, Some(0), "{plan}");
    assert_eq!(plan["migrations"].as_array().unwrap().len(), 1, "{plan}");
    assert_eq!(plan["parts"].as_array().unwrap().len(), 1, "{plan}");
    let (_, again, _) = run(&database, &["migrate", "--plan", "--json"]);
    assert_eq!(said, again, "nothing was done");
}

/// Where a dump of each released version is kept.
const DUMPS: &str = "crates/core/tests/dumps";

/// Something of everything: items that wait, an alarm that is due, a signal with its trigger.
async fn dump_of_now(file: &Path) {
    let alarms = Alarms::new().await;
    let workflow = alarms.database.workflow(5, SHORT).await;
    alarms.database.enqueue(workflow, 3).await;
    alarms.now("/kept").await;
    let trigger = format!(
        "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', '{}')",
        workflow.1
    );
    alarms.run(&trigger).await;
    alarms
        .run("insert into stationmaster.signals (project, name) values ('shop', 'paid')")
        .await;
    dump(&alarms.database, file);
}

/// A dump becomes a database, is migrated, and servers go on with what it held.
async fn goes_on(dump: &Path) {
    let restored = Restored::from(dump).await;
    {
        // This migrates it.
        let database = TestDatabase::at(&restored.url).await;
        let alarms = Alarms::on(database).await;
        let router = alarms.receiver.url("");
        let move_on =
            format!("update stationmaster_internal.alarm_definitions set target_url = '{router}/kept'");
        alarms.run(&move_on).await;
        let mut server = alarms.launch().start_ready().await;
        let done = "select count(*) from stationmaster.workflow_executions where status = 'COMPLETED'";
        eventually("the items and the signal have become executions", async || {
            alarms.database.number(done).await == 4
        })
        .await;
        alarms.until_arrived(1).await;
        server.kill();
        alarms.database.pool.close().await;
    }
    restored.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_of_each_version_goes_through_the_migrations_and_what_it_held_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let now = folder.path().join("now.sql");
    dump_of_now(&now).await;
    if let Ok(version) = std::env::var("STATIONMASTER_TEST_KEEP_DUMP") {
        let kept = PathBuf::from(repository_path(DUMPS));
        std::fs::create_dir_all(&kept).unwrap();
        std::fs::copy(&now, kept.join(format!("{version}.sql"))).unwrap();
    }
    goes_on(&now).await;
    let kept = std::fs::read_dir(repository_path(DUMPS)).into_iter().flatten();
    for dump in kept {
        let dump = dump.unwrap().path();
        println!("{}", dump.display());
        goes_on(&dump).await;
    }
}

/// The tables that a binary knows, by their number.
fn schema_of(program: &str) -> u32 {
    let output = Command::new(program).arg("--version").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("schema: "));
    line.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it needs the binary of another version: `cargo xtask upgrade --from BINARY` runs it"]
async fn servers_of_the_version_before_and_of_this_one_work_side_by_side() {
    let before = setting("STATIONMASTER_TEST_BINARY_BEFORE");
    let (was, is) = (schema_of(&before), schema_of(THIS));
    println!("the tables are at {was}, and will be at {is}");
    assert!(was <= is, "the other binary is the newer one");
    let database = TestDatabase::empty().await;
    let mut older = Launch::on(&database).by(&before).start_ready().await;
    let workflow = database.workflow(1_000, SHORT).await;
    database.enqueue(workflow, 20).await;
    database.until_count("COMPLETED", 20).await;
    assert_eq!(run_by(&before, &database, &["migrate", "--check"]).0, Some(0));
    let (code, plan, _) = run(&database, &["migrate", "--plan"]);
    println!("{plan}");
    assert_eq!(code, Some(0), "{plan}");
    let began = Instant::now();
    let (code, _, said) = run(&database, &["migrate"]);
    println!("migrated in {:.1?}", began.elapsed());
    assert_eq!(code, Some(0), "{said}");

    // On the new tables: the old one alone, then both, then the new one alone.
    database.enqueue(workflow, 20).await;
    database.until_count("COMPLETED", 40).await;
    let newer = Launch::on(&database).start_ready().await;
    let started = async |server: &Process| server.metric("queue_items_dispatched_total").await;
    let (by_old, by_new) = (started(&older).await, started(&newer).await);
    let mut asked = 40;
    eventually("both work", async || {
        database.enqueue(workflow, 50).await;
        asked += 50;
        database.until_count("COMPLETED", asked).await;
        started(&older).await > by_old && started(&newer).await > by_new
    })
    .await;
    for server in [&older, &newer] {
        assert_eq!(server.readiness().await.0, 200, "{}", server.log());
    }
    older.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(older.ended().await.0.success(), "{}", older.log());
    database.enqueue(workflow, 20).await;
    database.until_count("COMPLETED", asked + 20).await;
    for server in [&older, &newer] {
        assert_eq!(server.said("\"level\":\"ERROR\""), 0, "{}", server.log());
    }
    let (code, _, said) = if was < is {
        run_by(&before, &database, &["serve"])
    } else {
        println!("both know the same tables: there is nothing to refuse");
        return;
    };
    println!("{said}");
    assert_eq!(code, Some(5), "an old server does not come back: {said}");
}
