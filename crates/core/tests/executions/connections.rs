//! Connections come and go: a server loses them and goes on.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::Engine;
use stationmaster_core::executions::Settings;
use stationmaster_core::presence;

use crate::common::counting::{misplaced_items, wrong_counters};
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::server::Server;
use crate::common::{NOOP, Testbed, brisk, eventually, wait, within, woken_only};

/// Cuts connections of this database, except the one that asks. Answers how many.
async fn cut(testbed: &Testbed, which: &str) -> i64 {
    let query = format!(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' and {which}"
    );
    testbed.number(&query).await
}

#[tokio::test]
async fn a_listener_that_lost_its_connection_misses_nothing() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let server = testbed.server(woken_only()).await;
    let listening = "query ilike 'listen%'";
    for _ in 0..3 {
        let cut = async || cut(&testbed, listening).await == 1;
        eventually("the listener is there, and cut off", cut).await;
        // Nobody listens at this moment.
        let item = testbed.enqueue(tenant).await;
        let what = "the item is done after the listener has come back";
        within(Duration::from_secs(5), what, async || {
            testbed.outcome(item).await == "COMPLETED"
        })
        .await;
    }
    server.stop().await;
}

#[tokio::test]
async fn servers_that_lose_all_their_connections_again_and_again_lose_no_work() {
    let testbed = Testbed::new().await;
    let (quick, slow) = (
        testbed.tenant(20, NOOP).await,
        testbed.tenant(5, &wait(0.05)).await,
    );
    let settings = Settings {
        batch_size: 10,
        claim_lease: Duration::from_secs(1),
        ..brisk()
    };
    let servers = [
        testbed.server(settings.clone()).await,
        testbed.server(settings).await,
    ];
    testbed.enqueue_many(quick, 360).await;
    testbed.enqueue_many(slow, 40).await;
    // This connection is not in the pool, so that a cut does not reach the test itself.
    let mut observer = testbed.connection().await;
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";
    let ended = "select count(*) from stationmaster_internal.executions_finished";
    for round in 1..=4 {
        let mut some = async || {
            sqlx::query_scalar::<_, i64>(ended)
                .fetch_one(&mut observer)
                .await
                .unwrap()
                >= round * 60
        };
        eventually("work goes on", async || some().await).await;
        sqlx::query(cut).execute(&mut observer).await.unwrap();
    }
    let mut all = async || {
        sqlx::query_scalar::<_, i64>(ended)
            .fetch_one(&mut observer)
            .await
            .unwrap()
            == 400
    };
    eventually("everything has ended", async || all().await).await;
    // The pool of the test has lost its connections as well, and finds out one by one.
    eventually("the test has a connection again", async || {
        sqlx::query("select 1").execute(testbed.pool()).await.is_ok()
    })
    .await;
    let again = Testbed::at(&testbed.url);
    assert_eq!(misplaced_items(&again).await, []);
    assert_eq!(wrong_counters(&again).await, []);
    let twice = "select count(*) from (select from stationmaster_internal.executions_finished group by item_id having count(*) > 1) twice";
    assert_eq!(again.number(twice).await, 0);
    for server in servers {
        server.stop().await;
    }
}

/// As long as somebody rebuilds a table nobody can claim; but alarms, dispatchers and what runs must not be lost for it.
#[tokio::test]
async fn tables_that_somebody_rebuilds_cost_no_server_its_lease() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.hold();
    let settings = Settings {
        claim_lease: Duration::from_secs(1),
        ..brisk()
    };
    let server = Server::start_outside(&testbed.url, settings, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    eventually("a start is under way", async || engine.asked_in_all() == 1).await;
    let before = server.id();
    let mut rebuilding = testbed.connection().await;
    let lock = "begin; lock table stationmaster_internal.executions_active, stationmaster_internal.duties in access exclusive mode";
    sqlx::raw_sql(lock).execute(&mut rebuilding).await.unwrap();
    // What renews the lease of the start waits for a table, and so do those who have duties and whoever scrapes.
    let scraped = async {
        loop {
            server.station.measure().await;
        }
    };
    tokio::select! {
        () = scraped => {}
        () = tokio::time::sleep(presence::LEASE + Duration::from_secs(7)) => {}
    }
    assert_eq!(server.id(), before, "the same server under the same id");
    sqlx::raw_sql("rollback").execute(&mut rebuilding).await.unwrap();
    engine.let_go();
    testbed.reaches(item, "RUNNING").await;
    server.stop().await;
}
