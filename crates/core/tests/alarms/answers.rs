//! Every class of answer, and the whole ladder.

use std::time::Duration;

use stationmaster_core::alarms::inspect;
use stationmaster_wire::NewAlarm;

use crate::bed::{Bed, YEARLY, once_in};
use crate::common::eventually;
use crate::common::receiver::Reply;

#[tokio::test]
async fn the_whole_ladder_is_climbed_under_one_id_and_then_the_alarm_has_failed() {
    let bed = Bed::new().await;
    bed.receiver.always("/down", Reply::status(500));
    let server = bed.server().await;
    let request = NewAlarm {
        max_failures: Some(7),
        ..bed.request(once_in(Duration::ZERO), "/down")
    };
    let id = bed.set(request).await;
    let steps = [30, 60, 120, 240, 480, 900];
    for (place, step) in steps.iter().enumerate() {
        let attempt = i32::try_from(place).unwrap() + 1;
        eventually(&format!("try {attempt} has failed"), async || {
            let all = bed.occurrences(id).await;
            all[..]
                .first()
                .is_some_and(|one| one.status.as_str() == "retrying" && one.attempts == attempt)
        })
        .await;
        let query = format!(
            "select extract(epoch from ready_at - clock_timestamp())::bigint from stationmaster_internal.occurrences_open where alarm_id = '{id}'"
        );
        let wait = bed.testbed.number(&query).await;
        assert!(
            (step - 20..=step + step / 10 + 1).contains(&wait),
            "step {step}: waits {wait} s"
        );
        let alarm = bed.alarm(id).await;
        assert_eq!((alarm.status.as_str(), alarm.failure_count), ("active", attempt));
        assert_eq!(alarm.last_error.as_deref(), Some("the target answered 500"));
        assert!(alarm.next_fire_at.is_some(), "the nominal instant stays");
        bed.hurry(id).await;
    }
    let alarm = bed.until(id, "failed").await;
    assert_eq!((alarm.failure_count, alarm.failed_in_a_row), (7, 1));
    let wakes = bed.receiver.at("/down");
    assert_eq!(wakes.len(), 7, "seven tries");
    assert!(wakes.iter().all(|wake| wake.id() == wakes[0].id()));
    let attempts: Vec<u64> = wakes
        .iter()
        .map(|wake| wake.json()["attempt"].as_u64().unwrap())
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6, 7]);
    let occurrence = &bed.occurrences(id).await[0];
    assert_eq!((occurrence.status.as_str(), occurrence.attempts), ("failed", 7));
    let tries = inspect::tries(&bed.testbed.database, id, occurrence.scheduled_for)
        .await
        .unwrap();
    assert_eq!(tries.len(), 7);
    assert!(
        tries
            .iter()
            .all(|one| one.class == "broken" && one.answer_status == Some(500))
    );
    server.stop().await;
}

#[tokio::test]
async fn by_default_an_alarm_has_five_tries() {
    let bed = Bed::new().await;
    bed.receiver.always("/down", Reply::status(503));
    let server = bed.server().await;
    let id = bed.now("/down").await;
    for attempt in 1..5 {
        bed.next_try(id, attempt).await;
    }
    bed.until(id, "failed").await;
    assert_eq!(bed.receiver.at("/down").len(), 5);
    server.stop().await;
}

#[tokio::test]
async fn an_alarm_that_is_accepted_at_last_is_fired_and_its_failures_are_forgotten() {
    let bed = Bed::new().await;
    bed.receiver
        .next("/late", [Reply::status(500), Reply::status(429)]);
    let server = bed.server().await;
    let id = bed.now("/late").await;
    bed.next_try(id, 1).await;
    bed.next_try(id, 2).await;
    let alarm = bed.until(id, "fired").await;
    assert_eq!((alarm.failure_count, alarm.last_error), (0, None));
    let occurrence = &bed.occurrences(id).await[0];
    assert_eq!((occurrence.status.as_str(), occurrence.attempts), ("fired", 2));
    server.stop().await;
}

#[tokio::test]
async fn permanent_answers_fail_at_once_and_all_others_are_tried_again() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    for status in [400, 401, 403, 404, 405, 409, 410, 413, 422, 451] {
        let path = format!("/{status}");
        bed.receiver.always(&path, Reply::status(status));
        let id = bed.now(&path).await;
        let alarm = bed.until(id, "failed").await;
        assert_eq!(alarm.last_error, Some(format!("the target answered {status}")));
        assert_eq!(bed.receiver.at(&path).len(), 1, "{status}");
        let occurrence = &bed.occurrences(id).await[0];
        let reason = if status == 410 { "gone" } else { "refused" };
        assert_eq!(
            (occurrence.reason.as_deref(), occurrence.attempts),
            (Some(reason), 1)
        );
    }
    for status in [301, 302, 307, 308, 408, 425, 429, 500, 501, 502, 503, 504] {
        let path = format!("/{status}");
        let elsewhere = Reply {
            headers: vec![("location", bed.receiver.url("/elsewhere"))],
            ..Reply::status(status)
        };
        bed.receiver.next(&path, [elsewhere]);
        let id = bed.now(&path).await;
        bed.next_try(id, 1).await;
        bed.until(id, "fired").await;
        assert_eq!(bed.receiver.at(&path).len(), 2, "{status}");
    }
    assert!(
        bed.receiver.at("/elsewhere").is_empty(),
        "no redirect is followed"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_target_that_asks_for_time_gets_it() {
    let bed = Bed::new().await;
    let reply = |value: &str| Reply {
        headers: vec![("retry-after", value.to_owned())],
        ..Reply::status(429)
    };
    bed.receiver
        .next("/busy", [reply("600"), reply("1"), reply("99999999999")]);
    let server = bed.server().await;
    let id = bed.now("/busy").await;
    let wait = async |attempt| {
        eventually("the try has failed", async || {
            bed.occurrences(id)
                .await
                .first()
                .is_some_and(|one| one.attempts == attempt && one.status.as_str() == "retrying")
        })
        .await;
        let query = format!(
            "select extract(epoch from ready_at - clock_timestamp())::bigint from stationmaster_internal.occurrences_open where alarm_id = '{id}'"
        );
        let wait = bed.testbed.number(&query).await;
        bed.hurry(id).await;
        wait
    };
    let (long, short, endless) = (wait(1).await, wait(2).await, wait(3).await);
    assert!((580..=604).contains(&long), "{long}");
    assert!(
        (40..=67).contains(&short),
        "never sooner than the ladder: {short}"
    );
    assert!(
        (86_000..=86_413).contains(&endless),
        "never longer than a day: {endless}"
    );
    bed.until(id, "fired").await;
    server.stop().await;
}

#[tokio::test]
async fn a_failed_occurrence_of_a_series_is_recorded_and_the_series_goes_on() {
    let bed = Bed::new().await;
    bed.receiver.always("/bad", Reply::status(404));
    let server = bed.server().await;
    let id = bed.set(bed.cron("* * * * * *", "/bad")).await;
    bed.wakes("/bad", 3).await;
    eventually("three have failed", async || {
        bed.alarm(id).await.failed_in_a_row >= 3
    })
    .await;
    let alarm = bed.alarm(id).await;
    assert_eq!(alarm.status.as_str(), "active");
    assert!(alarm.next_fire_at.is_some());
    assert!(
        bed.statuses(id).await[..3]
            .iter()
            .all(|status| status == "failed")
    );
    eventually("it shows", async || {
        server.station.measure().await;
        server.metric("stationmaster_alarms_failing") == 1
    })
    .await;
    bed.receiver.always("/bad", Reply::status(200));
    eventually("its failures are forgotten", async || {
        bed.alarm(id).await.failed_in_a_row == 0
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_series_that_keeps_failing_is_paused_when_it_asked_for_that() {
    let bed = Bed::new().await;
    bed.receiver.always("/bad", Reply::status(404));
    let server = bed.server().await;
    let request = NewAlarm {
        pause_after: Some(2),
        ..bed.cron("* * * * * *", "/bad")
    };
    let id = bed.set(request).await;
    let alarm = bed.until(id, "paused").await;
    assert_eq!(alarm.failed_in_a_row, 2);
    let events = bed.events(id).await;
    let last = events.last().unwrap();
    assert_eq!(
        (last.event.as_str(), last.actor.as_str()),
        ("paused", "stationmaster")
    );
    eventually("the pause is counted", async || {
        server.metric("stationmaster_alarms_auto_paused_total") == 1
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn a_target_that_is_gone_pauses_the_series() {
    let bed = Bed::new().await;
    bed.receiver.always("/gone", Reply::status(410));
    let id = bed.set(bed.cron(YEARLY, "/gone")).await;
    bed.backdate(id, "1 second").await;
    let server = bed.server().await;
    let alarm = bed.until(id, "paused").await;
    assert_eq!(alarm.last_error.as_deref(), Some("the target answered 410"));
    assert_eq!(bed.receiver.at("/gone").len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn an_answer_is_kept_up_to_four_kibibytes() {
    let bed = Bed::new().await;
    let long = Reply {
        body: format!("{}é{}", "x".repeat(4095), "y".repeat(100_000)),
        ..Reply::status(200)
    };
    bed.receiver.always("/long", long);
    let server = bed.server().await;
    let id = bed.now("/long").await;
    bed.until(id, "fired").await;
    let answer = bed.occurrences(id).await[0].answer.clone().unwrap();
    assert!((4000..=4096).contains(&answer.len()), "{}", answer.len());
    assert!(answer.starts_with("xxx") && !answer.contains('y'));
    server.stop().await;
}

#[tokio::test]
async fn a_target_that_nobody_listens_at_is_tried_again_and_said_to_be_silent() {
    let bed = Bed::new().await;
    let nobody = {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap()
    };
    let mut settings = bed.settings();
    settings.allow_targets = vec!["127.0.0.0/8".parse().unwrap()];
    let server = bed.server_with(settings).await;
    let request = NewAlarm {
        target_url: Some(format!("http://{nobody}/")),
        max_failures: Some(2),
        ..bed.request(once_in(Duration::ZERO), "/")
    };
    let id = bed.set(request).await;
    bed.next_try(id, 1).await;
    let alarm = bed.until(id, "failed").await;
    assert!(
        alarm.last_error.as_deref().unwrap().starts_with("no answer: "),
        "{alarm:?}"
    );
    let occurrence = &bed.occurrences(id).await[0];
    assert_eq!(
        (occurrence.reason.as_deref(), occurrence.attempts),
        (Some("unreachable"), 2)
    );
    server.stop().await;
}
