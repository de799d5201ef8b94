//! The exclusive mode: one server at a time, in turns, one item after another; and what happens when its lock is lost.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::Engine;
use stationmaster_core::executions::Settings;
use stationmaster_core::executions::enqueue::Enqueue;
use stationmaster_core::executions::exclusive::Exclusive;
use stationmaster_core::id::{DefinitionId, ItemId, WorkspaceId};
use stationmaster_core::locks::{LockTable, Terms};
use stationmaster_core::presence::Presence;

use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::server::Mortal;
use crate::common::{NOOP, Server, Testbed, brisk, eventually, wait};

const MOMENT: Duration = Duration::from_millis(1);

/// Turns in quick succession, with locks that are held no longer than needed.
fn turns() -> Settings {
    Settings {
        batch_size: 10,
        claim_lease: Duration::from_mins(2),
        exclusive: Some(Exclusive {
            table: LockTable::default(),
            turn: Terms::new(Duration::from_secs(10), MOMENT).unwrap(),
            recovery: Terms::new(Duration::from_secs(10), MOMENT).unwrap(),
            recovery_interval: Duration::from_millis(200),
            stale_after: Duration::from_hours(1),
        }),
        ..brisk()
    }
}

fn exclusive(change: impl FnOnce(&mut Exclusive)) -> Settings {
    let mut settings = turns();
    change(settings.exclusive.as_mut().unwrap());
    settings
}

async fn server(testbed: &Testbed, settings: Settings, engine: &Arc<ScriptedEngine>) -> Server {
    Server::start_outside(&testbed.url, settings, Arc::clone(engine) as Arc<dyn Engine>).await
}

async fn with_priority(testbed: &Testbed, tenant: (WorkspaceId, DefinitionId), priority: i32) -> ItemId {
    let mut request = Enqueue::new(tenant.0.0, tenant.1.0);
    request.priority = priority;
    testbed.ask(request).await
}

/// The items that were started, in that order.
async fn started(testbed: &Testbed) -> Vec<ItemId> {
    let query = "select item_id from stationmaster_internal.executions_active
                 where dispatched_at is not null order by dispatched_at";
    sqlx::query_scalar(query).fetch_all(testbed.pool()).await.unwrap()
}

#[tokio::test]
async fn items_start_one_after_another_by_priority_and_age() {
    let testbed = Testbed::new().await;
    let (one, other) = (testbed.tenant(20, NOOP).await, testbed.tenant(20, NOOP).await);
    let mut expected = Vec::new();
    for (index, tenant) in [one, other, one, other, one, other].into_iter().enumerate() {
        let priority = if index == 4 { 7 } else { 0 };
        expected.push(with_priority(&testbed, tenant, priority).await);
    }
    let first = expected.remove(4);
    expected.insert(0, first);
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let server = server(&testbed, turns(), &engine).await;
    eventually("a start is under way", async || engine.asked_in_all() > 0).await;
    let claimed = "select count(*) from stationmaster_internal.executions_active where state = 'STARTING'";
    assert_eq!(testbed.number(claimed).await, 6, "one batch");
    assert_eq!(engine.asked_in_all(), 1, "one start at a time");
    engine.let_go();
    eventually("all are started", async || started(&testbed).await.len() == 6).await;
    assert_eq!(started(&testbed).await, expected);
    server.stop().await;
}

#[tokio::test]
async fn a_turn_takes_one_batch_and_nothing_wakes_the_next_one() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    testbed.enqueue_many(tenant, 5).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let settings = Settings {
        batch_size: 3,
        poll_interval: Duration::from_secs(4),
        ..turns()
    };
    let server = server(&testbed, settings, &engine).await;
    let free = "select count(*) from shedlock
                where name = 'processExecutionQueue' and lock_until <= timezone('utc', clock_timestamp())";
    eventually("a turn is over", async || {
        started(&testbed).await.len() == 3 && testbed.number(free).await == 1
    })
    .await;
    testbed.enqueue(tenant).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        started(&testbed).await.len(),
        3,
        "neither news nor a settlement wakes a turn"
    );
    eventually("the next turn comes", async || started(&testbed).await.len() == 6).await;
    let attention = "select count(*) from stationmaster_internal.attention where lane = 'executions' and until > now() - interval '1 hour'";
    assert_eq!(
        testbed.number(attention).await,
        0,
        "nobody said that they need not ring"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_lock_that_is_taken_means_skip() {
    let testbed = Testbed::new().await;
    testbed
        .run("insert into shedlock values ('processExecutionQueue', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'java-host')")
        .await;
    let tenant = testbed.tenant(20, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = server(&testbed, turns(), &engine).await;
    let skipped = async || server.metric("stationmaster_lock_acquisitions_skipped_total") >= 3;
    eventually("turns are skipped", skipped).await;
    assert_eq!(engine.asked_in_all(), 0);
    assert_eq!(server.metric("shedlock_acquisition_failures"), 0);
    testbed
        .run("update shedlock set lock_until = timezone('utc', now()) where locked_by = 'java-host'")
        .await;
    testbed.reaches(item, "RUNNING").await;
    let holder: String =
        sqlx::query_scalar("select locked_by from shedlock where name = 'processExecutionQueue'")
            .fetch_one(testbed.pool())
            .await
            .unwrap();
    assert!(holder.starts_with("stationmaster@test#"), "{holder}");
    server.stop().await;
}

/// Nothing correct rests on the lock; so the start under way is finished, and the rest is given back unspent.
#[tokio::test]
async fn a_lock_lost_in_the_middle_of_a_turn_starts_nothing_more_and_gives_the_rest_back() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    let items = testbed.enqueue_many(tenant, 4).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let server = server(&testbed, turns(), &engine).await;
    eventually("the first start hangs", async || engine.asked_in_all() == 1).await;
    testbed
        .run("update shedlock set locked_by = 'java-host', lock_until = timezone('utc', now()) + interval '1 hour'
              where name = 'processExecutionQueue'")
        .await;
    let lost = async || server.metric("stationmaster_locks_lost_total") == 1;
    eventually("the loss is noticed", lost).await;
    engine.let_go();
    testbed.reaches(items[0], "RUNNING").await;
    eventually("the rest is back", async || {
        testbed.count("queue_pending").await == 3
    })
    .await;
    assert_eq!(engine.asked_in_all(), 1);
    let spent =
        "select count(*) from stationmaster_internal.queue_pending where attempts > 0 or recoveries > 0";
    assert_eq!(testbed.number(spent).await, 0);
    let holder =
        "select count(*) from shedlock where name = 'processExecutionQueue' and locked_by = 'java-host'
                  and lock_until > timezone('utc', now()) + interval '50 minutes'";
    assert_eq!(
        testbed.number(holder).await,
        1,
        "whoever has the lock now keeps it"
    );
    testbed
        .run("update shedlock set lock_until = timezone('utc', now()) where locked_by = 'java-host'")
        .await;
    for item in &items {
        testbed.reaches(*item, "RUNNING").await;
    }
    assert_eq!(engine.asked_in_all(), 4, "each was started once");
    server.stop().await;
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_turn_gives_the_rest_and_the_lock_back() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    let items = testbed.enqueue_many(tenant, 4).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let first = server(&testbed, turns(), &engine).await;
    eventually("the first start hangs", async || engine.asked_in_all() == 1).await;
    let release = async {
        let leaving = "select count(*) from stationmaster_internal.servers where not claiming";
        eventually("the server is leaving", async || {
            testbed.number(leaving).await == 1
        })
        .await;
        engine.let_go();
    };
    tokio::join!(first.stop(), release);
    assert_eq!(testbed.outcome(items[0]).await, "RUNNING");
    assert_eq!(
        (engine.asked_in_all(), testbed.count("queue_pending").await),
        (1, 3)
    );
    let held = "select count(*) from shedlock where lock_until > timezone('utc', clock_timestamp())";
    eventually("no lock is held", async || testbed.number(held).await == 0).await;
}

#[tokio::test]
async fn a_server_that_cannot_reach_its_engine_leaves_the_turns_to_others() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    let (away, willing) = (
        ScriptedEngine::new(Mood::Away),
        ScriptedEngine::new(Mood::Willing),
    );
    // Its recovery, which asks no engine when there is nothing to recover, comes once.
    let once = exclusive(|exclusive| exclusive.recovery_interval = Duration::from_hours(1));
    let useless = server(&testbed, once, &away).await;
    let useful = server(&testbed, turns(), &willing).await;
    testbed.reaches(item, "RUNNING").await;
    let more = useful.metric("stationmaster_lock_acquisitions_total") + 10;
    let turned = async || useful.metric("stationmaster_lock_acquisitions_total") >= more;
    eventually("many turns have come", turned).await;
    assert!(
        useless.metric("stationmaster_lock_acquisition_attempts_total") <= 1,
        "it asked for a turn"
    );
    useless.stop().await;
    useful.stop().await;
}

/// The table is gone, and comes back: turns fail, are counted, and go on by themselves.
#[tokio::test]
async fn a_missing_table_stops_the_turns_until_it_is_back() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, NOOP).await;
    testbed.run("alter table shedlock rename to elsewhere").await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = server(&testbed, turns(), &engine).await;
    let item = testbed.enqueue(tenant).await;
    let failing = async || server.metric("shedlock_acquisition_failures") >= 3;
    eventually("turns fail", failing).await;
    assert_eq!(engine.asked_in_all(), 0);
    testbed.run("alter table elsewhere rename to shedlock").await;
    testbed.reaches(item, "RUNNING").await;
    server.stop().await;
}

#[tokio::test]
async fn recovery_leaves_a_lost_claim_alone_until_it_is_stale() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(20, &wait(600.0)).await;
    let presence = Presence::with_lease("mortal", Duration::from_secs(1));
    let mortal = Mortal::start(&testbed.url, brisk(), presence).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let lost_by = mortal.server.id();
    mortal.kill();
    let survivor = testbed.server(turns()).await;
    let dead = "select count(*) from stationmaster_internal.servers where lease_until <= now()";
    eventually("its heartbeat has run out", async || {
        testbed.number(dead).await == 1
    })
    .await;
    let before = survivor.metric("stationmaster_lock_acquisitions_total");
    let scanned = async || survivor.metric("stationmaster_lock_acquisitions_total") >= before + 6;
    eventually("recovery has looked", scanned).await;
    let holder = "select holder from stationmaster_internal.executions_active";
    let held_by: uuid::Uuid = sqlx::query_scalar(holder)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(held_by, lost_by, "it is not stale yet");

    testbed
        .run("update stationmaster_internal.executions_active set claimed_at = claimed_at - interval '2 hours'")
        .await;
    eventually("it is recovered", async || survivor.open_runs().await.len() == 1).await;
    assert_eq!(testbed.execution(item).await.recoveries, 1);
    survivor.stop().await;
}

#[tokio::test]
async fn recovery_skips_when_its_lock_is_taken() {
    let testbed = Testbed::new().await;
    testbed
        .run("insert into shedlock values ('recoverStaleQueueItems', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'java-host');
              insert into stationmaster_internal.servers (id, name, version, engine, engine_up, claiming, lease_until)
              values (gen_random_uuid(), 'dead', '0', 'embedded', true, true, now() - interval '1 hour')")
        .await;
    let settings = exclusive(|exclusive| exclusive.stale_after = MOMENT);
    let server = testbed.server(settings).await;
    let skipped = async || server.metric("stationmaster_lock_acquisitions_skipped_total") >= 3;
    eventually("recoveries are skipped", skipped).await;
    assert_eq!(
        testbed.count("servers").await,
        2,
        "nobody has buried the dead one"
    );
    testbed
        .run("update shedlock set lock_until = timezone('utc', now()) where locked_by = 'java-host'")
        .await;
    eventually("the dead one is buried", async || {
        testbed.count("servers").await == 1
    })
    .await;
    server.stop().await;
}
