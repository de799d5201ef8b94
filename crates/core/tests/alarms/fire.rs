//! An alarm fires: in time, once, with the body that was promised.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stationmaster_core::alarms::Settings;
use stationmaster_core::alarms::set::set;
use stationmaster_wire::NewAlarm;

use crate::bed::{Bed, once_at, once_in};
use crate::common::receiver::Received;
use crate::common::{eventually, raw, within};

#[tokio::test]
async fn an_alarm_for_once_wakes_the_router_and_is_fired() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    let request = NewAlarm {
        user_id: Some("user-7".to_owned()),
        conversation_id: Some("talk-1".to_owned()),
        message: Some("Zeit für den Zug \u{1f682}".to_owned()),
        payload: Some(raw(r#"{"track": 9.750}"#)),
        ..bed.plain(once_in(Duration::ZERO))
    };
    let id = set(&bed.testbed.database, &request, "tester")
        .await
        .unwrap()
        .alarm();
    let wakes = bed.wakes("/internal/wake", 1).await;
    let alarm = bed.until(id, "fired").await;
    let scheduled_for = alarm.fire_at.unwrap();
    assert_eq!(
        wakes[0].json(),
        json!({
            "workspace_id": bed.workspace.to_string(), "user_id": "user-7", "conversation_id": "talk-1", "message": "Zeit für den Zug \u{1f682}",
            "payload": {"track": 9.750}, "alarm_id": id, "scheduled_for": scheduled_for, "attempt": 1, "origin": "schedule",
        })
    );
    assert_eq!(wakes[0].id(), format!("{id}:{scheduled_for}"));
    assert_eq!(wakes[0].header("content-type"), "application/json");
    assert!(alarm.last_fired_at.is_some() && alarm.next_fire_at.is_none() && alarm.failure_count == 0);
    let occurrences = bed.occurrences(id).await;
    assert_eq!(occurrences.len(), 1);
    assert_eq!(
        (occurrences[0].status.as_str(), occurrences[0].attempts),
        ("fired", 0)
    );
    assert_eq!(occurrences[0].answer_status, Some(200));
    server.stop().await;
    assert_eq!(bed.receiver.received().len(), 1);
}

#[tokio::test]
async fn without_anything_special_the_wake_names_the_workspace_and_says_null() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    let id = bed.now("/plain").await;
    let wakes = bed.wakes("/plain", 1).await;
    let body = wakes[0].json();
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    let text = String::from_utf8(wakes[0].body.clone()).unwrap();
    let expected = format!(
        r#"{{"workspace_id":"{0}","user_id":"{0}","conversation_id":null,"message":null,"payload":null,"alarm_id":"{id}","scheduled_for":{1},"attempt":1,"origin":"schedule"}}"#,
        bed.workspace, body["scheduled_for"]
    );
    assert_eq!(text, expected, "{keys:?}");
    server.stop().await;
}

#[tokio::test]
async fn wakes_to_one_target_share_a_connection() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    for _ in 0..5 {
        let id = bed.now("/again").await;
        bed.until(id, "fired").await;
    }
    let wakes = bed.wakes("/again", 5).await;
    assert!(
        wakes.iter().all(|wake| wake.peer == wakes[0].peer),
        "{:?}",
        wakes.iter().map(|wake| wake.peer).collect::<Vec<_>>()
    );
    server.stop().await;
}

#[tokio::test]
async fn a_payload_is_sent_character_by_character() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    let payloads = [
        r#"{"z": 1, "a": 2, "z": 3}"#,
        r#"{"n": 12345678901234567890123456789.000100, "e": 1E400, "minus": -0.0, "small": 1e-7}"#,
        r#""😀 \ud83d\ude00 \u0000 é \/""#,
        r#"[[[[[[[[[[[[{"deep": [null, true, false, ""]}]]]]]]]]]]]]"#,
        "{\n  \"spaces\" :\t[ 1 , 2 ]\n}",
        "0",
        "null",
    ];
    for (place, payload) in payloads.iter().enumerate() {
        let path = format!("/{place}");
        let request = NewAlarm {
            payload: Some(raw(payload)),
            ..bed.request(once_in(Duration::ZERO), &path)
        };
        bed.set(request).await;
        let wakes = bed.wakes(&path, 1).await;
        let text = String::from_utf8(wakes[0].body.clone()).unwrap();
        let expected = format!(r#""payload":{payload},"alarm_id""#);
        assert!(text.contains(&expected), "{text} should hold {expected}");
    }
    server.stop().await;
}

/// The tick is far away, so only the known due time, or a notification, can be what wakes the server.
#[tokio::test]
async fn a_server_sleeps_until_the_next_alarm_is_due_and_learns_of_new_ones() {
    let bed = Bed::new().await;
    let settings = Settings {
        tick: Duration::from_mins(10),
        ..bed.settings()
    };
    let server = bed.server_with(settings).await;
    // It has looked and found nothing; then it sleeps.
    tokio::time::sleep(Duration::from_millis(300)).await;
    bed.set(bed.request(once_in(Duration::ZERO), "/now")).await;
    bed.wakes("/now", 1).await;
    let at = Timestamp::now() + SignedDuration::from_millis(1500);
    bed.set(bed.request(once_at(at), "/soon")).await;
    let took = within(Duration::from_secs(20), "the second one fires", async || {
        !bed.receiver.at("/soon").is_empty()
    })
    .await;
    assert!(took > Duration::from_secs(1), "not before its time: {took:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_cron_alarm_fires_and_moves_on() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    let id = bed.set(bed.cron("* * * * * *", "/tick")).await;
    let wakes = bed.wakes("/tick", 3).await;
    let alarm = bed.alarm(id).await;
    assert_eq!(alarm.status.as_str(), "active");
    assert!(alarm.next_fire_at.is_some() && alarm.last_fired_at.is_some());
    let mut instants: Vec<String> = wakes
        .iter()
        .map(|wake| wake.json()["scheduled_for"].to_string())
        .collect();
    instants.dedup();
    assert_eq!(instants.len(), wakes.len(), "each nominal instant once");
    server.stop().await;
}

#[tokio::test]
async fn a_series_with_an_end_retires_after_its_last_occurrence() {
    let bed = Bed::new().await;
    let now = Timestamp::now();
    let request = NewAlarm {
        end_at: Some(now + SignedDuration::from_millis(2500)),
        ..bed.cron("* * * * * *", "/until")
    };
    let id = bed.set(request).await;
    let server = bed.server().await;
    let alarm = bed.until(id, "fired").await;
    assert_eq!(alarm.next_fire_at, None);
    let fired = bed.receiver.at("/until").len();
    assert!((1..=3).contains(&fired), "{fired} fires in 2.5 s");
    eventually("all are settled", async || {
        bed.testbed.count("occurrences_open").await == 0
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn three_servers_fire_each_occurrence_once() {
    let bed = Bed::new().await;
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(bed.server().await);
    }
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(bed.now("/many").await);
    }
    bed.wakes("/many", 60).await;
    for id in &ids {
        bed.until(*id, "fired").await;
    }
    let mut seen: Vec<String> = bed.receiver.at("/many").iter().map(Received::id).collect();
    assert_eq!(seen.len(), 60);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 60);
    for server in servers {
        server.stop().await;
    }
}
