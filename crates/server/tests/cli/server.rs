//! What the commands tell and do while a server is at work. The server's background work runs inside the test.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stationmaster_core::db::Database;
use stationmaster_core::engine::embedded::EmbeddedEngine;
use stationmaster_core::executions::Settings;
use stationmaster_core::observe::Metrics;
use stationmaster_core::presence::Presence;
use stationmaster_core::station::{Parts, Station};
use tokio::runtime::Runtime;

use crate::support::{TestDatabase, text};

/// Runs for longer than any test.
const LONG: &str = r#"{"nodes": [{"id": "night", "type": "wait", "seconds": 3600}]}"#;

struct Server {
    runtime: Runtime,
    station: Option<Station>,
    database: Database,
}

impl Server {
    fn start(database: &TestDatabase) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let database = runtime.block_on(async { Database::new(&database.url(), 8).expect("a URL") });
        let presence = Presence::new("a test");
        let parts = Parts {
            engine: Arc::new(EmbeddedEngine::new(database.clone(), presence.clone()).expect("an engine")),
            database: database.clone(),
            presence,
            alarms: None,
            executions: Some(Settings::default()),
            dispatchers: None,
            metrics: Arc::new(Metrics::new()),
        };
        let station = runtime.block_on(Station::start(parts)).expect("a server starts");
        Self {
            runtime,
            station: Some(station),
            database,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(station) = self.station.take() {
            self.runtime.block_on(station.shut_down(Duration::from_secs(5)));
        }
        self.runtime.block_on(self.database.pool().close());
    }
}

/// Asks until the answer is yes.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "not within 30 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn who_holds_the_slots_is_told_and_a_completion_frees_them() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(LONG);
    let first = database.enqueue(&workspace, &workflow);
    let server = Server::start(&database);
    let status = |item: &str| text(&database.json(&["queue", "show", item]), "status");
    eventually("the first item runs", || status(&first) == "DISPATCHED");

    let holder = text(&database.json(&["queue", "show", &first]), "execution_id");
    let second = database.enqueue(&workspace, &workflow);
    let waiting = || database.json(&["queue", "show", &second])["waiting"].clone();
    // A server tells of its engine by heartbeat, so its first word on it may be a second old.
    let at_the_limit =
        serde_json::json!({"reason": "limit", "limit": 1, "active": 1, "holders": [holder], "position": 1});
    eventually("the second item waits for a slot", || waiting() == at_the_limit);
    let shown = database.done(&["queue", "show", &second]);
    assert!(
        shown.contains("1 of 1 slots are in use")
            && shown.contains(&format!("execution {holder} of "))
            && shown.contains(", on a-test"),
        "{shown}"
    );
    let listed = database.json(&["queue", "list", "--status", "pending"]);
    assert_eq!(listed[0]["waits_for"], "limit", "{listed}");
    let servers = database.json(&["servers", "list"]);
    assert_eq!(
        (&servers[0]["name"], &servers[0]["alive"]),
        (&"a-test".into(), &true.into())
    );
    let running = database.json(&["executions", "list", "--status", "running"]);
    assert_eq!(text(&running[0], "id"), holder);

    let complete = [
        "executions",
        "complete",
        &holder,
        "--output",
        r#"{"trains": 3}"#,
        "--yes",
    ];
    assert!(database.done(&complete).contains("COMPLETED"));
    let refusal = database.refused(4, &complete);
    assert!(refusal.contains("COMPLETED"), "{refusal}");
    let ended = database.json(&["executions", "show", &holder]);
    assert_eq!(
        (&ended["status"], &ended["output"]["trains"]),
        (&"COMPLETED".into(), &3.into())
    );
    assert!(
        database
            .refused(4, &["queue", "retry", &first])
            .contains("has not failed")
    );
    eventually("the second item runs", || status(&second) == "DISPATCHED");

    let execution = text(&database.json(&["queue", "show", &second]), "execution_id");
    let failed = [
        "executions",
        "complete",
        &execution,
        "--error",
        "the bridge is out",
        "--yes",
    ];
    assert!(database.done(&failed).contains("FAILED"));
    // Its item was started, and is no failed item: whoever asks for those is told where it is, by commands that work.
    let asked = database.run(&["queue", "list", "--status", "failed"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (0, "Nothing found.\n"));
    let hints: Vec<&str> = asked
        .stderr
        .lines()
        .filter_map(|line| line.split_once("stationmaster "))
        .map(|(_, command)| command)
        .collect();
    assert_eq!(hints.len(), 2, "{}", asked.stderr);
    for hint in hints {
        let command: Vec<&str> = hint.split(' ').collect();
        assert!(database.done(&command).contains("the bridge is out"), "{hint}");
    }
    let shown = database.done(&["executions", "show", &execution]);
    assert!(
        shown.contains("the bridge is out") && shown.contains("dispatched"),
        "{shown}"
    );
    drop(server);
}

#[test]
fn a_running_execution_is_cancelled_through_its_engine() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(LONG);
    let item = database.enqueue(&workspace, &workflow);
    let server = Server::start(&database);
    let shown = || database.json(&["queue", "show", &item]);
    eventually("the item runs", || shown()["status"] == "DISPATCHED");
    let execution = text(&shown(), "execution_id");
    assert_eq!(
        database.json(&["executions", "cancel", &execution, "--yes"])["result"],
        "requested"
    );
    let status = || text(&database.json(&["executions", "show", &execution]), "status");
    eventually("the run is cancelled", || status() == "CANCELLED");
    drop(server);
}
