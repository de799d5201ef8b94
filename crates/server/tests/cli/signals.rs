//! Signals, triggers and dispatchers from the command line, on a database that no server works on.

use crate::support::{GRAPH, TestDatabase, text, written};

const SCHEMA: &str = r#"{"type": "object", "required": ["order"]}"#;

#[test]
fn triggers_are_set_listed_and_removed() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let schema = written(SCHEMA);
    let path = schema.path().to_str().unwrap();
    let set = [
        "triggers",
        "set",
        "shop",
        "order.paid",
        "--workflow",
        &workflow,
        "--schema",
        path,
        "--priority",
        "-3",
    ];
    let made = database.json(&set);
    assert_eq!(
        (text(&made, "workspace_id"), made["priority"].as_i64()),
        (workspace.clone(), Some(-3))
    );
    let listed = database.json(&["triggers", "list", "--workspace", &workspace]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["payload_schema"]["required"][0], "order");
    assert!(database.done(&["triggers", "list"]).contains("(every)"));

    let (_, foreign) = database.workflow(GRAPH);
    let refused = database.refused(
        4,
        &["triggers", "set", "shop", "order.lost", "--workflow", &foreign],
    );
    assert!(refused.contains("belongs to workspace"), "{refused}");
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    database.refused(
        3,
        &["triggers", "set", "shop", "order.lost", "--workflow", unknown],
    );
    let bad = written(r#"{"type": "orderly"}"#);
    let bad = bad.path().to_str().unwrap();
    database.refused(
        2,
        &[
            "triggers",
            "set",
            "shop",
            "order.lost",
            "--workflow",
            &workflow,
            "--schema",
            bad,
        ],
    );

    database.done(&["triggers", "remove", "shop", "order.paid", "--yes"]);
    database.refused(3, &["triggers", "remove", "shop", "order.paid", "--yes"]);
}

#[test]
fn signals_are_sent_once_and_shown_while_they_wait() {
    let database = TestDatabase::migrated();
    let send = [
        "signals",
        "send",
        "shop",
        "order.paid",
        "--id",
        "order-17",
        "--payload",
        r#"{"sum": 1.10}"#,
        "--correlation-id",
        "c-9",
    ];
    let answer = database.json(&send);
    assert_eq!(
        (text(&answer, "id"), answer["duplicate"].as_bool()),
        ("order-17".to_owned(), Some(false))
    );
    assert_eq!(
        database.json(&send)["duplicate"],
        true,
        "a repeat is acknowledged"
    );
    let other = database.refused(4, &["signals", "send", "shop", "order.lost", "--id", "order-17"]);
    assert!(other.contains("was used for another signal"), "{other}");
    database.refused(
        2,
        &["signals", "send", "shop", "order.paid", "--payload", "{order: 1}"],
    );

    let shown = database.json(&["signals", "show", "order-17"]);
    assert_eq!(
        (text(&shown, "status"), text(&shown, "dispatcher_id")),
        ("PENDING".to_owned(), "dispatcher-shop-default".to_owned())
    );
    assert!(database.done(&["signals", "show", "order-17"]).contains("1.10"));
    database.refused(3, &["signals", "show", "order-18"]);
    database.done(&["signals", "send", "shop", "order.paid", "--task-queue", "night"]);
    let listed = database.json(&["signals", "list", "--status", "pending", "--task-queue", "night"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(database.json(&["signals", "dead"]).as_array().unwrap().len(), 0);
    let waiting = database.refused(4, &["signals", "replay", "order-17"]);
    assert!(waiting.contains("only dead letters"), "{waiting}");
    assert_eq!(
        database.json(&["signals", "replay", "--all", "--project", "shop"])["replayed"],
        0
    );
    database.refused(2, &["signals", "replay", "--all", "--dead-reason", "boredom"]);
    database.refused(2, &["signals", "replay"]);
}

#[test]
fn dispatchers_are_listed_shown_and_reconciled() {
    let database = TestDatabase::migrated();
    database.done(&["signals", "send", "shop", "order.paid"]);
    let listed = database.json(&["dispatchers", "list"]);
    assert_eq!(
        (text(&listed[0], "id"), text(&listed[0], "state")),
        ("dispatcher-shop-default".to_owned(), "vacant".to_owned())
    );
    assert_eq!(listed[0]["waiting"], 1);
    assert!(database.done(&["dispatchers", "list"]).contains("vacant"));
    for (names, id) in [
        (&["shop"][..], "dispatcher-shop-default"),
        (&["my-shop", "high-priority"], "dispatcher-my--shop-high-priority"),
    ] {
        let asked = [&["dispatchers", "id"], names].concat();
        assert_eq!(database.done(&asked).trim(), id);
        assert_eq!(text(&database.json(&asked), "id"), id);
    }
    let shown = database.json(&["dispatchers", "show", "dispatcher-shop-default"]);
    assert_eq!((shown["epoch"].as_i64(), shown["run"].is_null()), (Some(0), true));
    database.refused(3, &["dispatchers", "show", "dispatcher-shop-night"]);
    let report = database.json(&["dispatchers", "reconcile", "--dry-run"]);
    assert_eq!(report["findings"][0]["class"], "vacant");
    assert!(
        database
            .done(&["dispatchers", "reconcile"])
            .contains("There was nothing to do.")
    );
}

#[test]
fn a_trigger_that_is_changed_keeps_what_is_not_said() {
    let database = TestDatabase::migrated();
    let (_, workflow) = database.workflow(GRAPH);
    let schema = written(r#"{"type": "object"}"#);
    let schema = schema.path().to_str().unwrap();
    let set = |more: &[&str]| {
        let set = ["triggers", "set", "shop", "paid", "--workflow", &workflow];
        database.json(&[&set, more].concat())
    };
    set(&["--schema", schema, "--priority", "5"]);
    let again = set(&[]);
    assert_eq!(
        (&again["priority"], &again["payload_schema"]["type"]),
        (&5.into(), &"object".into()),
        "{again}"
    );
    let bare = set(&["--no-schema", "--priority", "0"]);
    assert_eq!(
        (&bare["priority"], &bare["payload_schema"]),
        (&0.into(), &serde_json::Value::Null)
    );
    set(&["--task-queue", "night"]);
    database.done(&["triggers", "remove", "shop", "paid", "--yes"]);
    let refused = database.refused(3, &["triggers", "remove", "shop", "paid", "--yes"]);
    assert!(refused.contains("give --task-queue night"), "{refused}");
}
