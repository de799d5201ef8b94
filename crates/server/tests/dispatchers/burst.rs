//! A rolling restart under a burst, and continue-as-new under load: each signal is routed once, by one effective dispatcher.

use nix::sys::signal::Signal;

use crate::line::Line;
use crate::support::eventually;

const BURST: i64 = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_of_three_servers_under_a_burst_routes_each_signal_once() {
    let line = Line::new().await;
    let launch = line.launch.clone().with("DISPATCHERS__BATCH_SIZE", "100");
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(launch.start_ready().await);
    }
    line.until_registered(3).await;
    let senders = async {
        for _ in 0..100 {
            line.send(i32::try_from(BURST / 100).unwrap()).await;
            tokio::time::sleep(std::time::Duration::from_millis(80)).await;
        }
    };
    let restarts = async {
        for _ in 0..3 {
            let mut oldest = servers.remove(0);
            oldest.signal(Signal::SIGTERM);
            assert_eq!(oldest.ended().await.0.code(), Some(0), "{}", oldest.log());
            servers.push(launch.start_ready().await);
            // Whoever stands by may have it now, also the new one; then the next stop is no takeover.
            line.until_owned(1).await;
        }
    };
    let watch = async {
        // Temporal itself keeps the id for one open run; what may not be is two epochs that route at once.
        let overlap = "select count(*) from (select epoch, min(settled_at) as first, max(settled_at) as last
                           from stationmaster_internal.signals_settled group by epoch) a
                       join (select epoch, min(settled_at) as first from stationmaster_internal.signals_settled group by epoch) b
                           on b.epoch > a.epoch and b.first < a.last";
        eventually("all are routed", async || {
            assert_eq!(
                line.database.number(overlap).await,
                0,
                "an older epoch routed after a newer one"
            );
            let left = "select count(*) from stationmaster_internal.signals_settled";
            line.database.number(left).await >= BURST
        })
        .await;
    };
    tokio::join!(senders, restarts, watch);
    line.until_routed(BURST).await;
    let epochs = "select count(distinct epoch) from stationmaster_internal.signals_settled";
    println!(
        "{BURST} signals were routed under {} epochs",
        line.database.number(epochs).await
    );
    eventually("one run is open", async || line.open_runs().await == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_continues_as_new_under_load_loses_nothing() {
    let line = Line::new().await;
    let launch = line
        .launch
        .clone()
        .with("DISPATCHERS__CONTINUE_AFTER", "50")
        .with("DISPATCHERS__BATCH_SIZE", "10");
    let _owner = launch.start_ready().await;
    let first = line.until_owned(1).await;
    let mut sent = 0;
    while line.runs().await.len() < 3 {
        line.send(20).await;
        sent += 20;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    line.until_routed(sent).await;
    println!(
        "{sent} signals over {} runs of one epoch",
        line.runs().await.len()
    );
    assert_eq!(line.row().await, first, "the same owner, epoch and first run");
    assert_eq!(line.open_runs().await, 1);
    assert_eq!(line.story().await, ["fresh"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispatcher_that_continues_as_new_all_the_time_still_checks_itself() {
    let line = Line::new().await;
    let launch = line
        .launch
        .clone()
        .with("DISPATCHERS__CONTINUE_AFTER", "50")
        .with("DISPATCHERS__BATCH_SIZE", "1")
        .with("DISPATCHERS__CHECK_INTERVAL", "3s");
    let _owner = launch.start_ready().await;
    line.until_owned(1).await;
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(15) {
        line.send(5).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let runs = line.runs().await;
    let mut checks = 0;
    for run in &runs {
        checks += line.checks_of(&run.execution.as_ref().unwrap().run_id).await;
    }
    println!("{checks} checks in {} runs", runs.len());
    assert!(
        checks >= 2,
        "{checks} checks in 15 s and {} runs, where one is due every 3 s",
        runs.len()
    );
}
