//! I7: what a crash leaves behind is found from both sides and removed, and nothing else is touched.

use stationmaster_core::dispatchers::classify::{Act, Class};
use stationmaster_core::dispatchers::supervisor::Options;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{Dispatch, Server, quick};

/// A server that owns nothing and only looks after what others leave.
async fn watcher(testbed: &Testbed) -> Server {
    let settings = stationmaster_core::dispatchers::Settings {
        enabled: false,
        ..quick()
    };
    let dispatch = Dispatch {
        settings,
        ..Dispatch::default()
    };
    Server::with(testbed, dispatch).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_standby_nothing_of_a_dead_owner_is_left() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let owner = Server::start(&testbed).await;
    let _watcher = watcher(&testbed).await;
    eventually("it has a heartbeat", async || {
        testbed.count("dispatcher_heartbeats").await == 1
    })
    .await;
    owner.kill();
    eventually("the row says that nobody owns it", async || {
        testbed.dispatcher().await.owner.is_none()
    })
    .await;
    assert_eq!(testbed.count("dispatcher_heartbeats").await, 0);
    eventually("its registration is gone", async || {
        testbed.count("dispatcher_servers").await == 0
    })
    .await;
    eventually("it is told", async || {
        testbed.story().await.iter().any(|event| event == "released")
    })
    .await;
    let story = testbed.story().await;
    let place = |event: &str| story.iter().position(|one| one == event);
    assert!(place("heartbeat_removed").is_some(), "{story:?}");
    assert!(place("heartbeat_removed") < place("released"), "{story:?}");
    assert_eq!(testbed.dispatcher().await.epoch, 1, "the epoch stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reconciliation_by_hand_shows_first_and_acts_only_when_told() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let slow = stationmaster_core::dispatchers::Settings {
        scan_interval: std::time::Duration::from_mins(10),
        enabled: false,
        ..quick()
    };
    let owner = Server::start(&testbed).await;
    eventually("it routes", async || testbed.in_status("ROUTED").await == 1).await;
    eventually("it has a heartbeat", async || {
        testbed.count("dispatcher_heartbeats").await == 1
    })
    .await;
    let watcher = Server::with(
        &testbed,
        Dispatch {
            settings: slow,
            ..Dispatch::default()
        },
    )
    .await;
    let look = async |dry_run| {
        let options = Options {
            dry_run,
            ..Options::default()
        };
        watcher
            .station
            .reconcile_dispatchers(options, "tester".into())
            .await
            .unwrap()
            .unwrap()
    };
    let healthy = look(false).await;
    assert_eq!(healthy.findings.len(), 1);
    assert_eq!(
        (healthy.findings[0].class, healthy.done.len()),
        (Class::Healthy, 0),
        "{healthy:?}"
    );
    owner.kill();
    eventually("a dry run finds what is left", async || {
        look(true)
            .await
            .findings
            .iter()
            .any(|finding| finding.act == Some(Act::Release))
    })
    .await;
    assert_eq!(
        testbed.count("dispatcher_heartbeats").await,
        1,
        "a dry run removes nothing"
    );
    let report = look(false).await;
    let acts: Vec<&Act> = report.done.iter().map(|deed| &deed.act).collect();
    assert!(
        matches!(acts[..], [Act::RemoveHeartbeat { .. }, Act::Release]),
        "{report:?}"
    );
    assert_eq!(testbed.count("dispatcher_heartbeats").await, 0);
    let audited = "select count(*) from stationmaster.audit where actor = 'tester' and action = 'dispatcher.heartbeat_removed'";
    assert_eq!(testbed.number(audited).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supervisor_that_only_observes_counts_what_it_would_do_and_removes_nothing() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let owner = Server::start(&testbed).await;
    eventually("it has a heartbeat", async || {
        testbed.count("dispatcher_heartbeats").await == 1
    })
    .await;
    let settings = stationmaster_core::dispatchers::Settings {
        enabled: false,
        observe_only: true,
        ..quick()
    };
    let dispatch = Dispatch {
        settings,
        ..Dispatch::default()
    };
    let observer = Server::with(&testbed, dispatch).await;
    owner.kill();
    eventually("it sees what is left", async || {
        observer.metric("dispatcher_stale") >= 2
    })
    .await;
    let looks = || observer.metric(r#"stationmaster_supervisor_looks_total{outcome="seen"}"#);
    let so_far = looks();
    // Two looks are what an act needs; this is many times as many.
    eventually("it looks again and again", async || looks() >= so_far + 6).await;
    assert_eq!(testbed.count("dispatcher_heartbeats").await, 1);
    assert_eq!(testbed.count("dispatcher_servers").await, 1);
    assert!(testbed.dispatcher().await.owner.is_some());
    assert_eq!(testbed.story().await, ["fresh"]);
    // By hand it is done all the same: somebody says so.
    let report = observer
        .station
        .reconcile_dispatchers(Options::default(), "tester".into())
        .await;
    let report = report.unwrap().unwrap();
    assert_eq!(report.done.len(), 2, "{report:?}");
    assert_eq!(testbed.count("dispatcher_heartbeats").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_over_between_the_two_looks_is_left_alone() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let owner = Server::start(&testbed).await;
    eventually("it routes", async || testbed.in_status("ROUTED").await == 1).await;
    let settings = stationmaster_core::dispatchers::Settings {
        scan_interval: std::time::Duration::from_mins(10),
        // Long enough for a server to come and to take over, also on a busy machine.
        second_look: std::time::Duration::from_secs(6),
        enabled: false,
        ..quick()
    };
    let dispatch = Dispatch {
        settings,
        ..Dispatch::default()
    };
    let watcher = Server::with(&testbed, dispatch).await;
    let look = async |dry_run| {
        let options = Options {
            dry_run,
            ..Options::default()
        };
        let report = watcher
            .station
            .reconcile_dispatchers(options, "tester".into())
            .await;
        report.unwrap().unwrap()
    };
    owner.kill();
    eventually("a look finds what is left", async || {
        let report = look(true).await;
        report
            .findings
            .iter()
            .any(|finding| finding.act == Some(Act::Release))
    })
    .await;
    let (report, successor) = tokio::join!(look(false), async {
        let successor = Server::start(&testbed).await;
        eventually("it has taken over", async || {
            testbed.dispatcher().await.epoch == 2
        })
        .await;
        successor
    });
    assert!(report.done.is_empty(), "{report:?}");
    let story = testbed.story().await;
    assert!(!story.iter().any(|event| event == "released"), "{story:?}");
    successor.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_that_was_lost_costs_a_healthy_owner_nothing() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let owner = Server::start(&testbed).await;
    let _watcher = watcher(&testbed).await;
    eventually("it has a heartbeat", async || {
        testbed.count("dispatcher_heartbeats").await == 1
    })
    .await;
    testbed
        .run("update stationmaster_internal.dispatcher_heartbeats set beat_at = now() - interval '1 hour', epoch = 0")
        .await;
    eventually("it is written again", async || {
        testbed
            .number("select count(*) from stationmaster_internal.dispatcher_heartbeats where epoch = 1")
            .await
            == 1
    })
    .await;
    testbed
        .run("delete from stationmaster_internal.dispatcher_heartbeats")
        .await;
    eventually("it is written again", async || {
        testbed.count("dispatcher_heartbeats").await == 1
    })
    .await;
    assert_eq!(testbed.story().await, ["fresh"], "nothing was done to it");
    owner.stop().await;
}
