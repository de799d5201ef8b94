//! One owner, and what it takes to become the next.

use std::time::{Duration, Instant};

use serde_json::json;
use stationmaster_wire::DispatcherState;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{LEASE, Server};

async fn owned_by(testbed: &Testbed, server: &Server) -> bool {
    let dispatcher = testbed.dispatcher().await;
    dispatcher.state == DispatcherState::Owned
        && dispatcher.owner.is_some_and(|owner| owner == server.id())
        && dispatcher.run_id.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_healthy_server_stands_by_and_takes_nothing() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let owner = Server::start(&testbed).await;
    eventually("the first owns it", async || owned_by(&testbed, &owner).await).await;
    let standby = Server::start(&testbed).await;
    let registered = "select count(*) from stationmaster_internal.dispatcher_servers";
    eventually("both are registered", async || {
        testbed.number(registered).await == 2
    })
    .await;
    // Several leases pass under load, and nothing changes hands.
    let until = Instant::now() + LEASE * 2;
    while Instant::now() < until {
        testbed.signals("paid", 20).await;
        assert!(owned_by(&testbed, &owner).await, "the healthy owner stays");
    }
    standby.stop().await;
    assert_eq!(testbed.number(registered).await, 1, "it signed off");
    assert!(
        owned_by(&testbed, &owner).await,
        "the end of a standby changes nothing"
    );
    assert_eq!(testbed.dispatcher().await.epoch, 1);
    assert_eq!(testbed.story().await, ["fresh"]);
    owner.stop().await;
    assert_eq!(testbed.story().await, ["fresh", "handed_over"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_owners_dispatcher_is_taken_over_after_its_lease_and_nothing_is_lost() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let owner = Server::start(&testbed).await;
    eventually("the first owns it", async || owned_by(&testbed, &owner).await).await;
    let standby = Server::start(&testbed).await;
    let dead = owner.id();
    owner.kill();
    let began = Instant::now();
    testbed.signals("paid", 50).await;
    eventually("the standby owns it", async || owned_by(&testbed, &standby).await).await;
    println!(
        "taken over {:?} after the kill, with a lease of {LEASE:?}",
        began.elapsed()
    );
    eventually("all are routed", async || testbed.in_status("ROUTED").await == 51).await;
    testbed.assert_routed_once(51).await;
    let events = testbed.events().await;
    let takeover = events.iter().find(|event| event.event == "takeover").unwrap();
    assert_eq!(takeover.epoch.unwrap(), 2);
    assert!(
        json!(takeover.detail).to_string().contains(&dead.to_string()),
        "{takeover:?}"
    );
    let audited = "select count(*) from stationmaster.audit where action = 'dispatcher.takeover' and subject = 'dispatcher-shop-default'";
    assert_eq!(testbed.number(audited).await, 1);
    eventually("the takeover is counted", async || {
        standby.metric(r#"stationmaster_dispatcher_takeovers_total{kind="takeover",outcome="started"}"#) == 1
    })
    .await;
    eventually("the dead one is evicted", async || {
        testbed.story().await.contains(&"servers_evicted".to_owned())
            && standby.metric("stationmaster_dispatcher_evictions_total") >= 1
    })
    .await;
    standby.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_leaves_hands_over_at_once() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let settings = stationmaster_core::dispatchers::Settings {
        // Far longer than the test: only a hand-over can give it to the next.
        lease: Duration::from_mins(10),
        ..crate::support::quick()
    };
    let dispatch = || crate::support::Dispatch {
        settings: settings.clone(),
        ..crate::support::Dispatch::default()
    };
    let owner = Server::with(&testbed, dispatch()).await;
    eventually("the first owns it", async || owned_by(&testbed, &owner).await).await;
    let standby = Server::with(&testbed, dispatch()).await;
    owner.stop().await;
    eventually("the standby owns it", async || owned_by(&testbed, &standby).await).await;
    assert_eq!(testbed.story().await, ["fresh", "handed_over", "handover"]);
    let heartbeats = "select count(*) from stationmaster_internal.dispatcher_heartbeats where epoch = 1";
    assert_eq!(testbed.number(heartbeats).await, 0);
    standby.stop().await;
    assert_eq!(
        testbed.count("dispatcher_heartbeats").await,
        0,
        "the last one leaves nothing"
    );
    assert_eq!(testbed.count("dispatcher_servers").await, 0);
}

/// Servers that registered long ago and were never heard of since.
async fn register_the_dead(testbed: &Testbed, servers: i32) {
    let query = "insert into stationmaster_internal.dispatcher_servers (dispatcher_id, server_id, task_queue, registered_at)
                 select 'dispatcher-shop-default', gen_random_uuid(), 'gone', now() - interval '1 hour' from generate_series(1, $1)";
    let query = sqlx::query(query).bind(servers);
    query.execute(testbed.pool()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evictions_are_told_one_event_a_batch_and_only_where_they_are_switched_on() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let with = |evict| crate::support::Dispatch {
        settings: stationmaster_core::dispatchers::Settings {
            evict,
            evict_batch: 5,
            ..crate::support::quick()
        },
        ..crate::support::Dispatch::default()
    };
    let lenient = Server::with(&testbed, with(false)).await;
    eventually("it owns it", async || owned_by(&testbed, &lenient).await).await;
    register_the_dead(&testbed, 7).await;
    let shop = crate::support::shop();
    let checks = async || {
        let engine = lenient.station.dispatcher_engine().unwrap();
        let status = engine.status(&shop).await.unwrap();
        status.map_or(0, |status| status.checks)
    };
    let so_far = checks().await;
    eventually("it checks often enough to evict them all", async || {
        checks().await >= so_far + 6
    })
    .await;
    assert_eq!(testbed.count("dispatcher_servers").await, 8, "nobody was evicted");
    lenient.stop().await;
    testbed
        .run("delete from stationmaster_internal.dispatcher_servers")
        .await;

    let strict = Server::with(&testbed, with(true)).await;
    eventually("it owns it", async || owned_by(&testbed, &strict).await).await;
    register_the_dead(&testbed, 7).await;
    eventually("the dead are gone", async || {
        testbed.count("dispatcher_servers").await == 1
    })
    .await;
    eventually("all are counted", async || {
        strict.metric("stationmaster_dispatcher_evictions_total") == 7
    })
    .await;
    let events = testbed.events().await;
    let batches: Vec<usize> = events
        .iter()
        .filter(|event| event.event == "servers_evicted")
        .map(|event| event.detail["servers"].as_array().unwrap().len())
        .collect();
    assert_eq!(batches, [5, 2], "{events:?}");
    let audited = "select count(*) from stationmaster.audit where action = 'dispatcher.servers_evicted' and subject = 'dispatcher-shop-default'";
    assert_eq!(testbed.number(audited).await, 2);
    strict.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dispatchers_that_the_settings_name_exist_from_the_start() {
    let testbed = Testbed::new().await;
    let dispatch = crate::support::Dispatch {
        settings: stationmaster_core::dispatchers::Settings {
            projects: vec![
                ("shop".to_owned(), "default".to_owned()),
                ("crm".to_owned(), "night".to_owned()),
            ],
            ..crate::support::quick()
        },
        ..crate::support::Dispatch::default()
    };
    let server = Server::with(&testbed, dispatch).await;
    eventually("it owns both", async || server.metric("dispatcher_active") == 2).await;
    let (engine, shop) = (
        server.station.dispatcher_engine().unwrap(),
        crate::support::shop(),
    );
    eventually("it runs in the first epoch", async || {
        let status = engine.status(&shop).await.unwrap();
        status.is_some_and(|status| status.tenure.epoch.0 == 1)
    })
    .await;
    server.stop().await;
}
