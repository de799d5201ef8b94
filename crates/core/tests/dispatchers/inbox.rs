//! The way in: committed before it is acknowledged, deduplicated by id, by every door.

use stationmaster_core::signals::inspect;
use stationmaster_core::signals::send::{Error, NewSignal, send, send_all};

use crate::common::{Testbed, raw};

fn signal(id: &str, payload: &str) -> NewSignal {
    NewSignal {
        id: Some(id.to_owned()),
        payload: Some(raw(payload)),
        ..NewSignal::new("shop", "paid")
    }
}

#[tokio::test]
async fn a_repeat_is_acknowledged_and_changes_nothing_and_another_signal_under_the_id_is_refused() {
    let testbed = Testbed::new().await;
    let first = signal("order-17", r#"{"order": 17, "sum": 1.10}"#);
    let sent = send(&testbed.database, first, "tester").await.unwrap();
    assert_eq!((sent.id.as_str(), sent.duplicate), ("order-17", false));
    let spelled_otherwise = signal("order-17", r#"{"sum":1.10,"order":17}"#);
    let sent = send(&testbed.database, spelled_otherwise, "tester")
        .await
        .unwrap();
    assert_eq!((sent.id.as_str(), sent.duplicate), ("order-17", true));
    let other = signal("order-17", r#"{"order": 18}"#);
    assert!(matches!(
        send(&testbed.database, other, "tester").await,
        Err(Error::Conflict { index: 0, .. })
    ));
    assert_eq!(testbed.count("signals").await, 1);
    let kept = inspect::show(&testbed.database, "order-17", None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (kept.status.as_str(), kept.sent_by.as_str()),
        ("PENDING", "tester")
    );
    assert!(kept.payload.unwrap().get().contains("1.10"));
}

#[tokio::test]
async fn a_signal_without_an_id_gets_one_of_its_own_and_the_usual_task_queue() {
    let testbed = Testbed::new().await;
    let batch = vec![NewSignal::new("shop", "paid"); 2];
    let sent = send_all(&testbed.database, batch, "tester").await.unwrap();
    assert_ne!(sent[0].id, sent[1].id);
    for one in &sent {
        assert!(!one.duplicate, "{one:?}");
        let kept = inspect::show(&testbed.database, &one.id, None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(kept.task_queue, "default");
    }
    let usual = NewSignal {
        id: Some(sent[0].id.clone()),
        task_queue: Some("default".to_owned()),
        ..NewSignal::new("shop", "paid")
    };
    let again = send(&testbed.database, usual, "tester").await.unwrap();
    assert!(again.duplicate, "the usual queue is the same, named or not");
}

#[tokio::test]
async fn a_batch_goes_in_whole_or_not_at_all() {
    let testbed = Testbed::new().await;
    send(&testbed.database, signal("b", "1"), "tester").await.unwrap();
    let batch = vec![
        signal("a", "1"),
        signal("b", "1"),
        signal("c", "1"),
        signal("c", "1"),
    ];
    let answers = send_all(&testbed.database, batch, "tester").await.unwrap();
    let answers: Vec<(&str, bool)> = answers
        .iter()
        .map(|sent| (sent.id.as_str(), sent.duplicate))
        .collect();
    assert_eq!(answers, [("a", false), ("b", true), ("c", false), ("c", true)]);
    let conflict = vec![signal("d", "1"), signal("a", "2")];
    let refused = send_all(&testbed.database, conflict, "tester").await;
    assert!(
        matches!(refused, Err(Error::Conflict { index: 1, .. })),
        "{refused:?}"
    );
    assert_eq!(
        testbed.count("signals_inbox").await,
        3,
        "nothing of a refused batch stays"
    );
    let twins = vec![signal("e", "1"), signal("e", "2")];
    assert!(matches!(
        send_all(&testbed.database, twins, "tester").await,
        Err(Error::Conflict { index: 1, .. })
    ));
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused_with_the_reason() {
    let testbed = Testbed::new().await;
    let long = "x".repeat(201);
    let table = [
        (
            NewSignal {
                id: Some(String::new()),
                ..NewSignal::new("shop", "paid")
            },
            "the id must",
        ),
        (NewSignal::new("", "paid"), "the project must"),
        (NewSignal::new("shop", &long), "the name must"),
        (
            NewSignal {
                task_queue: Some("a\0b".to_owned()),
                ..NewSignal::new("shop", "paid")
            },
            "the task queue must",
        ),
        (
            signal("big", &format!("\"{}\"", "x".repeat(300_000))),
            "the payload has",
        ),
        (signal("zero", r#""a\u0000b""#), "cannot be stored"),
    ];
    for (signal, words) in table {
        let refused = send(&testbed.database, signal, "tester")
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(testbed.count("signals_inbox").await, 0);
}

#[tokio::test]
async fn the_function_sends_inside_the_callers_transaction() {
    let testbed = Testbed::new().await;
    let mut connection = testbed.connection().await;
    let call = "select stationmaster.send_signal('shop', 'paid', '{\"order\": 1}', id => 'o-1', correlation_id => 'c-1')";
    for statement in ["begin", call, "rollback"] {
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }
    assert_eq!(testbed.count("signals").await, 0, "rolled back with the caller");
    for _ in 0..2 {
        let id: String = sqlx::query_scalar(call).fetch_one(testbed.pool()).await.unwrap();
        assert_eq!(id, "o-1");
    }
    let other = "select stationmaster.send_signal('shop', 'refunded', '{\"order\": 1}', id => 'o-1')";
    let refused = sqlx::raw_sql(other).execute(testbed.pool()).await.unwrap_err();
    assert!(
        refused.to_string().contains("was used for another signal"),
        "{refused}"
    );
    let insert = "insert into stationmaster.signals (project, task_queue, name, payload)
                  select 'shop', 'bulk', 'paid', to_jsonb(n) from generate_series(1, 3) n returning id, status";
    let rows = sqlx::raw_sql(insert).fetch_all(testbed.pool()).await.unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(testbed.count("signals").await, 4);
    let dispatchers = "select count(*) from stationmaster.dispatchers where id in ('dispatcher-shop-default', 'dispatcher-shop-bulk')";
    assert_eq!(
        testbed.number(dispatchers).await,
        2,
        "the first signal of a pair makes its dispatcher"
    );
}
