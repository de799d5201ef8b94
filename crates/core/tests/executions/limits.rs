//! I3: active executions never exceed the limit. Seen three ways: by the rows while it happens, by the engines' own
//! record, and exactly, by a sweep over the recorded times.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::catalogue::{self, Plan, WorkspaceChange};
use stationmaster_core::executions::Settings;
use stationmaster_core::id::WorkspaceId;

use crate::common::counting::{EngineSampler, RowSampler, peaks, wrong_counters};
use crate::common::{Server, Testbed, brisk, eventually, wait};

async fn six_servers(testbed: &Testbed) -> Vec<Server> {
    let mut servers = Vec::new();
    for _ in 0..6 {
        // Small batches make many claims, and claims are what might collide.
        servers.push(
            testbed
                .server(Settings {
                    batch_size: 4,
                    ..brisk()
                })
                .await,
        );
    }
    servers
}

async fn active(testbed: &Testbed, workspace: WorkspaceId) -> i64 {
    let query = "select count(*) from stationmaster_internal.executions_active where workspace_id = $1";
    sqlx::query_scalar(query)
        .bind(workspace)
        .fetch_one(testbed.pool())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_claimers_never_exceed_the_limits_of_the_plans() {
    let testbed = Testbed::new().await;
    let servers = six_servers(&testbed).await;
    let mut limits = Vec::new();
    for (plan, limit, items) in [
        ("FREE", 1, 25),
        ("PRO", 5, 100),
        ("ENTERPRISE", 20, 350),
        ("PRO", 5, 100),
    ] {
        let workspace = testbed.workspace_on(plan).await;
        limits.push((workspace, limit));
        let definition = testbed.definition(workspace, &wait(0.02)).await;
        testbed.enqueue_many((workspace, definition), items).await;
    }
    let rows = RowSampler::start(&testbed).await;
    let engines = EngineSampler::start(servers.iter().map(|server| Arc::clone(&server.engine)).collect());
    testbed.finishes(575).await;

    let rows = rows.stop().await;
    assert!(rows.looks > 50, "only {} looks", rows.looks);
    assert_eq!(rows.over, [], "rows over a limit");
    assert_eq!(rows.miscounted, [], "counters that differ from their rows");
    let engines = engines.stop(&testbed).await;
    let exact = peaks(&testbed).await;
    for (workspace, limit) in limits {
        assert!(
            engines[&workspace] <= usize::try_from(limit).unwrap(),
            "the engines ran {}",
            engines[&workspace]
        );
        assert_eq!(exact[&workspace], limit, "full use and no more");
    }
    assert_eq!(wrong_counters(&testbed).await, []);
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lowered_limit_admits_nothing_until_enough_have_ended() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(6, &wait(0.3)).await;
    testbed.enqueue_many((workspace, definition), 12).await;
    let servers = [testbed.server(brisk()).await, testbed.server(brisk()).await];
    eventually("six are active", async || active(&testbed, workspace).await == 6).await;

    testbed.limit(workspace, 2).await;
    let lowered_at: String = sqlx::query_scalar("select clock_timestamp()::text")
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    testbed.finishes(12).await;
    // Whatever was claimed after the change found at most one other active at that very moment.
    let query = "
        select coalesce(max((
            select count(*) from stationmaster_internal.executions_finished o
            where o.execution_id <> f.execution_id and o.claimed_at <= f.claimed_at and o.finished_at > f.claimed_at)), -1)
        from stationmaster_internal.executions_finished f where f.claimed_at > $1::timestamptz";
    let others: i64 = sqlx::query_scalar(query)
        .bind(&lowered_at)
        .fetch_one(testbed.pool())
        .await
        .unwrap();
    assert_eq!(others, 1, "two at once after the change, no more and no less");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn a_raised_limit_takes_effect_at_once() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, &wait(600.0)).await;
    testbed.enqueue_many((workspace, definition), 8).await;
    let server = testbed.server(crate::common::woken_only()).await;
    eventually("one is active", async || active(&testbed, workspace).await == 1).await;
    testbed.limit(workspace, 3).await;
    eventually("three are active", async || {
        active(&testbed, workspace).await == 3
    })
    .await;

    // The way back to the plan's limit, and a change of the plan itself.
    let plan = Plan {
        name: "FREE".to_owned(),
        max_concurrent: 5,
        weight: 1.0,
    };
    catalogue::put_plan(&testbed.database, &plan, None).await.unwrap();
    let change = WorkspaceChange {
        max_concurrent: Some(None),
        ..WorkspaceChange::default()
    };
    testbed.change(workspace, change).await;
    eventually("five are active", async || active(&testbed, workspace).await == 5).await;
    catalogue::put_plan(
        &testbed.database,
        &Plan {
            max_concurrent: 6,
            ..plan
        },
        None,
    )
    .await
    .unwrap();
    eventually("six are active", async || active(&testbed, workspace).await == 6).await;
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}

/// The database's clock, in seconds.
async fn clock(testbed: &Testbed) -> f64 {
    let query = "select extract(epoch from clock_timestamp())::double precision";
    sqlx::query_scalar(query).fetch_one(testbed.pool()).await.unwrap()
}

/// When something was claimed, and how many were active then, with it. An end and a claim in one microsecond: first the end.
async fn at_each_claim(testbed: &Testbed) -> Vec<(f64, i64)> {
    let query = "
        select extract(epoch from c.claimed_at)::double precision, count(*)
        from (select distinct claimed_at from stationmaster_internal.executions_finished) c
        join stationmaster_internal.executions_finished f on f.claimed_at <= c.claimed_at and f.finished_at > c.claimed_at
        group by c.claimed_at order by c.claimed_at";
    sqlx::query_as(query).fetch_all(testbed.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_while_plans_change_all_the_time() {
    const HIGHEST: i32 = 8;
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.tenant(1, &wait(0.01)).await;
    let mut servers = Vec::new();
    for _ in 0..4 {
        servers.push(
            testbed
                .server(Settings {
                    batch_size: 3,
                    ..brisk()
                })
                .await,
        );
    }
    testbed.enqueue_many((workspace, definition), 150).await;
    let rows = RowSampler::start(&testbed).await;
    // Every limit, from when it was asked for until the next one certainly was in force.
    let mut limits: Vec<(f64, f64, i32)> = vec![(0.0, f64::MAX, 1)];
    let change_plans = async {
        let mut limit = 1;
        while testbed.count("executions_finished").await < 150 {
            limit = limit * 5 % (HIGHEST + 1);
            let asked = clock(&testbed).await;
            testbed.limit(workspace, limit.max(1)).await;
            limits.last_mut().unwrap().1 = clock(&testbed).await;
            limits.push((asked, f64::MAX, limit.max(1)));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let patience = tokio::time::timeout(Duration::from_mins(1), change_plans).await;
    assert!(patience.is_ok(), "the queue drains while limits change");

    let rows = rows.stop().await;
    assert_eq!(rows.miscounted, [], "counters that differ from their rows");
    // A limit that was lowered ends nothing, so what counts is the moment of each claim, and the limit that was in force then.
    let mut bound = 0;
    for (at, active) in at_each_claim(&testbed).await {
        let in_force = limits
            .iter()
            .filter(|(from, until, _)| (*from..=*until).contains(&at));
        let allowed = in_force.map(|(_, _, limit)| *limit).max().unwrap();
        assert!(
            active <= i64::from(allowed),
            "{active} at {at}, under a limit of {allowed}"
        );
        bound += usize::from(allowed < HIGHEST && active == i64::from(allowed));
    }
    assert!(bound > 0, "a lower limit was reached");
    let peak = peaks(&testbed).await[&workspace];
    assert!(peak > 1, "the changes were seen");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn a_limit_of_zero_admits_nothing() {
    let testbed = Testbed::new().await;
    let closed = testbed.tenant(0, &wait(0.0)).await;
    let open = testbed.tenant(1, &wait(0.0)).await;
    let waiting = testbed.enqueue(closed).await;
    let server = testbed.server(brisk()).await;
    let other = testbed.enqueue(open).await;
    testbed.reaches(other, "COMPLETED").await;
    assert_eq!(testbed.status(waiting).await, "PENDING");
    testbed.limit(closed.0, 1).await;
    testbed.reaches(waiting, "COMPLETED").await;
    server.stop().await;
}
