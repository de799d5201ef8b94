//! The exclusive mode with real servers: one at a time, a takeover after at most, and a lane that is switched off.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use crate::support::{Launch, Process, SHORT, TestDatabase, command, eventually};

/// Short turns, so that a test sees many of them; the lock of a lost server holds for a few seconds.
fn exclusive(database: &TestDatabase, name: &str) -> Launch {
    Launch::on(database)
        .with("SERVER_NAME", name)
        .with("EXECUTIONS__EXCLUSIVE", "true")
        .with("EXECUTIONS__BATCH_SIZE", "5")
        .with("EXECUTIONS__POLL_INTERVAL", "100ms")
        .with("EXECUTIONS__EXCLUSIVE_AT_MOST", "4s")
        .with("EXECUTIONS__EXCLUSIVE_AT_LEAST", "250ms")
        .with("EXECUTIONS__EXCLUSIVE_RECOVERY_INTERVAL", "500ms")
        .with("EXECUTIONS__EXCLUSIVE_RECOVERY_AT_MOST", "4s")
        .with("EXECUTIONS__EXCLUSIVE_RECOVERY_AT_LEAST", "1ms")
        .with("EXECUTIONS__EXCLUSIVE_STALE_AFTER", "1s")
}

/// Who processed a batch, and from when to when.
#[derive(Debug, sqlx::FromRow)]
struct Batch {
    holder: Uuid,
    began: f64,
    ended: f64,
}

/// Every batch: the items of one claim were claimed at one moment.
async fn batches(database: &TestDatabase) -> Vec<Batch> {
    let query = "
        with items as (
            select holder, claimed_at, dispatched_at from stationmaster_internal.executions_active where dispatched_at is not null
            union all
            select holder, claimed_at, dispatched_at from stationmaster_internal.executions_finished where dispatched_at is not null
        )
        select holder, extract(epoch from claimed_at)::float8 as began, extract(epoch from max(dispatched_at))::float8 as ended
        from items
        group by holder, claimed_at
        order by claimed_at";
    sqlx::query_as(query).fetch_all(&database.pool).await.unwrap()
}

/// No batch of one server began before every earlier batch of another had ended. Answers how many servers took part.
async fn assert_one_at_a_time(database: &TestDatabase) -> usize {
    let mut ended: HashMap<Uuid, f64> = HashMap::new();
    for batch in batches(database).await {
        let others = ended.iter().filter(|(holder, _)| **holder != batch.holder);
        for (other, ended) in others {
            assert!(
                *ended <= batch.began,
                "{other} was at work until {ended}: {batch:?}"
            );
        }
        let last = ended.entry(batch.holder).or_default();
        *last = last.max(batch.ended);
    }
    ended.len()
}

async fn lock(database: &TestDatabase) -> (String, Timestamp) {
    let query = "select locked_by, extract(epoch from lock_until)::float8 from shedlock where name = 'processExecutionQueue'";
    let (by, until): (String, f64) = sqlx::query_as(query).fetch_one(&database.pool).await.unwrap();
    let until = Duration::from_secs_f64(until);
    (by, Timestamp::UNIX_EPOCH + until)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_in_the_exclusive_mode_never_process_together_and_one_follows_the_other_after_at_most() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(1000, SHORT).await;
    let mut servers = [
        exclusive(&database, "east").start_ready().await,
        exclusive(&database, "west").start_ready().await,
    ];
    let mut enqueued = 0;
    eventually("both have taken turns", async || {
        database.enqueue(workflow, 20).await;
        enqueued += 20;
        database.until_count("COMPLETED", enqueued).await;
        assert_one_at_a_time(&database).await == 2
    })
    .await;

    // One of them is killed in the middle of a turn, with the lock in its hands.
    let table = "lock table stationmaster_internal.executions_active in share mode";
    let standstill = database.lock(table).await;
    database.enqueue(workflow, 20).await;
    enqueued += 20;
    // Others wait for it too, such as whoever looks for lost claims, and they need no turn.
    let claims = "select count(*) from pg_locks l join pg_stat_activity a using (pid)
                  where not l.granted and a.datname = current_database() and a.query like '-- Admits items%'";
    eventually("a claim waits for the table", async || {
        database.number(claims).await > 0
    })
    .await;
    let (by, _) = lock(&database).await;
    let victim = usize::from(by.starts_with("stationmaster@west"));
    servers[victim].kill();
    let (held_by, until) = lock(&database).await;
    assert_eq!(held_by, by, "nobody else had the lock meanwhile");
    let before = batches(&database).await.len();
    standstill.rollback().await.unwrap();
    let took = database.until_count("COMPLETED", enqueued).await;
    println!("the survivor went on {took:?} after the kill");
    let later = &batches(&database).await[before..];
    let until = Duration::try_from(until.as_duration()).unwrap().as_secs_f64();
    assert!(!later.is_empty());
    for batch in later {
        assert!(
            batch.began >= until,
            "{batch:?} began before the lock had run out, at {until}"
        );
    }
    assert_one_at_a_time(&database).await;
    database.assert_all_completed_once(enqueued).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_in_its_turn_loses_nothing_and_its_items_come_back_when_they_are_stale() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(1000, SHORT).await;
    let mut first = exclusive(&database, "east").start_ready().await;
    let standstill = database
        .lock("lock table stationmaster.workflow_definition_versions in access exclusive mode")
        .await;
    database.enqueue(workflow, 3).await;
    eventually("the batch is claimed and being read", async || {
        database
            .is_waited_for("stationmaster.workflow_definition_versions")
            .await
    })
    .await;
    assert_eq!(database.count("STARTING").await, 3);
    first.kill();
    standstill.rollback().await.unwrap();
    let _second = exclusive(&database, "west").start_ready().await;
    database.until_count("COMPLETED", 3).await;
    database.assert_all_completed_once(3).await;
    let lost = "select count(*) from stationmaster_internal.executions_finished where recoveries <> 1 or attempts <> 0";
    assert_eq!(database.number(lost).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_needs_for_its_turns_is_said_once_and_it_goes_on_by_itself() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(10, SHORT).await;
    database.enqueue(workflow, 1).await;
    sqlx::raw_sql("alter table shedlock rename to elsewhere")
        .execute(&database.pool)
        .await
        .unwrap();
    let launch = exclusive(&database, "east").with("MIGRATE_AT_START", "false");
    let server: Process = launch.start_listening().await;
    assert_eq!(server.said("polls are idle"), 1, "{}", server.log());
    assert_eq!(
        server.said("Nothing is dispatched until then"),
        1,
        "{}",
        server.log()
    );
    eventually("many turns have failed", async || {
        server.metric("shedlock_acquisition_failures").await >= 12.0
    })
    .await;
    assert_eq!(database.count("COMPLETED").await, 0);
    eventually("readiness tells of it", async || {
        server.readiness().await.0 == 503
    })
    .await;
    let (_, reasons) = server.readiness().await;
    assert!(reasons.contains("has not finished a round"), "{reasons}");
    // Once for the turns, once for recovery.
    assert_eq!(server.said("A background task failed"), 2, "{}", server.log());
    sqlx::raw_sql("alter table elsewhere rename to shedlock")
        .execute(&database.pool)
        .await
        .unwrap();
    database.until_count("COMPLETED", 1).await;
    eventually("it says that it goes on", async || {
        server.said("The lock can be asked for again") == 2
    })
    .await;
    eventually("it is ready", async || server.readiness().await.0 == 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lane_that_is_switched_off_takes_nothing_and_everything_else_works() {
    let database = TestDatabase::new().await;
    let workflow = database.workflow(10, SHORT).await;
    database.enqueue(workflow, 1).await;
    let off = Launch::on(&database)
        .with("EXECUTIONS__ENABLED", "false")
        .start_ready()
        .await;
    let items = command(&database, &["queue", "list"]);
    let id = items[0]["id"].as_str().unwrap();
    let shown = command(&database, &["queue", "show", id]);
    assert_eq!(
        (&shown["status"], &shown["waiting"]["reason"]),
        (&"PENDING".into(), &"no_server".into())
    );
    let servers = command(&database, &["servers", "list"]);
    assert_eq!(
        (&servers[0]["claiming"], &servers[0]["engine_up"]),
        (&false.into(), &true.into())
    );
    assert!(off.metric("queue_processing_batch_size_count").await < 0.5);
    assert_eq!(database.count("COMPLETED").await, 0);

    let on = Launch::on(&database).start_ready().await;
    database.until_count("COMPLETED", 1).await;
    assert!(off.metric("queue_items_dispatched_total").await < 0.5);
    drop(on);
    assert_eq!(off.readiness().await.0, 200);
}
