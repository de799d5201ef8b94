//! What happens to an occurrence that comes while an earlier one is not settled.

use stationmaster_core::alarms::Overlap;
use stationmaster_wire::NewAlarm;

use crate::bed::Bed;
use crate::common::eventually;
use crate::common::receiver::Reply;

fn overlapping(bed: &Bed, overlap: Overlap) -> NewAlarm {
    NewAlarm {
        overlap: Some(overlap),
        ..bed.cron("* * * * * *", "/tick")
    }
}

#[tokio::test]
async fn by_default_an_occurrence_in_retry_neither_delays_nor_loses_the_following_ones() {
    let bed = Bed::new().await;
    bed.receiver.next("/tick", [Reply::status(500)]);
    let server = bed.server().await;
    let id = bed.set(overlapping(&bed, Overlap::Allow)).await;
    bed.wakes("/tick", 4).await;
    let all = bed.occurrences(id).await;
    assert_eq!(
        (all[0].status.as_str(), all[0].attempts),
        ("retrying", 1),
        "{all:?}"
    );
    assert!(
        all[1..3].iter().all(|one| one.status.as_str() == "fired"),
        "{all:?}"
    );
    let gaps = all.windows(2).map(|pair| {
        pair[1]
            .scheduled_for
            .duration_since(pair[0].scheduled_for)
            .as_secs()
    });
    assert!(
        gaps.into_iter().all(|gap| gap == 1),
        "every second is there: {all:?}"
    );
    bed.hurry(id).await;
    eventually("the first one is fired too", async || {
        bed.statuses(id).await[0] == "fired"
    })
    .await;
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn queued_occurrences_wait_for_the_earlier_one_and_keep_their_order() {
    let bed = Bed::new().await;
    bed.receiver.next("/tick", [Reply::held()]);
    let server = bed.server().await;
    let id = bed.set(overlapping(&bed, Overlap::Queue)).await;
    eventually("the first is under way", async || bed.receiver.arrived() == 1).await;
    let next = bed.alarm(id).await.next_fire_at.unwrap();
    eventually("the next one is due", async || {
        jiff::Timestamp::now() > next + jiff::SignedDuration::from_secs(2)
    })
    .await;
    assert_eq!(bed.receiver.arrived(), 1, "nothing overtakes it");
    bed.receiver.let_go();
    let wakes = bed.wakes("/tick", 4).await;
    let instants: Vec<String> = wakes
        .iter()
        .map(|wake| wake.json()["scheduled_for"].to_string())
        .collect();
    let mut sorted = instants.clone();
    sorted.sort();
    assert_eq!(instants, sorted, "in order");
    let all = bed.occurrences(id).await;
    let gaps = all.windows(2).map(|pair| {
        pair[1]
            .scheduled_for
            .duration_since(pair[0].scheduled_for)
            .as_secs()
    });
    assert!(gaps.into_iter().all(|gap| gap == 1), "none is lost: {all:?}");
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn skipped_occurrences_are_on_record_and_the_series_goes_on() {
    let bed = Bed::new().await;
    bed.receiver.next("/tick", [Reply::held()]);
    let server = bed.server().await;
    let id = bed.set(overlapping(&bed, Overlap::Skip)).await;
    eventually("the first is under way", async || bed.receiver.arrived() == 1).await;
    let next = bed.alarm(id).await.next_fire_at.unwrap();
    eventually("two more were due", async || {
        jiff::Timestamp::now() > next + jiff::SignedDuration::from_secs(2)
    })
    .await;
    bed.receiver.let_go();
    bed.wakes("/tick", 3).await;
    let all = bed.occurrences(id).await;
    let skipped = all
        .iter()
        .filter(|one| one.reason.as_deref() == Some("an earlier occurrence was still under way"));
    assert!(skipped.count() >= 2, "{all:?}");
    assert_eq!(all[0].status.as_str(), "fired");
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn an_occurrence_in_retry_holds_a_queue_up_and_lets_it_go_when_it_has_failed() {
    let bed = Bed::new().await;
    bed.receiver
        .next("/tick", [Reply::status(500), Reply::status(404)]);
    let server = bed.server().await;
    let id = bed.set(overlapping(&bed, Overlap::Queue)).await;
    bed.next_try(id, 1).await;
    bed.wakes("/tick", 5).await;
    let all = bed.occurrences(id).await;
    assert_eq!(all[0].status.as_str(), "failed");
    assert!(
        all[1..3].iter().all(|one| one.status.as_str() == "fired"),
        "{all:?}"
    );
    bed.assert_turns().await;
    server.stop().await;
}
