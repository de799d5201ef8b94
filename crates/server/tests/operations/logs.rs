//! The events of the designs behind Stationmaster, in the log of a real server: each at its level, with its fields.

use serde_json::Value;

use crate::scene::Scene;
use crate::support::eventually;

/// Level, how the line begins, and the fields that it must have.
const EVENTS: [(&str, &str, &[&str]); 11] = [
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
];

fn is(line: &Value, (level, words, fields): (&str, &str, &[&str])) -> bool {
    line["level"] == level
        && line["message"]
            .as_str()
            .is_some_and(|message| message.starts_with(words))
        && fields.iter().all(|field| !line[*field].is_null())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_tells_every_event_at_its_level_and_nothing_that_was_carried() {
    let mut scene = Scene::new().await;
    let secret = "a secret that nobody else needs to know";
    let (workspace, workflow) = scene.database().workflow(5, crate::support::SHORT).await;
    let input = format!(r#"{{"password": "{secret}"}}"#);
    scene
        .database()
        .enqueue_with(workspace, workflow, 1, &input)
        .await;
    scene.run_executions().await;
    scene.send_signals().await;
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
    eventually("all but its end has been told", async || {
        let said = lines(scene.server.log());
        let running = EVENTS.iter().filter(|event| event.1 != "Stopping");
        let missing: Vec<_> = running
            .filter(|event| !said.iter().any(|line| is(line, **event)))
            .collect();
        missing.is_empty()
    })
    .await;
    scene.server.signal(nix::sys::signal::Signal::SIGTERM);
    scene.server.ended().await;
    let log = scene.server.log();
    let said = lines(log.clone());
    assert_eq!(said.len(), log.lines().count(), "every line is JSON");
    for event in EVENTS {
        assert!(said.iter().any(|line| is(line, event)), "{event:?}");
    }
    assert!(!log.contains(secret), "inputs are nobody's business");
    let url = &scene.database().url;
    let password = url::Url::parse(url).unwrap().password().map(str::to_owned);
    assert!(password.is_none_or(|password| !log.contains(&password)));
}
