//! Setting alarms through the API: what is refused and why, keys, and what is shown.

use std::time::Duration;

use jiff::SignedDuration;
use stationmaster_core::alarms::inspect::{self, AlarmQuery};
use stationmaster_core::alarms::set::{Error, Set, set};
use stationmaster_core::id::{AlarmId, WorkspaceId};
use stationmaster_wire::{AlarmChange, NewAlarm};
use uuid::Uuid;

use crate::bed::{Bed, civil, cron, once_in};
use crate::common::raw;

#[tokio::test]
async fn an_expression_that_can_never_fire_is_refused_with_the_place() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    for (expression, place) in [
        ("0 0 30 2 *", "30"),
        ("0 25 * * *", "25"),
        ("* * *", "* * *"),
        ("0 0 * * FRYDAY", "FRYDAY"),
    ] {
        let request = bed.plain(cron(expression, "UTC"));
        let Err(Error::Expression { at, pointed, message }) = set(database, &request, "tester").await else {
            panic!("{expression} is refused");
        };
        assert!(
            expression[at].contains(place) && pointed.contains('^') && !message.is_empty(),
            "{pointed}"
        );
    }
    let unknown = bed.plain(cron("* * * * *", "Europe/Zuerich"));
    let error = set(database, &unknown, "tester").await.unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(wrong) if wrong.words.contains("Europe/Zurich")),
        "{error}"
    );
    let over = NewAlarm {
        end_at: Some("2020-01-01T00:00:00Z".parse().unwrap()),
        ..bed.plain(cron("* * * * *", "UTC"))
    };
    let error = set(database, &over, "tester").await.unwrap_err();
    assert!(
        matches!(&error, Error::Invalid(wrong) if wrong.words.contains("never fires")),
        "{error}"
    );
    assert_eq!(bed.testbed.count("alarms").await, 0);
}

#[tokio::test]
async fn what_does_not_fit_is_refused_in_words() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let base = || bed.request(once_in(Duration::from_mins(1)), "/");
    let url = |url: &str| NewAlarm {
        target_url: Some(url.to_owned()),
        ..base()
    };
    for (request, words, field) in [
        (url("not a url"), "not a URL", Some("target_url")),
        (url("ftp://host/"), "http", Some("target_url")),
        (url("http://ann:word@host/"), "credentials", Some("target_url")),
        (
            NewAlarm {
                label: "x".repeat(201),
                ..base()
            },
            "200 characters",
            Some("label"),
        ),
        (
            NewAlarm {
                payload: Some(raw(&format!("\"{}\"", "x".repeat(300_000)))),
                ..base()
            },
            "256 kib",
            Some("payload"),
        ),
        (
            NewAlarm {
                max_failures: Some(0),
                ..base()
            },
            "max failures",
            Some("max_failures"),
        ),
        (
            NewAlarm {
                jitter: Some(25.0 * 3600.0),
                ..base()
            },
            "jitter",
            Some("jitter"),
        ),
        (
            NewAlarm {
                idempotency_key: Some("x".repeat(257)),
                ..base()
            },
            "idempotency key",
            Some("idempotency_key"),
        ),
        (
            NewAlarm {
                message: Some("a\0b".to_owned()),
                ..base()
            },
            "",
            None,
        ),
    ] {
        let error = set(database, &request, "tester").await.unwrap_err();
        let Error::Invalid(said) = &error else {
            panic!("{error:?}");
        };
        assert!(said.words.contains(words), "{said}");
        assert_eq!(said.field, field, "{said}");
    }
    let nowhere = NewAlarm {
        workspace_id: Uuid::now_v7(),
        ..once_in(Duration::ZERO)
    };
    assert!(matches!(
        set(database, &nowhere, "tester").await,
        Err(Error::UnknownWorkspace(_))
    ));
}

#[tokio::test]
async fn the_same_key_and_request_give_the_first_alarm_also_after_an_edit() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    let request = NewAlarm {
        idempotency_key: Some("k".to_owned()),
        ..bed.plain(cron("0 9 * * *", "Europe/Zurich"))
    };
    let first = set(database, &request, "tester").await.unwrap();
    assert!(matches!(first, Set::New(_)));
    assert_eq!(
        set(database, &request, "other").await.unwrap(),
        Set::Before(first.alarm())
    );
    let change = AlarmChange {
        label: Some("new".to_owned()),
        ..Default::default()
    };
    stationmaster_core::alarms::edit::edit(database, first.alarm(), &change, "tester", None)
        .await
        .unwrap();
    assert_eq!(
        set(database, &request, "tester").await.unwrap(),
        Set::Before(first.alarm())
    );
    let other = NewAlarm {
        message: Some("other".to_owned()),
        ..request.clone()
    };
    assert!(matches!(
        set(database, &other, "tester").await,
        Err(Error::Conflict)
    ));
    let elsewhere = NewAlarm {
        workspace_id: bed.testbed.workspace(1).await.0,
        ..request
    };
    assert!(matches!(
        set(database, &elsewhere, "tester").await.unwrap(),
        Set::New(_)
    ));
}

#[tokio::test]
async fn many_at_once_with_one_key_make_one_alarm() {
    let bed = Bed::new().await;
    let request = NewAlarm {
        idempotency_key: Some("k".to_owned()),
        ..bed.request(once_in(Duration::from_mins(10)), "/")
    };
    let all = (0..8).map(|_| set(&bed.testbed.database, &request, "tester"));
    let answers = futures::future::join_all(all).await;
    let new = answers
        .iter()
        .filter(|answer| matches!(answer, Ok(Set::New(_))))
        .count();
    assert_eq!((new, bed.testbed.count("alarms").await), (1, 1));
    let first = answers[0].as_ref().unwrap().alarm();
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().unwrap().alarm() == first)
    );
}

#[tokio::test]
async fn civil_times_follow_the_rule_for_moving_clocks() {
    let bed = Bed::new().await;
    let gap = civil("2030-03-31T02:30:00", "Europe/Zurich");
    let twice = civil("2030-10-27T02:30:00", "Europe/Zurich");
    let gap = bed.alarm(bed.set(bed.request(gap, "/")).await).await;
    assert_eq!(
        gap.next_fire_at,
        Some("2030-03-31T01:00:00Z".parse().unwrap()),
        "the first instant after the gap"
    );
    let twice = bed.alarm(bed.set(bed.request(twice, "/")).await).await;
    assert_eq!(
        twice.next_fire_at,
        Some("2030-10-27T00:30:00Z".parse().unwrap()),
        "the first of two"
    );
}

#[tokio::test]
async fn an_alarm_shows_its_coming_fires_and_its_expression_in_words() {
    let bed = Bed::new().await;
    let id = bed.set(bed.plain(cron("30 2 * * *", "Europe/Zurich"))).await;
    let alarm = bed.alarm(id).await;
    assert!(alarm.description.is_some());
    let fires = inspect::upcoming(&alarm, jiff::Timestamp::now(), 10);
    assert_eq!(fires.len(), 10);
    assert_eq!(Some(fires[0].at), alarm.next_fire_at);
    let year = inspect::upcoming(&alarm, jiff::Timestamp::now(), 366);
    assert!(
        year.iter().any(|fire| fire.note.is_some()),
        "the clocks change within a year"
    );
}

#[tokio::test]
async fn alarms_are_listed_by_page_and_filter() {
    let bed = Bed::new().await;
    let database = &bed.testbed.database;
    for _ in 0..5 {
        bed.set(bed.request(once_in(Duration::from_mins(10)), "/")).await;
    }
    let cron = bed.set(bed.cron("0 0 1 1 *", "/")).await;
    stationmaster_core::alarms::operate::pause(database, cron, "tester")
        .await
        .unwrap();
    let list = |query: AlarmQuery, before, limit| async move {
        let page = inspect::alarms(database, &query, None, before, limit).await;
        page.unwrap().rows
    };
    let page = list(AlarmQuery::default(), None, 4).await;
    assert_eq!(page.len(), 4);
    assert_eq!(page[0].id, cron.0, "newest first");
    let rest = list(AlarmQuery::default(), Some(AlarmId(page[3].id)), 4).await;
    assert_eq!(rest.len(), 2);
    let only = |status: &str, kind: &str| AlarmQuery {
        status: Some(status.parse().unwrap()),
        kind: Some(kind.parse().unwrap()),
        ..AlarmQuery::default()
    };
    assert_eq!(list(only("paused", "cron"), None, 10).await.len(), 1);
    assert_eq!(list(only("active", "once"), None, 10).await.len(), 5);
    assert_eq!(list(only("active", "cron"), None, 10).await.len(), 0);
    let every = AlarmQuery::default();
    let other = inspect::alarms(database, &every, Some(WorkspaceId::new()), None, 10).await;
    assert!(other.unwrap().rows.is_empty());
    let at = jiff::Timestamp::now() + SignedDuration::from_hours(1);
    assert!(page.iter().skip(1).all(|alarm| alarm.next_fire_at < Some(at)));
}
