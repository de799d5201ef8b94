//! Occurrences that failed need a person, who tries them again under their old ids.

use stationmaster_core::failures::{self, BulkFailures, FailureKind, Filter};

use crate::bed::Bed;
use crate::common::receiver::Reply;

#[tokio::test]
async fn a_failed_occurrence_is_a_failure_and_a_retry_fires_it_under_its_old_id() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    bed.receiver.always("/gone", Reply::status(410));
    let id = bed.now("/gone").await;
    bed.until(id, "failed").await;
    let database = &bed.testbed.database;
    let groups = async || failures::groups(database, &Filter::default()).await.unwrap();
    let found = groups().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].kind, found[0].alarm_id),
        (FailureKind::Occurrence, Some(id.0))
    );
    assert_eq!(found[0].message, "the target answered 410");

    let everything = BulkFailures {
        group: Some(found[0].id.clone()),
        ..BulkFailures::default()
    };
    // Still gone: it fails again, as a failure of its own.
    assert_eq!(
        failures::retry(database, &everything, "alice")
            .await
            .unwrap()
            .items,
        1
    );
    bed.wakes("/gone", 2).await;
    bed.until(id, "failed").await;
    let again = groups().await;
    assert_eq!((again.len(), again[0].id == found[0].id), (1, true));
    assert!(again[0].last_at > found[0].last_at);

    bed.receiver.always("/gone", Reply::status(200));
    assert_eq!(
        failures::retry(database, &everything, "alice")
            .await
            .unwrap()
            .items,
        1
    );
    let alarm = bed.until(id, "fired").await;
    assert_eq!((alarm.failure_count, alarm.last_error), (0, None));
    let wakes = bed.receiver.at("/gone");
    assert_eq!(wakes.len(), 3);
    assert!(wakes.iter().all(|wake| wake.id() == wakes[0].id()), "one id");
    assert_eq!(groups().await.len(), 0);
    let events: Vec<String> = bed
        .events(id)
        .await
        .into_iter()
        .map(|event| event.event)
        .collect();
    assert_eq!(
        events.iter().filter(|event| *event == "retried").count(),
        2,
        "{events:?}"
    );
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn what_a_cancelled_alarm_failed_to_deliver_is_not_tried_again_and_can_be_set_aside() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    bed.receiver.always("/gone", Reply::status(410));
    let id = bed.set(bed.cron("* * * * * *", "/gone")).await;
    let database = &bed.testbed.database;
    crate::common::eventually("one has failed", async || {
        bed.statuses(id).await.iter().any(|status| status == "failed")
    })
    .await;
    stationmaster_core::alarms::operate::cancel(database, id, "alice", None)
        .await
        .unwrap();
    crate::common::eventually("nothing is open", async || {
        bed.testbed.count("occurrences_open").await == 0
    })
    .await;
    let all = BulkFailures {
        all: true,
        ..BulkFailures::default()
    };
    assert_eq!(failures::retry(database, &all, "alice").await.unwrap().items, 0);
    let aside = failures::set_aside(database, &all, "alice").await.unwrap();
    assert!(aside.items > 0, "{aside:?}");
    let left = failures::groups(database, &Filter::default()).await.unwrap();
    assert_eq!(left.len(), 0, "{left:?}");
    server.stop().await;
}
