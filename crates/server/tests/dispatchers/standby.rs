//! Healthy servers that come and go: nobody ends another's run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::line::{DISPATCHER, Line};
use crate::support::{command, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn healthy_servers_that_boot_in_turn_never_end_each_others_run_and_the_end_of_a_standby_changes_nothing()
 {
    let line = Line::new().await;
    let owner = line.owner().await;
    let first = line.row().await;
    line.send(20).await;
    line.until_routed(20).await;
    for _ in 0..3 {
        let mut standby = line.launch.start_ready().await;
        line.until_registered(2).await;
        line.send(20).await;
        standby.signal(Signal::SIGTERM);
        assert_eq!(standby.ended().await.0.code(), Some(0), "{}", standby.log());
        line.until_registered(1).await;
    }
    line.until_routed(80).await;
    assert_eq!(line.row().await, first, "same owner, same epoch, same run");
    assert_eq!(line.story().await, ["fresh"]);
    assert_eq!(line.runs().await.len(), 1);
    let show = || command_on(&line, &["dispatchers", "show", DISPATCHER]);
    eventually("the run itself tells of all of them", async || {
        show()["run"]["routed"] == 80
    })
    .await;
    let shown = show();
    assert_eq!(
        (shown["state"].as_str(), shown["run"]["epoch"].as_i64()),
        (Some("owned"), Some(1))
    );
    drop(owner);
}

/// Sends some every few milliseconds until told to stop; how many.
async fn keep_sending(line: &Line, enough: &AtomicBool) -> i64 {
    let mut sent = 0;
    while !enough.load(Ordering::Acquire) {
        line.send(10).await;
        sent += 10;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    sent
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_signals_flow_silent_servers_are_evicted_and_every_signal_has_one_fate() {
    let line = Line::new().await;
    let owner = line.owner().await;
    let first = line.row().await;
    let standby = line.launch.start_ready().await;
    line.until_registered(2).await;
    let enough = AtomicBool::new(false);
    let (sent, ()) = tokio::join!(keep_sending(&line, &enough), async {
        standby.stop();
        // The standby, and servers that were never heard of since they registered: all go, by the workflow's own checks.
        let dead = "insert into stationmaster_internal.dispatcher_servers (dispatcher_id, server_id, task_queue, registered_at)
                    select 'dispatcher-shop-default', gen_random_uuid(), 'gone', now() - interval '1 hour' from generate_series(1, 60)";
        sqlx::query(dead).execute(&line.database.pool).await.unwrap();
        line.until_registered(1).await;
        standby.signal(Signal::SIGCONT);
        line.until_registered(2).await;
        enough.store(true, Ordering::Release);
    });
    assert!(sent > 100, "signals flowed all the while: {sent}");
    line.until_routed(sent).await;
    assert_eq!(line.row().await, first, "same owner, same epoch, same run");
    let batches = "select coalesce(array_agg(jsonb_array_length(detail->'servers') order by id), '{}')
                   from stationmaster.dispatcher_events where event = 'servers_evicted'";
    let batches: Vec<i32> = sqlx::query_scalar(batches)
        .fetch_one(&line.database.pool)
        .await
        .unwrap();
    assert_eq!(batches.iter().sum::<i32>(), 61, "{batches:?}");
    assert!(
        batches.len() <= 3 && batches.iter().all(|batch| *batch <= 50),
        "one event a batch: {batches:?}"
    );
    drop(owner);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_told_to_stop_hands_over_at_once_and_ends_only_its_own_run() {
    let line = Line::new().await;
    let launch = line
        .launch
        .clone()
        .with("DISPATCHERS__LEASE", "50s")
        .with("DISPATCHERS__STALE_AFTER", "55s")
        .with("DISPATCHERS__SLA", "2m");
    let mut owner = launch.start_ready().await;
    let before = line.until_owned(1).await;
    let _standby = launch.start_ready().await;
    line.until_registered(2).await;
    owner.signal(Signal::SIGTERM);
    let after = line.until_owned(2).await;
    assert_eq!(owner.ended().await.0.code(), Some(0), "{}", owner.log());
    assert_ne!(before.owner, after.owner);
    assert_eq!(line.story().await, ["fresh", "handed_over", "handover"]);
    eventually("one run is open", async || line.open_runs().await == 1).await;
    line.send(30).await;
    line.until_routed(30).await;
    assert_eq!(
        line.row().await,
        after,
        "the leaving server touched nothing of its successor's"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_killed_is_evicted_by_the_run_and_nobody_else_is() {
    let line = Line::new().await;
    let owner = line.owner().await;
    let before = line.row().await;
    let lively = line.launch.start_ready().await;
    line.until_registered(2).await;
    let registered = async || {
        let query = "select server_id from stationmaster_internal.dispatcher_servers order by server_id";
        sqlx::query_scalar::<_, uuid::Uuid>(query)
            .fetch_all(&line.database.pool)
            .await
            .unwrap()
    };
    let stay = registered().await;
    let mut killed = line.launch.start_ready().await;
    line.until_registered(3).await;
    let all = registered().await;
    let gone = *all.iter().find(|server| !stay.contains(server)).unwrap();
    killed.kill();
    line.until_registered(2).await;
    assert_eq!(registered().await, stay);
    // The run itself did it, and tells of it.
    let show = || command_on(&line, &["dispatchers", "show", DISPATCHER]);
    eventually("the run tells of it", async || show()["run"]["evicted"] == 1).await;
    let told = "select detail->'servers', epoch from stationmaster.dispatcher_events where event = 'servers_evicted'";
    let told: Vec<(serde_json::Value, i64)> =
        sqlx::query_as(told).fetch_all(&line.database.pool).await.unwrap();
    assert_eq!(told, [(serde_json::json!([gone]), before.epoch)]);
    line.send(20).await;
    line.until_routed(20).await;
    assert_eq!(line.row().await, before, "same owner, same epoch, same run");
    assert_eq!(line.runs().await.len(), 1);
    drop((owner, lively));
}

fn command_on(line: &Line, arguments: &[&str]) -> serde_json::Value {
    let settings = [
        "--engine",
        "temporal",
        "--temporal-address",
        &line.temporal.address,
        "--temporal-namespace",
        &line.temporal.namespace,
    ];
    command(&line.database, &[arguments, &settings].concat())
}
