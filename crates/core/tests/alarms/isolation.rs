//! I4: a slow target, a dead target or a locked alarm delays only itself.

use std::time::Duration;

use sqlx::Executor as _;

use stationmaster_wire::NewAlarm;

use crate::bed::{Bed, once_in};
use crate::common::receiver::{Receiver, Reply};
use crate::common::{eventually, within};

#[tokio::test]
async fn a_slow_target_does_not_delay_the_others() {
    let bed = Bed::new().await;
    let slow = Receiver::start().await;
    slow.always("/", Reply::held());
    let mut settings = bed.settings();
    settings.per_target = 2;
    settings.concurrency = 8;
    settings.batch_size = 10;
    settings.allow_targets = vec!["127.0.0.0/8".parse().unwrap()];
    for _ in 0..200 {
        let request = NewAlarm {
            target_url: Some(slow.url("/")),
            ..bed.request(once_in(Duration::ZERO), "/")
        };
        bed.set(request).await;
    }
    let server = bed.server_with(settings).await;
    eventually("the slow target has its hands full", async || slow.arrived() == 2).await;
    for _ in 0..20 {
        let id = bed.now("/fast").await;
        within(
            Duration::from_secs(20),
            "another target is served meanwhile",
            async || bed.status(id).await == "fired",
        )
        .await;
    }
    let released = |reason| {
        server.metric(&format!(
            "stationmaster_alarms_released_total{{reason=\"{reason}\"}}"
        ))
    };
    assert!(released("full") > 0 && released("unreachable") == 0);
    assert_eq!(slow.arrived(), 2, "never more than its limit at once");
    let spent = "select count(*) from stationmaster_internal.occurrences_open where attempts > 0";
    assert_eq!(bed.testbed.number(spent).await, 0, "waiting spends no try");
    slow.let_go();
    eventually("the slow ones fire too", async || slow.arrived() == 200).await;
    eventually("all are settled", async || {
        bed.testbed.count("occurrences_open").await == 0
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_dead_target_trips_its_own_breaker_and_the_rest_fires_when_it_comes_back() {
    let bed = Bed::new().await;
    let address = {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap()
    };
    let mut settings = bed.settings();
    settings.allow_targets = vec!["127.0.0.0/8".parse().unwrap()];
    settings.per_target = 4;
    let server = bed.server_with(settings).await;
    for _ in 0..60 {
        let request = NewAlarm {
            target_url: Some(format!("http://{address}/")),
            max_failures: Some(100),
            ..bed.request(once_in(Duration::ZERO), "/")
        };
        bed.set(request).await;
    }
    eventually("the breaker is open", async || {
        server.metric("stationmaster_alarm_targets_open") == 1
    })
    .await;
    let held_back = async || {
        let query = "select count(*) from stationmaster_internal.occurrences_open where attempts = 0 and last_error like 'held back%'";
        bed.testbed.number(query).await
    };
    eventually("most are held back, unspent", async || held_back().await >= 40).await;
    let released = server.metric("stationmaster_alarms_released_total{reason=\"unreachable\"}");
    assert!(released >= 40, "{released}");
    for _ in 0..5 {
        let id = bed.now("/alive").await;
        bed.until(id, "fired").await;
    }
    let back = Receiver::start_at(&address.to_string()).await;
    bed.testbed
        .run("update stationmaster_internal.occurrences_open set ready_at = now() where attempts > 0 and holder is null")
        .await;
    eventually("everything fires once it is back", async || {
        bed.testbed
            .run("update stationmaster_internal.occurrences_open set ready_at = now() where attempts > 0 and holder is null and ready_at > now() + interval '20 s'")
            .await;
        back.arrived() == 60
    })
    .await;
    eventually("the breaker is closed", async || {
        server.metric("stationmaster_alarm_targets_open") == 0
    })
    .await;
    server.stop().await;
}

/// Somebody cancels an alarm in a transaction and goes to lunch.
#[tokio::test]
async fn an_alarm_that_somebody_keeps_locked_delays_no_other() {
    let bed = Bed::new().await;
    bed.receiver.next("/held", [Reply::held()]);
    let server = bed.server().await;
    // One whose settlement meets the lock, and one whose claim does.
    let settling = bed.now("/held").await;
    eventually("its wake is under way", async || bed.receiver.arrived() == 1).await;
    let claiming = bed
        .set(bed.request(once_in(Duration::from_secs(2)), "/later"))
        .await;
    let mut lunch = bed.testbed.connection().await;
    lunch.execute("begin").await.unwrap();
    for id in [settling, claiming] {
        sqlx::query("select stationmaster.cancel_alarm($1)")
            .bind(id)
            .execute(&mut lunch)
            .await
            .unwrap();
    }
    bed.receiver.let_go();
    bed.wakes("/held", 1).await;
    eventually("the other one is due", async || {
        let query = format!(
            "select count(*) from stationmaster_internal.alarm_standings where alarm_id = '{claiming}' and next_due_at < now()"
        );
        bed.testbed.number(&query).await == 1
    })
    .await;
    for _ in 0..10 {
        let id = bed.now("/free").await;
        within(Duration::from_secs(20), "others fire meanwhile", async || {
            bed.status(id).await == "fired"
        })
        .await;
    }
    lunch.execute("commit").await.unwrap();
    eventually("what was accepted is on record", async || {
        bed.statuses(settling).await == ["fired"]
    })
    .await;
    assert_eq!(bed.status(claiming).await, "cancelled");
    assert!(bed.receiver.at("/later").is_empty());
    server.stop().await;
}

/// Somebody has given a table of ours a condition of his own.
#[tokio::test]
async fn a_settlement_that_the_database_refuses_keeps_no_other_from_being_written() {
    let bed = Bed::new().await;
    let table = "alter table stationmaster_internal.occurrences_finished";
    let forbid = format!("{table} add constraint forbidden check (status <> 'failed')");
    bed.testbed.run(&forbid).await;
    bed.receiver.always("/bad", Reply::status(500));
    let server = bed.server().await;
    let refused = NewAlarm {
        max_failures: Some(1),
        ..bed.request(once_in(Duration::ZERO), "/bad")
    };
    let refused = bed.set(refused).await;
    bed.wakes("/bad", 1).await;
    for _ in 0..5 {
        let id = bed.now("/good").await;
        bed.until(id, "fired").await;
    }
    assert_eq!(bed.status(refused).await, "active", "it cannot be settled");
    bed.testbed
        .run(&format!("{table} drop constraint forbidden"))
        .await;
    bed.until(refused, "failed").await;
    server.stop().await;
}
