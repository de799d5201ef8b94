//! Occurrences of the past are fired after a preview, and never twice.

use jiff::{SignedDuration, Timestamp};
use stationmaster_core::alarms::backfill::{backfill, preview};
use stationmaster_core::alarms::operate;

use crate::bed::{Bed, once_at};
use crate::common::eventually;

#[tokio::test]
async fn a_backfill_fires_what_was_not_accepted_and_leaves_alone_what_was() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let id = bed.set(bed.cron("0 * * * *", "/back")).await;
    let to = Timestamp::now();
    let from = to - SignedDuration::from_hours(5);
    let planned = preview(database, id, from, to).await.unwrap();
    assert_eq!(planned.len(), 5);
    assert!(planned.iter().all(|one| one.fires && one.status == "none"));
    // One of them was fired, another one skipped.
    let (fired, skipped) = (planned[1].scheduled_for, planned[2].scheduled_for);
    bed.testbed
        .run(&format!(
            "insert into stationmaster_internal.occurrences_finished (alarm_id, scheduled_for, origin, status, due_at)
             values ('{id}', '{fired}', 'schedule', 'fired', now()), ('{id}', '{skipped}', 'schedule', 'skipped', now())"
        ))
        .await;
    let planned = preview(database, id, from, to).await.unwrap();
    let firing: Vec<bool> = planned.iter().map(|one| one.fires).collect();
    assert_eq!(firing, [true, false, true, true, true]);
    assert_eq!(
        bed.testbed.count("occurrences_open").await,
        0,
        "a preview changes nothing"
    );

    let made = backfill(database, id, from, to, "tester").await.unwrap();
    assert_eq!(made.len(), 4);
    let server = bed.server().await;
    let wakes = bed.wakes("/back", 4).await;
    assert!(wakes.iter().all(|wake| wake.json()["origin"] == "backfill"));
    eventually("all are settled", async || {
        bed.statuses(id).await.iter().all(|status| status == "fired")
    })
    .await;
    assert_eq!(bed.statuses(id).await.len(), 5);
    assert!(
        backfill(database, id, from, to, "tester")
            .await
            .unwrap()
            .is_empty(),
        "nothing is left to do"
    );
    server.stop().await;
    assert_eq!(bed.receiver.at("/back").len(), 4);
}

#[tokio::test]
async fn a_backfill_that_cannot_be_is_refused() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let now = Timestamp::now();
    let minutely = bed.set(bed.cron("* * * * *", "/")).await;
    let once = bed.set(bed.request(once_at(now), "/")).await;
    let long = now - SignedDuration::from_hours(24);
    assert!(
        matches!(
            preview(database, minutely, long, now).await,
            Err(operate::Error::Invalid(_))
        ),
        "too many"
    );
    let future = now + SignedDuration::from_hours(1);
    assert!(matches!(
        preview(database, minutely, now, future).await,
        Err(operate::Error::Invalid(_))
    ));
    assert!(matches!(
        preview(database, once, long, now).await,
        Err(operate::Error::WrongState(_))
    ));
    let ago = now - SignedDuration::from_mins(5);
    operate::cancel(database, minutely, "tester", None).await.unwrap();
    assert!(matches!(
        backfill(database, minutely, ago, now, "tester").await,
        Err(operate::Error::WrongState(_))
    ));
}
