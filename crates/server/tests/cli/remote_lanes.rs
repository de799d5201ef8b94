//! Alarms, signals, triggers and dispatchers through a server, and on a database alone.

use serde_json::json;

use crate::remote::until;
use crate::served::Served;
use crate::support::{GRAPH, TestDatabase, run, text, written};

#[test]
fn filters_and_what_is_not_there_are_told_on_both_sides() {
    let served = Served::start();
    let database = &served.database;
    let (workspace, workflow) = database.workflow(GRAPH);
    database.done(&["workspaces", "pause", &workspace]);
    let set = ["alarms", "set", "--workspace", &workspace];
    let cron = [
        "--cron",
        "30 2 * * *",
        "--zone",
        "Europe/Zurich",
        "--label",
        "Night",
    ];
    let cron = text(
        &database.json(&[&set[..], &cron, &["--payload", r#"{"n": 1.50}"#]].concat()),
        "id",
    );
    database.done(&[&set[..], &["--at", "2039-01-01T00:00:00Z"]].concat());
    database.done(&["alarms", "pause", &cron]);
    database.done(&["triggers", "set", "shop", "order.paid", "--workflow", &workflow]);
    for (id, name) in [("s-1", "order.paid"), ("s-2", "order.lost")] {
        database.done(&["signals", "send", "shop", name, "--id", id]);
        until(
            || database.json(&["signals", "show", id]),
            |signal| signal["status"] != "PENDING",
        );
    }
    for (found, command) in [
        (
            1,
            &[
                "alarms", "list", "--kind", "cron", "--status", "paused", "--search", "night",
            ][..],
        ),
        (0, &["alarms", "list", "--kind", "once", "--search", "night"]),
        (1, &["alarms", "list", "--workspace", &workspace, "--limit", "1"]),
        (0, &["alarms", "occurrences", &cron, "--status", "fired"]),
        (
            1,
            &["triggers", "list", "--project", "shop", "--workspace", &workspace],
        ),
        (
            1,
            &["signals", "list", "--status", "routed", "--name", "order.paid"],
        ),
        (1, &["signals", "dead", "--project", "shop"]),
        (1, &["dispatchers", "list", "--project", "shop"]),
        (0, &["dispatchers", "list", "--project", "mill"]),
    ] {
        for shown in [served.json(command), database.json(command)] {
            assert_eq!(shown.as_array().unwrap().len(), found, "{command:?}: {shown}");
        }
    }
    let shown = served.json(&["dispatchers", "show", "dispatcher-shop-default"]);
    assert_eq!(shown["events"][0]["event"], "fresh", "{shown}");
    let nobody = "0199a0de-0000-7000-8000-000000000000";
    for command in [
        &["alarms", "show", nobody][..],
        &["alarms", "pause", nobody],
        &["alarms", "edit", nobody, "--label", "x"],
        &["alarms", "occurrences", nobody],
        &["signals", "show", "s-3"],
        &["signals", "replay", "s-3"],
        &["triggers", "remove", "shop", "order.lost", "--yes"],
        &["dispatchers", "show", "dispatcher-shop-night"],
    ] {
        served.refused(3, command);
        database.refused(3, command);
    }
}

#[test]
fn everything_is_done_to_the_lanes_through_a_server() {
    let served = Served::start();
    let ask = |arguments: &[&str]| served.json(arguments);
    let (workspace, workflow) = served.database.workflow(GRAPH);
    let set = [
        "alarms",
        "set",
        "--workspace",
        &workspace,
        "--cron",
        "0 3 * * *",
        "--zone",
        "Europe/Zurich",
        "--key",
        "k",
    ];
    let made = ask(&set);
    let again = ask(&set);
    assert_eq!((&again["id"], &again["created"]), (&made["id"], &json!(false)));
    let id = text(&made, "id");
    let edited = ask(&[
        "alarms",
        "edit",
        &id,
        "--zone",
        "America/New_York",
        "--misfire",
        "catch_up",
        "--catch-up",
        "3",
    ]);
    assert_eq!(
        (&edited["timezone"], &edited["catch_up"]),
        (&json!("America/New_York"), &json!(3))
    );
    ask(&[
        "alarms",
        "edit",
        &id,
        "--message",
        "hello",
        "--jitter",
        "1m",
        "--clear",
        "message,jitter",
    ]);
    ask(&["alarms", "pause", &id]);
    ask(&["alarms", "resume", &id]);
    ask(&["alarms", "fire", &id]);
    let range = [
        "alarms",
        "backfill",
        &id,
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2026-01-03T12:00:00Z",
    ];
    let preview = ask(&[&range[..], &["--dry-run"]].concat());
    assert_eq!((&preview["count"], &preview["fired"]), (&json!(3), &json!(false)));
    let done = ask(&[&range[..], &["--yes"]].concat());
    assert_eq!((&done["count"], &done["fired"]), (&json!(3), &json!(true)));
    ask(&["alarms", "cancel", &id, "--yes"]);
    ask(&[
        "alarms",
        "set",
        "--workspace",
        &workspace,
        "--in",
        "9d",
        "--key",
        "once",
        "--misfire",
        "skip",
        "--overlap",
        "queue",
        "--dst",
        "both",
    ]);

    let (project, signal) = (format!("p-{workspace}"), format!("s-{workspace}"));
    ask(&[
        "triggers",
        "set",
        &project,
        "order.paid",
        "--workflow",
        &workflow,
        "--task-queue",
        "night",
    ]);
    let send = [
        "signals",
        "send",
        &project,
        "order.lost",
        "--id",
        &signal,
        "--payload",
        r#"{"n": 1}"#,
    ];
    assert_eq!(ask(&send)["created"], true);
    assert_eq!(ask(&send)["created"], false);
    let dead = || served.database.json(&["signals", "show", &signal]);
    until(dead, |signal| signal["status"] == "DEAD");
    ask(&["signals", "replay", &signal]);
    until(dead, |signal| {
        signal["status"] == "DEAD" && signal["replays"] == 1
    });
    let all = [
        "signals",
        "replay",
        "--all",
        "--project",
        &project,
        "--dead-reason",
        "unknown_signal",
        "--yes",
    ];
    assert_eq!(ask(&all)["replayed"], 1);
    until(dead, |signal| {
        signal["status"] == "DEAD" && signal["replays"] == 2
    });
    ask(&[
        "triggers",
        "remove",
        &project,
        "order.paid",
        "--task-queue",
        "night",
        "--yes",
    ]);
}

#[test]
fn what_cannot_be_is_refused_in_the_same_way() {
    let served = Served::start();
    let (workspace, workflow) = served.database.workflow(GRAPH);
    let set = ["alarms", "set", "--workspace", &workspace];
    let bad = written(r#"{"type": "orderly"}"#);
    let bad = bad.path().to_str().unwrap();
    let fired = text(
        &served.json(&[&set[..], &["--in", "9d", "--key", "k"]].concat()),
        "id",
    );
    served.done(&["alarms", "cancel", &fired, "--yes"]);
    for (code, words, command) in [
        (2, "^^^^", &[&set[..], &["--cron", "0 0 30 2 *"]].concat()[..]),
        (
            2,
            "Europe/Zurich",
            &[&set[..], &["--cron", "@daily", "--zone", "Europe/Zürich"]].concat(),
        ),
        (2, "--cron", &set),
        (
            2,
            "http",
            &[&set[..], &["--in", "5m", "--target", "ftp://x/"]].concat(),
        ),
        (4, "cancelled", &["alarms", "resume", &fired]),
        (4, "key", &[&set[..], &["--in", "8d", "--key", "k"]].concat()),
        (
            2,
            "schema",
            &[
                "triggers",
                "set",
                "shop",
                "order.paid",
                "--workflow",
                &workflow,
                "--schema",
                bad,
            ],
        ),
        (
            3,
            "no workspace",
            &["alarms", "set", "--workspace", &workflow, "--in", "5m"],
        ),
    ] {
        for said in [
            served.refused(code, command),
            served.database.refused(code, command),
        ] {
            assert!(said.contains(words), "{command:?}: {said}");
        }
    }
    // Nobody answers there: these need no server, or say that a server does not do them.
    let nobody = [("STATIONMASTER_URL", "http://127.0.0.1:1")];
    assert_eq!(run(&["alarms", "next", "@daily"], &nobody, "").code, 0);
    let secrets = run(&["alarms", "secrets", "list"], &nobody, "");
    assert_eq!(secrets.code, 2);
    assert!(
        secrets.stderr.contains("only directly on a database"),
        "{}",
        secrets.stderr
    );
}

#[test]
fn long_lists_of_the_lanes_go_on_where_they_ended() {
    let served = Served::start();
    let workspace = text(&served.json(&["workspaces", "create", "north"]), "id");
    let mut all: Vec<String> = (1..=5)
        .map(|day| {
            let at = format!("2039-01-0{day}T00:00:00Z");
            text(
                &served.json(&["alarms", "set", "--workspace", &workspace, "--at", &at]),
                "id",
            )
        })
        .collect();
    all.reverse();
    let read = |run: &dyn Fn(&[&str]) -> crate::support::Ended| {
        let (mut ids, mut place) = (Vec::new(), None::<String>);
        loop {
            let mut list = vec!["alarms", "list", "-o", "wide", "--limit", "2"];
            list.extend(place.iter().flat_map(|place| ["--before", place.as_str()]));
            let shown = run(&list);
            assert_eq!(shown.code, 0, "{}", shown.stderr);
            let lines = shown
                .stdout
                .lines()
                .skip(1)
                .filter_map(|line| line.split_whitespace().next());
            ids.extend(lines.map(str::to_owned));
            let next = shown
                .stderr
                .split("--before ")
                .nth(1)
                .map(|place| place.trim().to_owned());
            match next {
                Some(next) => place = Some(next),
                None => return ids,
            }
        }
    };
    assert_eq!(read(&|list| served.run_as(&served.token, list)), all);
    assert_eq!(read(&|list| served.database.run(list)), all);
    let database: &TestDatabase = &served.database;
    for refused in [
        database.refused(2, &["alarms", "list", "--before", "nonsense"]),
        database.refused(2, &["signals", "list", "--before", "nonsense"]),
        served.refused(2, &["alarms", "list", "--before", "nonsense"]),
    ] {
        assert!(refused.starts_with("error: "), "{refused}");
    }
}
