//! Recovery: what a dead server held comes back and is run; what kills servers is put aside.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Connection as _, Executor as _, PgConnection};
use stationmaster_core::engine::{CloseStatus, Engine};
use stationmaster_core::executions::{Settings, inspect};
use stationmaster_core::id::{ExecutionId, ItemId};
use stationmaster_core::presence;
use uuid::Uuid;

use crate::common::counting::{misplaced_items, peaks, wrong_counters};
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::server::Mortal;
use crate::common::{NOOP, Server, Testbed, brisk, eventually, wait, within, woken_only};

/// A server that was there a minute ago and has not been heard of since.
async fn dead_server(testbed: &Testbed) -> Uuid {
    let id = Uuid::now_v7();
    let query = "insert into stationmaster_internal.servers (id, name, version, engine, engine_up, claiming, seen_at, lease_until)
                 values ($1, 'dead', '0', 'embedded', true, true, now() - interval '1 min', now() - interval '50 s')";
    sqlx::query(query).bind(id).execute(testbed.pool()).await.unwrap();
    id
}

/// Puts a waiting item into a server's hands, as its claim would have. Answers the execution.
async fn claimed_by(
    testbed: &Testbed,
    item: ItemId,
    holder: Uuid,
    recoveries: i32,
    lease: &str,
) -> ExecutionId {
    let query = "
        with taken as (delete from stationmaster_internal.queue_pending where item_id = $1 returning *),
        counted as (update stationmaster_internal.workspace_capacity c set active = active + 1
                    from taken where c.workspace_id = taken.workspace_id)
        insert into stationmaster_internal.executions_active
            (execution_id, item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, state,
             holder, token, lease_until, engine, engine_id, attempts, recoveries, claimed_at)
        select $2, item_id, seq, rank, workspace_id, workflow_definition_id, workflow_definition_version_id, 'STARTING',
               $3, nextval('stationmaster_internal.claim_token'), now() + $5::interval, 'embedded', 1, attempts, $4, now() - interval '1 min'
        from taken";
    let execution = ExecutionId::new();
    let query = sqlx::query(query)
        .bind(item)
        .bind(execution)
        .bind(holder)
        .bind(recoveries)
        .bind(lease);
    assert_eq!(query.execute(testbed.pool()).await.unwrap().rows_affected(), 1);
    execution
}

async fn is_running(testbed: &Testbed, execution: ExecutionId) {
    let change = "update stationmaster_internal.executions_active
                  set state = 'RUNNING', lease_until = null, dispatched_at = now() - interval '50 s', run_id = 'r'
                  where execution_id = $1";
    sqlx::query(change)
        .bind(execution)
        .execute(testbed.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn what_a_dead_server_held_is_run_under_the_same_execution_ids() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let dead = dead_server(&testbed).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    // Both hold their leases for long; it is the server's heartbeat that has run out.
    let starting = claimed_by(&testbed, items[0], dead, 0, "1 hour").await;
    let running = claimed_by(&testbed, items[1], dead, 0, "1 hour").await;
    is_running(&testbed, running).await;

    let server = testbed.server(woken_only()).await;
    for item in &items {
        testbed.reaches(*item, "COMPLETED").await;
    }
    for (item, execution) in [(items[0], starting), (items[1], running)] {
        let ended = testbed.execution(item).await;
        assert_eq!((ended.id, ended.recoveries, ended.attempts), (execution.0, 1, 0));
    }
    assert_eq!(testbed.execution(items[2]).await.recoveries, 0);
    // What the lost server did is told as its own, and once.
    let (lost, own) = (dead.to_string(), server.id().to_string());
    let of_starting = ["claimed", "recovered", "claimed", "dispatched", "completed"];
    let of_running = [
        "claimed",
        "dispatched",
        "recovered",
        "claimed",
        "dispatched",
        "completed",
    ];
    for (item, steps) in [(items[0], &of_starting[..]), (items[1], &of_running)] {
        let mut told = inspect::history(&testbed.database, item).await.unwrap();
        told.retain(|step| step.event != "enqueued");
        let events: Vec<&str> = told.iter().map(|step| step.event.as_str()).collect();
        assert_eq!(events, steps, "{told:?}");
        let recovered = events.iter().position(|event| *event == "recovered").unwrap();
        assert!(
            told[..recovered].iter().all(|step| step.actor == lost),
            "{told:?}"
        );
        assert_eq!(told[recovered + 1].actor, own, "{told:?}");
    }
    eventually("the dead server is forgotten", async || {
        testbed.count("servers").await == 1
    })
    .await;
    assert_eq!(server.metric("queue_stale_recovery_count"), 2);
    assert_eq!(wrong_counters(&testbed).await, []);
    assert_eq!(misplaced_items(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn a_claim_whose_own_lease_ran_out_is_recovered_although_its_server_lives() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    let alive = dead_server(&testbed).await;
    testbed
        .run("update stationmaster_internal.servers set lease_until = now() + interval '1 hour'")
        .await;
    claimed_by(&testbed, item, alive, 0, "-1 s").await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "COMPLETED").await;
    assert_eq!(
        testbed.count("servers").await,
        2,
        "the server itself is left alone"
    );
    server.stop().await;
}

#[tokio::test]
async fn what_a_living_server_holds_is_left_alone() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let items = testbed.enqueue_many(tenant, 2).await;
    let alive = dead_server(&testbed).await;
    testbed
        .run("update stationmaster_internal.servers set lease_until = now() + interval '1 hour'")
        .await;
    let held = claimed_by(&testbed, items[0], alive, 0, "1 hour").await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[1], "COMPLETED").await;
    let holder = "select holder from stationmaster_internal.executions_active where execution_id = $1";
    let holder: Uuid = sqlx::query_scalar(holder)
        .bind(held)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(holder, alive);
    server.stop().await;
}

#[tokio::test]
async fn an_item_that_was_lost_too_often_is_put_aside_and_others_are_not() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(3, NOOP).await;
    let dead = dead_server(&testbed).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    let settings = Settings {
        max_recoveries: 4,
        ..brisk()
    };
    let poison = claimed_by(&testbed, items[0], dead, 3, "-1 s").await;
    let nearly = claimed_by(&testbed, items[1], dead, 2, "-1 s").await;
    // Backing off is for those lost before; the test does not wait for it.
    let server = testbed.server(settings).await;
    testbed.reaches(items[0], "FAILED").await;
    let ended = testbed.execution_by_id(poison).await;
    assert_eq!(ended.reason.as_deref(), Some("quarantined"));
    assert!(
        testbed
            .item(items[0])
            .await
            .last_error
            .unwrap()
            .contains("4 servers were lost")
    );
    assert_eq!(testbed.status(items[0]).await, "FAILED");

    testbed.reaches(items[2], "COMPLETED").await;
    testbed.reaches(items[1], "COMPLETED").await;
    let ended = testbed.execution_by_id(nearly).await;
    assert_eq!(
        (ended.recoveries, ended.attempts),
        (3, 0),
        "recoveries are no attempts"
    );
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

#[tokio::test]
async fn an_item_put_aside_can_be_retried_with_a_clean_record() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let dead = dead_server(&testbed).await;
    let item = testbed.enqueue(tenant).await;
    claimed_by(&testbed, item, dead, 9, "-1 s").await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(item, "FAILED").await;
    stationmaster_core::executions::operate::retry(&testbed.database, item, "alice")
        .await
        .unwrap();
    testbed.reaches(item, "COMPLETED").await;
    assert_eq!(testbed.execution(item).await.recoveries, 0);
    server.stop().await;
}

/// Giving a claim back needs the workspace's capacity, which somebody holds for a moment: the next try must come soon
/// after that, not when the adopter's own lease has run out.
#[tokio::test]
async fn a_recovery_that_meets_a_locked_workspace_is_tried_again_soon() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let dead = dead_server(&testbed).await;
    let item = testbed.enqueue(tenant).await;
    claimed_by(&testbed, item, dead, 0, "-1 s").await;
    let mut connection = testbed.connection().await;
    let mut hold = connection.begin().await.unwrap();
    hold.execute("select from stationmaster_internal.workspace_capacity for update")
        .await
        .unwrap();
    let server = testbed.server(brisk()).await;
    let adopted = "select count(*) from stationmaster_internal.executions_active a join stationmaster_internal.servers s on s.id = a.holder
                   where s.name = 'test'";
    eventually("somebody has adopted it", async || {
        testbed.number(adopted).await == 1
    })
    .await;
    eventually("the recovery has been counted", async || {
        server.metric("queue_stale_recovery_count") >= 1
    })
    .await;
    hold.rollback().await.unwrap();
    let what = "the recovered item is done";
    within(Duration::from_secs(5), what, async || {
        testbed.outcome(item).await == "COMPLETED"
    })
    .await;
    server.stop().await;
}

/// A run on an engine of its own survives the server that started it; only what is in doubt is asked about.
#[tokio::test]
async fn the_engine_is_asked_before_a_lost_claim_is_given_back() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(5, NOOP).await;
    let dead = dead_server(&testbed).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    let mut lost = Vec::new();
    for item in &items {
        lost.push(claimed_by(&testbed, *item, dead, 0, "-1 s").await);
    }
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.begin(lost[0]);
    engine.begin(lost[1]);
    engine.close(lost[1], CloseStatus::Failed);
    let server = Server::start_outside(&testbed.url, brisk(), Arc::clone(&engine) as Arc<dyn Engine>).await;
    for (item, status) in items.iter().zip(["RUNNING", "FAILED", "RUNNING"]) {
        testbed.reaches(*item, status).await;
    }
    assert_eq!(
        [
            engine.asked(lost[0]),
            engine.asked(lost[1]),
            engine.asked(lost[2])
        ],
        [0, 0, 1]
    );
    for execution in &lost[..2] {
        assert_eq!(
            testbed.execution_by_id(*execution).await.recoveries,
            0,
            "it was not lost"
        );
        assert_eq!(engine.begun(*execution), 1);
    }
    assert_eq!(engine.begun(lost[2]), 1);
    for item in &items[..2] {
        let told = inspect::history(&testbed.database, *item).await.unwrap();
        let claims: Vec<&str> = told
            .iter()
            .filter(|step| step.event == "claimed")
            .map(|step| step.actor.as_str())
            .collect();
        assert_eq!(
            claims,
            [dead.to_string()],
            "the claim was the lost server's: {told:?}"
        );
    }
    server.stop().await;
}

/// While the engine does not answer, a lost claim keeps its slot and its id: it may well be running.
#[tokio::test]
async fn a_lost_claim_stays_in_doubt_while_the_engine_is_away() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let dead = dead_server(&testbed).await;
    let item = testbed.enqueue(tenant).await;
    let lost = claimed_by(&testbed, item, dead, 0, "-1 s").await;
    let engine = ScriptedEngine::new(Mood::Away);
    engine.begin(lost);
    let settings = Settings {
        claim_lease: Duration::from_millis(500),
        ..brisk()
    };
    let server = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let adopted = "select count(*) from stationmaster_internal.executions_active a join stationmaster_internal.servers s on s.id = a.holder
                   where s.name = 'test'";
    eventually("somebody looks after it", async || {
        testbed.number(adopted).await == 1
    })
    .await;
    assert_eq!(testbed.status(item).await, "CLAIMED");
    engine.feel(Mood::Willing);
    testbed.reaches(item, "RUNNING").await;
    assert_eq!((engine.begun(lost), engine.asked(lost)), (1, 0));
    server.stop().await;
}

#[tokio::test]
async fn a_server_whose_lease_ran_out_comes_back_under_a_new_id() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(brisk()).await;
    let old = server.id();
    testbed
        .pool()
        .execute("update stationmaster_internal.servers set lease_until = now() - interval '1 s'")
        .await
        .unwrap();
    eventually("it has a new id", async || server.id() != old).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "COMPLETED").await;
    let known = async || presence::list(&testbed.database, false).await.unwrap();
    eventually("the old one is forgotten", async || {
        known().await.iter().all(|known| known.id != old)
    })
    .await;
    server.stop().await;
}

/// Whoever finds a lease that has run out takes the row away, and may do so before the server itself has noticed anything.
#[tokio::test]
async fn a_server_whose_row_was_taken_away_comes_back_under_a_new_id() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(brisk()).await;
    let old = server.id();
    testbed
        .pool()
        .execute("delete from stationmaster_internal.servers")
        .await
        .unwrap();
    eventually("it has a new id", async || server.id() != old).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

/// A claim that was on its way while the lease ran out is made under the old id, when nobody looks after that id any more: the
/// server itself gives it back, and it does not wait until its lease ends.
#[tokio::test]
async fn what_was_claimed_under_an_id_that_has_lapsed_is_given_back_at_once() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(brisk()).await;
    let old = server.id();
    let mut application = PgConnection::connect(&testbed.url).await.unwrap();
    let mut enqueue = application.begin().await.unwrap();
    let looks = "lock table stationmaster_internal.queue_pending in access exclusive mode";
    enqueue.execute(looks).await.unwrap();
    eventually("a claim is on its way", async || {
        let waiting = "select count(*) from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock' and query like '%as hinted%'";
        testbed.number(waiting).await > 0
    })
    .await;
    testbed
        .run("update stationmaster_internal.servers set lease_until = now() - interval '1 s'")
        .await;
    eventually("it has a new id", async || server.id() != old).await;
    // As recovery does, which may wait for the same lock here.
    testbed
        .run("delete from stationmaster_internal.servers where lease_until <= now()")
        .await;
    let item: Uuid = sqlx::query_scalar("select stationmaster.enqueue_execution($1, $2)")
        .bind(tenant.0)
        .bind(tenant.1)
        .fetch_one(&mut *enqueue)
        .await
        .unwrap();
    enqueue.commit().await.unwrap();
    within(Duration::from_secs(10), "it has run", async || {
        testbed.outcome(ItemId(item)).await == "COMPLETED"
    })
    .await;
    server.stop().await;
}

/// Servers are killed all the time; whatever each had in its hands comes back, and the limit holds throughout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_kills_loses_nothing_and_runs_nothing_beyond_the_limit() {
    let testbed = Testbed::new().await;
    let (quick, slow) = (
        testbed.tenant(8, NOOP).await,
        testbed.tenant(4, &wait(0.05)).await,
    );
    let settings = Settings {
        batch_size: 5,
        max_recoveries: 1000,
        claim_lease: Duration::from_secs(1),
        ..brisk()
    };
    let mortal = async || {
        let presence = presence::Presence::with_lease("mortal", Duration::from_millis(500));
        Mortal::start(&testbed.url, settings.clone(), presence).await
    };
    let mut servers = vec![mortal().await, mortal().await];
    for round in 0..7 {
        testbed.enqueue_many(quick, 40).await;
        testbed.enqueue_many(slow, 10).await;
        let ended = testbed.count("executions_finished").await;
        eventually("work goes on", async || {
            testbed.count("executions_finished").await > ended + 5
        })
        .await;
        servers.swap_remove(round % 2).kill();
        servers.push(mortal().await);
    }
    eventually("everything has ended", async || {
        testbed.count("executions_finished").await == 350
    })
    .await;
    assert_eq!(misplaced_items(&testbed).await, []);
    assert_eq!(wrong_counters(&testbed).await, []);
    let peaks = peaks(&testbed).await;
    assert!(peaks[&quick.0] <= 8 && peaks[&slow.0] <= 4, "{peaks:?}");
    let strange = "select count(*) from stationmaster_internal.executions_finished where status is distinct from 'COMPLETED'";
    assert_eq!(testbed.number(strange).await, 0);
    let lost = "select count(*) from stationmaster_internal.executions_finished where recoveries > 0";
    assert!(testbed.number(lost).await > 0, "the kills hit nobody");
}

/// A server that is cut off in the middle of a transaction cannot end it, and PostgreSQL does not know that nobody is there.
#[tokio::test]
async fn a_transaction_that_nobody_goes_on_with_does_not_keep_its_locks() {
    let testbed = Testbed::new().await;
    testbed.tenant(1, NOOP).await;
    let lock = "select from stationmaster_internal.workspace_capacity for update";
    let mut abandoned = testbed.pool().begin().await.unwrap();
    sqlx::query(lock).execute(&mut *abandoned).await.unwrap();
    let mut other = testbed.connection().await;
    within(Duration::from_secs(10), "the row is free", async || {
        let lock = "select from stationmaster_internal.workspace_capacity for update nowait";
        sqlx::query(lock).execute(&mut other).await.is_ok()
    })
    .await;
}
