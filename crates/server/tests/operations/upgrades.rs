//! Programs and tables of different versions.

use std::process::Command;

use serde_json::Value;

use crate::support::TestDatabase;

/// The program on this database: its exit code, what it printed, what it complained of.
fn run(database: &TestDatabase, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_stationmaster"))
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
