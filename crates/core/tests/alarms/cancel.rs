//! Cancelling, also at the very moment of a fire.

use std::collections::HashMap;
use std::time::Duration;

use stationmaster_core::alarms::{AlarmStatus, operate};

use crate::bed::{Bed, once_in};
use crate::common::eventually;
use crate::common::receiver::Reply;

#[tokio::test]
async fn an_alarm_that_waits_for_its_next_try_is_cancelled_with_it() {
    let bed = Bed::new().await;
    bed.receiver.always("/bad", Reply::status(500));
    let server = bed.server().await;
    let id = bed.now("/bad").await;
    eventually("it waits", async || bed.statuses(id).await == ["retrying"]).await;
    assert_eq!(
        operate::cancel(&bed.testbed.database, id, "tester", None)
            .await
            .unwrap(),
        AlarmStatus::Cancelled
    );
    assert_eq!(bed.statuses(id).await, ["cancelled"]);
    let fired = bed.now("/good").await;
    bed.until(fired, "fired").await;
    assert_eq!(
        operate::cancel(&bed.testbed.database, fired, "tester", None)
            .await
            .unwrap(),
        AlarmStatus::Fired
    );
    server.stop().await;
    assert_eq!(bed.receiver.at("/bad").len(), 1);
}

#[tokio::test]
async fn a_wake_under_way_when_its_alarm_is_cancelled_is_recorded_and_never_tried_again() {
    let bed = Bed::new().await;
    let held_and_refused = Reply {
        held: true,
        ..Reply::status(500)
    };
    bed.receiver.next("/held", [held_and_refused]);
    let server = bed.server().await;
    let id = bed.now("/held").await;
    eventually("it is under way", async || bed.receiver.arrived() == 1).await;
    operate::cancel(&bed.testbed.database, id, "tester", None)
        .await
        .unwrap();
    bed.receiver.let_go();
    eventually("it is settled", async || bed.statuses(id).await == ["cancelled"]).await;
    let occurrence = &bed.occurrences(id).await[0];
    assert_eq!(occurrence.last_error.as_deref(), Some("the target answered 500"));
    assert_eq!(bed.status(id).await, "cancelled");
    server.stop().await;
    assert_eq!(bed.receiver.at("/held").len(), 1);
}

/// Whatever wins, the record says it: a wake was sent once and accepted, or none was sent.
#[tokio::test]
async fn cancels_that_race_with_fires_leave_each_alarm_in_one_state_with_a_true_record() {
    let bed = Bed::new().await;
    let servers = [bed.server().await, bed.server().await];
    let mut ids = Vec::new();
    for round in 0..60_u64 {
        let when = once_in(Duration::from_millis(round % 7));
        let id = bed.set(bed.request(when, "/race")).await;
        let database = bed.testbed.database.clone();
        ids.push((
            id,
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(round % 11)).await;
                operate::cancel(&database, id, "tester", None).await.unwrap()
            }),
        ));
    }
    let mut outcomes: HashMap<String, usize> = HashMap::new();
    for (id, cancelled) in ids {
        let answer = cancelled.await.unwrap();
        eventually("nothing of it is open", async || {
            let query = format!(
                "select count(*) from stationmaster_internal.occurrences_open where alarm_id = '{id}'"
            );
            bed.testbed.number(&query).await == 0
        })
        .await;
        let status = bed.status(id).await;
        assert_eq!(status, answer.as_str(), "what cancel said is so");
        let prefix = format!("{id}:");
        let wakes = bed
            .receiver
            .at("/race")
            .iter()
            .filter(|wake| wake.id().starts_with(&prefix))
            .count();
        let fired = bed
            .statuses(id)
            .await
            .iter()
            .filter(|status| *status == "fired")
            .count();
        assert_eq!(wakes, fired, "{id} is {status}");
        assert!(status != "fired" || fired == 1);
        *outcomes.entry(format!("{status}, {fired} fired")).or_default() += 1;
    }
    println!("{outcomes:?}");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test]
async fn a_series_cancelled_while_it_fires_makes_no_further_occurrence() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    for _ in 0..3 {
        let id = bed.set(bed.cron("* * * * * *", "/series")).await;
        let before = bed.receiver.arrived();
        eventually("it fires", async || bed.receiver.arrived() > before).await;
        operate::cancel(&bed.testbed.database, id, "tester", None)
            .await
            .unwrap();
        eventually("nothing of it is open", async || {
            bed.testbed.count("occurrences_open").await == 0
        })
        .await;
        let alarm = bed.alarm(id).await;
        assert_eq!((alarm.status.as_str(), alarm.next_fire_at), ("cancelled", None));
    }
    let due = "select count(*) from stationmaster_internal.alarm_standings where next_due_at is not null";
    assert_eq!(bed.testbed.number(due).await, 0);
    server.stop().await;
}

#[tokio::test]
async fn the_alarms_of_a_workspace_that_is_deleted_are_cancelled() {
    let bed = Bed::new().await;
    let id = bed.set(bed.cron("* * * * *", "/gone")).await;
    bed.testbed
        .run(&format!(
            "delete from stationmaster.workspaces where id = '{}'",
            bed.workspace
        ))
        .await;
    let alarm = bed.alarm(id).await;
    assert_eq!(
        (alarm.status.as_str(), alarm.last_error.as_deref()),
        ("cancelled", Some("the workspace was deleted"))
    );
}
