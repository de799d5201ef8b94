//! What people do: pause, resume, fire now, edit.

use std::time::Duration;

use stationmaster_core::alarms::edit::{self, edit};
use stationmaster_core::alarms::operate::{self, fire, pause, resume};
use stationmaster_core::alarms::set;
use stationmaster_core::id::AlarmId;
use stationmaster_wire::{Alarm, AlarmChange, Misfire};

use crate::bed::{Bed, YEARLY, cron, once_in};
use crate::common::eventually;
use crate::common::receiver::Reply;

#[tokio::test]
async fn a_paused_alarm_does_not_fire_and_a_resumed_one_goes_on_from_now() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let id = bed.set(bed.cron("* * * * *", "/paused")).await;
    pause(database, id, "tester").await.unwrap();
    pause(database, id, "tester").await.unwrap();
    bed.testbed
        .run("update stationmaster_internal.alarm_standings set next_fire_at = date_trunc('minute', now() - interval '3 minutes')")
        .await;
    let server = bed.server().await;
    let other = bed.now("/other").await;
    bed.until(other, "fired").await;
    assert!(bed.receiver.at("/paused").is_empty());
    resume(database, id, "tester").await.unwrap();
    let alarm = bed.alarm(id).await;
    assert_eq!(alarm.status.as_str(), "active");
    assert!(alarm.next_fire_at > Some(jiff::Timestamp::now()));
    let all = bed.occurrences(id).await;
    assert!(all.len() >= 3, "{all:?}");
    assert!(
        all.iter()
            .all(|one| one.status.as_str() == "skipped"
                && one.reason.as_deref() == Some("the alarm was paused"))
    );
    let events: Vec<String> = bed
        .events(id)
        .await
        .into_iter()
        .map(|event| event.event)
        .collect();
    assert_eq!(events, ["set", "paused", "resumed"]);
    server.stop().await;
}

#[tokio::test]
async fn a_pause_parks_what_waits_for_its_next_try_and_a_resume_lets_it_go() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    bed.receiver.next("/bad", [Reply::status(500)]);
    let server = bed.server().await;
    let id = bed.now("/bad").await;
    eventually("it waits", async || bed.statuses(id).await == ["retrying"]).await;
    pause(database, id, "tester").await.unwrap();
    let parked = "select count(*) from stationmaster_internal.occurrences_open where ready_at = 'infinity'";
    assert_eq!(bed.testbed.number(parked).await, 1);
    assert_eq!(bed.occurrences(id).await[0].retry_at, None);
    resume(database, id, "tester").await.unwrap();
    bed.until(id, "fired").await;
    server.stop().await;
}

#[tokio::test]
async fn firing_by_hand_is_an_occurrence_of_its_own_beside_the_schedule() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let server = bed.server().await;
    let id = bed.set(bed.cron(YEARLY, "/now")).await;
    let next = bed.alarm(id).await.next_fire_at;
    let at = fire(database, id, "tester").await.unwrap();
    let wakes = bed.wakes("/now", 1).await;
    assert_eq!(wakes[0].id(), format!("{id}:{at}"));
    assert_eq!(wakes[0].json()["origin"], "manual");
    eventually("it is settled", async || bed.statuses(id).await == ["fired"]).await;
    let alarm = bed.alarm(id).await;
    assert_eq!((alarm.status.as_str(), alarm.next_fire_at), ("active", next));
    pause(database, id, "tester").await.unwrap();
    fire(database, id, "tester").await.unwrap();
    bed.wakes("/now", 2).await;
    operate::cancel(database, id, "tester", None).await.unwrap();
    assert!(matches!(
        fire(database, id, "tester").await,
        Err(operate::Error::WrongState(_))
    ));
    assert!(matches!(
        fire(database, AlarmId::new(), "tester").await,
        Err(operate::Error::NotFound(_))
    ));
    server.stop().await;
}

#[tokio::test]
async fn an_edit_changes_what_is_named_and_nothing_else() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let mut request = bed.cron(YEARLY, "/old");
    request.message = Some("before".to_owned());
    request.payload = Some(crate::common::raw("[1]"));
    let id = bed.set(request).await;
    let next = bed.alarm(id).await.next_fire_at;
    let change = AlarmChange {
        message: Some(Some("after".to_owned())),
        payload: Some(None),
        label: Some("renamed".to_owned()),
        ..AlarmChange::default()
    };
    let alarm = edit(database, id, &change, "tester", None).await.unwrap();
    assert_eq!(
        (alarm.message.as_deref(), alarm.label.as_str()),
        (Some("after"), "renamed")
    );
    assert!(alarm.payload.is_none());
    assert_eq!(
        (alarm.next_fire_at, alarm.target_url),
        (next, Some(bed.receiver.url("/old")))
    );
    let sooner = AlarmChange {
        delay: Some(0.0),
        target_url: Some(Some(bed.receiver.url("/new"))),
        ..AlarmChange::default()
    };
    let alarm = edit(database, id, &sooner, "tester", None).await.unwrap();
    assert_eq!((alarm.kind.as_str(), alarm.cron_expr), ("once", None));
    let server = bed.server().await;
    let wakes = bed.wakes("/new", 1).await;
    assert_eq!(wakes[0].json()["message"], "after");
    bed.until(id, "fired").await;
    let over = edit(database, id, &sooner, "tester", None).await;
    assert!(
        matches!(over, Err(edit::Error::Operation(operate::Error::WrongState(_)))),
        "{over:?}"
    );
    server.stop().await;
}

#[tokio::test]
async fn an_edit_that_cannot_be_changes_nothing() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let id = bed.set(bed.cron(YEARLY, "/same")).await;
    let before = bed.alarm(id).await;
    for change in [
        AlarmChange {
            cron_expr: Some("0 0 30 2 *".to_owned()),
            timezone: Some("UTC".to_owned()),
            ..AlarmChange::default()
        },
        AlarmChange {
            target_url: Some(Some("ftp://a/".to_owned())),
            ..AlarmChange::default()
        },
        AlarmChange {
            max_failures: Some(Some(0)),
            ..AlarmChange::default()
        },
        AlarmChange {
            end_at: Some(Some("2020-01-01T00:00:00Z".parse().unwrap())),
            ..AlarmChange::default()
        },
    ] {
        let refused = edit(database, id, &change, "tester", None).await;
        assert!(
            matches!(refused, Err(edit::Error::Request(_))),
            "{change:?}: {refused:?}"
        );
    }
    let after = bed.alarm(id).await;
    assert_eq!(
        (before.next_fire_at, before.updated_at),
        (after.next_fire_at, after.updated_at)
    );
    let unknown = edit(database, AlarmId::new(), &AlarmChange::default(), "tester", None).await;
    assert!(matches!(
        unknown,
        Err(edit::Error::Operation(operate::Error::NotFound(_)))
    ));
}

#[tokio::test]
async fn what_a_change_cannot_say_is_refused_by_its_field() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let series = bed.set(bed.cron(YEARLY, "/")).await;
    let once = bed.set(bed.request(once_in(Duration::from_hours(1)), "/")).await;
    let plain = AlarmChange::default;
    let cases = [
        (
            once,
            AlarmChange {
                timezone: Some("Asia/Tokyo".to_owned()),
                ..plain()
            },
            "timezone",
        ),
        (
            series,
            AlarmChange {
                timezone: Some("Mars/Olympus".to_owned()),
                ..plain()
            },
            "timezone",
        ),
        (
            series,
            AlarmChange {
                civil_at: Some("tomorrow".to_owned()),
                ..plain()
            },
            "civil_at",
        ),
        (
            series,
            AlarmChange {
                delay: Some(1.0),
                cron_expr: Some(YEARLY.to_owned()),
                ..plain()
            },
            "cron_expr",
        ),
        (
            series,
            AlarmChange {
                delay: Some(-1.0),
                ..plain()
            },
            "delay",
        ),
        (
            series,
            AlarmChange {
                jitter: Some(-1.0),
                ..plain()
            },
            "jitter",
        ),
        (
            series,
            AlarmChange {
                misfire_window: Some(Some(0.0)),
                ..plain()
            },
            "misfire_window",
        ),
        (
            series,
            AlarmChange {
                catch_up: Some(3),
                ..plain()
            },
            "catch_up",
        ),
    ];
    for (id, change, field) in cases {
        let refused = edit(database, id, &change, "tester", None).await;
        let Err(edit::Error::Request(set::Error::Invalid(wrong))) = refused else {
            panic!("{change:?}: {refused:?}");
        };
        assert_eq!(wrong.field, Some(field), "{wrong}");
    }
}

#[tokio::test]
async fn a_change_keeps_the_zone_or_the_expression_that_it_does_not_name() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let id = bed.set(bed.request(cron("0 9 * * *", "Asia/Tokyo"), "/")).await;
    let change = AlarmChange {
        cron_expr: Some("0 10 * * *".to_owned()),
        ..AlarmChange::default()
    };
    let alarm = edit(database, id, &change, "tester", None).await.unwrap();
    assert_eq!(alarm.timezone.as_deref(), Some("Asia/Tokyo"));
    let change = AlarmChange {
        timezone: Some("Europe/Zurich".to_owned()),
        misfire: Some(Misfire::CatchUp),
        ..AlarmChange::default()
    };
    let alarm = edit(database, id, &change, "tester", None).await.unwrap();
    assert_eq!(
        (alarm.cron_expr.as_deref(), alarm.timezone.as_deref()),
        (Some("0 10 * * *"), Some("Europe/Zurich"))
    );
    assert_eq!((alarm.misfire, alarm.catch_up), (Misfire::CatchUp, 10));
    let seen = |alarm: Option<&Alarm>| alarm.is_some_and(|alarm| alarm.label == "other");
    let refused = edit(database, id, &change, "tester", Some(Box::new(seen))).await;
    assert!(
        matches!(refused, Err(edit::Error::Operation(operate::Error::Unexpected))),
        "{refused:?}"
    );
}
