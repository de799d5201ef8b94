//! Servers that are away, networks that fail, and what a start may say about them.

use std::time::{Duration, Instant};

use futures::future::join_all;
use stationmaster_core::engine::{Engine, RunState, StartOutcome};
use stationmaster_core::id::ExecutionId;

use crate::support::{
    DevServer, Mode, PATIENCE, Proxy, engine, free_port, impatient_engine, request, server_and_engine,
    start_running, until_ready,
};

const SHORT: Duration = Duration::from_millis(700);
/// What a busy machine may add to it.
const SLACK: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_dead_address_is_unavailable_and_the_same_engine_works_once_the_server_is_up() {
    let port = free_port();
    let engine = engine(&format!("127.0.0.1:{port}"));
    let request = request();
    let outcome = engine.start(&request, PATIENCE).await;
    assert!(matches!(outcome, StartOutcome::Unavailable { .. }), "{outcome:?}");
    engine.check().await.unwrap_err();
    engine.describe(&[request.execution_id]).await.unwrap_err();
    engine.closed_since(jiff::Timestamp::now()).await.unwrap_err();
    engine.open_runs(None).await.unwrap_err();

    let _server = DevServer::start(port);
    until_ready(&engine).await;
    start_running(&engine, &request).await;
}

#[tokio::test]
async fn a_server_that_was_killed_is_unavailable_and_its_successor_is_found() {
    let port = free_port();
    let server = DevServer::start(port);
    let engine = engine(&server.address);
    until_ready(&engine).await;
    start_running(&engine, &request()).await;
    drop(server);

    // The first may still go out on the connection that is just breaking.
    let outcome = engine.start(&request(), PATIENCE).await;
    assert!(
        matches!(
            outcome,
            StartOutcome::Unavailable { .. } | StartOutcome::InDoubt { .. }
        ),
        "{outcome:?}"
    );
    for _ in 0..3 {
        let outcome = engine.start(&request(), PATIENCE).await;
        assert!(matches!(outcome, StartOutcome::Unavailable { .. }), "{outcome:?}");
    }
    engine.check().await.unwrap_err();

    let _server = DevServer::start(port);
    until_ready(&engine).await;
    start_running(&engine, &request()).await;
}

#[tokio::test]
async fn a_listener_that_never_answers_is_unavailable_within_the_deadline() {
    let (server, _) = server_and_engine().await;
    let proxy = Proxy::before(&server.address, Mode::Mute).await;
    let engine = engine(&proxy.address);
    let begun = Instant::now();
    // The greeting went unanswered, so the start itself was never sent.
    let outcome = engine.start(&request(), SHORT).await;
    assert!(matches!(outcome, StartOutcome::Unavailable { .. }), "{outcome:?}");
    assert!(begun.elapsed() < SHORT + SLACK, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn all_that_wait_for_a_connection_share_one_try_and_its_end() {
    let (server, _) = server_and_engine().await;
    let proxy = Proxy::before(&server.address, Mode::Mute).await;
    let engine = impatient_engine(&proxy.address, SHORT);
    let begun = Instant::now();
    let request = request();
    let outcomes = join_all((0..64).map(|_| engine.start(&request, PATIENCE))).await;
    assert!(
        outcomes
            .iter()
            .all(|outcome| matches!(outcome, StartOutcome::Unavailable { .. }))
    );
    assert!(begun.elapsed() < SHORT + SLACK, "{:?}", begun.elapsed());
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_goes_mute_leaves_a_start_in_doubt_and_is_replaced() {
    let (server, _) = server_and_engine().await;
    let proxy = Proxy::before(&server.address, Mode::Open).await;
    let engine = engine(&proxy.address);
    until_ready(&engine).await;

    proxy.set(Mode::Mute);
    let begun = Instant::now();
    let request = request();
    let outcome = engine.start(&request, SHORT).await;
    assert!(matches!(outcome, StartOutcome::InDoubt { .. }), "{outcome:?}");
    assert!(begun.elapsed() < SHORT + SLACK, "{:?}", begun.elapsed());

    // The old connection has lost bytes and is beyond repair; the next call must not wait for it.
    proxy.set(Mode::Open);
    let states = engine.describe(&[request.execution_id]).await.unwrap();
    assert!(matches!(states[0], RunState::NotFound), "{states:?}");
    assert_eq!(proxy.connections(), 2);
    start_running(&engine, &request).await;
}

#[tokio::test]
async fn a_start_whose_answer_was_lost_is_in_doubt_and_is_found_running() {
    let (server, direct) = server_and_engine().await;
    let proxy = Proxy::before(&server.address, Mode::Open).await;
    let engine = engine(&proxy.address);
    until_ready(&engine).await;

    proxy.set(Mode::AnswersLost);
    let request = request();
    let outcome = engine.start(&request, SLACK).await;
    assert!(matches!(outcome, StartOutcome::InDoubt { .. }), "{outcome:?}");
    let states = direct.describe(&[request.execution_id]).await.unwrap();
    let [RunState::Running { run_id }] = &states[..] else {
        panic!("{states:?}")
    };

    proxy.set(Mode::Open);
    assert_eq!(start_running(&engine, &request).await, *run_id);
}

#[tokio::test]
async fn a_connection_that_breaks_after_sending_leaves_the_start_in_doubt() {
    let (server, _) = server_and_engine().await;
    let proxy = Proxy::before(&server.address, Mode::Open).await;
    let engine = engine(&proxy.address);
    until_ready(&engine).await;

    proxy.set(Mode::BreaksOnAnswer);
    let request = request();
    let outcome = engine.start(&request, PATIENCE).await;
    assert!(matches!(outcome, StartOutcome::InDoubt { .. }), "{outcome:?}");

    proxy.set(Mode::Open);
    let run_id = start_running(&engine, &request).await;
    assert_eq!(start_running(&engine, &request).await, run_id);
}

#[tokio::test]
async fn what_takes_the_place_of_temporal_within_a_moment_is_sent_nothing() {
    let (server, _) = server_and_engine().await;
    let other = DevServer::start(free_port());
    let there = engine(&other.address);
    until_ready(&there).await;
    let proxy = Proxy::before(&server.address, Mode::Open).await;
    let engine = engine(&proxy.address);
    until_ready(&engine).await;
    engine.bind_to(Some(&engine.identity().await.unwrap()));

    let mut sent: Vec<ExecutionId> = Vec::new();
    // Nobody sees when the engine has noticed; it may before it has something to send, or only then.
    for pause in [0, 20, 50, 100, 200, 400] {
        // Who is there has just been proven.
        start_running(&engine, &request()).await;
        proxy.lead_to(&other.address);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        for _ in 0..5 {
            let request = request();
            let outcome = engine.start(&request, PATIENCE).await;
            // The first may still go out on the connection that is just breaking.
            assert!(
                matches!(
                    outcome,
                    StartOutcome::Unavailable { .. } | StartOutcome::InDoubt { .. }
                ),
                "{outcome:?}"
            );
            sent.push(request.execution_id);
        }
        proxy.lead_to(&server.address);
        until_ready(&engine).await;
    }
    let states = there.describe(&sent).await.unwrap();
    let nothing = states.iter().all(|state| matches!(state, RunState::NotFound));
    assert!(nothing, "{states:?}");
}

#[tokio::test]
async fn a_connection_that_ended_while_nobody_used_it_is_replaced_without_a_word() {
    let (server, _) = server_and_engine().await;
    let proxy = Proxy::before(&server.address, Mode::Open).await;
    let engine = engine(&proxy.address);
    until_ready(&engine).await;
    engine.bind_to(Some(&engine.identity().await.unwrap()));
    let mut outcomes = Vec::new();
    // Nobody sees when the engine has noticed; each time it has more time to.
    for pause in [50, 100, 200, 400, 800, 1600] {
        start_running(&engine, &request()).await;
        proxy.lead_to(&server.address);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let outcome = engine.start(&request(), PATIENCE).await;
        if matches!(outcome, StartOutcome::Running { .. }) {
            return;
        }
        outcomes.push(outcome);
        until_ready(&engine).await;
    }
    panic!("{outcomes:?}");
}
