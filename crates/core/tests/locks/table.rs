//! The shared table: where it is made, by which name it is found, and what is said when it cannot be used.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::db::Database;
use stationmaster_core::locks::{Error, LockTable, Locked, Locks, Terms};
use uuid::Uuid;

use crate::common::Testbed;
use crate::support::{Bench, MINUTE, named};

async fn acquires(locks: &Locks) -> bool {
    let terms = Terms::new(MINUTE, Duration::ZERO).unwrap();
    let answer = locks.lock(&named("nightly"), terms, "tester").await;
    matches!(answer.unwrap(), Locked::Acquired(_))
}

async fn refusal(locks: &Locks) -> String {
    let terms = Terms::new(MINUTE, Duration::ZERO).unwrap();
    match locks.lock(&named("nightly"), terms, "tester").await {
        Err(Error::Table(words)) => words,
        other => panic!("{other:?}"),
    }
}

fn locks(url: &str, table: &str) -> Locks {
    let database = Database::new(url, 2).unwrap();
    Locks::new(database, table.parse::<LockTable>().unwrap(), Arc::default())
}

/// The same database as another user, who may do nothing yet.
async fn stranger(testbed: &Testbed) -> (String, String) {
    let role = format!("role_{}", Uuid::now_v7().simple());
    testbed.run(&format!("create role {role}")).await;
    let url = format!("{}?options=-c%20role%3D{role}", testbed.url);
    (role, url)
}

#[tokio::test]
async fn the_migration_makes_the_table_outside_our_schema() {
    let testbed = Testbed::new().await;
    let made = "select count(*) from pg_tables where tablename = 'shedlock' and schemaname = 'public'";
    assert_eq!(testbed.number(made).await, 1);
    let elsewhere = "select count(*) from pg_tables where tablename = 'shedlock'";
    assert_eq!(testbed.number(elsewhere).await, 1);
    let columns = "select string_agg(column_name || ' ' || data_type || coalesce(' ' || character_maximum_length, ''), ', ' order by ordinal_position)
                   from information_schema.columns where table_name = 'shedlock' and is_nullable = 'NO'";
    let columns: String = sqlx::query_scalar(columns)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(
        columns,
        "name character varying 64, lock_until timestamp without time zone, \
         locked_at timestamp without time zone, locked_by character varying 255"
    );
}

#[tokio::test]
async fn a_table_of_another_name_is_made_where_it_is_asked_for_and_found_there() {
    let testbed = Testbed::new().await;
    testbed.run("create schema jobs").await;
    for name in ["my_locks", "jobs.Locks", "\"My \"\"Locks\"\"\"", "jobs.\"Locks\""] {
        let locks = locks(&testbed.url, name);
        assert!(refusal(&locks).await.contains("is not there"), "{name}");
        assert_eq!(locks.prepare().await.unwrap(), None, "{name}");
        assert_eq!(locks.prepare().await.unwrap(), None, "{name}, again");
        assert!(acquires(&locks).await, "{name}");
        assert!(!acquires(&locks).await, "{name}");
    }
    assert_eq!(testbed.number("select count(*) from jobs.locks").await, 1);
    assert_eq!(testbed.number("select count(*) from shedlock").await, 0);
}

/// A second table, nearer on the search path, would part us from the applications that use the first.
#[tokio::test]
async fn a_table_that_the_search_path_finds_is_not_shadowed() {
    let testbed = Testbed::new().await;
    testbed.run("create schema app").await;
    let url = format!("{}?options=-c%20search_path%3Dapp,public", testbed.url);
    let locks = locks(&url, "shedlock");
    assert_eq!(locks.prepare().await.unwrap(), None);
    assert!(acquires(&locks).await);
    assert_eq!(testbed.number("select count(*) from public.shedlock").await, 1);
}

#[tokio::test]
async fn a_missing_table_is_told_with_what_to_do_and_needs_no_restart() {
    let bench = Bench::new().await;
    bench.testbed.run("drop table shedlock").await;
    let words = refusal(&bench.locks).await;
    assert!(words.contains("shedlock is not there"), "{words}");
    assert!(
        words.contains("stationmaster migrate") && words.contains("create table shedlock"),
        "{words}"
    );
    assert_eq!(bench.locks.problem().await.unwrap(), Some(words.clone()));
    // The statement that the message gives is one that works.
    let statement = words.split("create it: ").nth(1).unwrap().trim_end_matches('.');
    bench.testbed.run(statement).await;
    assert_eq!(bench.locks.problem().await.unwrap(), None);
    assert!(acquires(&bench.locks).await);
}

#[tokio::test]
async fn missing_rights_are_told_and_need_no_restart() {
    let bench = Bench::new().await;
    let (role, url) = stranger(&bench.testbed).await;
    bench
        .testbed
        .run(&format!(
            "grant usage on schema stationmaster, stationmaster_internal to {role};
             grant all on all tables in schema stationmaster, stationmaster_internal to {role}"
        ))
        .await;
    let locks = locks(&url, "shedlock");
    let words = refusal(&locks).await;
    assert!(words.contains("may not use the lock table shedlock"), "{words}");
    assert_eq!(locks.prepare().await.unwrap(), Some(words));
    bench
        .testbed
        .run(&format!("grant select, insert, update on shedlock to {role}"))
        .await;
    assert_eq!(locks.problem().await.unwrap(), None);
    assert!(acquires(&locks).await);
}

#[tokio::test]
async fn a_migration_that_may_not_make_the_table_makes_the_rest_and_it_is_told() {
    let testbed = Testbed::new().await;
    testbed
        .run("drop schema stationmaster, stationmaster_internal cascade; drop table shedlock")
        .await;
    let (role, url) = stranger(&testbed).await;
    let database: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    testbed
        .run(&format!("grant create on database {database} to {role}"))
        .await;
    Database::new(&url, 2).unwrap().migrate().await.unwrap();
    assert_eq!(testbed.count("lock_tokens").await, 0);
    let problem = locks(&url, "shedlock").prepare().await.unwrap().unwrap();
    assert!(
        problem.contains("is not there") && problem.contains("permission denied"),
        "{problem}"
    );
    let lost = locks(&url, "nowhere.shedlock").prepare().await.unwrap().unwrap();
    assert!(
        lost.contains("is not there") && lost.contains("nowhere"),
        "{lost}"
    );
}

#[tokio::test]
async fn a_table_that_does_not_fit_is_told_with_the_column() {
    let bench = Bench::new().await;
    for (change, told) in [
        (
            "alter table shedlock alter lock_until type timestamptz",
            "lock_until of the lock table shedlock must be timestamp without time zone",
        ),
        ("alter table shedlock drop column locked_at", "it is missing"),
        (
            "alter table shedlock drop constraint shedlock_pkey",
            "must be its primary key",
        ),
        (
            "alter table shedlock alter locked_by type varchar(10)",
            "too narrow",
        ),
    ] {
        bench.testbed.run("drop table shedlock").await;
        assert_eq!(bench.locks.prepare().await.unwrap(), None);
        bench.testbed.run(change).await;
        let words = if told == "too narrow" {
            refusal(&bench.locks).await
        } else {
            bench.locks.problem().await.unwrap().unwrap()
        };
        assert!(words.contains(told), "{change}: {words}");
    }
}

#[tokio::test]
async fn a_database_that_is_away_is_an_error_and_no_refusal() {
    let locks = locks("postgres://nobody:nothing@127.0.0.1:1/none", "shedlock");
    let terms = Terms::new(MINUTE, Duration::ZERO).unwrap();
    let answer = locks.lock(&named("nightly"), terms, "tester").await;
    assert!(matches!(answer, Err(Error::Database(_))), "{answer:?}");
}
