//! Heartbeats of real servers in a real Redis.

use crate::line::{Line, until_routed};
use crate::support::{Redis, eventually, free_port};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_servers_say_so_keep_their_dispatchers_and_take_over_all_the_same() {
    let line = Line::new().await;
    let port = free_port();
    let launch = line
        .launch
        .clone()
        .with("HEARTBEATS", "redis")
        .with("REDIS_URL", &format!("redis://127.0.0.1:{port}/0"));
    let redis = Redis::start(port);
    let mut owner = launch.start_ready().await;
    let before = line.until_owned(1).await;
    let standby = launch.start_ready().await;
    line.until_registered(2).await;
    drop(redis);
    eventually("both say what is wrong", async || {
        let says = |body: &str| body.contains("the heartbeats in Redis cannot be reached");
        says(&owner.readiness().await.1) && says(&standby.readiness().await.1)
    })
    .await;
    line.send(20).await;
    until_routed(&line.database, 20).await;
    assert_eq!(
        line.row().await,
        before,
        "nobody took anything from a healthy owner"
    );
    owner.kill();
    line.until_owned(2).await;
    let _redis = Redis::start(port);
    eventually("it is ready again", async || standby.readiness().await.0 == 200).await;
    line.send(20).await;
    until_routed(&line.database, 40).await;
    assert_eq!(line.open_runs().await, 1);
}
