//! Commands through a server, and the same on a database alone.

use std::time::{Duration, Instant};

use serde_json::Value;
use uuid::Uuid;

use crate::served::Served;
use crate::support::{GRAPH, TestDatabase, run, text, written};

/// Asks until the answer is as it should be.
#[track_caller]
pub(crate) fn until(ask: impl Fn() -> Value, is: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let value = ask();
        if is(&value) {
            return value;
        }
        assert!(started.elapsed() < Duration::from_mins(1), "{value}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn every_noun_is_the_same_through_a_server_and_from_the_database() {
    let served = Served::start();
    let database = &served.database;
    let (workspace, workflow) = database.workflow(GRAPH);
    database.done(&["workspaces", "pause", &workspace]);
    let item = database.enqueue(&workspace, &workflow);
    database.done(&["lock", "run", "night", "--", "true"]);
    let set = ["alarms", "set", "--workspace", &workspace, "--cron", "30 2 * * *"];
    let alarm = text(&database.json(&set), "id");
    database.done(&["alarms", "pause", &alarm]);
    database.done(&["triggers", "set", "shop", "order.paid", "--workflow", &workflow]);
    database.done(&["signals", "send", "shop", "order.lost", "--id", "s-1"]);
    let signal = || database.json(&["signals", "show", "s-1"]);
    until(signal, |signal| signal["status"] == "DEAD");
    for command in [
        &["workspaces", "list"][..],
        &["workspaces", "show", &workspace],
        &["workflows", "list", "--workspace", &workspace],
        &["workflows", "show", &workflow],
        &["plans", "list"],
        &["queue", "list"],
        &["queue", "show", &item],
        &["queue", "cancel-all", "--workspace", &workspace, "--dry-run"],
        &["executions", "list"],
        &["alarms", "list"],
        &["alarms", "show", &alarm],
        &["alarms", "occurrences", &alarm],
        &["triggers", "list"],
        &["signals", "list"],
        &["signals", "replay", "--all", "--dry-run"],
        &["locks", "list"],
        &["audit", "list", "--limit", "5"],
        &["workspaces", "delete", &workspace, "--dry-run"],
    ] {
        assert_eq!(served.json(command), database.json(command), "{command:?}");
    }
    // What a server did is told by its name.
    let fresh = ["audit", "list", "--action", "dispatcher.fresh"];
    let name = text(&served.json(&fresh)[0], "server");
    assert!(served.done(&fresh).contains(&format!("server {name}")));
    // Heartbeats, leases and the use of tokens go on while we look.
    for command in [
        &["servers", "list"][..],
        &["tokens", "list"],
        &["dispatchers", "list"],
        &["dispatchers", "show", "dispatcher-shop-default"],
        &["dispatchers", "reconcile", "--dry-run"],
    ] {
        served.done(command);
        database.done(command);
    }
}

#[test]
fn everything_is_done_through_a_server_under_the_token() {
    let served = Served::start();
    let graph = written(GRAPH);
    let path = graph.path().to_str().unwrap();
    let ask = |arguments: &[&str]| served.json(arguments);
    let workspace = text(
        &ask(&["workspaces", "create", "south", "--plan", "PRO", "--limit", "0"]),
        "id",
    );
    let create = [
        "workflows",
        "create",
        "nightly",
        "--workspace",
        &workspace,
        "--graph",
        path,
    ];
    let workflow = text(&ask(&create), "id");
    ask(&["workspaces", "set", &workspace, "--name", "South", "--no-limit"]);
    ask(&["workspaces", "pause", &workspace]);
    ask(&["workflows", "set", &workflow, "--task-queue", "trains"]);
    ask(&["workflows", "add-version", &workflow, "--graph", path]);
    ask(&["workflows", "publish", &workflow, "1"]);
    ask(&["workflows", "pause", &workflow]);
    ask(&["workflows", "resume", &workflow]);
    ask(&["plans", "set", &format!("P{}", &workspace[..8]), "--limit", "7"]);
    let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
    let item = text(&ask(&[&add[..], &["--key", "once"]].concat()), "id");
    let again = ask(&[&add[..], &["--key", "once"]].concat());
    assert_eq!(
        (text(&again, "id"), &again["duplicate"]),
        (item.clone(), &true.into())
    );
    ask(&[&add[..], &["--count", "3"]].concat());
    ask(&["queue", "priority", &item, "-7"]);
    ask(&["queue", "cancel", &item, "--yes"]);
    ask(&["queue", "retry", &item]);
    ask(&["queue", "show", &item]);
    let which = ["--workspace", &workspace, "--yes"];
    let cancelled = ask(&[&["queue", "cancel-all", "--status", "pending"], &which[..]].concat());
    assert_eq!(
        (&cancelled["matching"], &cancelled["cancelled"]),
        (&4.into(), &4.into())
    );
    let retried = ask(&[&["queue", "retry-all"], &which[..]].concat());
    assert_eq!(
        (&retried["matching"], &retried["retried"]),
        (&4.into(), &4.into())
    );
    ask(&[
        "tokens",
        "create",
        &format!("t{workspace}"),
        "--role",
        "viewer",
        "--workspace",
        &workspace,
    ]);
    ask(&["tokens", "revoke", &format!("t{workspace}"), "--yes"]);
    ask(&["workflows", "delete", &workflow, "--yes"]);
    ask(&["workspaces", "delete", &workspace, "--yes"]);
    let other = text(&served.database.json(&["workspaces", "create", "north"]), "id");
    served.database.done(&["workspaces", "delete", &other, "--yes"]);
    let lines = served.json(&["audit", "list", "--action", "workspace.delete"]);
    let actor = |line: usize| text(&lines[line], "actor");
    assert!(
        actor(0).starts_with("cli:") && actor(1).starts_with("token:boss:"),
        "{lines}"
    );
}

#[test]
fn an_execution_is_completed_and_cancelled_through_a_server() {
    const LONG: &str = r#"{"nodes": [{"id": "night", "type": "wait", "seconds": 3600}]}"#;
    let served = Served::start();
    let (workspace, workflow) = served.database.workflow(LONG);
    let running = || {
        let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
        let item = text(&served.json(&add), "id");
        let started = std::time::Instant::now();
        loop {
            let shown = served.json(&["queue", "show", &item]);
            if shown["status"] == "DISPATCHED" {
                return text(&shown, "execution_id");
            }
            assert!(started.elapsed().as_secs() < 60, "{shown}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    let first = running();
    let complete = [
        "executions",
        "complete",
        &first,
        "--output",
        r#"{"trains": 3}"#,
        "--yes",
    ];
    assert!(served.done(&complete).contains("COMPLETED"));
    assert!(served.refused(4, &complete).contains("COMPLETED"));
    assert_eq!(
        served.json(&["executions", "show", &first])["output"]["trains"],
        3
    );
    let second = running();
    assert_eq!(
        served.json(&["executions", "cancel", &second, "--yes"])["result"],
        "requested"
    );
    served.database.done(&[
        "lock",
        "run",
        "a",
        "--at-most",
        "1h",
        "--at-least",
        "1h",
        "--",
        "true",
    ]);
    assert!(
        served
            .done(&["locks", "release", "a", "--yes"])
            .contains("is free")
    );
    assert!(
        served
            .refused(3, &["locks", "release", "b", "--yes"])
            .contains("there is no lock")
    );
}

#[test]
fn long_lists_are_read_page_after_page_and_go_on_where_they_ended() {
    let served = Served::start();
    let (workspace, workflow) = served.database.workflow(GRAPH);
    served.database.done(&["workspaces", "pause", &workspace]);
    let add = [
        "queue",
        "add",
        "--workspace",
        &workspace,
        "--workflow",
        &workflow,
        "--count",
        "1203",
    ];
    assert_eq!(served.json(&add)["ids"].as_array().unwrap().len(), 1203);
    let list = ["queue", "list", "--limit", "1000"];
    let first = served.run_as(&served.token, &list);
    let place = first
        .stderr
        .split("--before ")
        .nth(1)
        .expect("there is more")
        .trim();
    let ids = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|item| text(item, "id"))
            .collect()
    };
    let (mut all, rest) = (
        ids(&served.json(&list)),
        ids(&served.json(&[&list[..], &["--before", place]].concat())),
    );
    assert_eq!((all.len(), rest.len()), (1000, 203));
    all.extend(rest);
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 1203);
    assert_eq!(
        served
            .run_as(&served.token, &["queue", "list", "--limit", "1"])
            .code,
        0
    );
    assert!(
        served
            .refused(2, &["queue", "list", "--before", "nonsense"])
            .contains("cursor")
    );
}

#[test]
fn what_a_server_refuses_has_its_exit_code_and_advice() {
    let served = Served::start();
    let (workspace, _) = served.database.workflow(GRAPH);
    let nobody = Uuid::now_v7().to_string();
    let viewer = text(
        &served.json(&["tokens", "create", "v", "--role", "viewer"]),
        "secret",
    );
    let create = ["workspaces", "create", "x"];
    for (token, code, words) in [
        (viewer.as_str(), 6, "needs the role admin"),
        ("smt_nonsense", 6, "token"),
        ("", 6, "send a token"),
    ] {
        let ended = served.run_as(token, &create);
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert!(
            !ended.stderr.contains(&viewer) && !ended.stderr.contains("smt_nonsense"),
            "{}",
            ended.stderr
        );
    }
    for (code, arguments) in [
        (3, &["workspaces", "show", &nobody][..]),
        (3, &["workspaces", "pause", &nobody]),
        (3, &["workspaces", "set", &nobody, "--name", "x"]),
        (3, &["queue", "cancel", &nobody, "--yes"]),
        (3, &["queue", "priority", &nobody, "1"]),
        (3, &["executions", "show", &nobody]),
        (3, &["tokens", "revoke", "nobody", "--yes"]),
        (
            3,
            &["queue", "add", "--workspace", &workspace, "--workflow", &nobody],
        ),
        (4, &["workspaces", "create", "x", "--id", &workspace]),
        (4, &["tokens", "create", "v", "--role", "viewer"]),
        (2, &["workspaces", "create", "x", "--plan", "GOLD"]),
    ] {
        let said = served.refused(code, arguments);
        assert_eq!(said.lines().count(), 2, "{arguments:?}: {said}");
    }
    let away = run(
        &["queue", "list"],
        &[("STATIONMASTER_URL", "http://127.0.0.1:1")],
        "",
    );
    assert_eq!(away.code, 5, "{}", away.stderr);
    let wrong = run(&["queue", "list", "--url", "postgres://x"], &[], "");
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
}

#[test]
fn what_works_only_on_a_database_says_so() {
    for command in [&["migrate"][..], &["alarms", "secrets", "list"]] {
        let ended = run(command, &[("STATIONMASTER_URL", "http://127.0.0.1:1")], "");
        assert!(
            ended.stderr.contains("only directly on a database"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("--database-url"), "{}", ended.stderr);
    }
    let database = TestDatabase::migrated();
    let direct = run(
        &["queue", "list", "--database-url", &database.url()],
        &[("STATIONMASTER_URL", "http://127.0.0.1:1")],
        "",
    );
    assert_eq!(
        direct.code, 0,
        "a flag comes before the environment: {}",
        direct.stderr
    );
    let both = run(
        &[
            "queue",
            "list",
            "--url",
            "http://x",
            "--database-url",
            "postgres://x",
        ],
        &[],
        "",
    );
    assert_eq!(both.code, 2, "{}", both.stderr);
}

#[test]
fn a_server_whose_database_is_gone_tells_why_in_its_own_words() {
    let served = Served::start();
    served.done(&["queue", "list"]);
    served.database.vanish();
    let said = (0..5).map(|_| served.refused(5, &["queue", "list"]));
    let mut said = said.skip_while(|said| !said.contains("is not ready"));
    let said = said.next().expect("it says that it is not ready");
    assert!(
        said.contains("database") && said.contains("stationmaster doctor"),
        "{said}"
    );
}

#[test]
fn a_graph_that_the_engine_cannot_run_leaves_no_workflow_behind() {
    let served = Served::start();
    served.done(&["workspaces", "create", "shop"]);
    let create = |graph: &str| {
        let file = written(graph);
        let path = file.path().to_str().unwrap();
        served.run_as(
            &served.token,
            &[
                "workflows",
                "create",
                "import",
                "--workspace",
                "shop",
                "--graph",
                path,
            ],
        )
    };
    let refused = create(r#"{"nodes": [{"id": "a", "type": "htp"}]}"#);
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("did you mean \"http\"?"),
        "{}",
        refused.stderr
    );
    assert_eq!(served.json(&["workflows", "list"]), Value::Array(Vec::new()));
    let made = create(r#"{"nodes": [{"id": "a", "type": "noop"}]}"#);
    assert_eq!(made.code, 0, "{}", made.stderr);
}

#[test]
fn a_server_is_found_by_the_beginning_of_its_id_and_by_its_name_in_any_case() {
    let served = Served::start();
    let known = served.json(&["servers", "list"])[0].clone();
    let (id, name) = (text(&known, "id"), text(&known, "name"));
    for which in [&id[..13], &id[..13].to_uppercase(), &name.to_uppercase()] {
        assert_eq!(served.json(&["servers", "show", which])["id"], id, "{which}");
    }
    served.refused(3, &["servers", "show", &id[..3]]);
}
