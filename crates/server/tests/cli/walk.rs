//! What a new user does, from an empty database on.

use serde_json::Value;

use crate::support::{GRAPH, TestDatabase, text, written};

#[test]
fn a_new_user_comes_from_an_empty_database_to_work_that_waits() {
    let database = TestDatabase::empty();
    let before = database.refused(5, &["queue", "list"]);
    assert!(before.contains("run `stationmaster migrate`"), "{before}");
    let behind = database.refused(1, &["migrate", "--check"]);
    assert!(behind.contains("version 0"), "{behind}");
    let made = database.done(&["migrate"]);
    assert!(made.contains("at version "), "{made}");
    assert!(database.done(&["migrate"]).contains("up to date"));
    assert_eq!(database.json(&["migrate", "--check"])["changed"], false);

    let said = database.done(&["workspaces", "create", "North Line", "--plan", "PRO"]);
    assert!(
        said.contains("Created workspace north-line") && said.contains("5 at once"),
        "{said}"
    );
    let workspace = text(&database.json(&["workspaces", "list"])[0], "id");
    let graph = written(GRAPH);
    let path = graph.path().to_str().unwrap();
    database.done(&[
        "workflows",
        "create",
        "nightly",
        "--workspace",
        &workspace,
        "--graph",
        path,
    ]);
    let workflow = text(
        &database.json(&["workflows", "list", "--workspace", &workspace])[0],
        "id",
    );
    let shown = database.done(&["workflows", "show", &workflow]);
    assert!(shown.contains("extract (noop), load (noop)"), "{shown}");

    let add = [
        "queue",
        "add",
        "--workspace",
        &workspace,
        "--workflow",
        &workflow,
        "--input",
        r#"{"night": 1}"#,
    ];
    let said = database.done(&add);
    assert!(said.starts_with("Enqueued "), "{said}");
    let list = database.done(&["queue", "list"]);
    assert!(list.contains("PENDING") && list.contains("nightly"), "{list}");
    let item = text(&database.json(&["queue", "list"])[0], "id");
    let shown = database.done(&["queue", "show", &item]);
    assert!(shown.contains("no server takes work"), "{shown}");
    assert!(shown.contains("enqueued") && shown.contains("cli:"), "{shown}");
    assert!(shown.contains(r#"{"night": 1}"#), "{shown}");
}

#[test]
fn an_item_is_cancelled_retried_and_moved() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let item = database.enqueue(&workspace, &workflow);

    assert!(
        database
            .refused(4, &["queue", "retry", &item])
            .contains("PENDING")
    );
    database.done(&["queue", "priority", &item, "-7"]);
    assert_eq!(database.json(&["queue", "show", &item])["priority"], -7);
    assert_eq!(
        database.json(&["queue", "cancel", &item, "--note", "a holiday", "--yes"])["result"],
        "cancelled"
    );
    assert_eq!(database.json(&["queue", "show", &item])["status"], "CANCELLED");
    for way in ["--dry-run", "--yes"] {
        let late = database.refused(4, &["queue", "cancel", &item, way]);
        assert!(
            late.contains("has ended before: it is CANCELLED"),
            "{way}: {late}"
        );
    }
    let moved = database.refused(4, &["queue", "priority", &item, "1"]);
    assert!(moved.contains("does not wait"), "{moved}");

    database.done(&["queue", "retry", &item]);
    let shown = database.json(&["queue", "show", &item]);
    assert_eq!(
        (&shown["status"], &shown["waiting"]["reason"]),
        (&"PENDING".into(), &"no_server".into())
    );
    let events: Vec<&str> = shown["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["enqueued", "priority_changed", "cancelled", "retried"]);
    assert!(shown["history"][2]["actor"].as_str().unwrap().starts_with("cli:"));
    assert_eq!(shown["history"][2]["detail"], "a holiday");
}

#[test]
fn why_an_item_waits_is_told() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
    let later = text(&database.json(&[&add[..], &["--in", "2h"]].concat()), "id");
    let item = text(&database.json(&add), "id");
    let reason = |item: &str| text(&database.json(&["queue", "show", item])["waiting"], "reason");
    assert_eq!(reason(&later), "scheduled");
    let shown = database.done(&["queue", "show", &later]);
    assert!(
        shown.contains("its time has not come: 2") && shown.contains("NOT BEFORE"),
        "{shown}"
    );
    assert_eq!(reason(&item), "no_server");
    database.done(&["workspaces", "pause", &workspace]);
    assert_eq!(reason(&item), "workspace_paused");
    database.done(&["workspaces", "resume", &workspace]);
    database.done(&["workflows", "pause", &workflow]);
    assert_eq!(reason(&item), "definition_paused");
    database.done(&["workflows", "resume", &workflow]);
    assert_eq!(reason(&item), "no_server");
}

#[test]
fn many_items_are_added_and_retried_together() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
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
    let added = database.json(&add);
    assert_eq!(added["ids"].as_array().unwrap().len(), 1203);
    assert_eq!(
        database
            .json(&["queue", "list", "--limit", "1000"])
            .as_array()
            .unwrap()
            .len(),
        1000
    );
    let list = ["queue", "list", "--limit", "2", "--json"];
    let first = database.run(&list);
    let said: Value = serde_json::from_str(&first.stderr).unwrap();
    let first: Value = serde_json::from_str(&first.stdout).unwrap();
    let next = database.json(&[&list[..4], &["--before", &text(&said, "next_cursor")]].concat());
    assert!(text(&next[0], "id") < text(&first[1], "id"));

    for id in &added["ids"].as_array().unwrap()[..3] {
        database.done(&["queue", "cancel", id.as_str().unwrap(), "--yes"]);
    }
    let retry = [
        "queue",
        "retry-all",
        "--workspace",
        &workspace,
        "--status",
        "cancelled",
    ];
    assert_eq!(
        database.json(&[&retry[..], &["--dry-run"]].concat())["matching"],
        3
    );
    let refusal = database.refused(2, &retry);
    assert!(
        refusal.contains("no terminal") && refusal.contains("--yes"),
        "{refusal}"
    );
    assert_eq!(database.json(&[&retry[..], &["--yes"]].concat())["retried"], 3);
    assert_eq!(database.json(&[&retry[..], &["--yes"]].concat())["retried"], 0);
}

#[test]
fn a_key_gives_the_first_item_again() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let add = [
        "queue",
        "add",
        "--workspace",
        &workspace,
        "--workflow",
        &workflow,
        "--key",
        "night-1",
    ];
    let (first, second) = (database.json(&add), database.json(&add));
    assert_eq!(
        (&first["duplicate"], &second["duplicate"]),
        (&false.into(), &true.into())
    );
    assert_eq!(first["id"], second["id"]);
    let conflict = database.refused(4, &[&add[..], &["--priority", "5"]].concat());
    assert!(conflict.contains("night-1"), "{conflict}");
}

#[test]
fn input_and_graphs_may_come_from_the_standard_input() {
    let database = TestDatabase::migrated();
    let workspace = text(&database.json(&["workspaces", "create", "north"]), "id");
    let create = [
        "workflows",
        "create",
        "nightly",
        "--workspace",
        &workspace,
        "--graph",
        "-",
        "--json",
    ];
    let created = database.run_with_input(&create, GRAPH);
    assert_eq!(created.code, 0, "{}", created.stderr);
    let workflow = text(&serde_json::from_str(&created.stdout).unwrap(), "id");
    let add = [
        "queue",
        "add",
        "--workspace",
        &workspace,
        "--workflow",
        &workflow,
        "--input-file",
        "-",
        "--json",
    ];
    let added = database.run_with_input(&add, "{\"night\": 2}\n");
    let item = text(&serde_json::from_str(&added.stdout).unwrap(), "id");
    assert_eq!(database.json(&["queue", "show", &item])["input"]["night"], 2);
}

#[test]
fn versions_are_added_and_published() {
    let database = TestDatabase::migrated();
    let (_, workflow) = database.workflow(GRAPH);
    let graph = written(GRAPH);
    let add = [
        "workflows",
        "add-version",
        &workflow,
        "--graph",
        graph.path().to_str().unwrap(),
    ];
    assert!(database.done(&add).contains("Added version 2. New items get it."));
    assert!(
        database
            .done(&["workflows", "publish", &workflow, "1"])
            .contains("version 1")
    );
    let third = database.json(&add);
    assert_eq!(
        (&third["version"], &third["current_version"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn workspaces_and_workflows_are_changed_and_deleted() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let set = ["workspaces", "set", &workspace];
    assert_eq!(
        database.json(&[&set[..], &["--plan", "PRO", "--limit", "9"]].concat())["limit"],
        9
    );
    assert_eq!(database.json(&[&set[..], &["--no-limit"]].concat())["limit"], 5);
    database.refused(2, &set);
    let how = [
        "--task-queue",
        "trains",
        "--workflow-type",
        "train",
        "--max-attempts",
        "7",
        "--name",
        "n",
    ];
    let changed = database.json(&[&["workflows", "set", &workflow], &how[..]].concat());
    let changed = [
        &changed["task_queue"],
        &changed["workflow_type"],
        &changed["max_attempts"],
        &changed["name"],
    ];
    assert_eq!(
        changed,
        [&"trains".into(), &"train".into(), &7.into(), &Value::from("n")]
    );
    assert_eq!(
        database.json(&["plans", "set", "PRO", "--limit", "6"])["weight"],
        2.0
    );
    assert_eq!(database.json(&["workspaces", "show", &workspace])["limit"], 6);

    for (noun, id) in [("workflows", &workflow), ("workspaces", &workspace)] {
        let delete = [noun, "delete", id];
        assert!(database.refused(2, &delete).contains("--yes"));
        assert!(
            database
                .done(&[&delete[..], &["--dry-run"]].concat())
                .starts_with("Would delete")
        );
        assert_eq!(database.json(&[noun, "show", id])["id"], **id);
        assert_eq!(
            database.json(&[&delete[..], &["--yes"]].concat())["deleted"],
            true
        );
        database.refused(3, &[noun, "show", id]);
    }
}

#[test]
fn every_list_is_an_array_and_empty_lists_are_said() {
    let database = TestDatabase::migrated();
    for noun in ["workspaces", "workflows", "queue", "executions", "servers"] {
        assert_eq!(database.json(&[noun, "list"]), serde_json::json!([]), "{noun}");
        assert_eq!(database.done(&[noun, "list"]), "Nothing found.\n", "{noun}");
    }
    assert_eq!(database.json(&["plans", "list"]).as_array().unwrap().len(), 3);
    assert!(database.json(&["config", "show"]).as_array().unwrap().len() > 30);
}
