//! What a server does about occurrences that were missed while nobody was there: three policies, each on record.

use std::time::Duration;

use stationmaster_wire::{Misfire, NewAlarm};

use crate::bed::{Bed, once_in};
use crate::common::eventually;

/// A minutely alarm whose next occurrence was due some minutes ago.
async fn after_an_outage(bed: &Bed, misfire: Misfire, path: &str) -> stationmaster_core::id::AlarmId {
    let request = NewAlarm {
        misfire: Some(misfire),
        catch_up: Some(3),
        ..bed.cron("* * * * *", path)
    };
    let id = bed.set(request).await;
    bed.backdate(id, "5 minutes").await;
    id
}

#[tokio::test]
async fn coalesce_wakes_once_for_the_whole_outage() {
    let bed = Bed::new().await;
    let id = after_an_outage(&bed, Misfire::Coalesce, "/once").await;
    let server = bed.server().await;
    let wakes = bed.wakes("/once", 1).await;
    eventually("it is settled", async || {
        bed.alarm(id).await.last_fired_at.is_some()
    })
    .await;
    let all = bed.occurrences(id).await;
    let coalesced = all
        .iter()
        .filter(|one| one.status.as_str() == "coalesced")
        .count();
    assert!(coalesced >= 4, "{all:?}");
    let fired = all.iter().find(|one| one.status.as_str() == "fired").unwrap();
    assert_eq!(wakes[0].id(), format!("{id}:{}", fired.scheduled_for));
    let reason = format!("coalesced into {}", fired.scheduled_for);
    let others = all.iter().filter(|one| one.status.as_str() == "coalesced");
    assert!(
        others
            .clone()
            .all(|one| one.reason.as_deref() == Some(&reason) && one.scheduled_for < fired.scheduled_for)
    );
    assert!(bed.alarm(id).await.next_fire_at > Some(fired.scheduled_for));
    eventually("what was missed is counted", async || {
        server.metric("stationmaster_alarms_missed_total{status=\"coalesced\"}") >= 4
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn catch_up_wakes_for_the_newest_in_order_and_records_the_others() {
    let bed = Bed::new().await;
    let id = after_an_outage(&bed, Misfire::CatchUp, "/three").await;
    let server = bed.server().await;
    bed.wakes("/three", 3).await;
    eventually("all are settled", async || {
        bed.statuses(id)
            .await
            .iter()
            .filter(|status| *status == "fired")
            .count()
            >= 3
    })
    .await;
    let all = bed.occurrences(id).await;
    let skipped: Vec<_> = all
        .iter()
        .take_while(|one| one.status.as_str() == "skipped")
        .collect();
    assert!(skipped.len() >= 2, "{all:?}");
    assert!(
        skipped
            .iter()
            .all(|one| one.reason.as_deref() == Some("only the newest 3 are caught up with"))
    );
    assert!(
        all[skipped.len()..]
            .iter()
            .all(|one| one.status.as_str() == "fired"),
        "{all:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn skip_wakes_for_none_of_them_and_records_each() {
    let bed = Bed::new().await;
    let id = after_an_outage(&bed, Misfire::Skip, "/none").await;
    let server = bed.server().await;
    eventually("they are on record", async || bed.statuses(id).await.len() >= 4).await;
    let all = bed.occurrences(id).await;
    let missed: Vec<_> = all
        .iter()
        .filter(|one| one.reason.as_deref() == Some("missed by more than 30 s"))
        .map(|one| one.scheduled_for)
        .collect();
    assert!(missed.len() >= 4, "{all:?}");
    assert_eq!(bed.alarm(id).await.status.as_str(), "active");
    let until = bed.now("/after").await;
    bed.until(until, "fired").await;
    server.stop().await;
    let woken = bed.receiver.at("/none");
    let for_a_missed_one = woken.iter().filter(|wake| {
        let instant = wake.json()["scheduled_for"].as_str().unwrap().parse().unwrap();
        missed.contains(&instant)
    });
    assert_eq!(for_a_missed_one.count(), 0, "{woken:?}");
}

#[tokio::test]
async fn an_alarm_for_once_fires_days_late_unless_it_is_to_be_skipped() {
    let bed = Bed::new().await;
    let late = bed
        .set(bed.request(once_in(Duration::from_hours(1)), "/late"))
        .await;
    let request = NewAlarm {
        misfire: Some(Misfire::Skip),
        ..bed.request(once_in(Duration::from_hours(1)), "/never")
    };
    let never = bed.set(request).await;
    bed.backdate(late, "3 days").await;
    bed.backdate(never, "3 days").await;
    let server = bed.server().await;
    bed.until(late, "fired").await;
    let alarm = bed.until(never, "failed").await;
    assert_eq!(alarm.last_error.as_deref(), Some("missed by more than 30 s"));
    assert_eq!(bed.statuses(never).await, ["skipped"]);
    assert!(bed.receiver.at("/never").is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_long_outage_of_a_dense_series_is_one_line_and_one_wake() {
    let bed = Bed::new().await;
    let id = bed.set(bed.cron("* * * * * *", "/dense")).await;
    bed.backdate(id, "2 days").await;
    let server = bed.server().await;
    bed.wakes("/dense", 2).await;
    let all = bed.occurrences(id).await;
    let rows: Vec<_> = all.iter().filter(|one| one.until.is_some()).collect();
    assert_eq!(rows.len(), 2, "before the window, and within it: {rows:?}");
    assert_eq!(
        (rows[0].status.as_str(), rows[1].status.as_str()),
        ("skipped", "coalesced")
    );
    assert_eq!(
        rows[0].reason.as_deref(),
        Some("missed by more than the window of 24 h")
    );
    server.stop().await;
}

#[tokio::test]
async fn an_alarm_has_a_window_of_its_own() {
    let bed = Bed::new().await;
    let request = NewAlarm {
        misfire: Some(Misfire::CatchUp),
        catch_up: Some(100),
        misfire_window: Some(150.0),
        ..bed.cron("* * * * *", "/window")
    };
    let id = bed.set(request).await;
    bed.backdate(id, "10 minutes").await;
    let server = bed.server().await;
    bed.wakes("/window", 2).await;
    let all = bed.occurrences(id).await;
    let outside = all
        .iter()
        .filter(|one| one.reason.as_deref() == Some("missed by more than the window of 150 s"));
    assert!(outside.count() >= 7, "{all:?}");
    server.stop().await;
}

#[tokio::test]
async fn jitter_moves_the_due_time_and_not_the_nominal_instant() {
    let bed = Bed::new().await;
    let request = NewAlarm {
        jitter: Some(3600.0),
        ..bed.cron("0 * * * *", "/jitter")
    };
    let id = bed.set(request).await;
    let query = format!(
        "select extract(epoch from next_due_at - next_fire_at)::bigint from stationmaster_internal.alarm_standings where alarm_id = '{id}'"
    );
    let late = bed.testbed.number(&query).await;
    assert!((0..3600).contains(&late), "{late}");
    bed.testbed
        .run(&format!(
            "update stationmaster_internal.alarm_standings set next_due_at = now() where alarm_id = '{id}'"
        ))
        .await;
    let nominal = bed.alarm(id).await.next_fire_at.unwrap();
    let server = bed.server().await;
    let wakes = bed.wakes("/jitter", 1).await;
    assert_eq!(wakes[0].id(), format!("{id}:{nominal}"));
    server.stop().await;
}
