//! The events of the designs behind Stationmaster, in the log of a real server: each at its level, with its fields.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scene::{Scene, request};
use crate::support::{Alarms, Launch, PATIENCE, eventually};

/// Level, how the line begins, and the fields that it must have.
const EVENTS: [(&str, &str, &[&str]); 23] = [
    ("DEBUG", "Processing ", &["items"]),
    ("INFO", "Workspace at capacity", &["workspace", "active", "limit"]),
    (
        "INFO",
        "Dispatching queue item",
        &["item", "execution", "workspace", "workflow"],
    ),
    (
        "INFO",
        "Dispatched execution",
        &["item", "execution", "workspace"],
    ),
    (
        "ERROR",
        "Failed to start Temporal workflow",
        &["item", "execution", "attempt", "error"],
    ),
    (
        "ERROR",
        "Error processing queue item",
        &["item", "error", "attempt"],
    ),
    ("WARN", "Workflow definition not found", &["workspace", "item"]),
    ("WARN", "Workspace not found", &["workspace"]),
    ("INFO", "Stationmaster is ready", &["address", "server"]),
    ("INFO", "Stopping", &[]),
    ("INFO", "Dispatcher started", &["dispatcher", "epoch"]),
    ("WARN", "Execution not found for retry", &["item"]),
    ("INFO", "Recovered ", &["items", "requeued"]),
    (
        "WARN",
        "A server is gone; nothing is left in its hands",
        &["server", "name"],
    ),
    (
        "INFO",
        "Dispatcher taken over",
        &["dispatcher", "epoch", "former", "vacant_for"],
    ),
    (
        "INFO",
        "Dispatcher is back",
        &["dispatcher", "epoch", "run", "seconds"],
    ),
    (
        "WARN",
        "Evicted servers that were not heard of",
        &["dispatcher", "servers"],
    ),
    ("INFO", "Handed a dispatcher over", &["dispatcher"]),
    ("DEBUG", "Firing ", &["occurrences"]),
    ("INFO", "Alarm fired", &["alarm", "scheduled_for", "attempt"]),
    (
        "ERROR",
        "Alarm failed",
        &["alarm", "scheduled_for", "attempt", "error"],
    ),
    (
        "WARN",
        "Alarm not accepted; it will be tried again",
        &["alarm", "scheduled_for", "attempt", "error", "retry_in"],
    ),
    ("WARN", "The driver of PostgreSQL warns", &["library", "said"]),
];

/// What is said only at the end.
const LAST: [&str; 2] = ["Stopping", "Handed a dispatcher over"];

/// Servers that notice soon that one of them is gone.
fn quick(alarms: &Alarms) -> Launch {
    alarms
        .launch()
        .with("HTTP__OPEN", "true")
        .with("LOG__LEVEL", "info,stationmaster_core=debug")
        .with("EXECUTIONS__RETRY_BASE", "10ms")
        .with("EXECUTIONS__RETRY_CAP", "20ms")
        .with("DISPATCHERS__LEASE", "3s")
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .with("DISPATCHERS__STALE_AFTER", "4s")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s")
        .with("DISPATCHERS__SECOND_LOOK", "500ms")
        .with("DISPATCHERS__CHECK_INTERVAL", "1s")
        .with("DISPATCHERS__SLA", "15s")
}

/// A server that owns a dispatcher and runs something, and is lost while another stands by.
async fn lose_a_server(alarms: Alarms) -> Scene {
    let launch = quick(&alarms);
    let mut lost = launch.start_ready().await;
    let workflow = alarms.database.workflow(5, crate::support::ENDLESS).await;
    alarms.database.enqueue(workflow, 2).await;
    alarms
        .run("insert into stationmaster.signals (project, name) values ('mill', 'ground')")
        .await;
    let started = "Dispatcher started";
    eventually("it owns a dispatcher", async || lost.said(started) == 1).await;
    alarms.database.until_count("RUNNING", 2).await;
    let scene = Scene::on(alarms, &launch).await;
    eventually("the other one stands by", async || {
        let query = "select count(*) from stationmaster_internal.dispatcher_servers";
        scene.database().number(query).await == 2
    })
    .await;
    lost.kill();
    scene
}

/// Holds what every server needs for longer than a driver finds right.
async fn hold_up_the_database(scene: &Scene) {
    let mut transaction = scene.database().pool.begin().await.unwrap();
    sqlx::query("lock table stationmaster_internal.servers in access exclusive mode")
        .execute(&mut *transaction)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    transaction.rollback().await.unwrap();
}

fn is(line: &Value, (level, words, fields): (&str, &str, &[&str])) -> bool {
    line["level"] == level
        && line["message"]
            .as_str()
            .is_some_and(|message| message.starts_with(words))
        && fields.iter().all(|field| !line[*field].is_null())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_tells_every_event_at_its_level_and_nothing_that_was_carried() {
    let mut scene = lose_a_server(Alarms::new().await).await;
    let secret = "a secret that nobody else needs to know";
    let (workspace, workflow) = scene.database().workflow(5, crate::support::SHORT).await;
    let input = format!(r#"{{"password": "{secret}"}}"#);
    scene
        .database()
        .enqueue_with(workspace, workflow, 1, &input)
        .await;
    scene.run_executions().await;
    scene.send_signals().await;
    scene.fire_alarms().await;
    hold_up_the_database(&scene).await;
    let nothing = format!("/v1/queue/{}/retry", uuid::Uuid::nil());
    let (status, _, answer) = request(&scene.address, "POST", &nothing, "", &[]).await;
    assert_eq!(status, 404, "{answer}");
    let orphans = scene.database().workflow(1, crate::support::ENDLESS).await;
    scene.database().enqueue(orphans, 2).await;
    scene
        .alarms
        .run(&format!(
            "delete from stationmaster.workspaces where id = '{}'",
            orphans.0
        ))
        .await;
    let lines = |log: String| -> Vec<Value> {
        let parsed = log.lines().filter_map(|line| serde_json::from_str(line).ok());
        parsed.collect()
    };
    let missing = || -> Vec<&str> {
        let said = lines(scene.server.log());
        let running = EVENTS.iter().filter(|event| !LAST.contains(&event.1));
        let missing = running.filter(|event| !said.iter().any(|line| is(line, **event)));
        missing.map(|event| event.1).collect()
    };
    let begun = Instant::now();
    while !missing().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nobody said {:?}", missing());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scene.server.signal(nix::sys::signal::Signal::SIGTERM);
    scene.server.ended().await;
    let log = scene.server.log();
    let said = lines(log.clone());
    assert_eq!(said.len(), log.lines().count(), "every line is JSON");
    for event in EVENTS {
        assert!(said.iter().any(|line| is(line, event)), "{event:?}");
    }
    for line in &said {
        let target = line["target"].as_str().unwrap();
        assert!(
            target.starts_with("stationmaster") || line["level"] == "INFO",
            "a library's own words: {line}"
        );
    }
    assert!(!log.contains(secret), "inputs are nobody's business");
    let url = &scene.database().url;
    let password = url::Url::parse(url).unwrap().password().map(str::to_owned);
    assert!(password.is_none_or(|password| !log.contains(&password)));
}
