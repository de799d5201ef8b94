//! What people see at a terminal, and what a pipe gets; in which order; and who is asked before something is lost.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use nix::pty::{Winsize, openpty};
use serde_json::Value;

use crate::support::{GRAPH, TestDatabase, text};

/// What a command shows in a terminal so many columns wide. A session of its own, so that no other terminal is asked for its width.
fn in_terminal(database: &TestDatabase, columns: u16, arguments: &[&str]) -> String {
    let size = Winsize {
        ws_row: 40,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let pair = openpty(Some(&size), None).unwrap();
    let mut command = Command::new("setsid");
    command
        .arg(env!("CARGO_BIN_EXE_stationmaster"))
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .env("STATIONMASTER_DATABASE_URL", database.url())
        .stdin(Stdio::null())
        .stdout(pair.slave.try_clone().unwrap())
        .stderr(pair.slave);
    let mut child = command.spawn().expect("setsid, of every Linux");
    // The end of the terminal that the command has, and nobody else.
    drop(command);
    let mut screen = File::from(pair.master);
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = screen.read(&mut bytes) {
        said.extend_from_slice(&bytes[..count]);
    }
    assert!(
        child.wait().unwrap().success(),
        "{}",
        String::from_utf8_lossy(&said)
    );
    String::from_utf8(said).unwrap().replace('\r', "")
}

/// Items of two workspaces, some of them cancelled, one that failed with many words.
fn scene() -> (TestDatabase, Vec<String>) {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let add = |priority: &str| {
        let input = ["--input", r#"{"night": 1}"#, "--priority", priority];
        let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
        text(&database.json(&[&add[..], &input].concat()), "id")
    };
    let items: Vec<String> = ["5", "30", "200", "1", "2", "3"].map(add).into();
    for item in &items[3..] {
        database.done(&[
            "queue",
            "cancel",
            item,
            "--yes",
            "--note",
            &"a long story ".repeat(12),
        ]);
    }
    (database, items)
}

fn ids(list: &Value) -> Vec<String> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| text(item, "id"))
        .collect()
}

#[test]
fn a_table_fits_the_terminal_and_a_pipe_gets_everything() {
    let (database, items) = scene();
    for columns in [60, 80, 100, 140] {
        let seen = in_terminal(&database, columns, &["queue", "list"]);
        let table: Vec<&str> = seen.lines().take(7).collect();
        assert!(
            table[0].starts_with("ID ") && table[0].contains("STATUS"),
            "{seen}"
        );
        assert!(
            table.iter().all(|line| line.chars().count() <= columns.into()),
            "{columns}\n{seen}"
        );
        assert_eq!(
            table.iter().filter(|line| line.starts_with("01")).count(),
            6,
            "{seen}"
        );
        let left_out = seen
            .lines()
            .any(|line| line.starts_with("Left out, for lack of room: "));
        let all = table[0].contains("OUTCOME") && table[0].contains("LAST ERROR");
        assert_eq!(left_out, !all, "{columns}\n{seen}");
    }
    let seen = in_terminal(&database, 140, &["queue", "list"]);
    assert!(seen.contains(" s ago") && !seen.contains(&items[0]), "{seen}");
    let exact = |more: &str| in_terminal(&database, 140, &["queue", "list", more]);
    assert!(exact("--utc").contains("Z  ") && !exact("--absolute").contains(" ago"));
    let wide = in_terminal(&database, 60, &["queue", "list", "-o", "wide"]);
    assert!(wide.contains(&items[0]) && wide.contains("EXECUTION"), "{wide}");
    // Details are whole, and go on below themselves.
    let shown = in_terminal(&database, 60, &["queue", "show", &items[5]]);
    let fields: Vec<&str> = shown.lines().take_while(|line| !line.is_empty()).collect();
    assert!(fields.iter().all(|line| line.chars().count() <= 60), "{shown}");

    let piped = database.done(&["queue", "list"]);
    let lines: Vec<&str> = piped.lines().collect();
    assert_eq!(lines.len(), 7, "{piped}");
    assert!(
        lines[0].contains("PRIORITY") && lines[0].contains("LAST ERROR"),
        "{piped}"
    );
    assert!(
        items.iter().all(|item| piped.contains(item.as_str())) && !piped.contains('\t'),
        "{piped}"
    );
    assert_eq!(
        piped,
        database.done(&["queue", "list"]),
        "the same whenever it asks"
    );
    let at = lines[1]
        .split_whitespace()
        .find_map(|word| word.parse::<Timestamp>().ok());
    assert!(at.is_some(), "{piped}");
}

#[test]
fn lists_are_sorted_by_a_column_and_filtered_by_several_values() {
    let (database, items) = scene();
    let priorities = |list: &Value| -> Vec<i64> {
        let items = list.as_array().unwrap().iter();
        items.map(|item| item["priority"].as_i64().unwrap()).collect()
    };
    let sorted = |by: &str| priorities(&database.json(&["queue", "list", "--sort", by]));
    assert_eq!(sorted("priority"), [1, 2, 3, 5, 30, 200]);
    assert_eq!(sorted("-Priority"), [200, 30, 5, 3, 2, 1]);
    // By what the server knows an order of, the whole list, and not only what is shown.
    let oldest = ["queue", "list", "--sort", "enqueued", "--limit", "2"];
    assert_eq!(ids(&database.json(&oldest)), items[..2]);
    let both = [&oldest[..], &["--status", "pending,cancelled"]].concat();
    assert_eq!(ids(&database.json(&both)), items[..2]);
    let workspace = text(&database.json(&["queue", "list"])[0], "workspace_id");
    let next = ["queue", "list", "--sort", "next", "--workspace", &workspace];
    assert_eq!(priorities(&database.json(&next)), [200, 30, 5]);
    let refused = database.refused(2, &["queue", "list", "--sort", "colour"]);
    assert!(refused.contains("not-before"), "it says what there is: {refused}");

    let newest: Vec<String> = items.iter().rev().cloned().collect();
    let both = ["queue", "list", "--status", "pending,CANCELLED"];
    assert_eq!(ids(&database.json(&both)), newest);
    assert_eq!(
        ids(&database.json(&["queue", "list", "--status", "pending", "--status", "Cancelled"])),
        newest
    );
    assert_eq!(
        ids(&database.json(&["queue", "list", "--status", "cancelled"])),
        newest[..3]
    );
    assert_eq!(
        ids(&database.json(&["queue", "list", "--status", "cancelled,failed"])),
        newest[..3]
    );
    // Read in parts it is the same list, whatever the parts.
    for part in ["1", "2", "4"] {
        let (mut read, mut place) = (Vec::new(), None::<String>);
        for _ in 0..7 {
            let mut more = vec!["--limit", part, "--json"];
            more.extend(place.iter().flat_map(|place| ["--before", place.as_str()]));
            let ended = database.run(&[&both[..], &more].concat());
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            read.extend(ids(&serde_json::from_str(&ended.stdout).unwrap()));
            let next = serde_json::from_str::<Value>(&ended.stderr).ok();
            place = next.and_then(|next| next["next_cursor"].as_str().map(str::to_owned));
            if place.is_none() {
                break;
            }
        }
        assert_eq!(read, newest, "in parts of {part}");
    }
    let torn = database.refused(2, &[&both[..], &["--before", "AAAA"]].concat());
    assert!(torn.contains("same filters"), "{torn}");

    let cancelled = database.json(&[
        "queue",
        "retry-all",
        "--status",
        "failed,cancelled,FAILED",
        "--dry-run",
    ]);
    assert_eq!(cancelled["matching"], 3);
    let retried = database.json(&["queue", "retry-all", "--status", "failed,cancelled", "--yes"]);
    assert_eq!(retried["retried"], 3);
}

#[test]
fn times_are_taken_as_people_write_them() {
    let (database, items) = scene();
    let since = |time: &str| ids(&database.json(&["queue", "list", "--created-after", time])).len();
    for time in [
        "1h",
        "-15m",
        "yesterday 14:00",
        "2 days ago",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
    ] {
        assert_eq!(since(time), items.len(), "{time}");
    }
    for time in ["now", "tomorrow", "in 2 hours"] {
        assert_eq!(since(time), 0, "{time}");
    }
    let refused = database.refused(2, &["queue", "list", "--created-after", "noonish"]);
    assert!(refused.contains("yesterday 14:00"), "{refused}");
    let add = [
        "queue",
        "add",
        "--workspace",
        "north",
        "--workflow",
        "nightly",
        "--at",
        "1h",
    ];
    let later = database.json(&["queue", "show", &text(&database.json(&add), "id")]);
    let at: Timestamp = text(&later, "run_at").parse().unwrap();
    assert!(at > Timestamp::now(), "{at}");
}

#[test]
fn what_needs_nobody_is_said_in_its_own_words() {
    let database = TestDatabase::migrated();
    assert_eq!(database.done(&["failures"]), "Nothing needs a person.\n");
    let filtered = database.done(&["failures", "--kind", "signal,Start", "--ended-after", "1h"]);
    assert_eq!(filtered, "Nothing that matches needs a person.\n");
    assert_eq!(database.json(&["failures"]), serde_json::json!([]));
}

#[test]
fn what_destroys_asks_and_a_dry_run_changes_nothing() {
    let (database, items) = scene();
    database.done(&["triggers", "set", "shop", "paid", "--workflow", "north.nightly"]);
    database.done(&[
        "alarms",
        "set",
        "--workspace",
        "north",
        "--in",
        "9d",
        "--name",
        "tea",
    ]);
    database.done(&["tokens", "create", "ci", "--role", "viewer"]);
    let waiting = items[0].as_str();
    let guarded: [(&[&str], &str); 6] = [
        (&["triggers", "remove", "shop", "paid"], "nightly"),
        (&["alarms", "cancel", "tea"], "tea"),
        (&["tokens", "revoke", "ci"], "ci"),
        (&["queue", "cancel", waiting], "PENDING"),
        (&["workflows", "delete", "north.nightly"], "nightly"),
        (&["workspaces", "delete", "north"], "north"),
    ];
    let state = || {
        let lists = [
            &["triggers", "list"][..],
            &["alarms", "list"],
            &["tokens", "list"],
            &["queue", "list"],
        ];
        lists.map(|list| database.done(list))
    };
    let before = state();
    for (command, named) in guarded {
        let refused = database.refused(2, command);
        assert!(
            refused.contains("--yes") && refused.contains("--dry-run"),
            "{command:?}: {refused}"
        );
        let words = database.done(&[command, &["--dry-run"]].concat());
        assert!(
            words.contains("ould ") && words.contains(named),
            "{command:?}: {words}"
        );
        let both = database.refused(2, &[command, &["--dry-run", "--yes"]].concat());
        assert!(both.contains("cannot be used with"), "{command:?}: {both}");
    }
    assert_eq!(state(), before);
    for (command, _) in guarded {
        database.done(&[command, &["--yes"]].concat());
    }
    assert_ne!(state(), before);
}

#[test]
fn all_options_are_told_where_they_are_asked_for() {
    let help = |arguments: &[&str]| crate::support::run(arguments, &[], "").stdout;
    let short = help(&["queue", "list", "--help"]);
    assert!(
        !short.contains("--temporal-address") && short.contains("--help --all"),
        "{short}"
    );
    for all in [["--help", "--all"], ["-h", "--all"], ["--all", "--help"]] {
        let all = help(&[&["queue", "list"][..], &all].concat());
        assert!(
            all.contains("--temporal-address") && all.contains("Where to work:"),
            "{all}"
        );
    }
}
