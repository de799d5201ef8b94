//! New time zone data: stored next fires are computed anew, once, and only by whoever has the newer data.

use crate::bed::{Bed, cron, once_at};
use crate::common::eventually;

#[tokio::test]
async fn newer_zone_data_moves_stored_fires_and_says_so() {
    let bed = Bed::new().await;
    let when = cron("0 9 1 1 *", "America/Vancouver");
    let id = bed.set(bed.plain(when)).await;
    let right = bed.alarm(id).await.next_fire_at;
    let untouched = bed
        .set(bed.plain(once_at("2040-01-01T00:00:00Z".parse().unwrap())))
        .await;
    // As an older program would have left it.
    bed.testbed
        .run(&format!(
            "insert into stationmaster_internal.zone_data (version) values ('2020a');
             update stationmaster_internal.alarm_standings set next_fire_at = next_fire_at + interval '1 hour', next_due_at = next_due_at + interval '1 hour'
             where alarm_id = '{id}'"
        ))
        .await;
    let server = bed.server().await;
    eventually("it is computed anew", async || {
        bed.alarm(id).await.next_fire_at == right
    })
    .await;
    let events = bed.events(id).await;
    let moved = events
        .iter()
        .find(|event| event.event == "moved")
        .expect("it is on record");
    assert!(
        moved.detail.as_deref().unwrap().contains("zone data"),
        "{moved:?}"
    );
    let others = bed.events(untouched).await;
    assert!(others.iter().all(|event| event.event != "moved"));
    server.stop().await;
}

#[tokio::test]
async fn older_zone_data_changes_nothing() {
    let bed = Bed::new().await;
    let id = bed.set(bed.cron("0 9 1 1 *", "/")).await;
    bed.testbed
        .run(
            "insert into stationmaster_internal.zone_data (version) values ('9999z');
             update stationmaster_internal.alarm_standings set next_fire_at = next_fire_at + interval '1 hour'",
        )
        .await;
    let wrong = bed.alarm(id).await.next_fire_at;
    let server = bed.server().await;
    let fired = bed.now("/sign of life").await;
    bed.until(fired, "fired").await;
    assert_eq!(bed.alarm(id).await.next_fire_at, wrong);
    server.stop().await;
}
