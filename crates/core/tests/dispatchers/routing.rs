//! From the inbox to the queue, and on to an execution.

use std::time::Duration;

use stationmaster_core::id::ItemId;
use stationmaster_core::signals::inspect;
use stationmaster_core::signals::send::{NewSignal, send};
use stationmaster_core::signals::triggers::{self, Place, TriggerChange};

use crate::common::{NOOP, Testbed, eventually, raw};
use crate::support::{Dispatch, Server, quick, shop};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_becomes_an_execution_with_its_payload_and_its_correlation_id() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let dispatch = Dispatch {
        executions: true,
        ..Dispatch::default()
    };
    let server = Server::with(&testbed, dispatch).await;
    let signal = NewSignal {
        payload: Some(raw(r#"{"order": 17, "sum": 1.10}"#)),
        correlation_id: Some("checkout-9".to_owned()),
        ..NewSignal::new("shop", "paid")
    };
    let sent = send(&testbed.database, signal, "tester").await.unwrap();
    eventually("the execution has completed", async || {
        testbed.count("executions_finished").await == 1
    })
    .await;
    let routed = inspect::show(&testbed.database, &sent.id, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((routed.status.as_str(), routed.epoch), ("ROUTED", Some(1)));
    let item = testbed.item(ItemId(routed.queue_item_id.unwrap())).await;
    assert_eq!(item.execution_id, routed.execution_id);
    assert_eq!(item.correlation_id.as_deref(), Some("checkout-9"));
    // By its place in the order of arrival, which it shares with no signal of any project.
    assert_eq!(item.idempotency_key.as_deref(), Some("signal:1"));
    assert_eq!(item.enqueued_by, shop().0);
    assert!(item.input.unwrap().get().contains("1.10"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_is_noticed_at_once_and_not_at_the_next_poll() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let dispatch = Dispatch {
        settings: stationmaster_core::dispatchers::Settings {
            poll_interval: Duration::from_mins(10),
            check_interval: Duration::from_mins(10),
            ..quick()
        },
        ..Dispatch::default()
    };
    let server = Server::with(&testbed, dispatch).await;
    testbed.signal("paid").await;
    eventually("the first is routed", async || {
        testbed.in_status("ROUTED").await == 1
    })
    .await;
    for _ in 0..5 {
        testbed.signal("paid").await;
        testbed.signals("paid", 5).await;
    }
    eventually("all are routed", async || testbed.in_status("ROUTED").await == 31).await;
    testbed.assert_routed_once(31).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_is_routed_once_each_while_owners_come_and_go() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let mut servers = vec![Server::start(&testbed).await, Server::start(&testbed).await];
    for round in 0..4 {
        for _ in 0..5 {
            testbed.signals("paid", 100).await;
        }
        let first = servers.remove(0);
        if round % 2 == 0 {
            first.stop().await;
        } else {
            first.kill();
        }
        servers.push(Server::start(&testbed).await);
    }
    eventually("all are routed", async || {
        testbed.in_status("ROUTED").await == 2_000
    })
    .await;
    testbed.assert_routed_once(2_000).await;
    assert!(testbed.dispatcher().await.epoch > 1, "it changed hands");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trigger_of_the_task_queue_goes_before_that_of_the_project() {
    let testbed = Testbed::new().await;
    let (workspace, general) = testbed.shop(NOOP).await;
    let special = testbed.definition(workspace, NOOP).await;
    let place = Place {
        project: "shop",
        task_queue: Some("vip"),
        name: "paid",
    };
    let trigger = TriggerChange {
        workflow_definition_id: special.0,
        payload_schema: None,
        priority: Some(7),
    };
    triggers::set(&testbed.database, place, &trigger, None)
        .await
        .unwrap();
    let server = Server::start(&testbed).await;
    for queue in ["vip", "default"] {
        let signal = NewSignal {
            task_queue: Some(queue.to_owned()),
            ..NewSignal::new("shop", "paid")
        };
        send(&testbed.database, signal, "tester").await.unwrap();
    }
    eventually("both are routed", async || testbed.in_status("ROUTED").await == 2).await;
    let chosen = |definition| {
        format!(
            "select count(*) from stationmaster_internal.queue_items where workflow_definition_id = '{definition}'"
        )
    };
    assert_eq!(
        testbed
            .number(&format!("{} and priority = 7", chosen(special)))
            .await,
        1
    );
    assert_eq!(
        testbed
            .number(&format!("{} and priority = 0", chosen(general)))
            .await,
        1
    );
    server.stop().await;
}

#[tokio::test]
async fn a_project_belongs_to_the_workspace_of_its_first_trigger() {
    let testbed = Testbed::new().await;
    let (workspace, _) = testbed.shop(NOOP).await;
    let (_, foreign) = testbed.tenant(1, NOOP).await;
    assert_eq!(
        triggers::workspace_of(&testbed.database, "shop").await.unwrap(),
        Some(workspace)
    );
    assert_eq!(
        triggers::workspace_of(&testbed.database, "crm").await.unwrap(),
        None
    );
    let place = Place {
        project: "shop",
        task_queue: None,
        name: "refunded",
    };
    let trigger = TriggerChange {
        workflow_definition_id: foreign.0,
        payload_schema: None,
        priority: Some(0),
    };
    let refused = triggers::set(&testbed.database, place, &trigger, None)
        .await
        .unwrap_err();
    assert!(matches!(refused, triggers::Error::OtherWorkspace(_)), "{refused}");
    let which = triggers::Which {
        workspace: Some(workspace),
        ..triggers::Which::default()
    };
    let listed = triggers::list(&testbed.database, &which, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
}
