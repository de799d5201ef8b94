//! One server of three is cut off from the database, without a word; it still reaches Temporal.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::silence::proxy_before;
use crate::support::{Door, ENDLESS, Launch, LimitWatch, Temporal, TestDatabase, Work, Worker, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_held_that_was_cut_off_goes_on_with_the_others_nothing_runs_twice_and_it_comes_back() {
    let mut items = 300;
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let (narrow, wide) = (
        database.workflow(3, ENDLESS).await,
        database.workflow(9, ENDLESS).await,
    );
    let (proxy, apart) = proxy_before(&database).await;
    let launch = Launch::on(&database).temporal(&temporal.address, &temporal.namespace);
    let apart = apart.temporal(&temporal.address, &temporal.namespace);
    let mut lonely = apart.start_ready().await;
    let mut others = [launch.start_ready().await, launch.start_ready().await];
    let limits = LimitWatch::on(&database.pool);
    let worker = Worker::start(&temporal, Work::CompleteAfter(Duration::from_millis(100)));
    database.enqueue(narrow, items / 3).await;
    database.enqueue(wide, items - items / 3).await;
    database.until_count("COMPLETED", 30).await;
    // Who gets what is nobody's promise: there is work until it has had some.
    while lonely.metric("queue_items_dispatched_total").await == 0.0 {
        assert!(items < 3_000, "it takes no part in the work");
        database.enqueue(wide, 50).await;
        items += 50;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    proxy.vanish();
    eventually("it says that it has no database", async || {
        lonely.readiness().await.0 == 503
    })
    .await;
    let before = database.count("COMPLETED").await;
    assert!(before < i64::from(items), "it was cut off under load");
    println!("{before} completed when it was cut off");
    let took = database.until_count("COMPLETED", i64::from(items)).await;
    println!("the rest completed by the others in {took:?}");
    for other in &mut others {
        other.assert_alive();
        assert_eq!(other.readiness().await.0, 200);
    }

    proxy.door(Door::Open);
    eventually("it is ready again", async || lonely.readiness().await.0 == 200).await;
    lonely.assert_alive();
    for other in &mut others {
        other.signal(Signal::SIGTERM);
        assert_eq!(other.ended().await.0.code(), Some(0));
    }
    database.enqueue(wide, 20).await;
    let total = i64::from(items) + 20;
    let took = database.until_count("COMPLETED", total).await;
    println!("alone, it completed 20 more in {took:?}");
    limits.assert_kept(&HashMap::from([(narrow.0, 3), (wide.0, 9)]));
    database.assert_all_completed_once(total).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
    assert_eq!(database.attempts().await, 0);
    drop(worker);
}
