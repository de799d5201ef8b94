//! The schema itself: it is explained, it is applied once whoever comes, and a database that is not ours to use is told so.

#![allow(
    clippy::unwrap_used,
    reason = "what fails fails the test, and the panic says where"
)]

mod common;

use std::collections::HashSet;

use stationmaster_core::db::{Database, Error};

use common::Testbed;

const DROP: &str = "drop schema if exists stationmaster, stationmaster_internal cascade";
/// Bookkeeping as a program before the first release left it.
const ELEVEN_OTHERS: &str = "
    create table if not exists {schema}._sqlx_migrations (
        version bigint primary key, description text not null, installed_on timestamptz not null default now(),
        success boolean not null, checksum bytea not null, execution_time bigint not null);
    truncate {schema}._sqlx_migrations;
    insert into {schema}._sqlx_migrations (version, description, success, checksum, execution_time)
    select n, 'before', true, sha256(n::text::bytea), 1 from generate_series(1, 11) n";

async fn names(testbed: &Testbed, query: &'static str) -> Vec<String> {
    sqlx::query_scalar(query).fetch_all(testbed.pool()).await.unwrap()
}

#[track_caller]
fn told(error: &Error, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
}

#[tokio::test]
async fn every_public_relation_column_and_function_has_a_comment() {
    let testbed = Testbed::new().await;
    let missing = "
        select c.oid::regclass::text from pg_class c
        where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
          and c.relkind in ('r', 'p', 'v') and c.relname <> '_sqlx_migrations'
          and coalesce(obj_description(c.oid, 'pg_class'), '') !~ '\\nRoom: [a-z]+\\. Written by: .+\\.$'
        union all
        select c.oid::regclass::text || '.' || a.attname from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relnamespace = 'stationmaster'::regnamespace and c.relkind in ('r', 'p', 'v')
          and col_description(c.oid, a.attnum) is null
        union all
        select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace = 'stationmaster'::regnamespace and obj_description(p.oid, 'pg_proc') is null
        union all
        select i.indexrelid::regclass::text from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
          and not i.indisprimary and obj_description(c.oid, 'pg_class') is null";
    assert_eq!(names(&testbed, missing).await, [] as [&str; 0]);
}

#[tokio::test]
async fn the_public_schema_holds_what_outsiders_use_and_nothing_else() {
    let testbed = Testbed::new().await;
    let relations = "select relname::text from pg_class
                     where relnamespace = 'stationmaster'::regnamespace and relkind in ('r', 'p', 'v') order by 1";
    let expected = [
        "alarm_occurrences",
        "alarms",
        "audit",
        "dispatcher_events",
        "dispatchers",
        "event_feed",
        "execution_history",
        "failure_groups",
        "failures",
        "operations",
        "plans",
        "projects",
        "signals",
        "triggers",
        "workflow_definition_versions",
        "workflow_definitions",
        "workflow_execution_queue",
        "workflow_executions",
        "workspaces",
    ];
    assert_eq!(names(&testbed, relations).await, expected);
    let functions =
        "select proname::text from pg_proc where pronamespace = 'stationmaster'::regnamespace order by 1";
    let expected = [
        "cancel_alarm",
        "cancel_alarm",
        "cancel_execution",
        "dispatcher_id",
        "enqueue",
        "enqueue_execution",
        "grant_api",
        "new_id",
        "send_signal",
        "set_alarm",
        "set_alarm",
        "slug",
        "tell_steps",
        "workflow_id",
        "workspace_id",
    ];
    assert_eq!(names(&testbed, functions).await, expected);
}

#[tokio::test]
async fn the_role_of_requests_reaches_nothing_without_a_policy_but_what_holds_no_tenant() {
    let testbed = Testbed::new().await;
    let open = "select c.relname::text from pg_class c
                where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
                  and c.relkind in ('r', 'p') and not c.relrowsecurity
                  and has_table_privilege('stationmaster_api', c.oid, 'select, insert, update, delete, truncate')
                order by 1";
    let harmless = [
        "attention",
        "dispatcher_floor",
        "duties",
        "event_sequence",
        "plans",
        "server_names",
        "servers",
    ];
    assert_eq!(names(&testbed, open).await, harmless);
    // The function takes back what somebody has opened beside it.
    testbed
        .run("grant all on all tables in schema stationmaster, stationmaster_internal to stationmaster_api; select stationmaster.grant_api()")
        .await;
    assert_eq!(names(&testbed, open).await, harmless);
    let written = "select c.relname::text from pg_class c
                   where c.relnamespace in ('stationmaster'::regnamespace, 'stationmaster_internal'::regnamespace)
                     and c.relkind in ('r', 'p') and not c.relrowsecurity
                     and has_table_privilege('stationmaster_api', c.oid, 'insert, update, delete, truncate')";
    assert_eq!(names(&testbed, written).await, ["plans"]);
}

#[tokio::test]
async fn many_servers_that_migrate_at_once_apply_everything_once() {
    let testbed = Testbed::new().await;
    testbed.run(DROP).await;
    let server = async || Database::new(&testbed.url, 1).unwrap().migrate().await.unwrap();
    let (one, two, three, four) = tokio::join!(server(), server(), server(), server());
    let applied = [one, two, three, four].concat();
    let distinct: HashSet<&str> = applied.iter().copied().collect();
    assert!(distinct.contains("executions/views"), "{applied:?}");
    assert_eq!(applied.len(), distinct.len(), "applied twice: {applied:?}");
    testbed.database.check_schema().await.unwrap();
}

#[tokio::test]
async fn a_part_of_another_version_is_told_and_applied_again() {
    let testbed = Testbed::new().await;
    testbed.database.check_schema().await.unwrap();
    testbed
        .run(
            "create or replace function stationmaster_internal.current_version(definition uuid) returns uuid
             language sql stable as 'select null::uuid';
             update stationmaster_internal.schema_parts set checksum = sha256('other') where name = 'catalogue/functions'",
        )
        .await;
    let error = testbed.database.check_schema().await.unwrap_err();
    told(&error, &["catalogue/functions", "stationmaster migrate"]);
    assert_eq!(testbed.database.migrate().await.unwrap(), ["catalogue/functions"]);
    testbed.database.check_schema().await.unwrap();
    assert_eq!(testbed.database.migrate().await.unwrap(), [] as [&str; 0]);
    // What it says is in force again.
    let tenant = testbed.tenant(1, common::NOOP).await;
    testbed.enqueue(tenant).await;
}

#[tokio::test]
async fn a_part_waits_for_a_table_in_use_without_holding_up_those_behind_it() {
    let testbed = Testbed::new().await;
    let mut busy = testbed.connection().await;
    sqlx::raw_sql("begin; lock table stationmaster_internal.queue_door in row exclusive mode")
        .execute(&mut busy)
        .await
        .unwrap();
    testbed
        .run("update stationmaster_internal.schema_parts set checksum = sha256('other') where name = 'executions/functions'")
        .await;
    let server = Database::new(&testbed.url, 1).unwrap();
    let waits = "select count(*) from pg_locks
                 where not granted and relation = 'stationmaster_internal.queue_door'::regclass";
    let meanwhile = async {
        common::eventually("the migration waits", async || testbed.number(waits).await > 0).await;
        // Whoever enqueues meanwhile waits for the migration's patience at most, not for the long transaction.
        let tenant = testbed.tenant(1, common::NOOP).await;
        testbed.enqueue(tenant).await;
        sqlx::raw_sql("commit").execute(&mut busy).await.unwrap();
    };
    let (migrated, ()) = tokio::join!(server.migrate(), meanwhile);
    assert_eq!(migrated.unwrap(), ["executions/functions"]);
}

#[tokio::test]
async fn a_database_from_before_the_first_release_is_told_plainly() {
    let testbed = Testbed::new().await;
    for (schema, others) in [
        ("stationmaster", "drop schema stationmaster_internal cascade"),
        ("stationmaster_internal", ""),
    ] {
        testbed.run(DROP).await;
        testbed.database.migrate().await.unwrap();
        testbed.run(&ELEVEN_OTHERS.replace("{schema}", schema)).await;
        if !others.is_empty() {
            testbed.run(others).await;
        }
        for error in [
            testbed.database.check_schema().await.unwrap_err(),
            testbed.database.migrate().await.unwrap_err(),
        ] {
            assert!(matches!(error, Error::BeforeRelease), "{error:?}");
            told(
                &error,
                &[
                    "before the first release",
                    "new database",
                    "drop schema",
                    "stationmaster migrate",
                ],
            );
        }
    }
    // What it says to do helps.
    testbed.run(DROP).await;
    testbed.database.migrate().await.unwrap();
    testbed.database.check_schema().await.unwrap();
}

#[tokio::test]
async fn one_schema_without_the_other_is_told_by_name() {
    let testbed = Testbed::new().await;
    for (dropped, left) in [
        ("stationmaster", "stationmaster_internal"),
        ("stationmaster_internal", "stationmaster"),
    ] {
        testbed.run(DROP).await;
        testbed.database.migrate().await.unwrap();
        testbed.run(&format!("drop schema {dropped} cascade")).await;
        for error in [
            testbed.database.check_schema().await.unwrap_err(),
            testbed.database.migrate().await.unwrap_err(),
        ] {
            let state = format!("the schema {left} is there and {dropped} is not");
            told(&error, &[&state, &format!("drop schema {left} cascade")]);
        }
    }
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_left_alone() {
    let testbed = Testbed::new().await;
    testbed
        .run(
            "insert into stationmaster_internal._sqlx_migrations (version, description, success, checksum, execution_time)
             values (9000, 'to come', true, 'x', 1);
             update stationmaster_internal.schema_parts set checksum = sha256('to come')",
        )
        .await;
    for error in [
        testbed.database.check_schema().await.unwrap_err(),
        testbed.database.migrate().await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Schema { found: 9000, .. }), "{error:?}");
    }
    let theirs =
        "select count(*) from stationmaster_internal.schema_parts where checksum <> sha256('to come')";
    assert_eq!(testbed.number(theirs).await, 0);
}

#[tokio::test]
async fn functions_and_views_of_a_newer_program_are_left_alone() {
    let testbed = Testbed::new().await;
    let newer = "update stationmaster_internal.schema_parts set checksum = sha256('to come'), program = '{99, 1, 2}' where name = 'servers/ring'";
    testbed.run(newer).await;
    for error in [
        testbed.database.check_schema().await.unwrap_err(),
        testbed.database.migrate().await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::NewerParts(version) if version == "99.1.2"),
            "{error:?}"
        );
    }
    let theirs =
        "select count(*) from stationmaster_internal.schema_parts where checksum = sha256('to come')";
    assert_eq!(testbed.number(theirs).await, 1);
}

/// The fourth version has yet to come, and needs a lock on workspaces that a long transaction does not let it have.
#[tokio::test]
async fn a_migration_that_has_to_wait_for_a_table_holds_nobody_else_up_for_long() {
    let testbed = Testbed::new().await;
    testbed
        .run(
            "drop table stationmaster.dispatchers, stationmaster_internal.dispatcher_servers, stationmaster_internal.dispatcher_heartbeats,
                 stationmaster_internal.dispatcher_floor, stationmaster.dispatcher_events, stationmaster.projects, stationmaster.triggers, stationmaster_internal.signals_inbox,
                 stationmaster_internal.signals_pending, stationmaster_internal.signals_settled cascade;
             drop function stationmaster.dispatcher_id, stationmaster_internal.signal_key cascade;
             delete from stationmaster_internal._sqlx_migrations where version = 4;
             delete from stationmaster_internal.schema_parts",
        )
        .await;
    let mut long = testbed.pool().begin().await.unwrap();
    let insert = "insert into stationmaster.workspaces default values";
    sqlx::query(insert).execute(&mut *long).await.unwrap();
    let waits = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                 where not l.granted and l.relation = 'stationmaster.workspaces'::regclass and a.datname = current_database()";
    let others = async {
        common::eventually("the migration waits", async || testbed.number(waits).await > 0).await;
        let began = std::time::Instant::now();
        tokio::time::timeout(std::time::Duration::from_secs(10), testbed.run(insert))
            .await
            .expect("nobody is held up for longer than the migration tries to have its lock");
        let held_up = began.elapsed();
        long.commit().await.unwrap();
        held_up
    };
    let (migrated, held_up) = tokio::join!(testbed.database.migrate(), others);
    migrated.unwrap();
    assert!(held_up < std::time::Duration::from_secs(4), "{held_up:?}");
    testbed.database.check_schema().await.unwrap();
}

#[tokio::test]
async fn whoever_writes_to_a_view_that_is_for_reading_is_told_what_to_call_instead() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(0, common::NOOP).await;
    let (workspace, _) = tenant;
    testbed.enqueue(tenant).await;
    testbed
        .run(&format!(
            "select stationmaster.set_alarm(workspace_id => '{workspace}', cron_expr => '@daily', timezone => 'UTC');
             select stationmaster.send_signal(project => 'shop', name => 'paid')"
        ))
        .await;
    for (statement, instead) in [
        (
            "update stationmaster.workflow_execution_queue set priority = 1",
            "cancel_execution(id)",
        ),
        (
            "delete from stationmaster.workflow_execution_queue",
            "cancel_execution(id)",
        ),
        (
            "insert into stationmaster.workflow_executions (status) values ('RUNNING')",
            "stationmaster.enqueue(",
        ),
        (
            "delete from stationmaster.execution_history",
            "cancel_execution(id)",
        ),
        (
            "insert into stationmaster.alarms (label) values ('x')",
            "stationmaster.set_alarm(",
        ),
        (
            "update stationmaster.alarms set label = 'x'",
            "stationmaster.cancel_alarm(id)",
        ),
        (
            "delete from stationmaster.alarms",
            "stationmaster.cancel_alarm(id)",
        ),
        (
            "insert into stationmaster.alarm_occurrences (status) values ('fired')",
            "stationmaster.set_alarm(",
        ),
        ("delete from stationmaster.signals", "stationmaster.send_signal("),
        (
            "insert into stationmaster.failures (message) values ('x')",
            "stationmaster failures",
        ),
        (
            "insert into stationmaster.failure_groups (message) values ('x')",
            "stationmaster failures",
        ),
        (
            "insert into stationmaster.operations (kind) values ('cancel_queue')",
            "stationmaster operations",
        ),
        (
            "insert into stationmaster.event_feed (kind) values ('x')",
            "stationmaster.tell_steps(true)",
        ),
    ] {
        let refused = sqlx::raw_sql(statement)
            .execute(testbed.pool())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("is for reading") && refused.contains(instead),
            "{statement}: {refused}"
        );
    }
}

#[tokio::test]
async fn whoever_was_given_rights_on_what_servers_write_is_told_what_to_use_instead() {
    let testbed = Testbed::new().await;
    let (workspace, _) = testbed.tenant(0, common::NOOP).await;
    let role = format!("guest_{}", uuid::Uuid::now_v7().simple());
    testbed
        .run(&format!(
            "create role {role};
             grant usage on schema stationmaster, stationmaster_internal to {role};
             grant all on all tables in schema stationmaster, stationmaster_internal to {role}"
        ))
        .await;
    let mut connection = testbed.connection().await;
    let as_guest = format!("set role {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(as_guest))
        .execute(&mut connection)
        .await
        .unwrap();
    // What people are to do, they can, though it writes to what is closed.
    sqlx::raw_sql("select stationmaster.send_signal(project => 'shop', name => 'paid')")
        .execute(&mut connection)
        .await
        .unwrap();
    for (statement, instead) in [
        (
            "update stationmaster.dispatchers set owner = null",
            "stationmaster dispatchers reconcile",
        ),
        (
            "delete from stationmaster.dispatchers",
            "stationmaster.send_signal(",
        ),
        (
            "insert into stationmaster.dispatcher_events (dispatcher_id, event, actor) values ('x', 'x', 'x')",
            "stationmaster dispatchers show",
        ),
        (
            "update stationmaster.projects set workspace_id = null",
            "stationmaster triggers set",
        ),
        (
            "insert into stationmaster.audit (actor, action, subject) values ('x', 'x', 'x')",
            "http.audit_retention",
        ),
        ("delete from stationmaster.audit", "http.audit_retention"),
        ("truncate stationmaster.audit", "http.audit_retention"),
    ] {
        let refused = sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("is for reading") && refused.contains(instead),
            "{statement}: {refused}"
        );
    }
    sqlx::raw_sql("reset role")
        .execute(&mut connection)
        .await
        .unwrap();
    // The servers write on: a change leaves its line.
    let changed = format!("update stationmaster.workspaces set paused = true where id = '{workspace}'");
    testbed.run(&changed).await;
    let lines = "select action from stationmaster.audit where action = 'workspace.change'";
    assert_eq!(names(&testbed, lines).await.len(), 1);
    testbed
        .run(&format!("drop owned by {role}; drop role {role}"))
        .await;
}
