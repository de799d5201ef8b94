//! Why an item waits: the first obstacle on its way, in the words of the product.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stationmaster_core::executions::Settings;
use stationmaster_core::executions::enqueue::Enqueue;
use stationmaster_core::executions::inspect::{self, Waiting};
use stationmaster_core::id::ItemId;
use stationmaster_core::retry::Backoff;
use uuid::Uuid;

use crate::common::{NOOP, Testbed, UNKNOWN_TYPE, brisk, eventually, wait};

async fn why(testbed: &Testbed, item: ItemId) -> Option<Waiting> {
    whole(testbed, item).await.first().cloned()
}

/// Everything that stands in its way. What a list tells of it is the first.
async fn whole(testbed: &Testbed, item: ItemId) -> Vec<Waiting> {
    let wait = inspect::waiting(&testbed.database, item).await.unwrap();
    let reasons = wait.map(|wait| wait.reasons).unwrap_or_default();
    if let Some(listed) = inspect::item(&testbed.database, item).await.unwrap() {
        let word = |waiting| {
            serde_json::to_value(waiting).unwrap()["reason"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            listed.waits_for.map(|listed| listed.to_string()),
            reasons.first().map(word),
            "{reasons:?}"
        );
    }
    reasons
}

/// The row of a server that is alive; nothing runs behind it, so nothing is claimed.
async fn server_row(testbed: &Testbed, engine_up: bool, claiming: bool) -> Uuid {
    let id = Uuid::now_v7();
    let query =
        "insert into stationmaster_internal.servers (id, name, version, engine, engine_up, claiming, lease_until)
                 values ($1, 'row', '0', 'embedded', $2, $3, now() + interval '1 hour')";
    sqlx::query(query)
        .bind(id)
        .bind(engine_up)
        .bind(claiming)
        .execute(testbed.pool())
        .await
        .unwrap();
    id
}

#[tokio::test]
async fn an_item_with_a_time_of_its_own_is_scheduled_until_then() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let run_at = Timestamp::now() + SignedDuration::from_hours(1);
    let item = testbed
        .ask(Enqueue {
            run_at: Some(run_at),
            ..Enqueue::new(tenant.0.0, tenant.1.0)
        })
        .await;
    let Some(Waiting::Scheduled { until: Some(until) }) = why(&testbed, item).await else {
        panic!("{:?}", why(&testbed, item).await)
    };
    assert!(until.duration_since(run_at).abs() < SignedDuration::from_millis(1));
}

#[tokio::test]
async fn a_refused_item_backs_off_and_tells_the_error() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, UNKNOWN_TYPE).await;
    let item = testbed.enqueue(tenant).await;
    let retry = Backoff {
        base: Duration::from_hours(100),
        cap: Duration::from_hours(100),
    };
    let server = testbed.server(Settings { retry, ..brisk() }).await;
    testbed.reaches(item, "PENDING").await;
    let waiting = why(&testbed, item).await;
    let Some(Waiting::BackingOff {
        until: Some(until),
        error: Some(error),
    }) = &waiting
    else {
        panic!("{waiting:?}")
    };
    assert!(*until > Timestamp::now());
    assert!(error.contains("from-another-world"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn obstacles_are_told_in_the_order_in_which_they_stand_in_the_way() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(0, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    testbed.pause(tenant.0, true).await;
    testbed.pause_definition(tenant, true).await;
    let limit = Waiting::Limit {
        limit: 0,
        active: 0,
        holders: Vec::new(),
        position: 1,
    };
    let all = [
        Waiting::WorkspacePaused,
        Waiting::DefinitionPaused,
        Waiting::NoServer,
        limit.clone(),
    ];
    assert_eq!(whole(&testbed, item).await, all);
    testbed.pause(tenant.0, false).await;
    assert_eq!(why(&testbed, item).await, Some(Waiting::DefinitionPaused));
    testbed.pause_definition(tenant, false).await;
    assert_eq!(why(&testbed, item).await, Some(Waiting::NoServer));
    let leaving = server_row(&testbed, true, false).await;
    assert_eq!(
        why(&testbed, item).await,
        Some(Waiting::NoServer),
        "{leaving} takes no new work"
    );
    let blind = server_row(&testbed, false, true).await;
    testbed
        .run(&format!(
            "delete from stationmaster_internal.servers where id = '{leaving}'"
        ))
        .await;
    assert_eq!(
        why(&testbed, item).await,
        Some(Waiting::EngineDown),
        "{blind} cannot reach its engine"
    );
    server_row(&testbed, true, true).await;
    assert_eq!(why(&testbed, item).await, Some(limit));
    testbed.limit(tenant.0, 1).await;
    assert_eq!(why(&testbed, item).await, Some(Waiting::Queued { position: 1 }));
}

/// A server that takes no new work does not help, even when its engine answers.
#[tokio::test]
async fn the_engine_is_down_when_no_server_that_claims_can_reach_it() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    server_row(&testbed, false, true).await;
    server_row(&testbed, true, false).await;
    assert_eq!(why(&testbed, item).await, Some(Waiting::EngineDown));
}

#[tokio::test]
async fn a_server_whose_lease_has_run_out_is_no_server() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    server_row(&testbed, true, true).await;
    testbed
        .run("update stationmaster_internal.servers set lease_until = now() - interval '1 s'")
        .await;
    assert_eq!(why(&testbed, item).await, Some(Waiting::NoServer));
}

#[tokio::test]
async fn at_the_limit_the_holders_and_the_position_are_told() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, &wait(600.0)).await;
    let items = testbed.enqueue_many(tenant, 5).await;
    let server = testbed.server(brisk()).await;
    testbed.reaches(items[0], "RUNNING").await;
    testbed.reaches(items[1], "RUNNING").await;
    // A server that has just started has not yet said that it reaches its engine.
    let told = async || !matches!(why(&testbed, items[2]).await, Some(Waiting::EngineDown));
    eventually("the engine is known to be up", told).await;
    let mut holders = vec![
        testbed.execution(items[0]).await.id,
        testbed.execution(items[1]).await.id,
    ];
    holders.sort();
    for (item, place) in [(items[2], 1), (items[4], 3)] {
        let Some(Waiting::Limit {
            limit,
            active,
            holders: mut told,
            position,
        }) = why(&testbed, item).await
        else {
            panic!("{:?}", why(&testbed, item).await)
        };
        told.sort();
        assert_eq!((limit, active, position), (2, 2, place));
        assert_eq!(told, holders);
    }
    let wait = inspect::waiting(&testbed.database, items[4])
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        wait.reasons.last(),
        Some(&Waiting::Queued { position: 3 }),
        "others go first"
    );
    assert_eq!(wait.position, Some(3));
    assert_eq!(wait.expected, None, "nothing has ended yet, so nothing is known");
    let told: Vec<Uuid> = wait.holders.iter().map(|holder| holder.queue_item_id).collect();
    assert_eq!(told, [items[0].0, items[1].0], "the longest first");
    let holder = &wait.holders[0];
    assert!(holder.workflow.is_some() && holder.server.is_some(), "{holder:?}");
    assert!(holder.since <= Timestamp::now(), "{holder:?}");

    assert_eq!(why(&testbed, items[0]).await, None, "it does not wait");
    assert_eq!(why(&testbed, ItemId::new()).await, None);
    server.stop().await;
}

#[tokio::test]
async fn a_server_whose_engine_is_away_says_so_in_its_row() {
    use crate::common::scripted::{Mood, ScriptedEngine};
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Away);
    let server = crate::common::Server::start_outside(&testbed.url, brisk(), engine.clone()).await;
    let item = testbed.enqueue(tenant).await;
    eventually("the engine is known to be down", async || {
        why(&testbed, item).await == Some(Waiting::EngineDown)
    })
    .await;
    // Since when is told as well, and does not move while it is away.
    let away = async || {
        let servers = stationmaster_core::presence::list(&testbed.database, false)
            .await
            .unwrap();
        servers[0].engine_away_at
    };
    let since = away().await.expect("it is away");
    let beats = "select extract(epoch from max(seen_at))::bigint from stationmaster_internal.servers";
    let seen = testbed.number(beats).await;
    eventually("it has sent another heartbeat", async || {
        testbed.number(beats).await > seen
    })
    .await;
    assert_eq!(away().await, Some(since));
    engine.feel(Mood::Willing);
    testbed.reaches(item, "RUNNING").await;
    eventually("it is back", async || away().await.is_none()).await;
    server.stop().await;
}

/// Four ended, each after ten seconds with a slot; two slots.
#[tokio::test]
async fn a_start_is_expected_by_what_the_last_executions_took() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let (workspace, definition) = tenant;
    server_row(&testbed, true, true).await;
    let items = testbed.enqueue_many(tenant, 5).await;
    let expected = async |item| {
        inspect::waiting(&testbed.database, item)
            .await
            .unwrap()
            .unwrap()
            .expected
    };
    let free = expected(items[1]).await.unwrap();
    assert!(
        free.at.duration_since(Timestamp::now()).abs() < SignedDuration::from_mins(1),
        "{free:?}"
    );
    assert_eq!(expected(items[2]).await, None, "nothing has ended yet");
    testbed
        .run(&format!(
            "insert into stationmaster_internal.executions_finished (execution_id, item_id, workspace_id, workflow_definition_id, item_status,
                 status, attempts, recoveries, claimed_at, dispatched_at, finished_at, finished_by)
             select id, id, '{workspace}', '{definition}', 'DISPATCHED', 'COMPLETED', 1, 0, now() - interval '1 hour 10 s', now() - interval '1 hour 9 s',
                    now() - interval '1 hour', 'a test'
             from (select stationmaster.new_id() as id from generate_series(1, 4)) ended"
        ))
        .await;
    let begins = Timestamp::now();
    let later = expected(items[4]).await.unwrap();
    // Three more than there are slots, ten seconds each, two at once.
    let wait = later.at.duration_since(begins).as_secs_f64();
    assert!((15.0..60.0).contains(&wait), "{wait}: {later:?}");
    assert!(
        later.how.contains("10.0 s") && later.how.contains("last 4 executions"),
        "{later:?}"
    );
    testbed.pause(workspace, true).await;
    assert_eq!(expected(items[4]).await, None, "nobody knows when it is resumed");
}
