//! Temporal answers late, too late, slowly, or not at all; what it was told arrives and is not answered, or does not arrive.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::silence::asked_all_the_time;
use crate::support::{
    Direction, Door, ENDLESS, Gate, Launch, LimitWatch, Process, Proxy, Temporal, TestDatabase, Work, Worker,
    eventually,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_answers_a_second_late_limits_hold_and_everything_completes() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    proxy.answers.send_replace(Gate::Late(Duration::from_secs(1)));
    let (narrow, wide) = (
        database.workflow(1, ENDLESS).await,
        database.workflow(4, ENDLESS).await,
    );
    let limits = LimitWatch::on(&database.pool);
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let _servers = [launch.start_ready().await, launch.start_ready().await];
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    database.enqueue(narrow, 2).await;
    database.enqueue(wide, 10).await;
    let took = database.until_count("COMPLETED", 12).await;
    println!("12 executions completed in {took:?}");
    limits.assert_kept(&HashMap::from([(narrow.0, 1), (wide.0, 4)]));
    database.assert_all_completed_once(12).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
    assert_eq!(database.attempts().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_after_the_server_gave_up_leaves_one_run_and_a_running_execution() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(3, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let server = launch
        .with("EXECUTIONS__START_TIMEOUT", "2s")
        .with("EXECUTIONS__CLAIM_LEASE", "7s");
    let server = server.start_ready().await;
    proxy.hold_answers();
    database.enqueue(workflow, 3).await;
    eventually("the server gives up", async || {
        server.said("A start is in doubt") == 3
    })
    .await;
    assert_eq!(
        database.count("STARTING").await,
        3,
        "in doubt they keep their slots"
    );
    proxy.open();
    let took = database.until_count("RUNNING", 3).await;
    println!("RUNNING {took:?} after the answers came");
    let rows = database.rows().await;
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    assert!(
        rows.iter().all(|row| row.attempts == 0 && row.recoveries == 0),
        "{rows:?}"
    );
    database.assert_counters_agree().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_never_arrived_is_in_doubt_and_then_made_once() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(1, ENDLESS).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    let server = launch
        .with("EXECUTIONS__START_TIMEOUT", "1s")
        .with("EXECUTIONS__CLAIM_LEASE", "6s");
    let server = server.start_ready().await;
    proxy.hold_requests();
    database.enqueue(workflow, 1).await;
    eventually("the server gives up", async || {
        server.said("A start is in doubt") == 1
    })
    .await;
    proxy.open();
    let row = database.the_execution("RUNNING").await;
    temporal.assert_one_run_each([row.id]).await;
    assert_eq!(row.attempts, 0, "{row:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_before_its_start_is_settled_completes_once() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(2, ENDLESS).await;
    let slow = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    proxy.hold_answers();
    database.enqueue(workflow, 2).await;
    database.until_count("STARTING", 2).await;
    for row in database.rows().await {
        temporal.until_started(row.id).await;
    }
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    eventually("the runs have ended", async || temporal.open().await.is_empty()).await;
    proxy.open();
    database.until_count("COMPLETED", 2).await;
    database.assert_all_completed_once(2).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
    let outputs = "select count(*) from stationmaster.workflow_executions where output = '{\"trains\": 3}'";
    assert_eq!(database.number(outputs).await, 2);
    drop(slow);
}

/// From the return of Temporal to the first start.
const BACK: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_temporal_is_silent_readiness_says_so_and_nothing_is_spent_and_starts_go_on_when_it_is_back() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let (workflow, items) = (database.workflow(100, ENDLESS).await, 20);
    let mut server = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .with("EXECUTIONS__START_TIMEOUT", "3s")
        .with("EXECUTIONS__CLAIM_LEASE", "10s")
        .start_ready()
        .await;
    database.enqueue(workflow, 5).await;
    database.until_count("RUNNING", 5).await;
    proxy.vanish();
    database.enqueue(workflow, items).await;
    eventually("it says that the engine is away", async || {
        let (status, body) = server.readiness().await;
        status == 503 && body.contains("the engine temporal is away")
    })
    .await;
    assert_eq!(database.attempts().await, 0);
    // What comes now waits unclaimed: the breaker is open.
    let claimed = database.rows().await.len();
    database.enqueue(workflow, items).await;
    let answers = asked_all_the_time(&server, tokio::time::sleep(Duration::from_secs(6))).await;
    assert!(
        answers.iter().all(|(_, status)| *status == 503),
        "it is not ready without its engine"
    );
    assert_eq!(
        database.rows().await.len(),
        claimed,
        "nothing was claimed meanwhile"
    );

    proxy.door(Door::Open);
    let back = Instant::now();
    database.until_count("RUNNING", 6).await;
    println!("first start {:?} after Temporal was back", back.elapsed());
    assert!(back.elapsed() < BACK, "{:?}\n{}", back.elapsed(), server.log());
    database.until_count("RUNNING", i64::from(5 + 2 * items)).await;
    let rows = database.rows().await;
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    assert_eq!(database.attempts().await, 0);
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    server.assert_alive();
}

/// The connection to Temporal is half open, and a new one would work: starts go on, each of them once.
async fn starts_go_on(lost: Direction) {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(100, ENDLESS).await;
    let timeout = Duration::from_secs(2);
    let mut server = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .with("EXECUTIONS__START_TIMEOUT", "2s")
        .with("EXECUTIONS__CLAIM_LEASE", "7s")
        .start_ready()
        .await;
    database.enqueue(workflow, 5).await;
    database.until_count("RUNNING", 5).await;
    proxy.half_open(lost);
    database.enqueue(workflow, 10).await;
    let begun = Instant::now();
    eventually("a start was given up", async || {
        database.enqueue(workflow, 1).await;
        database.count("RUNNING").await > 5
    })
    .await;
    println!("starts go on after {:?}", begun.elapsed());
    assert!(
        begun.elapsed() < timeout + BACK,
        "{:?}\n{}",
        begun.elapsed(),
        server.log()
    );
    let waiting = "select count(*) from stationmaster.workflow_execution_queue";
    let items = database.number(waiting).await;
    database.until_count("RUNNING", items.min(100)).await;
    let rows = database.rows().await;
    temporal.assert_one_run_each(rows.iter().map(|row| row.id)).await;
    assert_eq!(database.attempts().await, 0);
    eventually("the server is ready", async || server.readiness().await.0 == 200).await;
    server.assert_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_requests_no_longer_reach_temporal_a_new_connection_is_made_and_each_run_is_started_once() {
    starts_go_on(Direction::Requests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_answers_of_temporal_no_longer_arrive_a_new_connection_is_made_and_each_run_is_started_once() {
    starts_go_on(Direction::Answers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_temporal_behind_a_narrow_line_everything_completes_and_no_attempt_is_spent() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let workflow = database.workflow(8, ENDLESS).await;
    let mut server = Launch::on(&database)
        .temporal(&proxy.address, &temporal.namespace)
        .start_ready()
        .await;
    let _worker = Worker::start(&temporal, Work::CompleteAfter(Duration::ZERO));
    proxy.throttle(16 * 1024);
    database.enqueue(workflow, 30).await;
    let completed = async {
        let took = database.until_count("COMPLETED", 30).await;
        println!("30 of them took {took:?}");
    };
    let answers = asked_all_the_time(&server, completed).await;
    assert!(
        answers.iter().all(|(_, status)| *status == 200),
        "slow is not away: {}",
        server.log()
    );
    database.assert_all_completed_once(30).await;
    temporal
        .assert_one_run_each(database.rows().await.iter().map(|row| row.id))
        .await;
    assert_eq!(database.attempts().await, 0);
    server.assert_alive();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_have_nothing_to_ask_the_engine_notice_too_that_it_is_gone_and_that_it_is_back() {
    let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
    let proxy = Proxy::before(&temporal.address).await;
    let launch = Launch::on(&database).temporal(&proxy.address, &temporal.namespace);
    // Whoever was first asks for all; the others have no reason to.
    let servers = [launch.start_ready().await, launch.start_ready().await];
    let until_all_say = async |status: u16| {
        eventually(&format!("all say {status}"), async || {
            let said = futures::future::join_all(servers.iter().map(Process::readiness)).await;
            said.iter().all(|(said, _)| *said == status)
        })
        .await
    };
    proxy.door(Door::Refusing);
    proxy.cut();
    let took = until_all_say(503).await;
    println!("all had noticed after {took:?}");
    proxy.door(Door::Open);
    until_all_say(200).await;
}
