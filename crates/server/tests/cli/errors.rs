//! What is told when something is wrong: which thing, what to do, which exit code.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use uuid::Uuid;

use crate::support::{GRAPH, TestDatabase, binary, run, text, written};

#[test]
fn a_bad_graph_is_refused_with_its_node_and_leaves_nothing_behind() {
    let database = TestDatabase::migrated();
    let workspace = text(&database.json(&["workspaces", "create", "north"]), "id");
    for (graph, named) in [
        (
            r#"{"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "ghost"}]}"#,
            "ghost",
        ),
        (r#"{"nodes": [{"id": "twin"}, {"id": "twin"}]}"#, "twin"),
        (
            r#"{"nodes": [{"id": "hen"}, {"id": "egg"}], "edges": [{"from": "hen", "to": "egg"}, {"from": "egg", "to": "hen"}]}"#,
            "hen, egg",
        ),
        ("not json", "nodes"),
    ] {
        let file = written(graph);
        let create = [
            "workflows",
            "create",
            "bad",
            "--workspace",
            &workspace,
            "--graph",
            file.path().to_str().unwrap(),
        ];
        let refusal = database.refused(2, &create);
        assert!(refusal.contains(named), "{graph}: {refusal}");
    }
    assert_eq!(database.json(&["workflows", "list"]), serde_json::json!([]));
}

#[test]
fn an_unknown_plan_lists_the_plans() {
    let database = TestDatabase::migrated();
    let refusal = database.refused(2, &["workspaces", "create", "north", "--plan", "GOLD"]);
    assert!(
        refusal.contains("\"GOLD\"") && refusal.contains("FREE, PRO, ENTERPRISE"),
        "{refusal}"
    );
    assert_eq!(refusal.lines().count(), 2, "{refusal}");
}

#[test]
fn what_is_not_there_is_not_found() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let nobody = Uuid::now_v7().to_string();
    for arguments in [
        &["workspaces", "show", &nobody][..],
        &["workspaces", "set", &nobody, "--name", "x"],
        &["workspaces", "pause", &nobody],
        &["workspaces", "delete", &nobody, "--yes"],
        &["workflows", "show", &nobody],
        &["workflows", "set", &nobody, "--name", "x"],
        &["workflows", "resume", &nobody],
        &["workflows", "publish", &nobody, "1"],
        &["workflows", "delete", &nobody, "--dry-run"],
        &["workflows", "create", "x", "--workspace", &nobody],
        &["queue", "add", "--workspace", &nobody, "--workflow", &workflow],
        &["queue", "add", "--workspace", &workspace, "--workflow", &nobody],
        &["queue", "show", &nobody],
        &["queue", "cancel", &nobody, "--yes"],
        &["queue", "retry", &nobody],
        &["queue", "priority", &nobody, "1"],
        &["executions", "show", &nobody],
        &["executions", "cancel", &nobody, "--yes"],
        &["executions", "complete", &nobody, "--yes"],
        &["alarms", "show", &nobody],
        &["signals", "show", &nobody],
        &["operations", "show", &nobody],
        &["failures", "show", "0123abcd"],
        &["servers", "drain", &nobody],
        &["tokens", "revoke", &nobody, "--yes"],
    ] {
        let refusal = database.refused(3, arguments);
        assert!(
            refusal.starts_with("error: ") && refusal.lines().count() == 2,
            "{arguments:?}: {refusal}"
        );
        let advice = refusal.lines().nth(1).unwrap();
        assert!(
            advice.contains(": stationmaster ") && advice.ends_with(" list"),
            "it is said where to look: {arguments:?}: {refusal}"
        );
    }
    // Nothing was made by asking for it.
    assert_eq!(
        database.json(&["workspaces", "list"]).as_array().unwrap().len(),
        1
    );
}

#[test]
fn what_is_there_already_is_a_conflict() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    assert!(
        database
            .refused(4, &["workspaces", "create", "x", "--id", &workspace])
            .contains("already")
    );
    let create = [
        "workflows",
        "create",
        "x",
        "--workspace",
        &workspace,
        "--id",
        &workflow,
    ];
    assert!(database.refused(4, &create).contains("already"));
    assert_eq!(
        database.json(&["workspaces", "show", &workspace])["name"],
        "north"
    );
}

#[test]
fn what_is_the_beginning_of_no_id_is_not_found() {
    let database = TestDatabase::migrated();
    for id in ["0190", "north", "0190b3f2-0000-7000-8000-00000000000"] {
        let refusal = database.refused(3, &["queue", "show", id]);
        assert!(
            refusal.contains(id) && refusal.contains("stationmaster queue list"),
            "{refusal}"
        );
    }
}

#[test]
fn arguments_that_cannot_be_are_refused_before_the_database_is_asked() {
    let nowhere = [("STATIONMASTER_DATABASE_URL", "postgres://127.0.0.1:1/none")];
    let id = Uuid::now_v7().to_string();
    let add = ["queue", "add", "--workspace", &id, "--workflow", &id];
    for (more, named) in [
        (&["--input", "{night: 1}"][..], "not JSON"),
        (&["--input-file", "/nowhere/input.json"], "/nowhere/input.json"),
        (&["--in", "soon"], "not a duration"),
        (&["--at", "some day"], "tomorrow 9:00 Europe/Berlin"),
        (
            &["--at", "2026-01-31T09:30:00Z", "--in", "5m"],
            "cannot be used with",
        ),
        (&["--key", "k", "--count", "2"], "cannot be used with"),
        (&["--count", "0"], "1..="),
    ] {
        let ended = run(&[&add[..], more].concat(), &nowhere, "");
        assert_eq!(ended.code, 2, "{more:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(named), "{more:?}: {}", ended.stderr);
    }
    let complete = [
        "executions",
        "complete",
        &id,
        "--status",
        "completed",
        "--error",
        "it broke",
    ];
    assert_eq!(run(&complete, &nowhere, "").code, 2);
}

#[test]
fn a_database_that_is_away_is_told_at_once() {
    let started = Instant::now();
    let nowhere = [(
        "STATIONMASTER_DATABASE_URL",
        "postgres://ann:s3cret@127.0.0.1:1/none",
    )];
    let ended = run(&["queue", "list"], &nowhere, "");
    assert_eq!(ended.code, 5, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("refused") && ended.stderr.contains("database_url"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("s3cret"), "{}", ended.stderr);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "it took {:?}",
        started.elapsed()
    );
}

#[test]
fn a_database_that_does_not_exist_is_told() {
    let database = TestDatabase::empty();
    let url = database.url_of("nobody");
    let ended = run(&["migrate"], &[("STATIONMASTER_DATABASE_URL", &url)], "");
    assert_eq!(ended.code, 5);
    assert!(ended.stderr.contains("does not exist"), "{}", ended.stderr);
}

#[test]
fn errors_are_json_when_json_is_asked_for() {
    let database = TestDatabase::migrated();
    let nobody = Uuid::now_v7().to_string();
    for (code, kind, arguments) in [
        (3, "not_found", &["queue", "show", &nobody, "--json"][..]),
        (3, "not_found", &["queue", "show", "0190", "--json"]),
        (2, "usage", &["--json", "queue", "dance"]),
        (2, "usage", &["--json", "config", "show", "--set", "engine=steam"]),
    ] {
        let said = database.refused(code, arguments);
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        let error = &said["error"];
        assert_eq!(
            (&error["kind"], &error["exit_code"]),
            (&kind.into(), &code.into()),
            "{said}"
        );
        assert!(!text(error, "message").is_empty());
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = binary(&["completions", "bash"], &[])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn neither_a_note_nor_a_consent_makes_everything_be_cancelled() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    database.enqueue(&workspace, &workflow);
    for arguments in [
        &["--yes"][..],
        &["--note", "a mistake"],
        &["--note", "a mistake", "--yes"],
        &["--yes", "--dry-run"],
    ] {
        let refusal = database.refused(2, &[&["queue", "cancel-all"], arguments].concat());
        assert!(refusal.contains("--workspace"), "{arguments:?}: {refusal}");
    }
    let waiting = database.json(&["queue", "list", "--status", "pending"]);
    assert_eq!(waiting.as_array().map(Vec::len), Some(1), "{waiting}");
    let one = ["queue", "cancel-all", "--workspace", &workspace, "--yes"];
    let done = database.json(&[&one[..], &["--note", "a mistake"]].concat());
    assert_eq!(
        (&done["matching"], &done["cancelled"]),
        (&1.into(), &1.into()),
        "{done}"
    );
}

#[test]
fn usage_errors_are_json_however_json_is_asked_for() {
    for asked in [&["-o", "json"][..], &["--json"], &["-ojson"]] {
        let ended = crate::support::run(&[&["queue", "lisst"], asked].concat(), &[], "");
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let told: Result<serde_json::Value, _> = serde_json::from_str(&ended.stderr);
        assert!(told.is_ok(), "{asked:?}: {}", ended.stderr);
    }
}

#[test]
fn history_of_one_workspace_among_many_is_found_and_steps_are_not_sorted() {
    let database = TestDatabase::migrated();
    let refused = database.refused(2, &["history", "--sort", "failed"]);
    assert!(refused.contains("--by"), "{refused}");
    database.execute(
        "insert into stationmaster.workspaces (name) select 'w' || n from generate_series(1, 101) n",
    );
    let told = database.run(&["history", "--by", "workspace"]);
    assert!(told.stderr.contains("Only the first 100"), "{}", told.stderr);
    let told = database.run(&["history", "--by", "workspace", "--workspace", "w101"]);
    assert!(!told.stderr.contains("Only the first"), "{}", told.stderr);
}
