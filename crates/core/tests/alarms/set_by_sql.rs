//! `stationmaster.set_alarm`, in a transaction of one's own.

use sqlx::{AssertSqlSafe, Connection as _};
use stationmaster_core::alarms::operate;
use stationmaster_core::health;
use stationmaster_core::id::AlarmId;
use stationmaster_schedule::Cron;

use crate::bed::Bed;
use crate::common::eventually;

const UNPLANNED: &str = "select count(*) from stationmaster.alarms where unplanned";

async fn set_by(bed: &Bed, arguments: &str) -> Result<AlarmId, sqlx::Error> {
    let query = format!("select stationmaster.set_alarm('{}', {arguments})", bed.workspace);
    sqlx::query_scalar(AssertSqlSafe(query))
        .fetch_one(bed.testbed.pool())
        .await
}

#[tokio::test]
async fn an_alarm_set_in_a_transaction_fires_once_that_is_committed_and_never_when_it_is_not() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    let mut connection = bed.testbed.connection().await;
    for (path, commit) in [("/kept", true), ("/lost", false)] {
        let mut transaction = connection.begin().await.unwrap();
        let query = format!(
            "select stationmaster.set_alarm('{}', delay => '0', target_url => '{}', message => 'hello')",
            bed.workspace,
            bed.receiver.url(path)
        );
        sqlx::query(AssertSqlSafe(query))
            .execute(&mut *transaction)
            .await
            .unwrap();
        if commit {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
        }
    }
    let wakes = bed.wakes("/kept", 1).await;
    assert_eq!(wakes[0].json()["message"], "hello");
    assert!(bed.receiver.at("/lost").is_empty());
    assert_eq!(bed.testbed.count("alarms").await, 1);
    server.stop().await;
}

#[tokio::test]
async fn an_expression_is_planned_by_a_server_at_once() {
    let bed = Bed::new().await;
    let id = set_by(
        &bed,
        "cron_expr => '0 9 * * MON-FRI', timezone => 'Europe/Zurich'",
    )
    .await
    .unwrap();
    assert!(bed.alarm(id).await.next_fire_at.is_none());
    assert_eq!(bed.testbed.number(UNPLANNED).await, 1);
    let server = bed.server().await;
    eventually("its next fire is known", async || {
        bed.alarm(id).await.next_fire_at.is_some()
    })
    .await;
    assert_eq!(bed.testbed.number(UNPLANNED).await, 0);
    let civil = set_by(
        &bed,
        "civil_at => '2030-07-01 12:00', timezone => 'Europe/Zurich'",
    )
    .await
    .unwrap();
    eventually("the civil time is an instant", async || {
        bed.alarm(civil).await.next_fire_at == Some("2030-07-01T10:00:00Z".parse().unwrap())
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn an_expression_that_cannot_fire_fails_with_the_reason() {
    let bed = Bed::new().await;
    let server = bed.server().await;
    for (arguments, words) in [
        (
            "cron_expr => '0 0 30 2 *'",
            "the expression \"0 0 30 2 *\" cannot be used: ",
        ),
        (
            "cron_expr => '* * * * *', timezone => 'Europe/Zürich'",
            "Europe/Z",
        ),
        (
            "civil_at => '2026-03-29 02:30', timezone => 'Europe/Zurich', dst => 'skip'",
            "never show",
        ),
    ] {
        let id = set_by(&bed, arguments).await.unwrap();
        let alarm = bed.until(id, "failed").await;
        let error = alarm.last_error.unwrap();
        assert!(
            error.contains(words) && !error.contains('\n'),
            "{arguments}: {error}"
        );
        assert_eq!(bed.testbed.number(UNPLANNED).await, 0);
    }
    // They are not dead in silence: the doctor tells of them.
    let dead = health::dead_alarms(&bed.testbed.database).await.unwrap();
    assert_eq!(dead.len(), 3, "{dead:?}");
    assert!(dead[0].why.contains("never show"), "{dead:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_function_refuses_what_cannot_be() {
    let bed = Bed::new().await;
    for (arguments, code) in [
        ("label => 'neither'", "23514"),
        ("delay => '1 s', fire_at => now()", "23514"),
        ("delay => '1 s', target_url => 'ftp://a/'", "23514"),
        ("delay => '1 s', target_url => 'http://user:word@a/'", "23514"),
        ("delay => '1 s', misfire => 'perhaps'", "23514"),
        ("delay => '1 s', overlap => 'perhaps'", "23514"),
        ("fire_at => 'infinity'", "23514"),
        ("fire_at => '-infinity'", "23514"),
        ("fire_at => '20000-01-01Z'", "23514"),
        ("civil_at => 'infinity', timezone => 'UTC'", "23514"),
        ("cron_expr => '* * * * *', end_at => 'infinity'", "23514"),
        ("delay => '1 s', max_failures => 0", "23514"),
        ("delay => '1 s', idempotency_key => ''", "23514"),
        ("delay => '1 s', payload => '{not json'", "22P02"),
        ("delay => '1 s', traceparent => 'junk'", "23514"),
        ("cron_expr => '61 * * * *'", "23514"),
    ] {
        let error = set_by(&bed, arguments).await.unwrap_err();
        let found = error
            .as_database_error()
            .and_then(|error| error.code().map(std::borrow::Cow::into_owned));
        assert_eq!(found.as_deref(), Some(code), "{arguments}: {error}");
    }
    let query = "select stationmaster.set_alarm(gen_random_uuid(), delay => '1 s')";
    let error = sqlx::query(query).execute(bed.testbed.pool()).await.unwrap_err();
    assert_eq!(
        error.as_database_error().unwrap().code().as_deref(),
        Some("23503")
    );
    assert_eq!(bed.testbed.count("alarms").await, 0);
}

/// What SQL refuses as no expression at all, and what the parser does: whatever the parser takes SQL takes too, and of the rest it refuses
/// everything but what depends on the calendar.
#[tokio::test]
async fn sql_refuses_what_is_no_expression_as_the_parser_does() {
    let bed = Bed::new().await;
    let good = [
        "* * * * *",
        "*/5 * * * *",
        "0,30 2 * * *",
        "0 9-17/2 * * MON-FRI",
        "  0\t0 1,15 * *  ",
        "30 0 0 1 1 *",
        "0 0 L * ?",
        "0 0 L-3 * *",
        "0 0 LW * *",
        "0 0 L-3W * *",
        "0 0 15W * *",
        "0 0 * * 5L",
        "0 0 * * 7L",
        "0 0 * * friL",
        "0 0 * * MON#2,3#1",
        "0 0 1 jan-mar,Dec *",
        "0 22-2 * * FRI-MON",
        "5/15 * * * *",
        "0 0 29 2 *",
        "0 0 ? * 0-7",
        "@YEARLY",
        "@annually",
        "@every 90s",
        "@every 1h30m",
        "@every 2d 12H",
        "007 08 * * *",
        "59 23 31 12 7",
        "0/60 */24 */31 */12 */7",
        "0 0 l-30w * sat#5",
    ];
    let bad = [
        "",
        " ",
        "* * *",
        "0 0 1 1 * 2026",
        "0 0 0 1 1 * 2026 x",
        "60 * * * *",
        "0 24 * * *",
        "0 0 0 * *",
        "0 0 1 13 *",
        "0 0 * * 8",
        "0 0 1 FOO *",
        "0 0 * * MONDAY",
        "0,,5 * * * *",
        "1- * * * *",
        "-5 * * * *",
        "*/0 * * * *",
        "*/90 * * * *",
        "*/x * * * *",
        "? * * * *",
        "1-2-3 * * * *",
        "0 0 W * *",
        "0 0 32W * *",
        "0 0 L-31 * *",
        "0 0 L/2 * *",
        "0 0 ?/2 * *",
        "0 0 * * L",
        "0 0 * * 1#6",
        "0 0 * * 1#",
        "L * * * *",
        "99999999999999999999 * * * *",
        "é * * * *",
        "@reboot",
        "@daily 5 6",
        "@every",
        "@every 5",
        "@every 1h5x",
        "@every 1.5h",
        "CRON_TZ=UTC 0 0 * * *",
        "* * * * *\u{b}",
    ];
    let left_to_a_server = ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "@every 0s"];
    let mut tried: Vec<String> = [&good[..], &bad, &left_to_a_server]
        .concat()
        .iter()
        .map(ToString::to_string)
        .collect();
    // And everything that one changed character makes of them.
    for text in [&good[..], &bad].concat() {
        for (at, _) in text.char_indices() {
            for other in ["0", "9", "*", "-", "/", "L", "W", "#", ",", "?", " ", "x"] {
                let mut changed = text.to_owned();
                let next = at + text[at..].chars().next().map_or(0, char::len_utf8);
                changed.replace_range(at..next, other);
                tried.push(changed);
            }
        }
    }
    let query = "select array_agg(stationmaster_internal.fault_of_expression(e) is null order by place) from unnest($1::text[]) with ordinality as t (e, place)";
    let taken: Vec<bool> = sqlx::query_scalar(query)
        .bind(&tried)
        .fetch_one(bed.testbed.pool())
        .await
        .unwrap();
    let (mut read, mut refused) = (0, 0);
    for (text, taken) in tried.iter().zip(taken) {
        match Cron::parse(text) {
            Ok(_) => {
                assert!(taken, "SQL refuses {text:?}, which can be read");
                read += 1;
            }
            Err(error) if taken => {
                let words = ["never fires", "no time at all", "hundred years"];
                assert!(
                    words.iter().any(|words| error.message.contains(words)),
                    "SQL takes {text:?}: {error}"
                );
            }
            Err(_) => refused += 1,
        }
    }
    assert!(
        read > 500 && refused > 1000,
        "{read} were read and {refused} refused"
    );
    let told = set_by(&bed, "cron_expr => '61 * * * *'")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        told.contains("the expression \"61 * * * *\" cannot be used: \"61\" is no minute"),
        "{told}"
    );
}

#[tokio::test]
async fn the_same_key_gives_the_same_alarm_and_another_request_is_a_conflict() {
    let bed = Bed::new().await;
    let first = set_by(
        &bed,
        "delay => '1 h', idempotency_key => 'k', payload => '{\"a\": 1}'",
    )
    .await
    .unwrap();
    let again = set_by(
        &bed,
        "delay => '1 h', idempotency_key => 'k', payload => '{\"a\": 1}'",
    )
    .await
    .unwrap();
    assert_eq!(first, again);
    for other in [
        "delay => '2 h', payload => '{\"a\": 1}'",
        "delay => '1 h', payload => '{\"a\": 2}'",
    ] {
        let error = set_by(&bed, &format!("{other}, idempotency_key => 'k'"))
            .await
            .unwrap_err();
        assert_eq!(
            error.as_database_error().unwrap().code().as_deref(),
            Some("23505")
        );
    }
    assert_eq!(bed.testbed.count("alarms").await, 1);
}

#[tokio::test]
async fn cancel_alarm_ends_it_for_good() {
    let bed = Bed::new().await;
    let id = set_by(&bed, "delay => '1 h'").await.unwrap();
    let cancel = async || -> String {
        sqlx::query_scalar("select stationmaster.cancel_alarm($1)")
            .bind(id)
            .fetch_one(bed.testbed.pool())
            .await
            .unwrap()
    };
    assert_eq!(cancel().await, "cancelled");
    assert_eq!(cancel().await, "cancelled");
    let alarm = bed.alarm(id).await;
    assert_eq!((alarm.status.as_str(), alarm.next_fire_at), ("cancelled", None));
    let unknown = operate::cancel(&bed.testbed.database, AlarmId::new(), "tester", None).await;
    assert!(matches!(unknown, Err(operate::Error::NotFound(_))));
}
