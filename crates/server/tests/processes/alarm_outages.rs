//! Alarms while everything is away: all servers, or PostgreSQL; and servers that are told to stop.

use std::collections::HashSet;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::postgres::cluster;
use crate::support::receiver::{Received, Reply};
use crate::support::{Alarms, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_outage_of_all_servers_each_policy_does_what_it_says() {
    let alarms = Alarms::new().await;
    let mut server = alarms.launch().start_ready().await;
    // Hourly, and half an hour away: whenever this is run, the last of the missed ones is long past too.
    let minute = (jiff::Timestamp::now().as_second() / 60 + 30) % 60;
    let mut ids = Vec::new();
    for (path, policy) in [
        ("/coalesce", "misfire => 'coalesce'"),
        ("/catch_up", "misfire => 'catch_up', catch_up => 3"),
        ("/skip", "misfire => 'skip'"),
    ] {
        ids.push(
            alarms
                .set(path, &format!("cron_expr => '{minute} * * * *', {policy}"))
                .await,
        );
    }
    let planned = "select count(*) from stationmaster.alarms where next_fire_at is not null";
    eventually("they are planned", async || {
        alarms.database.number(planned).await == 3
    })
    .await;
    server.kill();
    // Five hours pass.
    alarms
        .run(
            "update stationmaster_internal.alarm_standings
             set next_fire_at = next_fire_at - interval '5 hours', next_due_at = next_due_at - interval '5 hours'",
        )
        .await;
    let _server = alarms.launch().start_ready().await;
    let statuses = async |place: usize| {
        let all = alarms.occurrences(ids[place]).await;
        all.into_iter().map(|one| one.status).collect::<Vec<_>>()
    };
    eventually("all of it is settled", async || {
        // In this order: what is not made yet is not open either.
        let open = "select count(*) from stationmaster_internal.occurrences_open";
        statuses(0).await.len() == 5
            && statuses(1).await.len() == 5
            && statuses(2).await.len() == 5
            && alarms.database.number(open).await == 0
    })
    .await;
    assert_eq!(
        statuses(0).await,
        ["coalesced", "coalesced", "coalesced", "coalesced", "fired"]
    );
    assert_eq!(
        statuses(1).await,
        ["skipped", "skipped", "fired", "fired", "fired"]
    );
    assert_eq!(statuses(2).await, ["skipped"; 5]);
    let came = |path: &str| alarms.receiver.at(path).len();
    assert_eq!((came("/coalesce"), came("/catch_up"), came("/skip")), (1, 3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alarms_fire_on_through_crashes_of_postgresql_and_no_instant_is_lost() {
    let (cluster, database) = cluster().await;
    let alarms = Alarms::on(database).await;
    let mut servers = [
        alarms.launch().start_ready().await,
        alarms.launch().start_ready().await,
    ];
    let alarm = alarms
        .set(
            "/wake",
            "cron_expr => '* * * * * *', misfire => 'catch_up', catch_up => 1000, max_failures => 100",
        )
        .await;
    for so_far in [3, 8] {
        alarms.until_arrived(so_far).await;
        cluster.halt().await;
        cluster.resume().await;
    }
    alarms.until_arrived(15).await;
    for server in &mut servers {
        server.assert_alive();
    }
    eventually("all up to the last is settled", async || {
        let all = alarms.occurrences(alarm).await;
        all.len() >= 12 && all[..12].iter().all(|one| one.status == "fired")
    })
    .await;
    let gaps = "select count(*) from (
                    select scheduled_for - lag(scheduled_for) over (order by scheduled_for) as gap
                    from stationmaster.alarm_occurrences) steps
                where gap <> interval '1 second'";
    assert_eq!(alarms.database.number(gaps).await, 0, "every second is there");
    let wakes = alarms.receiver.at("/wake");
    let ids: HashSet<String> = wakes.iter().map(Received::id).collect();
    println!("{} wakes, {} ids", wakes.len(), ids.len());
    drop(servers);
    alarms.database.pool.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_told_to_stop_between_wakes_finishes_what_is_under_way_and_releases_the_rest() {
    let alarms = Alarms::new().await;
    let slow = Reply {
        after: Duration::from_millis(400),
        ..Reply::status(200)
    };
    alarms.receiver.always("/wake", slow);
    let launch = alarms
        .launch()
        .with("ALARMS__PER_TARGET", "4")
        .with("SHUTDOWN_TIMEOUT", "10s");
    let mut leaving = launch.start_ready().await;
    for _ in 0..40 {
        alarms.now("/wake").await;
    }
    alarms.until_arrived(4).await;
    leaving.signal(Signal::SIGTERM);
    let (status, took) = leaving.ended().await;
    println!("left in {took:?}");
    assert_eq!(status.code(), Some(0), "{}", leaving.log());
    let held = "select count(*) from stationmaster_internal.occurrences_open where holder is not null";
    assert_eq!(alarms.database.number(held).await, 0);
    let fired = "select count(*) from stationmaster_internal.occurrences_finished where status = 'fired'";
    let before = alarms.database.number(fired).await;
    assert_eq!(
        usize::try_from(before).unwrap(),
        alarms.receiver.at("/wake").len(),
        "every answer is on record"
    );
    assert!(before < 40, "it was stopped under load");
    let _next = launch.start_ready().await;
    eventually("the rest fires", async || {
        alarms.database.number(fired).await == 40
    })
    .await;
    assert_eq!(alarms.receiver.at("/wake").len(), 40, "each once");
    let lost = "select count(*) from stationmaster_internal.occurrences_finished where recoveries > 0 or attempts > 0";
    assert_eq!(alarms.database.number(lost).await, 0);
}
