//! Help and tables, to the letter: whoever changes them sees what users will see. `INSTA_UPDATE=always` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::support::{GRAPH, TestDatabase, run, text};

#[track_caller]
fn help(arguments: &[&str]) -> String {
    let ended = run(&[arguments, &["--help"]].concat(), &[], "");
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

#[test]
fn help_is_what_it_was() {
    insta::assert_snapshot!("help", help(&[]));
    for noun in [
        "workspaces",
        "workflows",
        "queue",
        "executions",
        "locks",
        "tokens",
        "contexts",
        "audit",
    ] {
        insta::assert_snapshot!(format!("help_{noun}"), help(&[noun]));
    }
    insta::assert_snapshot!("help_queue_list", help(&["queue", "list"]));
    insta::assert_snapshot!("help_doctor", help(&["doctor"]));
}

/// Ids in the order in which they come, so that they are the same in every run and as wide as they were.
fn steady(words: &str) -> String {
    let mut known = BTreeMap::new();
    let is_id = |part: &str| part.len() == 36 && part.parse::<uuid::Uuid>().is_ok();
    let mut steady = String::new();
    let mut rest = words;
    while !rest.is_empty() {
        let at = (0..rest.len()).find(|at| rest.get(*at..at + 36).is_some_and(is_id));
        let Some(at) = at else {
            steady.push_str(rest);
            break;
        };
        let next = known.len() + 1;
        let number = known.entry(rest[at..at + 36].to_owned()).or_insert(next);
        steady.push_str(&rest[..at]);
        let _ = write!(steady, "00000000-0000-0000-0000-{number:012}");
        rest = &rest[at + 36..];
    }
    steady
}

#[test]
fn tables_are_what_they_were() {
    let database = TestDatabase::migrated();
    let (workspace, workflow) = database.workflow(GRAPH);
    let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
    database.done(&[&add[..], &["--input", r#"{"night": 1}"#, "--priority", "5"]].concat());
    let ended = text(&database.json(&add), "id");
    database.done(&["queue", "cancel", &ended, "--note", "a holiday", "--yes"]);
    database.done(&["workspaces", "pause", &workspace]);
    // Everything happened then, whenever this runs.
    let then = "'2026-01-31T09:30:00Z'";
    for statement in [
        "update stationmaster.workspaces set created_at = THEN",
        "update stationmaster.workflow_definitions set created_at = THEN",
        "update stationmaster_internal.queue_items set created_at = THEN",
    ] {
        database.execute(&statement.replace("THEN", then));
    }
    for (name, command) in [
        ("workspaces", &["workspaces", "list", "-o", "wide"][..]),
        ("workflows", &["workflows", "list", "-o", "wide"]),
        ("plans", &["plans", "list"]),
        ("queue", &["queue", "list", "-o", "wide"]),
        ("nothing", &["executions", "list"]),
    ] {
        insta::assert_snapshot!(format!("table_{name}"), steady(&database.done(command)));
    }
}

#[test]
fn colours_are_for_terminals_and_no_color_is_kept_to() {
    let database = TestDatabase::migrated();
    database.workflow(GRAPH);
    assert!(
        !database.done(&["workspaces", "list"]).contains('\u{1b}'),
        "this is no terminal"
    );
    let url = database.url();
    let list = |more: &[(&str, &str)]| {
        let environment = [&[("STATIONMASTER_DATABASE_URL", url.as_str())], more].concat();
        run(&["workspaces", "pause", "--help"], &environment, "").stdout
    };
    assert!(list(&[("CLICOLOR_FORCE", "1")]).contains('\u{1b}'));
    assert!(!list(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn a_slip_of_the_fingers_is_met_with_a_guess() {
    for (arguments, guess) in [
        (&["queu", "list"][..], "queue"),
        (&["queue", "lsit"], "list"),
        (&["queue", "list", "--limti", "3"], "--limit"),
        (&["workspace", "list"], "workspaces"),
        (&["queue", "list", "--status", "pendin"], "pending"),
    ] {
        let ended = run(arguments, &[], "");
        assert_eq!(ended.code, 2, "{arguments:?}");
        assert!(ended.stderr.contains(guess), "{arguments:?}: {}", ended.stderr);
        let told = run(&[arguments, &["--json"]].concat(), &[], "").stderr;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert!(
            told["error"]["advice"].as_str().unwrap().contains(guess),
            "{told}"
        );
    }
}

#[test]
fn every_command_has_a_page_for_man() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("man1");
    let out = path.to_str().unwrap();
    let ended = run(&["man", "--out", out], &[], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for page in [
        "stationmaster.1",
        "stationmaster-queue.1",
        "stationmaster-queue-list.1",
        "stationmaster-doctor.1",
    ] {
        let text = std::fs::read_to_string(path.join(page)).unwrap();
        assert!(text.contains(".SH NAME"), "{page}");
    }
}
