//! Targets of wakes that take the call and never answer, or answer a byte a second; and a Redis that falls silent. Whoever does
//! so delays itself and nobody else.

use std::time::{Duration, Instant};

use crate::support::receiver::Reply;
use crate::support::{Alarms, Door, Proxy, Redis, SHORT, eventually, free_port};

/// How late the wakes of a series that fires every second came, at worst.
async fn latest(alarms: &Alarms, series: uuid::Uuid) -> f64 {
    let query = "select coalesce(max(extract(epoch from fired_at - scheduled_for)), 0)::float8
                 from stationmaster.alarm_occurrences where alarm_id = $1 and status = 'fired'";
    sqlx::query_scalar(query)
        .bind(series)
        .fetch_one(&alarms.database.pool)
        .await
        .unwrap()
}

/// A target behind this proxy is called by many; it fails in its own time, and what fires beside it is on time.
async fn delays_only_itself(alarms: &Alarms, bad: &Proxy) {
    let server = alarms
        .launch()
        .with("ALARMS__DELIVERY_TIMEOUT", "5s")
        .with("ALARMS__LEASE", "11s")
        .with("ALARMS__CONCURRENCY", "64")
        .start_ready()
        .await;
    let series = alarms.set("/good", "cron_expr => '* * * * * *'").await;
    eventually("the series fires", async || {
        !alarms.receiver.at("/good").is_empty()
    })
    .await;
    let target = format!("http://{}/bad", bad.address);
    let begun = Instant::now();
    for _ in 0..40 {
        alarms.set_at(&target, "delay => '0'").await;
    }
    let failed = "select count(*) from stationmaster.alarm_occurrences where last_error like '%within 5 s%'";
    eventually("one of them had its time, and is tried again later", async || {
        alarms.database.number(failed).await > 0
    })
    .await;
    println!("a try was given up after {:?}", begun.elapsed());
    assert!(
        begun.elapsed() > Duration::from_millis(4900),
        "a try has the time that it may take: {:?}",
        begun.elapsed()
    );
    // Longer than a lease of the wakes.
    tokio::time::sleep(Duration::from_secs(13).saturating_sub(begun.elapsed())).await;
    let late = latest(alarms, series).await;
    println!("at worst {late} s late");
    assert!(late < 4.0, "the others are on time: {late} s");
    let good = alarms.receiver.at("/good").len();
    assert!(good >= 8, "the series fired every second, {good} times");
    let lost = "select count(*) from stationmaster.alarm_occurrences where recoveries > 0";
    assert_eq!(alarms.database.number(lost).await, 0, "no lease was lost");
    assert_eq!(server.readiness().await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_takes_the_call_and_never_answers_delays_only_itself() {
    let alarms = Alarms::new().await;
    alarms.receiver.always("/bad", Reply::held());
    let bad = Proxy::before(&alarms.receiver.address.to_string()).await;
    delays_only_itself(&alarms, &bad).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_answers_a_byte_a_second_delays_only_itself() {
    let alarms = Alarms::new().await;
    let bad = Proxy::before(&alarms.receiver.address.to_string()).await;
    bad.throttle_answers(1);
    delays_only_itself(&alarms, &bad).await;
    assert!(
        !alarms.receiver.at("/bad").is_empty(),
        "it was called, and answered"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_redis_falls_silent_heartbeats_are_said_to_be_missing_and_nothing_else_suffers() {
    let alarms = Alarms::new().await;
    let database = &alarms.database;
    let port = free_port();
    let _redis = Redis::start(port);
    let proxy = Proxy::before(&format!("127.0.0.1:{port}")).await;
    let (workspace, definition) = database.workflow(4, SHORT).await;
    let trigger = "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', $1)";
    sqlx::query(trigger)
        .bind(definition)
        .execute(&database.pool)
        .await
        .unwrap();
    let mut server = alarms
        .launch()
        .with("HEARTBEATS", "redis")
        .with("REDIS_URL", &format!("redis://{}/0", proxy.address))
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .start_ready()
        .await;
    let series = alarms.set("/good", "cron_expr => '* * * * * *'").await;
    let send = "select stationmaster.send_signal('shop', 'paid') from generate_series(1, 10)";
    sqlx::query(send).execute(&database.pool).await.unwrap();
    database.until_count("COMPLETED", 10).await;
    let owner = "select epoch from stationmaster.dispatchers";
    let epoch = database.number(owner).await;

    proxy.vanish();
    eventually("it says so", async || {
        let (status, body) = server.readiness().await;
        status == 503 && body.contains("the heartbeats in Redis cannot be reached")
    })
    .await;
    let (begun, fired) = (Instant::now(), alarms.receiver.at("/good").len());
    sqlx::query(send).execute(&database.pool).await.unwrap();
    database.enqueue((workspace, definition), 20).await;
    let took = database.until_count("COMPLETED", 40).await;
    println!("routed and completed in {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    tokio::time::sleep(Duration::from_secs(5).saturating_sub(begun.elapsed())).await;
    assert!(alarms.receiver.at("/good").len() >= fired + 3, "alarms fire on");
    assert!(latest(&alarms, series).await < 4.0);
    assert_eq!(
        database.number(owner).await,
        epoch,
        "the dispatcher stays with its owner"
    );

    proxy.door(Door::Open);
    eventually("it is ready again", async || server.readiness().await.0 == 200).await;
    server.assert_alive();
    assert_eq!(server.said("lease had run out"), 0, "{}", server.log());
}
