//! I1: every write of a dispatcher names its epoch, and one under an older epoch changes nothing.

use sqlx::PgConnection;
use stationmaster_wire::DispatcherState;
use uuid::Uuid;

use crate::common::{NOOP, Testbed, eventually};
use crate::support::{Server, shop};

const ROUTE: &str = include_str!("../../sql/signals/route.sql");
const TAKE: &str = include_str!("../../sql/dispatchers/take.sql");

/// Owns the dispatcher without a server.
async fn take(testbed: &Testbed, owner: Uuid, lease: f64) -> Option<i64> {
    let rows = sqlx::query(TAKE)
        .bind(owner)
        .bind(lease)
        .bind(10_i64)
        .bind("embedded")
        .bind(None::<String>)
        .fetch_all(testbed.pool())
        .await
        .unwrap();
    rows.first().map(|row| sqlx::Row::get(row, "epoch"))
}

/// Routes everything that waits to this definition, under this epoch.
async fn route(
    connection: &mut PgConnection,
    (workspace, definition): (Uuid, Uuid),
    owner: Uuid,
    epoch: i64,
) -> (bool, i64) {
    let ids: Vec<String> =
        sqlx::query_scalar("select signal_key from stationmaster_internal.signals_pending")
            .fetch_all(&mut *connection)
            .await
            .unwrap();
    let count = ids.len();
    let (held, routed, _): (bool, i64, i64) = sqlx::query_as(ROUTE)
        .bind(shop().0)
        .bind(epoch)
        .bind(owner)
        .bind(ids)
        .bind(vec![workspace; count])
        .bind(vec![definition; count])
        .bind(vec![0; count])
        .bind(vec![None::<String>; count])
        .bind(vec![None::<String>; count])
        .fetch_one(connection)
        .await
        .unwrap();
    (held, routed)
}

#[tokio::test]
async fn a_dispatcher_whose_lease_holds_is_taken_by_nobody() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signals("paid", 3).await;
    let (owner, other) = (Uuid::now_v7(), Uuid::now_v7());
    assert_eq!(take(&testbed, owner, 600.0).await, Some(1));
    assert_eq!(take(&testbed, other, 600.0).await, None);
    testbed
        .run("update stationmaster.dispatchers set lease_until = now() - interval '1 second'")
        .await;
    assert_eq!(take(&testbed, other, 600.0).await, Some(2));
}

#[tokio::test]
async fn a_route_under_an_older_epoch_changes_nothing() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.shop(NOOP).await;
    testbed.signals("paid", 3).await;
    let (old, new) = (Uuid::now_v7(), Uuid::now_v7());
    assert_eq!(take(&testbed, old, 0.0).await, Some(1));
    assert_eq!(take(&testbed, new, 60.0).await, Some(2));
    let mut connection = testbed.connection().await;
    let tenant = (workspace.0, definition.0);
    assert_eq!(
        route(&mut connection, tenant, old, 1).await,
        (false, 0),
        "an older epoch"
    );
    assert_eq!(
        route(&mut connection, tenant, old, 2).await,
        (false, 0),
        "somebody else's epoch"
    );
    assert_eq!(testbed.in_status("PENDING").await, 3);
    assert_eq!(route(&mut connection, tenant, new, 2).await, (true, 3));
    testbed.assert_routed_once(3).await;
}

#[tokio::test]
async fn a_takeover_comes_after_a_route_that_is_under_way_or_waits_for_it() {
    let testbed = Testbed::new().await;
    let (workspace, definition) = testbed.shop(NOOP).await;
    testbed.signals("paid", 3).await;
    let (old, new) = (Uuid::now_v7(), Uuid::now_v7());
    assert_eq!(take(&testbed, old, 0.0).await, Some(1));
    let mut connection = testbed.connection().await;
    sqlx::raw_sql("begin").execute(&mut connection).await.unwrap();
    assert_eq!(
        route(&mut connection, (workspace.0, definition.0), old, 1).await,
        (true, 3)
    );
    assert_eq!(
        take(&testbed, new, 60.0).await,
        None,
        "not while a route of the old owner is under way"
    );
    sqlx::raw_sql("commit").execute(&mut connection).await.unwrap();
    assert_eq!(take(&testbed, new, 60.0).await, Some(2));
    testbed.assert_routed_once(3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_was_superseded_notices_writes_nothing_and_counts_it() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let server = Server::start(&testbed).await;
    eventually("it routes", async || testbed.in_status("ROUTED").await == 1).await;
    // Somebody takes over, and signals come in, in one moment.
    testbed
        .run(
            "begin;
             update stationmaster.dispatchers set epoch = epoch + 1, owner = gen_random_uuid(), lease_until = now() + interval '1 hour';
             select stationmaster.send_signal('shop', 'paid') from generate_series(1, 10);
             commit;",
        )
        .await;
    // It hears of it from whichever comes first: its lease, or the run that it would start again.
    eventually("its writes were refused", async || {
        let refused = |write| {
            server.metric(&format!(
                "stationmaster_stale_writes_refused_total{{write=\"{write}\"}}"
            ))
        };
        refused("lease") + refused("run") == 1
    })
    .await;
    eventually("it knows", async || server.metric("dispatcher_active") == 0).await;
    assert_eq!(
        testbed.in_status("PENDING").await,
        10,
        "it routed nothing of the new epoch"
    );
    server.stop().await;
    let dispatcher = testbed.dispatcher().await;
    assert_eq!(
        (dispatcher.epoch, dispatcher.state == DispatcherState::Owned),
        (2, true),
        "its leaving changed nothing"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_cannot_renew_stops_before_its_lease_ends() {
    let testbed = Testbed::new().await;
    testbed.shop(NOOP).await;
    testbed.signal("paid").await;
    let server = Server::start(&testbed).await;
    eventually("it routes", async || testbed.in_status("ROUTED").await == 1).await;
    // Nobody can renew while the row is locked; routing would only need to share it, and its own clock forbids it.
    let mut connection = testbed.connection().await;
    sqlx::raw_sql("begin; select from stationmaster.dispatchers for no key update")
        .execute(&mut connection)
        .await
        .unwrap();
    let left = "select count(*) from stationmaster.dispatchers where lease_until > clock_timestamp()";
    eventually("the lease has run out", async || testbed.number(left).await == 0).await;
    testbed.signals("paid", 5).await;
    sqlx::raw_sql("commit").execute(&mut connection).await.unwrap();
    eventually("it took the dispatcher again, under a new epoch", async || {
        testbed.dispatcher().await.epoch == 2
    })
    .await;
    eventually("everything is routed", async || {
        testbed.in_status("ROUTED").await == 6
    })
    .await;
    let by_old = "select count(*) from stationmaster.signals where epoch = 1";
    assert_eq!(
        testbed.number(by_old).await,
        1,
        "the old epoch routed nothing after its lease"
    );
    testbed.assert_routed_once(6).await;
    server.stop().await;
}
