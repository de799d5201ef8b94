//! The database's host goes silent: nothing is refused and nothing is closed, there is only no answer any more.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use url::Url;

use crate::support::{
    Direction, Door, Launch, Process, Proxy, SHORT, TestDatabase, command, eventually, get, get_with,
};

/// From the silence to the next claim.
const AGAIN: Duration = Duration::from_secs(10);

/// A database, a way to it that can fail, and how a server is started that takes that way.
async fn by_a_proxy() -> (TestDatabase, Proxy, Launch) {
    let database = TestDatabase::new().await;
    let (proxy, launch) = proxy_before(&database).await;
    (database, proxy, launch)
}

/// A way to the database that can fail, and how a server is started that takes it.
pub(crate) async fn proxy_before(database: &TestDatabase) -> (Proxy, Launch) {
    let mut url: Url = database.url.parse().unwrap();
    let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let proxy = Proxy::before(&address).await;
    let (host, port) = proxy.address.split_once(':').unwrap();
    url.set_host(Some(host)).unwrap();
    url.set_port(Some(port.parse().unwrap())).unwrap();
    let launch = Launch::on(database).with("DATABASE_URL", url.as_str());
    (proxy, launch)
}

/// Asks `/livez` and `/readyz` all the time; both must always be answered within a second. Answers what `/readyz` said, with
/// the moment.
pub(crate) async fn asked_all_the_time(
    server: &Process,
    until: impl Future<Output = ()>,
) -> Vec<(Instant, u16)> {
    let address = server.address().unwrap();
    let mut answers = Vec::new();
    let asking = async {
        loop {
            for path in ["/livez", "/readyz"] {
                let answer = tokio::time::timeout(Duration::from_secs(1), get(&address, path)).await;
                let (status, _) = answer.expect("it answers within a second").expect("it answers");
                if path == "/readyz" {
                    answers.push((Instant::now(), status));
                } else {
                    assert_eq!(status, 200);
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        () = asking => {}
        () = until => {}
    }
    answers
}

/// Under load the connections fail in this way, and new ones work: it claims again in time.
async fn claims_again(fail: impl FnOnce(&Proxy)) {
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 2000).await;
    database.until_count("COMPLETED", 10).await;
    fail(&proxy);
    let silent_since = Instant::now();
    let claims = "select count(*) from stationmaster.workflow_executions where claimed_at > now() - interval '1 second'";
    let claimed_again = async {
        // What was under way in PostgreSQL may still be written in the first moment.
        tokio::time::sleep(Duration::from_secs(2)).await;
        eventually("it claims again", async || database.number(claims).await > 0).await;
    };
    let answers = asked_all_the_time(&server, claimed_again).await;
    let took = silent_since.elapsed();
    println!("claimed again {took:?} after the silence");
    assert!(took < AGAIN, "{took:?}\n{}", server.log());
    assert!(answers.len() > 10);
    server.assert_alive();
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    database.assert_counters_agree().await;
}

/// While it is idle the connections fail in this way, and new ones work: what comes then is started in time, and it listens again.
async fn hears_again(fail: impl FnOnce(&Proxy)) {
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let server = launch.with("EXECUTIONS__POLL_INTERVAL", "1h").start_ready().await;
    database.enqueue(workflow, 1).await;
    database.until_count("COMPLETED", 1).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    fail(&proxy);
    database.enqueue(workflow, 1).await;
    let took = database.until_count("COMPLETED", 2).await;
    println!("the first one after the silence completed after {took:?}");
    assert!(took < AGAIN, "{took:?}\n{}", server.log());
    // With a poll interval of an hour only the listener can tell of these.
    for done in 3..8 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        database.enqueue(workflow, 1).await;
        let took = database.until_count("COMPLETED", done).await;
        println!("the next one completed after {took:?}");
        assert!(took < Duration::from_secs(8), "{took:?}\n{}", server.log());
    }
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    database.assert_all_completed_once(7).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_whose_connections_fall_silent_claims_again_within_ten_seconds() {
    claims_again(Proxy::silence).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_whose_statements_no_longer_arrive_claims_again_within_ten_seconds() {
    claims_again(|proxy| proxy.half_open(Direction::Requests)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_server_that_no_longer_gets_answers_claims_again_within_ten_seconds() {
    claims_again(|proxy| proxy.half_open(Direction::Answers)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_whose_connections_fall_silent_starts_what_comes_then_and_hears_of_more() {
    hears_again(Proxy::silence).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_whose_statements_no_longer_arrive_starts_what_comes_then_and_hears_of_more() {
    hears_again(|proxy| proxy.half_open(Direction::Requests)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_that_no_longer_gets_answers_starts_what_comes_then_and_hears_of_more() {
    hears_again(|proxy| proxy.half_open(Direction::Answers)).await;
}

/// With long round trips most connections are just being given back, and asked whether they live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silences_that_meet_connections_on_their_way_back_cost_no_place_for_good() {
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let mut server = launch.start_ready().await;
    for done in 1..6 {
        proxy.delay(Duration::from_millis(250));
        tokio::time::sleep(Duration::from_secs(3)).await;
        proxy.silence();
        proxy.open();
        database.enqueue(workflow, 1).await;
        let took = database.until_count("COMPLETED", done).await;
        println!("completed {took:?} after silence {done}");
        assert!(took < AGAIN * 2, "{took:?}\n{}", server.log());
        let since = Instant::now();
        loop {
            let (status, words) = server.readiness().await;
            if status == 200 {
                break;
            }
            assert!(since.elapsed() < AGAIN * 3, "{words}\n{}", server.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    server.assert_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_host_is_silent_readiness_says_so_and_when_it_is_back_the_server_claims_within_ten_seconds()
{
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 1).await;
    database.until_count("COMPLETED", 1).await;
    proxy.vanish();
    let silent_since = Instant::now();
    let answers = asked_all_the_time(&server, tokio::time::sleep(Duration::from_secs(20))).await;
    let late = answers
        .iter()
        .filter(|(at, status)| *at > silent_since + Duration::from_secs(6) && *status == 200);
    assert_eq!(late.count(), 0, "it is not ready without its database");
    database.enqueue(workflow, 10).await;
    proxy.door(Door::Open);
    let took = database.until_count("COMPLETED", 11).await;
    println!("completed {took:?} after the host was back");
    assert!(took < AGAIN, "{took:?}\n{}", server.log());
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    server.signal(Signal::SIGTERM);
    let (status, took) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{}", server.log());
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_cut_or_refused_cost_no_more_than_the_time_they_are_gone() {
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let mut server = launch.start_ready().await;
    database.enqueue(workflow, 200).await;
    database.until_count("COMPLETED", 10).await;
    proxy.cut();
    database.until_count("COMPLETED", 40).await;
    proxy.door(Door::Refusing);
    proxy.cut();
    tokio::time::sleep(Duration::from_secs(3)).await;
    proxy.door(Door::Open);
    let took = database.until_count("COMPLETED", 200).await;
    println!("completed {took:?} after the door was open again");
    assert!(took < AGAIN + Duration::from_secs(5), "{took:?}");
    server.assert_alive();
    database.assert_all_completed_once(200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_third_of_a_second_on_every_round_trip_everything_works_and_no_lease_is_lost() {
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let server = launch.start_ready().await;
    proxy.delay(Duration::from_millis(150));
    database.enqueue(workflow, 20).await;
    let took = database.until_count("COMPLETED", 20).await;
    println!("20 of them took {took:?}");
    assert_eq!(server.said("lease had run out"), 0, "{}", server.log());
    assert_eq!(server.said("database was silent"), 0, "{}", server.log());
    assert_eq!(server.readiness().await.0, 200);
    database.assert_all_completed_once(20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_database_behind_a_narrow_line_everything_works_and_no_lease_is_lost() {
    let (database, proxy, launch) = by_a_proxy().await;
    let workflow = database.workflow(4, SHORT).await;
    let server = launch.start_ready().await;
    proxy.throttle(32 * 1024);
    database.enqueue(workflow, 40).await;
    let took = database.until_count("COMPLETED", 40).await;
    println!("40 of them took {took:?}");
    // Longer than a lease.
    let answers = asked_all_the_time(&server, tokio::time::sleep(Duration::from_secs(7))).await;
    assert!(answers.iter().all(|(_, status)| *status == 200), "{answers:?}");
    assert_eq!(server.said("lease had run out"), 0, "{}", server.log());
    assert_eq!(server.said("database was silent"), 0, "{}", server.log());
    database.assert_all_completed_once(40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_behind_a_token_tell_of_a_database_that_is_away_to_who_was_let_in_before() {
    let (database, proxy, launch) = by_a_proxy().await;
    let make = |name: &str| {
        let made = command(&database, &["tokens", "create", name, "--role", "viewer"]);
        made["secret"].as_str().unwrap().to_owned()
    };
    let (met, stranger) = (make("prometheus"), make("stranger"));
    let server = launch.with("HTTP__PROTECT_METRICS", "true").start_ready().await;
    let address = server.address().unwrap();
    assert_eq!(get(&address, "/metrics").await.unwrap().0, 401);
    assert_eq!(get_with(&address, "/metrics", &met).await.unwrap().0, 200);
    proxy.door(Door::Refusing);
    proxy.cut();
    eventually("it is not ready", async || server.readiness().await.0 == 503).await;
    // Longer than a token is believed.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (status, text) = get_with(&address, "/metrics", &met).await.unwrap();
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("stationmaster_ready 0"), "{text}");
    assert_ne!(get_with(&address, "/metrics", &stranger).await.unwrap().0, 200);
}
