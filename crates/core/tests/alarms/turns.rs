//! Whose turn it is: what people do to an alarm, and the loss of servers, neither let out what must wait nor keep back what
//! may go.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use stationmaster_core::alarms::Overlap;
use stationmaster_core::alarms::backfill::backfill;
use stationmaster_core::alarms::edit::{self, edit};
use stationmaster_core::alarms::operate::{self, pause, resume};
use stationmaster_core::id::AlarmId;
use stationmaster_core::presence::Presence;
use stationmaster_wire::{AlarmChange, NewAlarm};

use crate::bed::{Bed, YEARLY};
use crate::common::eventually;
use crate::common::receiver::Reply;
use crate::common::server::{Mortal, Server};

/// A server whose loss is noticed soon.
async fn doomed(bed: &Bed) -> Mortal {
    let presence = Presence::with_lease("doomed", Duration::from_secs(1));
    Mortal::start_alarms(&bed.testbed.url, bed.settings(), presence).await
}

/// Every second, in turns; the first one is under way, and another one waits for it.
async fn one_under_way_and_one_waiting(bed: &Bed) -> (Server, AlarmId) {
    bed.receiver.next("/turns", [Reply::held()]);
    let server = bed.server().await;
    let id = bed
        .set(NewAlarm {
            overlap: Some(Overlap::Queue),
            ..bed.cron("* * * * * *", "/turns")
        })
        .await;
    eventually("the first is under way", async || bed.receiver.arrived() == 1).await;
    // The series waits for it; what stands for the one that it would make next is made by hand, as it is after a catch-up.
    let next = bed.occurrences(id).await[0].scheduled_for + SignedDuration::from_secs(1);
    bed.testbed
        .run(&format!(
            "insert into stationmaster_internal.occurrences_open (alarm_id, scheduled_for, due_at, ready_at)
             values ('{id}', '{next}', '{next}', 'infinity')"
        ))
        .await;
    bed.assert_turns().await;
    (server, id)
}

/// No instant is missing and none is out of order, up to now.
async fn assert_in_order(bed: &Bed, id: AlarmId) {
    let wakes = bed.receiver.at("/turns");
    let instants: Vec<String> = wakes
        .iter()
        .map(|wake| wake.json()["scheduled_for"].to_string())
        .collect();
    assert!(instants.is_sorted(), "{instants:?}");
    bed.assert_turns().await;
    assert_ne!(bed.status(id).await, "failed");
}

#[tokio::test]
async fn what_waits_while_an_alarm_is_paused_comes_in_its_turn_after_the_resume() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let (server, id) = one_under_way_and_one_waiting(&bed).await;
    pause(database, id, "tester").await.unwrap();
    bed.assert_turns().await;
    bed.receiver.let_go();
    eventually("the first is settled", async || {
        bed.statuses(id).await[0] == "fired"
    })
    .await;
    bed.assert_turns().await;
    assert_eq!(bed.receiver.arrived(), 1, "nothing follows while it is paused");
    resume(database, id, "tester").await.unwrap();
    bed.wakes("/turns", 4).await;
    pause(database, id, "tester").await.unwrap();
    assert_in_order(&bed, id).await;
    server.stop().await;
}

#[tokio::test]
async fn a_resume_while_one_is_still_under_way_lets_nothing_overtake_it() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let (server, id) = one_under_way_and_one_waiting(&bed).await;
    pause(database, id, "tester").await.unwrap();
    resume(database, id, "tester").await.unwrap();
    bed.assert_turns().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(bed.receiver.arrived(), 1);
    bed.receiver.let_go();
    bed.wakes("/turns", 4).await;
    pause(database, id, "tester").await.unwrap();
    assert_in_order(&bed, id).await;
    server.stop().await;
}

#[tokio::test]
async fn what_waits_goes_at_once_when_an_edit_says_that_nothing_waits_any_more() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let (server, id) = one_under_way_and_one_waiting(&bed).await;
    let change = AlarmChange {
        overlap: Some(Overlap::Allow),
        ..AlarmChange::default()
    };
    edit(database, id, &change, "tester", None).await.unwrap();
    bed.assert_turns().await;
    eventually("the others pass it by", async || bed.receiver.arrived() > 2).await;
    // And back: they wait for it again.
    let change = AlarmChange {
        overlap: Some(Overlap::Queue),
        ..AlarmChange::default()
    };
    edit(database, id, &change, "tester", None).await.unwrap();
    bed.receiver.let_go();
    let before = bed.receiver.arrived();
    eventually("it goes on in turns", async || {
        bed.receiver.arrived() > before + 1
    })
    .await;
    pause(database, id, "tester").await.unwrap();
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn a_backfill_of_an_instant_that_the_series_has_not_made_does_not_stop_the_series() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    for overlap in [Overlap::Queue, Overlap::Skip] {
        let path = format!("/covered-{overlap}");
        let id = bed
            .set(NewAlarm {
                overlap: Some(overlap),
                ..bed.cron("* * * * *", &path)
            })
            .await;
        let at = bed.backdate(id, "1 second").await;
        let made = backfill(database, id, at - SignedDuration::from_secs(1), at, "tester")
            .await
            .unwrap();
        assert_eq!(made.len(), 1, "the instant that comes next");
    }
    let server = bed.server().await;
    let waiting =
        "select count(*) from stationmaster_internal.alarm_standings where held or next_due_at <= now()";
    eventually("the series goes on", async || {
        bed.testbed.count("occurrences_open").await == 0 && bed.testbed.number(waiting).await == 0
    })
    .await;
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn an_alarm_that_was_cancelled_while_its_server_was_dying_does_not_fire_again() {
    let bed = Bed::new().await;
    bed.receiver.next("/dying", [Reply::held()]);
    let doomed = doomed(&bed).await;
    let id = bed.now("/dying").await;
    eventually("the wake is under way", async || bed.receiver.arrived() == 1).await;
    operate::cancel(&bed.testbed.database, id, "tester", None)
        .await
        .unwrap();
    doomed.kill();
    let other = bed.server().await;
    eventually("it is over", async || bed.statuses(id).await == ["cancelled"]).await;
    assert_eq!(bed.status(id).await, "cancelled");
    bed.receiver.let_go();
    other.stop().await;
    assert_eq!(bed.receiver.arrived(), 1);
}

#[tokio::test]
async fn an_alarm_that_was_paused_while_its_server_was_dying_fires_only_when_it_is_resumed() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    bed.receiver.next("/dying", [Reply::held()]);
    let doomed = doomed(&bed).await;
    let id = bed.now("/dying").await;
    eventually("the wake is under way", async || bed.receiver.arrived() == 1).await;
    pause(database, id, "tester").await.unwrap();
    doomed.kill();
    let other = bed.server().await;
    eventually("it was taken back", async || {
        bed.occurrences(id).await[0].recoveries == 1
    })
    .await;
    bed.assert_turns().await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(bed.receiver.arrived(), 1, "it waits for the resume");
    resume(database, id, "tester").await.unwrap();
    bed.until(id, "fired").await;
    bed.receiver.let_go();
    other.stop().await;
}

#[tokio::test]
async fn a_lease_that_runs_out_while_its_server_lives_is_not_taken_over_once_the_alarm_is_cancelled_or_paused()
 {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    bed.receiver.next("/slow", [Reply::held(), Reply::held()]);
    let slow = bed.server().await;
    let (cancelled, paused) = (bed.now("/slow").await, bed.now("/slow").await);
    eventually("both are under way", async || bed.receiver.arrived() == 2).await;
    operate::cancel(database, cancelled, "tester", None)
        .await
        .unwrap();
    pause(database, paused, "tester").await.unwrap();
    bed.testbed
        .run("update stationmaster_internal.occurrences_open set ready_at = now() - interval '1 second'")
        .await;
    let other = bed.server().await;
    eventually("the cancelled one is over", async || {
        bed.statuses(cancelled).await == ["cancelled"]
    })
    .await;
    eventually("the paused one was taken back", async || {
        bed.occurrences(paused).await[0].recoveries == 1
    })
    .await;
    bed.assert_turns().await;
    assert_eq!(bed.receiver.arrived(), 2);
    bed.receiver.let_go();
    slow.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn an_alarm_that_is_paused_by_its_failures_keeps_what_else_is_open_until_it_is_resumed() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let id = bed
        .set(NewAlarm {
            pause_after: Some(1),
            ..bed.cron(YEARLY, "/failing")
        })
        .await;
    let at = Timestamp::now();
    bed.receiver.next("/failing", [Reply::status(404)]);
    bed.testbed
        .run(&format!(
            "insert into stationmaster_internal.occurrences_open (alarm_id, scheduled_for, due_at, ready_at)
             values ('{id}', '{at}', now(), now()), ('{id}', timestamptz '{at}' + interval '1 second', now(), now() + interval '1 hour')"
        ))
        .await;
    let server = bed.server().await;
    bed.until(id, "paused").await;
    bed.assert_turns().await;
    resume(database, id, "tester").await.unwrap();
    eventually("the other one fires", async || {
        bed.statuses(id).await.last().is_some_and(|last| last == "fired")
    })
    .await;
    bed.assert_turns().await;
    server.stop().await;
}

#[tokio::test]
async fn a_series_does_not_become_a_single_instant_while_one_of_it_is_open() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let (server, id) = one_under_way_and_one_waiting(&bed).await;
    let change = AlarmChange {
        delay: Some(3600.0),
        ..AlarmChange::default()
    };
    let refused = edit(database, id, &change, "tester", None).await;
    assert!(
        matches!(
            refused,
            Err(edit::Error::Operation(operate::Error::WrongState(_)))
        ),
        "{refused:?}"
    );
    bed.receiver.let_go();
    server.stop().await;
}
