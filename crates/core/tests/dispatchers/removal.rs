//! Dispatchers that somebody removes on purpose.

use std::time::Duration;

use sqlx::Executor as _;
use stationmaster_core::dispatchers::Settings;
use stationmaster_core::dispatchers::inspect;
use stationmaster_core::dispatchers::remove::{Removal, remove};
use stationmaster_wire::DispatcherState;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{Dispatch, Server, quick, shop};

async fn remove_shop(testbed: &Testbed) -> Removal {
    remove(&testbed.database, &shop(), "alice").await.unwrap()
}

async fn until_removed(testbed: &Testbed) {
    eventually("it is removed", async || {
        inspect::show(&testbed.database, &shop()).await.unwrap().is_none()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_is_removed_with_its_run_and_the_next_signal_makes_it_anew_above_its_epoch() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let servers = [Server::start(&testbed).await, Server::start(&testbed).await];
    testbed.signal("paid").await;
    eventually("it is routed", async || testbed.in_status("ROUTED").await == 1).await;
    let before = testbed.dispatcher().await;
    let removal = remove_shop(&testbed).await;
    assert!(matches!(&removal, Removal::Wished(_)), "{removal:?}");
    until_removed(&testbed).await;
    for table in ["dispatcher_heartbeats", "dispatcher_servers"] {
        assert_eq!(testbed.count(table).await, 0, "{table}");
    }
    for server in &servers {
        let engine = server.station.dispatcher_engine().unwrap();
        assert!(
            engine.status(&shop()).await.unwrap().is_none(),
            "its run has ended"
        );
    }
    let told = "select count(*) from stationmaster.audit where action = 'dispatcher.removed' and workspace_id is not null";
    assert_eq!(testbed.number(told).await, 1);

    testbed.signal("paid").await;
    eventually("it is routed", async || testbed.in_status("ROUTED").await == 2).await;
    let after = testbed.dispatcher().await;
    assert!(
        after.epoch > before.epoch,
        "{} is not above {}",
        after.epoch,
        before.epoch
    );
    testbed.assert_routed_once(2).await;
    let story = testbed.story().await;
    assert_eq!(story[..4], ["fresh", "rested", "removed", "fresh"], "{story:?}");
    for server in servers {
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_rests_is_removed_too() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let settings = Settings {
        rest_after: Duration::from_millis(500),
        ..quick()
    };
    let dispatch = Dispatch {
        settings,
        ..Dispatch::default()
    };
    let server = Server::with(&testbed, dispatch).await;
    testbed.signal("paid").await;
    eventually("it rests", async || {
        testbed.in_status("ROUTED").await == 1 && testbed.dispatcher().await.state == DispatcherState::Resting
    })
    .await;
    remove_shop(&testbed).await;
    until_removed(&testbed).await;
    server.stop().await;
}

#[tokio::test]
async fn a_dispatcher_for_which_signals_wait_is_kept_and_one_that_is_not_there_is_missing() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let removal = remove_shop(&testbed).await;
    assert!(matches!(removal, Removal::Waiting(1)), "{removal:?}");
    assert_eq!(testbed.dispatcher().await.removal_requested_at, None);
    let nobody = stationmaster_core::dispatchers::DispatcherId::of("nobody", "default");
    let removal = remove(&testbed.database, &nobody, "alice").await.unwrap();
    assert!(matches!(removal, Removal::Missing), "{removal:?}");
}

/// It is sent in a transaction that ends after the dispatcher has gone: then nobody but the supervisor knows of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_that_was_on_its_way_while_its_dispatcher_was_removed_is_routed_all_the_same() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    let server = Server::start(&testbed).await;
    testbed.signal("paid").await;
    eventually("it is routed", async || testbed.in_status("ROUTED").await == 1).await;
    let mut sender = testbed.connection().await;
    sender.execute("begin").await.unwrap();
    sender
        .execute("select stationmaster.send_signal('shop', 'paid')")
        .await
        .unwrap();
    remove_shop(&testbed).await;
    until_removed(&testbed).await;
    sender.execute("commit").await.unwrap();
    eventually("it is routed too", async || {
        testbed.in_status("ROUTED").await == 2
    })
    .await;
    testbed.assert_routed_once(2).await;
    server.stop().await;
}
