//! I1 and I2: one owner at a time, the same id in every try, and late writes that change nothing.

use std::time::Duration;

use stationmaster_core::alarms::measure::Claims;
use stationmaster_core::presence::Presence;

use crate::bed::Bed;
use crate::common::eventually;
use crate::common::receiver::Reply;
use crate::common::server::Mortal;

#[tokio::test]
async fn a_wake_in_the_hands_of_a_server_that_is_killed_fires_again_under_the_same_id() {
    let bed = Bed::new().await;
    bed.receiver.next("/held", [Reply::held()]);
    let presence = Presence::with_lease("doomed", Duration::from_secs(1));
    let doomed = Mortal::start_alarms(&bed.testbed.url, bed.settings(), presence).await;
    let id = bed.now("/held").await;
    eventually("the wake is under way", async || bed.receiver.arrived() == 1).await;
    let claimed = &bed.occurrences(id).await[0];
    assert_eq!(claimed.status.as_str(), "claimed");
    doomed.kill();
    let other = bed.server().await;
    bed.until(id, "fired").await;
    bed.receiver.let_go();
    bed.wakes("/held", 1).await;
    let wakes = bed.receiver.at("/held");
    assert!(
        wakes
            .iter()
            .all(|wake| wake.id() == format!("{id}:{}", claimed.scheduled_for))
    );
    let occurrence = &bed.occurrences(id).await[0];
    assert_eq!(
        (
            occurrence.status.as_str(),
            occurrence.attempts,
            occurrence.recoveries
        ),
        ("fired", 0, 1),
        "our own loss spends no try"
    );
    other.stop().await;
}

#[tokio::test]
async fn past_its_lease_a_wake_is_anothers_and_the_late_settlement_is_refused() {
    let bed = Bed::new().await;
    bed.receiver.next("/held", [Reply::held()]);
    let slow = bed.server().await;
    let id = bed.now("/held").await;
    eventually("the wake is under way", async || bed.receiver.arrived() == 1).await;
    let other = bed.server().await;
    // The lease has run out while the first server waits for the answer.
    bed.testbed
        .run("update stationmaster_internal.occurrences_open set ready_at = now() - interval '1 second'")
        .await;
    bed.until(id, "fired").await;
    let before = bed.occurrences(id).await;
    bed.receiver.let_go();
    let late = async || {
        slow.metric("stationmaster_stale_writes_refused_total{write=\"alarm\"}")
            + other.metric("stationmaster_stale_writes_refused_total{write=\"alarm\"}")
    };
    eventually("the late settlement is refused", async || late().await == 1).await;
    let after = bed.occurrences(id).await;
    assert_eq!(
        (before[0].fired_at, before.len()),
        (after[0].fired_at, after.len())
    );
    let wakes = bed.wakes("/held", 2).await;
    assert_eq!(wakes[0].id(), wakes[1].id());
    slow.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_late_settlement_changes_nothing_while_the_wake_is_in_the_hands_of_another() {
    let bed = Bed::new().await;
    // The first is answered once another has it, and that one not before it is told to be.
    let slowly = Reply {
        after: Duration::from_secs(4),
        ..Reply::status(200)
    };
    bed.receiver.next("/held", [slowly, Reply::held()]);
    let slow = bed.server().await;
    let id = bed.now("/held").await;
    eventually("the wake is under way", async || bed.receiver.arrived() == 1).await;
    let other = bed.server().await;
    bed.testbed
        .run("update stationmaster_internal.occurrences_open set ready_at = now() - interval '1 second'")
        .await;
    eventually("another has it", async || bed.receiver.arrived() == 2).await;
    let late = async || {
        slow.metric("stationmaster_stale_writes_refused_total{write=\"alarm\"}")
            + other.metric("stationmaster_stale_writes_refused_total{write=\"alarm\"}")
    };
    eventually("the late settlement is refused", async || late().await == 1).await;
    assert_eq!(bed.statuses(id).await, ["claimed"]);
    bed.receiver.let_go();
    bed.until(id, "fired").await;
    slow.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_living_server_keeps_what_it_holds() {
    let bed = Bed::new().await;
    bed.receiver.next("/held", [Reply::held()]);
    let slow = bed.server().await;
    let id = bed.now("/held").await;
    eventually("the wake is under way", async || bed.receiver.arrived() == 1).await;
    let other = bed.server().await;
    // Several rounds of the other's recovery.
    for _ in 0..3 {
        let other_id = bed.now("/free").await;
        bed.until(other_id, "fired").await;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    assert_eq!(
        (bed.receiver.arrived(), bed.statuses(id).await),
        (4, vec!["claimed".to_owned()])
    );
    bed.receiver.let_go();
    bed.until(id, "fired").await;
    slow.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_is_under_way_and_gives_back_the_rest() {
    let bed = Bed::new().await;
    let slow = Reply {
        after: Duration::from_millis(300),
        ..Reply::status(200)
    };
    bed.receiver.always("/slow", slow);
    for _ in 0..40 {
        bed.now("/slow").await;
    }
    let mut settings = bed.settings();
    settings.per_target = 4;
    let server = bed.server_with(settings).await;
    eventually("some are under way", async || bed.receiver.arrived() >= 4).await;
    server.stop().await;
    let held = "select count(*) from stationmaster_internal.occurrences_open where holder is not null";
    assert_eq!(bed.testbed.number(held).await, 0, "nothing is left in its hands");
    let unsettled = bed.testbed.count("occurrences_finished").await;
    assert_eq!(
        usize::try_from(unsettled).unwrap(),
        bed.receiver.at("/slow").len(),
        "what was accepted is on record"
    );
    let second = bed.server().await;
    eventually("the rest fires", async || {
        bed.testbed.count("occurrences_finished").await == 40
    })
    .await;
    assert_eq!(bed.receiver.at("/slow").len(), 40, "each once");
    let spent = "select count(*) from stationmaster_internal.occurrences_finished where attempts > 0 or recoveries > 0";
    assert_eq!(bed.testbed.number(spent).await, 0);
    second.stop().await;
}

/// What benchmarks time is the claim of a server, and nobody delivers what it takes.
#[tokio::test]
async fn a_claim_by_itself_takes_what_is_due_once() {
    let bed = Bed::new().await;
    for _ in 0..3 {
        bed.now("/by-itself").await;
    }
    let claims = Claims::new(bed.testbed.database.clone()).unwrap();
    assert_eq!(claims.claim(2).await.unwrap(), 2);
    assert_eq!(claims.claim(2).await.unwrap(), 1);
    assert_eq!(claims.claim(2).await.unwrap(), 0);
    assert_eq!(bed.testbed.count("occurrences_open").await, 3);
}
