//! The JSON of every command: what the API's own document says of its things, and a list of the rest.

use serde_json::{Value, json};

use crate::served::Served;
use crate::support::{GRAPH, TestDatabase, text};

fn document() -> Value {
    serde_json::from_str(include_str!("../../../../docs/openapi.json")).unwrap()
}

/// Is the value what the schema says? Every field must be told there, and every one that it requires be there.
fn check(document: &Value, schema: &Value, value: &Value, place: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return check(document, document.pointer(&name[1..]).unwrap(), value, place);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fits =
            |choice: &&Value| std::panic::catch_unwind(|| check(document, choice, value, place)).is_ok();
        assert!(
            choices.iter().any(|choice| fits(&choice)),
            "{place}: {value} is none of {schema}"
        );
        return;
    }
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{place}: {value} is none of {words:?}");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
        _ => return,
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = kinds.contains(&kind) || (kind == "integer" && kinds.contains(&"number"));
    assert!(fits, "{place}: {value} is no {kinds:?}");
    for item in value.as_array().into_iter().flatten() {
        check(document, &schema["items"], item, place);
    }
    if let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) {
        for (name, value) in fields {
            let schema = known
                .get(name)
                .unwrap_or_else(|| panic!("{place}: {name} is not in the schema"));
            check(document, schema, value, &format!("{place}.{name}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(
                fields.contains_key(name.as_str().unwrap()),
                "{place}: {name} is missing"
            );
        }
    }
}

/// Is it this thing of the document, or a list of them?
fn is(value: &Value, name: &str) {
    let document = document();
    let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
    match value {
        Value::Array(things) => {
            assert!(!things.is_empty(), "an empty list of {name} shows nothing");
            for thing in things {
                check(&document, &schema, thing, name);
            }
        }
        thing => check(&document, &schema, thing, name),
    }
}

fn without(value: Value, names: &[&str]) -> Value {
    let Value::Object(mut fields) = value else {
        panic!("{value}")
    };
    for name in names {
        assert!(fields.remove(*name).is_some(), "{name} is missing");
    }
    Value::Object(fields)
}

fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn things_are_as_the_document_of_the_api_says() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
    let added = database.json(&add);
    is(&added, "Enqueued");
    let item = text(&added, "id");
    is(&database.json(&["workspaces", "list"]), "Workspace");
    is(&database.json(&["workspaces", "pause", &workspace]), "Workspace");
    is(&database.json(&["workflows", "list"]), "Workflow");
    is(&database.json(&["workflows", "show", &workflow]), "Workflow");
    is(&database.json(&["plans", "list"]), "Plan");
    is(&database.json(&["plans", "set", "GOLD", "--limit", "9"]), "Plan");
    is(&database.json(&["queue", "list"]), "QueueItem");
    let shown = database.json(&["queue", "show", &item]);
    is(&shown["history"], "Step");
    is(&shown["waiting"], "Waiting");
    is(&shown["reasons"], "Waiting");
    let told = [
        "history", "waiting", "reasons", "position", "holders", "expected", "obstacle",
    ];
    is(&without(shown, &told), "QueueItem");
    is(&database.json(&["queue", "cancel", &item, "--yes"]), "Cancelled");
    is(&database.json(&["audit", "list"]), "AuditEntry");
    is(
        &database.json(&["tokens", "create", "a", "--role", "viewer", "--expires-in", "90d"]),
        "TokenMade",
    );
    is(&database.json(&["tokens", "list"]), "Token");
    is(&database.json(&["tokens", "revoke", "a", "--yes"]), "Token");
    database.done(&["lock", "run", "night", "--", "true"]);
    is(&database.json(&["locks", "list"]), "Lock");
}

#[test]
fn things_of_the_lanes_are_as_the_document_of_the_api_says() {
    let served = Served::start();
    let database = &served.database;
    let (workspace, workflow) = database.workflow(GRAPH);
    let set = ["alarms", "set", "--workspace", &workspace, "--cron", "@daily"];
    let made = database.json(&set);
    let id = text(&made, "id");
    is(&without(made, &["created", "fires"]), "Alarm");
    is(&database.json(&["alarms", "list"]), "Alarm");
    database.done(&["alarms", "fire", &id]);
    is(&database.json(&["alarms", "occurrences", &id]), "Occurrence");
    let shown = database.json(&["alarms", "show", &id]);
    is(&shown["events"], "AlarmEvent");
    is(&shown["occurrences"], "Occurrence");
    is(&without(shown, &["fires", "occurrences", "events"]), "Alarm");
    let range = [
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2026-01-02T00:00:00Z",
        "--dry-run",
    ];
    let planned = database.json(&[&["alarms", "backfill", &id][..], &range].concat());
    is(&planned["occurrences"], "BackfillItem");
    let trigger = ["triggers", "set", "shop", "order.paid", "--workflow", &workflow];
    is(&database.json(&trigger), "Trigger");
    is(&database.json(&["triggers", "list"]), "Trigger");
    is(
        &database.json(&["signals", "send", "shop", "order.paid", "--id", "s"]),
        "SignalSent",
    );
    is(&database.json(&["signals", "list"]), "Signal");
    is(&database.json(&["signals", "show", "s"]), "Signal");
    is(&database.json(&["dispatchers", "list"]), "Dispatcher");
    let shown = database.json(&["dispatchers", "show", "dispatcher-shop-default"]);
    is(&without(shown, &["run", "events"]), "Dispatcher");
    is(
        &database.json(&["dispatchers", "reconcile", "--dry-run"]),
        "Reconciled",
    );
    is(&database.json(&["servers", "list"]), "Server");
}

#[test]
fn a_check_of_the_schema_can_fail() {
    let document = document();
    let schema = json!({ "$ref": "#/components/schemas/Plan" });
    let good = json!({ "name": "PRO", "max_concurrent": 5, "weight": 1.0 });
    check(&document, &schema, &good, "good");
    for bad in [
        json!({ "name": "PRO", "max_concurrent": 5 }),
        json!({ "name": "PRO", "max_concurrent": "5", "weight": 1.0 }),
        json!({ "name": "PRO", "max_concurrent": 5, "weight": 1.0, "more": true }),
    ] {
        let checked = std::panic::catch_unwind(|| check(&document, &schema, &bad, "bad"));
        assert!(checked.is_err(), "{bad}");
    }
}

#[test]
fn answers_that_are_of_the_command_line_alone_have_these_fields() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
    let item = text(&database.json(&add), "id");
    database.done(&["lock", "run", "night", "--", "true"]);
    for (command, names) in [
        (&[&add[..], &["--count", "2"]].concat()[..], &["count", "ids"][..]),
        (&["queue", "priority", &item, "3"], &["id", "priority"]),
        (
            &["queue", "retry-all", "--all", "--dry-run"],
            &["matching", "more", "sample", "retried"],
        ),
        (
            &["queue", "cancel-all", "--workspace", &workspace, "--dry-run"],
            &["matching", "more", "sample", "cancelled"],
        ),
        (
            &["locks", "release", "night", "--yes"],
            &["name", "by", "held", "released"],
        ),
        (&["migrate"], &["changed"]),
        (
            &["workflows", "delete", &workflow, "--dry-run"],
            &["deleted", "workflow", "waiting"],
        ),
        (
            &["workspaces", "delete", &workspace, "--dry-run"],
            &["deleted", "workspace", "workflows"],
        ),
    ] {
        let mut expected = names.to_vec();
        expected.sort_unstable();
        let value = database.json(command);
        let mut found = fields(&value);
        found.sort_unstable();
        assert_eq!(found, expected, "{command:?}");
    }
}
