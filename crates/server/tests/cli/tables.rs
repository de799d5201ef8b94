//! The tables as `migrate`, `serve` and `doctor` find them, and the page that they draw.

use serde_json::json;

use crate::support::TestDatabase;

/// What a program before the first release left in its books.
const BEFORE: [&str; 3] = [
    "create schema stationmaster",
    "create table stationmaster._sqlx_migrations (
        version bigint primary key, description text not null, installed_on timestamptz not null default now(),
        success boolean not null, checksum bytea not null, execution_time bigint not null)",
    "insert into stationmaster._sqlx_migrations (version, description, success, checksum, execution_time)
     select n, 'before', true, sha256(n::text::bytea), 1 from generate_series(1, 11) n",
];

#[test]
fn the_page_of_the_schema_is_what_a_database_says() {
    let database = TestDatabase::migrated();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == database.done(&["docs", "schema"]),
        "docs/schema.md is not what the database says: \
         cargo run -p stationmaster -- docs schema --database-url postgres://… > docs/schema.md"
    );
}

#[test]
fn a_database_from_before_the_first_release_is_told_plainly_by_every_command() {
    let database = TestDatabase::empty();
    for statement in BEFORE {
        database.execute(statement);
    }
    for command in [
        &["migrate"][..],
        &["migrate", "--check"],
        &["serve", "--set", "listen=127.0.0.1:0"],
        &["queue", "list"],
    ] {
        let ended = database.run(command);
        assert_ne!(ended.code, 0, "{command:?}");
        assert!(
            ended.stderr.contains("made before the first release") && ended.stderr.contains("new database"),
            "{command:?}: {}",
            ended.stderr
        );
        assert!(
            !ended.stderr.contains("checksum"),
            "{command:?}: {}",
            ended.stderr
        );
    }
    let doctor = database.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("made before the first release"),
        "{}{}",
        doctor.stdout,
        doctor.stderr
    );
}

#[test]
fn functions_of_another_version_are_told_and_brought_up_to_date() {
    let database = TestDatabase::migrated();
    database.execute(
        "update stationmaster_internal.schema_parts set checksum = sha256('other') where name = 'alarms/calls'",
    );
    let checked = database.refused(1, &["migrate", "--check"]);
    assert!(
        checked.contains("alarms/calls") && checked.contains("stationmaster migrate"),
        "{checked}"
    );
    let refused = database.refused(5, &["queue", "list"]);
    assert!(refused.contains("stationmaster migrate"), "{refused}");
    let doctor = database.run(&["doctor"]);
    assert!(doctor.stdout.contains("alarms/calls"), "{}", doctor.stdout);
    let migrated = database.json(&["migrate"]);
    assert_eq!(
        (&migrated["changed"], &migrated["parts"]),
        (&json!(true), &json!(["alarms/calls"]))
    );
    database.done(&["migrate", "--check"]);
}
