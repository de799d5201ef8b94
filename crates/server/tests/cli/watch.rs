//! Live views, on a database and through a server.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::served::Served;
use crate::support::{GRAPH, binary, run, text};

/// A command that goes on, and the lines that it prints.
struct Watching {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Watching {
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut child = binary(arguments, environment)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next line that tells this.
    #[track_caller]
    fn until(&self, what: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(Duration::from_mins(1))
                .expect("another line");
            if what(&line) {
                return line;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_list_is_shown_again_when_something_happens() {
    let served = Served::start();
    let (workspace, workflow) = served.database.workflow(GRAPH);
    served.database.done(&["workspaces", "pause", &workspace]);
    let item = served.database.enqueue(&workspace, &workflow);
    let url = served.database.url();
    // Through a server the events alone must do: an hour is longer than any test.
    for (every, environment) in [
        ("100ms", vec![("STATIONMASTER_DATABASE_URL", url.as_str())]),
        (
            "1h",
            vec![
                ("STATIONMASTER_URL", served.url.as_str()),
                ("STATIONMASTER_TOKEN", &served.token),
            ],
        ),
    ] {
        let watching = Watching::start(
            &["queue", "list", "--watch", "--every", every, "--json"],
            &environment,
        );
        watching.until(|line| line.starts_with('['));
        // A listener hears from the moment on that it has come in, which we cannot see; so we go on until it tells.
        let heard = (1..100).any(|priority| {
            served
                .database
                .done(&["queue", "priority", &item, &priority.to_string()]);
            let told = watching.lines.recv_timeout(Duration::from_secs(2));
            told.is_ok_and(|line| line.contains(&format!("\"priority\":{priority},")))
        });
        assert!(heard, "{environment:?}");
    }
}

#[test]
fn an_execution_is_followed_to_its_end() {
    const SLOW: &str = r#"{"nodes": [{"id": "nap", "type": "wait", "seconds": 1}]}"#;
    const BAD: &str = r#"{"nodes": [{"id": "bridge", "type": "fail", "message": "the bridge is out"}]}"#;
    let served = Served::start();
    for (graph, code) in [(SLOW, 0), (BAD, 1)] {
        let (workspace, workflow) = served.database.workflow(graph);
        let item = served.database.enqueue(&workspace, &workflow);
        let execution = loop {
            let shown = served.json(&["queue", "show", &item]);
            if shown["execution_id"].is_string() {
                break text(&shown, "execution_id");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let environment = [
            ("STATIONMASTER_URL", served.url.as_str()),
            ("STATIONMASTER_TOKEN", &served.token),
        ];
        let ended = run(&["executions", "watch", &execution, "--json"], &environment, "");
        assert_eq!(ended.code, code, "{}", ended.stderr);
        let steps: Vec<Value> = ended
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(steps[0]["event"], "enqueued", "{}", ended.stdout);
        assert!(steps.len() >= 3, "{}", ended.stdout);
    }
}

#[test]
fn an_item_that_waits_is_watched_before_it_has_an_execution() {
    let served = Served::start();
    let (workspace, workflow) = served.database.workflow(GRAPH);
    served.database.done(&["workspaces", "pause", &workspace]);
    let [runs, never] = [(); 2].map(|()| served.database.enqueue(&workspace, &workflow));
    let environment = [
        ("STATIONMASTER_URL", served.url.as_str()),
        ("STATIONMASTER_TOKEN", &served.token),
    ];
    let mut watching = Watching::start(&["executions", "watch", &runs], &environment);
    watching.until(|line| line.contains("enqueued"));
    let mut other = Watching::start(&["executions", "watch", &never], &environment);
    other.until(|line| line.contains("enqueued"));
    served.done(&["queue", "cancel", &never, "--yes"]);
    other.until(|line| line.contains("cancelled"));
    assert_eq!(
        other.child.wait().unwrap().code(),
        Some(1),
        "it was never started"
    );
    served.done(&["workspaces", "resume", &workspace]);
    watching.until(|line| line.contains("claimed"));
    assert_eq!(watching.child.wait().unwrap().code(), Some(0));
}
