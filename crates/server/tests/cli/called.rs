//! Wherever an id is shown, the name stands beside it: of servers, of the workspaces of a token, of the alarm of a failure.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::served::Served;
use crate::support::{GRAPH, text};

/// Looks until there is something to see.
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn servers_are_told_by_name_in_a_watched_life_and_in_what_happened_to_a_dispatcher() {
    let served = Served::start();
    let name = text(&served.json(&["servers", "list"])[0], "name");
    let (workspace, workflow) = served.database.workflow(GRAPH);
    let item = served.database.enqueue(&workspace, &workflow);
    until("it has ended", || {
        let shown = served.json(&["queue", "show", &item]);
        (shown["outcome"] == "COMPLETED").then_some(())
    });
    let told = served.done(&["executions", "watch", &item]);
    let claimed = told.lines().find(|line| line.contains("claimed"));
    assert!(
        claimed.is_some_and(|line| line.contains(&format!("  server {name}"))),
        "{told}"
    );
    served.done(&["signals", "send", "shop", "order.paid"]);
    let show = ["dispatchers", "show", "dispatcher-shop-default"];
    let fresh = until("somebody owns the dispatcher", || {
        let events = served.run_as(&served.token, &[&show[..], &["--json"]].concat());
        let shown: Value = serde_json::from_str(&events.stdout).ok()?;
        let events = shown["events"].as_array()?.clone();
        events.into_iter().find(|event| event["event"] == "fresh")
    });
    assert_eq!(fresh["server"], json!(name), "{fresh}");
    for told in [served.done(&show), served.database.done(&show)] {
        assert!(told.contains(&format!("server {name}")), "{told}");
        assert!(told.contains(&format!("{name} (")), "its owner: {told}");
    }
    // The name outlasts the server.
    served.stop();
    for verb in [&["dispatchers", "list"][..], &show] {
        let told = served.database.done(verb);
        assert!(told.contains(&format!("{name} (")), "{told}");
    }
}

#[test]
fn the_workspaces_of_a_token_are_told_by_name_in_lists_and_alone() {
    let served = Served::start();
    for name in ["north", "south"] {
        served.done(&["workspaces", "create", name]);
    }
    let create = [
        "tokens",
        "create",
        "ci",
        "--role",
        "operator",
        "--workspace",
        "south",
        "--workspace",
        "north",
    ];
    let made = served.json(&create)["token"].clone();
    assert_eq!(made["workspace_names"], json!(["south", "north"]), "{made}");
    let shown = served.json(&["tokens", "show", "ci"]);
    assert_eq!(shown["workspace_names"], json!(["south", "north"]), "{shown}");
    assert_eq!(shown["workspaces"], made["workspaces"]);
    for told in [
        served.done(&["tokens", "show", "ci"]),
        served.done(&["tokens", "list"]),
        served.database.done(&["tokens", "list"]),
    ] {
        assert!(told.contains("south, north"), "{told}");
    }
    // Of one that is gone its id is left.
    let gone = text(&served.json(&["workspaces", "show", "north"]), "id");
    served.done(&["workspaces", "delete", "north", "--yes"]);
    let shown = served.json(&["tokens", "show", "ci"]);
    assert_eq!(shown["workspace_names"], json!(["south", null]), "{shown}");
    let told = served.done(&["tokens", "show", "ci"]);
    assert!(told.contains(&format!("south, {gone}")), "{told}");
    // What is for all workspaces names none.
    let boss = served.json(&["tokens", "show", "boss"]);
    assert_eq!(boss.get("workspace_names"), None, "{boss}");
    assert!(
        served
            .refused(3, &["tokens", "show", "nobody"])
            .contains("no token")
    );
}

#[test]
fn a_failure_of_an_occurrence_names_its_alarm() {
    let served = Served::start();
    served.done(&["workspaces", "create", "north"]);
    // Where wakes may not go is found out when one is sent.
    let set = [
        "alarms",
        "set",
        "--workspace",
        "north",
        "--name",
        "tea",
        "--in",
        "1s",
    ];
    let alarm = [
        &set[..],
        &["--target", "http://127.0.0.1:1/tea", "--max-failures", "1"],
    ]
    .concat();
    let alarm = text(&served.database.json(&alarm), "id");
    let group = until("it has failed", || {
        served.json(&["failures", "--kind", "occurrence"])[0]
            .as_object()
            .cloned()
    });
    assert_eq!(
        (group.get("alarm"), group.get("alarm_id")),
        (Some(&json!("tea")), Some(&json!(alarm))),
        "{group:?}"
    );
    let list = served.done(&["failures"]);
    assert!(
        list.lines().nth(1).is_some_and(|line| line.contains(" tea ")),
        "{list}"
    );
    let shown = served.done(&["failures", "show", &text(&Value::Object(group), "id")]);
    assert!(shown.contains("alarm tea, due "), "{shown}");
    assert!(shown.contains(&alarm), "{shown}");
}
