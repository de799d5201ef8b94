//! Waking up: work is noticed when it becomes visible, not at the next poll, whatever else is going on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Executor as _, PgConnection};
use stationmaster_core::engine::{CloseStatus, Engine};
use stationmaster_core::executions::Settings;
use stationmaster_core::executions::operate::{self, Complete};
use stationmaster_core::id::{DefinitionId, ExecutionId, ItemId, WorkspaceId};

use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, eventually, wait, within, woken_only};

/// Far below the poll of minutes that would hide a lost wake-up, and enough for a busy machine.
const PROMPT: Duration = Duration::from_secs(15);

async fn is_done(testbed: &Testbed, item: ItemId) -> bool {
    testbed.outcome(item).await == "COMPLETED"
}

/// A transaction that has enqueued and is not committed.
async fn open_enqueue(
    testbed: &Testbed,
    (workspace, definition): (WorkspaceId, DefinitionId),
) -> (PgConnection, ItemId) {
    let mut connection = testbed.connection().await;
    connection.execute("begin").await.unwrap();
    let query = "select stationmaster.enqueue_execution($1, $2)";
    let query = sqlx::query_scalar(query).bind(workspace).bind(definition);
    let item = query.fetch_one(&mut connection).await.unwrap();
    (connection, item)
}

async fn nobody_is_ready(testbed: &Testbed) {
    let query =
        "select (select count(*) from stationmaster_internal.workspace_capacity where ready or active > 0)
                      + (select count(*) from stationmaster_internal.queue_hints)
                      + (select count(*) from stationmaster_internal.queue_pending where unseen)";
    eventually("the servers have nothing left to do", async || {
        testbed.number(query).await == 0
    })
    .await;
}

/// The servers have nothing left to do; after the last round for so long that whoever stayed attentive is asleep.
async fn rest(testbed: &Testbed, is_last_round: bool) {
    nobody_is_ready(testbed).await;
    if is_last_round {
        tokio::time::sleep(Duration::from_millis(1600)).await;
    }
}

#[tokio::test]
async fn an_idle_server_starts_an_item_at_once() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(woken_only()).await;
    for round in 0..25 {
        rest(&testbed, round == 24).await;
        let item = testbed.enqueue(tenant).await;
        within(PROMPT, "an item of an idle system is done", async || {
            is_done(&testbed, item).await
        })
        .await;
    }
    server.stop().await;
}

#[tokio::test]
async fn an_enqueue_that_is_committed_late_is_noticed_then() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let server = testbed.server(woken_only()).await;
    for round in 0..5 {
        let (mut open, late) = open_enqueue(&testbed, tenant).await;
        let others = testbed.enqueue_many(tenant, 3).await;
        within(PROMPT, "the others are done", async || {
            is_done(&testbed, others[2]).await
        })
        .await;
        rest(&testbed, round == 4).await;
        open.execute("commit").await.unwrap();
        within(PROMPT, "the late item is done after its commit", async || {
            is_done(&testbed, late).await
        })
        .await;
    }
    server.stop().await;
}

/// When it enqueued, the workspace was full and everybody knew of its work; when it commits, everybody sleeps.
#[tokio::test]
async fn an_enqueue_into_a_full_workspace_that_is_committed_late_is_noticed_then() {
    let testbed = Testbed::new().await;
    // Long enough for it to be seen at work, also by a slow machine.
    let tenant = testbed.tenant(1, &wait(0.5)).await;
    let server = testbed.server(woken_only()).await;
    for round in 0..3 {
        let others = testbed.enqueue_many(tenant, 2).await;
        testbed.reaches(others[0], "RUNNING").await;
        let (mut open, late) = open_enqueue(&testbed, tenant).await;
        eventually("the others are done", async || is_done(&testbed, others[1]).await).await;
        rest(&testbed, round == 2).await;
        open.execute("commit").await.unwrap();
        within(PROMPT, "the late item is done after its commit", async || {
            is_done(&testbed, late).await
        })
        .await;
    }
    server.stop().await;
}

#[tokio::test]
async fn an_enqueue_that_is_not_committed_does_not_keep_others_from_being_noticed() {
    let testbed = Testbed::new().await;
    let (slow, quick) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, NOOP).await);
    let server = testbed.server(woken_only()).await;
    for round in 0..3 {
        rest(&testbed, false).await;
        let (mut open, late) = open_enqueue(&testbed, slow).await;
        let item = testbed.enqueue(quick).await;
        let what = "another's item is done while an enqueuing transaction is open";
        within(PROMPT, what, async || is_done(&testbed, item).await).await;
        rest(&testbed, round == 2).await;
        open.execute("commit").await.unwrap();
        within(PROMPT, "the late item is done after its commit", async || {
            is_done(&testbed, late).await
        })
        .await;
    }
    server.stop().await;
}

/// Of two that enqueue at once only one needs to wake the servers, but then it must be the one that commits last.
#[tokio::test]
async fn of_two_open_enqueues_the_one_committed_last_is_noticed_too() {
    let testbed = Testbed::new().await;
    let (one, other) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, NOOP).await);
    let server = testbed.server(woken_only()).await;
    for round in 0..3 {
        rest(&testbed, false).await;
        let (mut first, early) = open_enqueue(&testbed, one).await;
        let (mut second, late) = open_enqueue(&testbed, other).await;
        first.execute("commit").await.unwrap();
        within(PROMPT, "the first is done", async || {
            is_done(&testbed, early).await
        })
        .await;
        rest(&testbed, round == 2).await;
        second.execute("commit").await.unwrap();
        within(PROMPT, "the second is done", async || {
            is_done(&testbed, late).await
        })
        .await;
    }
    server.stop().await;
}

#[tokio::test]
async fn many_late_commits_among_busy_servers_are_all_noticed() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(3, NOOP).await;
    let servers = [
        testbed.server(woken_only()).await,
        testbed.server(woken_only()).await,
    ];
    for round in 0..16 {
        let (mut open, late) = open_enqueue(&testbed, tenant).await;
        testbed.enqueue_many(tenant, 1 + round % 4).await;
        // Sometimes in the middle of the work, sometimes after it.
        if round % 2 == 0 {
            let pending = async || testbed.count("queue_pending").await == 0;
            within(PROMPT, "the others have left the queue", pending).await;
        }
        open.execute("commit").await.unwrap();
        within(PROMPT, "the late item is done after its commit", async || {
            is_done(&testbed, late).await
        })
        .await;
    }
    for server in servers {
        server.stop().await;
    }
}

/// After some work a server may stay attentive for a while; there must be no moment between that and sleep at which an
/// item goes unnoticed.
#[tokio::test]
async fn there_is_no_blind_moment_between_attention_and_sleep() {
    let after = async |millis: u64| {
        let testbed = Testbed::new().await;
        let tenant = testbed.tenant(1, NOOP).await;
        let server = testbed.server(woken_only()).await;
        let first = testbed.enqueue(tenant).await;
        within(PROMPT, "the first is done", async || {
            is_done(&testbed, first).await
        })
        .await;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let second = testbed.enqueue(tenant).await;
        let what = format!("an item enqueued {millis} ms after the last one is done");
        within(PROMPT, &what, async || is_done(&testbed, second).await).await;
        server.stop().await;
    };
    let moments = [200, 700, 950, 1000, 1050, 1150, 1250, 1300, 1350, 1500];
    futures::future::join_all(moments.map(after)).await;
}

/// A person ends an execution; the slot is free, and the next item is started at once, although other workspaces have
/// come much further in the meantime.
#[tokio::test]
async fn a_slot_freed_by_a_person_is_used_at_once() {
    let testbed = Testbed::new().await;
    let (full, busy) = (
        testbed.tenant(1, &wait(600.0)).await,
        testbed.tenant(500, NOOP).await,
    );
    let server = testbed.server(woken_only()).await;
    let mut items = testbed.enqueue_many(full, 8).await.into_iter();
    let mut running = items.next().unwrap();
    testbed.reaches(running, "RUNNING").await;
    for next in items {
        let others = testbed.enqueue_many(busy, 30).await;
        eventually("the others are done", async || {
            is_done(&testbed, others[29]).await
        })
        .await;
        let execution = testbed.execution(running).await.id;
        let completion = Complete {
            force: false,
            status: CloseStatus::Completed,
            output: None,
            error: None,
        };
        operate::complete(&testbed.database, ExecutionId(execution), completion, "tester")
            .await
            .unwrap();
        let what = "the next item is started in the freed slot";
        within(PROMPT, what, async || testbed.outcome(next).await == "RUNNING").await;
        running = next;
    }
    server.stop().await;
}

/// A server that is busy may tell enqueuers that they need not ring. When it leaves, that must not hold any more.
#[tokio::test]
async fn a_server_that_leaves_does_not_leave_the_others_asleep() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    for _ in 0..3 {
        let busy = testbed.server(woken_only()).await;
        let item = testbed.enqueue(tenant).await;
        within(PROMPT, "the first item is done", async || {
            is_done(&testbed, item).await
        })
        .await;
        // It has just come, found nothing to do, and sleeps.
        let idle = testbed.server(woken_only()).await;
        busy.stop().await;
        let item = testbed.enqueue(tenant).await;
        let what = "the next item is done by the one that stayed";
        within(PROMPT, what, async || is_done(&testbed, item).await).await;
        idle.stop().await;
    }
}

/// The engine does not answer one server, which can take nothing more for now. Whatever it has told the enqueuers, the
/// others must notice new work.
#[tokio::test]
async fn a_server_that_is_stuck_does_not_leave_the_others_asleep() {
    let testbed = Testbed::new().await;
    let (slow, quick) = (testbed.tenant(2, NOOP).await, testbed.tenant(10, NOOP).await);
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let settings = Settings {
        batch_size: 1,
        ..woken_only()
    };
    let stuck = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    testbed.enqueue_many(slow, 2).await;
    eventually("its hands are full", async || engine.asked_in_all() == 2).await;
    let idle = testbed.server(woken_only()).await;
    // Long enough to find that there is nothing to do, and short enough for the other's word still to hold.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let item = testbed.enqueue(quick).await;
    within(PROMPT, "the item is done by the idle server", async || {
        is_done(&testbed, item).await
    })
    .await;
    engine.let_go();
    stuck.stop().await;
    idle.stop().await;
}

/// Every ring takes a lock of the whole instance, so a queue that nobody serves is rung for once and not by every enqueue.
#[tokio::test]
async fn what_waits_for_a_server_is_rung_for_once() {
    let testbed = Testbed::new().await;
    let (one, other) = (testbed.tenant(1, NOOP).await, testbed.tenant(1, NOOP).await);
    let mut ear = sqlx::postgres::PgListener::connect_with(testbed.pool())
        .await
        .unwrap();
    ear.listen("stationmaster").await.unwrap();
    testbed.enqueue(one).await;
    let rung = tokio::time::timeout(PROMPT, ear.recv()).await.unwrap().unwrap();
    assert_eq!(rung.payload(), "queue");
    for _ in 0..20 {
        testbed.enqueue(one).await;
        testbed.enqueue(other).await;
    }
    testbed.run("notify stationmaster, 'the end'").await;
    let next = tokio::time::timeout(PROMPT, ear.recv()).await.unwrap().unwrap();
    assert_eq!(next.payload(), "the end", "nothing was rung in between");
    let server = testbed.server(woken_only()).await;
    testbed.finishes(41).await;
    rest(&testbed, true).await;
    testbed.enqueue(other).await;
    testbed.finishes(42).await;
    server.stop().await;
}

/// It does not ring, because of another that waits; and that one is taken before it is committed.
#[tokio::test]
async fn an_enqueue_that_did_not_ring_because_of_another_is_noticed_after_that_one_is_taken() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    for _ in 0..3 {
        let first = testbed.enqueue(tenant).await;
        let (mut open, late) = open_enqueue(&testbed, tenant).await;
        // What is decided at the commit is decided here.
        open.execute("set constraints all immediate").await.unwrap();
        let server = testbed.server(woken_only()).await;
        within(PROMPT, "the first is done", async || {
            is_done(&testbed, first).await
        })
        .await;
        open.execute("commit").await.unwrap();
        within(PROMPT, "the other is done", async || {
            is_done(&testbed, late).await
        })
        .await;
        server.stop().await;
    }
}

/// They did not ring, because the server watched; when they commit it sleeps. The sweep would find each of them only after ten seconds.
#[tokio::test]
async fn enqueues_that_were_open_when_the_watch_ended_are_noticed_soon_after_their_commits() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(woken_only()).await;
    let mut waited = Duration::ZERO;
    for _ in 0..4 {
        let first = testbed.enqueue(tenant).await;
        eventually("the first is done", async || is_done(&testbed, first).await).await;
        let (mut open, late) = open_enqueue(&testbed, tenant).await;
        rest(&testbed, true).await;
        open.execute("commit").await.unwrap();
        let committed = Instant::now();
        eventually("the late one is done", async || is_done(&testbed, late).await).await;
        waited += committed.elapsed();
    }
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    server.stop().await;
}
