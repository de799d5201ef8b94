//! A dispatcher for which nothing comes rests, and costs nothing; and there are only so many of them.

use std::time::{Duration, Instant};

use stationmaster_core::dispatchers::Settings;
use stationmaster_core::signals::send::{Error, NewSignal, SignalSent, send};
use stationmaster_wire::DispatcherState;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{Dispatch, Server, quick, shop};

fn restless(rest_after: Duration) -> Dispatch {
    Dispatch {
        settings: Settings {
            rest_after,
            ..quick()
        },
        ..Dispatch::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_for_which_nothing_comes_rests_and_the_next_signal_wakes_it() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let server = Server::with(&testbed, restless(Duration::from_millis(500))).await;
    testbed.signal("paid").await;
    eventually("it is routed", async || testbed.in_status("ROUTED").await == 1).await;
    eventually("it rests", async || {
        testbed.dispatcher().await.state == DispatcherState::Resting
            && testbed.count("dispatcher_heartbeats").await == 0
            && server.metric("dispatcher_active") == 0
    })
    .await;
    let engine = server.station.dispatcher_engine().unwrap();
    assert!(
        engine.status(&shop()).await.unwrap().is_none(),
        "its run has ended"
    );
    // Nobody takes it while nothing waits, nor is it a fault that nobody does.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(testbed.story().await, ["fresh", "rested"]);
    assert_eq!(server.station.readiness().problems, Vec::<String>::new());

    testbed.signal("paid").await;
    eventually("it is routed", async || testbed.in_status("ROUTED").await == 2).await;
    assert_eq!(testbed.story().await[..3], ["fresh", "rested", "woken"]);
    testbed.assert_routed_once(2).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_that_come_while_it_goes_to_rest_are_routed_once() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let servers = [
        Server::with(&testbed, restless(Duration::ZERO)).await,
        Server::with(&testbed, restless(Duration::ZERO)).await,
    ];
    // The pauses grow, so that however slow the machine is, some signals meet it awake, some at rest and some in between.
    let woken = async || {
        testbed
            .story()
            .await
            .iter()
            .filter(|event| *event == "woken")
            .count()
    };
    let mut sent = 0_u64;
    while sent < 60 || woken().await < 3 {
        assert!(sent < 1_000, "it rested too seldom: {:?}", testbed.story().await);
        testbed.signal("paid").await;
        tokio::time::sleep(Duration::from_millis(sent * 7 % (150 + 2 * sent))).await;
        sent += 1;
    }
    let sent = i64::try_from(sent).unwrap();
    eventually("all are routed", async || {
        testbed.in_status("ROUTED").await == sent
    })
    .await;
    testbed.assert_routed_once(sent).await;
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_the_settings_name_does_not_rest() {
    let testbed = Testbed::new().await;
    let mut dispatch = restless(Duration::from_millis(100));
    dispatch.settings.projects = vec![("shop".to_owned(), "default".to_owned())];
    // It rested while the settings did not name it.
    testbed
        .run(
            "insert into stationmaster.dispatchers (id, project, task_queue, resting_since)
             values ('dispatcher-shop-default', 'shop', 'default', now())",
        )
        .await;
    let server = Server::with(&testbed, dispatch).await;
    eventually("it is woken", async || {
        testbed.dispatcher().await.state == DispatcherState::Owned
    })
    .await;
    testbed.shop(NOOP).await;
    let signal = NewSignal {
        task_queue: Some("night".to_owned()),
        ..NewSignal::new("shop", "paid")
    };
    send(&testbed.database, signal, "tester").await.unwrap();
    let resting = "select count(*) from stationmaster.dispatchers where resting_since is not null and task_queue = 'night'";
    eventually("the other rests", async || testbed.number(resting).await == 1).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        assert!(!testbed.story().await.contains(&"rested".to_owned()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.stop().await;
}

async fn to(testbed: &Testbed, project: &str, task_queue: &str) -> Result<SignalSent, Error> {
    let signal = NewSignal {
        task_queue: Some(task_queue.to_owned()),
        ..NewSignal::new(project, "paid")
    };
    send(&testbed.database, signal, "tester").await
}

#[tokio::test]
async fn a_project_has_only_so_many_task_queues_and_others_are_not_kept_from_theirs() {
    let testbed = Testbed::new().await;
    let tenant = testbed.shop(NOOP).await;
    testbed.trigger("crm", "paid", tenant.1, None).await;
    testbed
        .run("update stationmaster.projects set max_task_queues = 3 where name = 'shop'")
        .await;
    for queue in ["a", "b", "c", "a"] {
        assert!(!to(&testbed, "shop", queue).await.unwrap().duplicate);
    }
    let refused = to(&testbed, "shop", "d").await;
    assert!(
        matches!(&refused, Err(Error::TooManyQueues(words)) if words.contains("shop") && words.contains('3')),
        "{refused:?}"
    );
    assert_eq!(testbed.count("signals_inbox").await, 4, "nothing of it was kept");
    assert!(!to(&testbed, "crm", "d").await.unwrap().duplicate);
}

#[tokio::test]
async fn mistyped_projects_do_not_fill_the_table_of_dispatchers() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed
        .run(
            "insert into stationmaster.dispatchers (id, project, task_queue)
             select stationmaster.dispatcher_id('typo' || n, 'q'), 'typo' || n, 'q' from generate_series(1, 1000) n",
        )
        .await;
    let refused = to(&testbed, "shpo", "default").await;
    assert!(matches!(refused, Err(Error::TooManyQueues(_))), "{refused:?}");
    assert!(!to(&testbed, "shop", "default").await.unwrap().duplicate);
}
