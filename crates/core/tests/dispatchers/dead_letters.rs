//! What cannot be routed is put aside with a reason, slows nobody, and can be replayed.

use stationmaster_core::catalogue::{self, WorkflowChange};
use stationmaster_core::signals::inspect;
use stationmaster_core::signals::replay::{self, BulkReplay, replay, replay_matching};
use stationmaster_core::signals::send::{NewSignal, send};
use stationmaster_core::signals::triggers::{self, Place, TriggerChange};

use crate::common::{NOOP, Testbed, eventually, raw};
use crate::support::Server;

const ORDER: &str =
    r#"{"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_and_invalid_signals_are_put_aside_with_their_reasons_and_the_others_are_routed() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.shop(NOOP).await;
    testbed.trigger("shop", "ordered", definition, Some(ORDER)).await;
    let empty = stationmaster_core::id::DefinitionId::new();
    catalogue::put_definition(&testbed.database, empty, WorkflowChange::of(workspace.0), None)
        .await
        .unwrap();
    testbed.trigger("shop", "drafted", empty, None).await;
    let server = Server::start(&testbed).await;
    let with = |name: &str, payload: &str| NewSignal {
        payload: Some(raw(payload)),
        ..NewSignal::new("shop", name)
    };
    let signals = [
        (with("nonsense", "{}"), "unknown_signal"),
        (with("ordered", r#"{"order": "s3cret"}"#), "invalid_payload"),
        (with("drafted", "{}"), "no_version"),
        (with("ordered", r#"{"order": 17}"#), ""),
        (with("paid", "null"), ""),
    ];
    let mut sent = Vec::new();
    for (signal, reason) in signals {
        let answer = send(&testbed.database, signal, "tester").await.unwrap();
        sent.push((answer.id, reason));
    }
    eventually("nothing waits", async || testbed.in_status("PENDING").await == 0).await;
    for (id, reason) in &sent {
        let settled = inspect::show(&testbed.database, id, None).await.unwrap().unwrap();
        assert_eq!(
            settled.reason.as_deref().unwrap_or_default(),
            *reason,
            "{settled:?}"
        );
        assert!(!settled.detail.unwrap_or_default().contains("s3cret"));
    }
    assert_eq!(
        (testbed.in_status("ROUTED").await, testbed.in_status("DEAD").await),
        (2, 3)
    );
    eventually("the dead letter is counted", async || {
        server.metric(r#"stationmaster_signals_dead_total{reason="unknown_signal"}"#) == 1
    })
    .await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_bad_signals_do_not_keep_a_good_one_waiting_for_a_retry() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signals("nonsense", 3_000).await;
    testbed.signal("paid").await;
    let server = Server::start(&testbed).await;
    eventually("nothing waits", async || testbed.in_status("PENDING").await == 0).await;
    assert_eq!(
        (testbed.in_status("ROUTED").await, testbed.in_status("DEAD").await),
        (1, 3_000)
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_that_the_queue_refuses_is_put_aside_alone() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed
        .run(
            "create function refuse() returns trigger language plpgsql as $$ begin
                 if new.input = '\"poison\"' then raise exception 'no poison here' using errcode = 'check_violation'; end if;
                 return new; end $$;
             create trigger refuse before insert on stationmaster_internal.queue_items for each row execute function refuse();",
        )
        .await;
    for n in 0..20 {
        let payload = if n == 7 { "\"poison\"" } else { "{}" };
        let signal = NewSignal {
            payload: Some(raw(payload)),
            ..NewSignal::new("shop", "paid")
        };
        send(&testbed.database, signal, "tester").await.unwrap();
    }
    let server = Server::start(&testbed).await;
    eventually("nothing waits", async || testbed.in_status("PENDING").await == 0).await;
    assert_eq!(
        (testbed.in_status("ROUTED").await, testbed.in_status("DEAD").await),
        (19, 1)
    );
    let why =
        "select count(*) from stationmaster.signals where reason = 'refused' and detail = 'no poison here'";
    assert_eq!(testbed.number(why).await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_routed_after_a_replay_and_routed_ones_cannot_be_replayed() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.shop(NOOP).await;
    let server = Server::start(&testbed).await;
    let first = testbed.signal("refunded").await;
    testbed.signals("refunded", 5).await;
    testbed.signals("unheard", 2).await;
    eventually("all are dead", async || testbed.in_status("DEAD").await == 8).await;
    testbed.trigger("shop", "refunded", definition, None).await;
    replay(&testbed.database, &first, None, "tester").await.unwrap();
    eventually("it is routed", async || testbed.in_status("ROUTED").await == 1).await;
    let again = replay(&testbed.database, &first, None, "tester").await;
    assert!(
        matches!(again, Err(replay::Error::WrongState { .. })),
        "{again:?}"
    );
    let unknown = replay(&testbed.database, "nobody", None, "tester").await;
    assert!(matches!(unknown, Err(replay::Error::NotFound(_))), "{unknown:?}");
    let filter = BulkReplay {
        name: Some("refunded".to_owned()),
        ..BulkReplay::default()
    };
    assert_eq!(
        replay_matching(&testbed.database, &filter, "tester")
            .await
            .unwrap()
            .items,
        5
    );
    eventually("they are routed", async || testbed.in_status("ROUTED").await == 6).await;
    // Those that stay unknown die again, once.
    assert_eq!(
        replay_matching(&testbed.database, &BulkReplay::default(), "tester")
            .await
            .unwrap()
            .items,
        2
    );
    eventually("they are dead again", async || {
        testbed.in_status("DEAD").await == 2
    })
    .await;
    let audited =
        "select count(*) from stationmaster.audit where action = 'signal.replay' and actor = 'tester'";
    assert_eq!(testbed.number(audited).await, 8);
    let replayed = inspect::show(&testbed.database, &first, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(replayed.replays, 1);
    server.stop().await;
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused_when_it_is_set() {
    let testbed = Testbed::new().await;
    let (_, definition) = testbed.shop(NOOP).await;
    let place = Place {
        project: "shop",
        task_queue: None,
        name: "ordered",
    };
    let trigger = TriggerChange {
        workflow_definition_id: definition.0,
        payload_schema: Some(Some(raw(r#"{"type": "orderly"}"#))),
        priority: Some(0),
    };
    let refused = triggers::set(&testbed.database, place, &trigger, None).await;
    assert!(
        matches!(refused, Err(triggers::Error::BadSchema(_))),
        "{refused:?}"
    );
}
