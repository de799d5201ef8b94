//! What people do with alarms on the command line, without a server.

use serde_json::{Value, json};

use crate::support::{TestDatabase, run, text};

fn workspace(database: &TestDatabase) -> String {
    text(&database.json(&["workspaces", "create", "north"]), "id")
}

#[test]
fn an_alarm_is_set_seen_changed_paused_and_cancelled() {
    let database = TestDatabase::migrated();
    let workspace = workspace(&database);
    let set = [
        "alarms",
        "set",
        "--workspace",
        &workspace,
        "--cron",
        "30 9 * * MON-FRI",
        "--zone",
        "Europe/Zurich",
        "--label",
        "stand-up",
        "--payload",
        r#"{"n": 1.50}"#,
        "--key",
        "k",
    ];
    let said = database.done(&set);
    assert!(
        said.contains("Set alarm") && said.contains("09:30 on Monday to Friday"),
        "{said}"
    );
    assert_eq!(said.matches("T09:30:00+0").count(), 10, "ten fires: {said}");
    let again = database.json(&set);
    assert_eq!(again["created"], false);
    let id = text(&again, "id");
    let mut other = set.to_vec();
    other.extend(["--message", "another"]);
    assert!(database.refused(4, &other).contains("idempotency key"));

    let past = [
        "alarms",
        "set",
        "--workspace",
        &workspace,
        "--at",
        "2020-01-01T00:00:00Z",
    ];
    let past = database.run(&past);
    assert!(past.stderr.contains("fires at once"), "{}", past.stderr);
    let listed = database.json(&["alarms", "list", "--status", "active", "--kind", "cron"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    let shown = database.done(&["alarms", "show", &id]);
    assert!(
        shown.contains("stand-up") && shown.contains(r#"{"n": 1.50}"#) && shown.contains("the router"),
        "{shown}"
    );
    let edited = database.json(&[
        "alarms",
        "edit",
        &id,
        "--message",
        "hello",
        "--clear",
        "payload",
        "--misfire",
        "skip",
    ]);
    assert_eq!(
        (&edited["message"], &edited["payload"], &edited["misfire"]),
        (&json!("hello"), &Value::Null, &json!("skip"))
    );
    assert_eq!(database.json(&["alarms", "pause", &id])["status"], "paused");
    assert_eq!(database.json(&["alarms", "show", &id])["status"], "paused");
    assert_eq!(database.json(&["alarms", "resume", &id])["status"], "active");
    let fired = database.json(&["alarms", "fire", &id]);
    let waiting = database.json(&["alarms", "occurrences", &id]);
    assert_eq!(waiting[0]["scheduled_for"], fired["scheduled_for"]);
    assert_eq!(
        (&waiting[0]["status"], &waiting[0]["origin"]),
        (&json!("pending"), &json!("manual"))
    );
    assert_eq!(
        database.json(&["alarms", "cancel", &id, "--yes"])["status"],
        "cancelled"
    );
    assert!(
        database
            .refused(4, &["alarms", "resume", &id])
            .contains("cancelled")
    );
    let events = database.json(&["alarms", "show", &id])["events"].clone();
    let events: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(
        events,
        ["set", "edited", "paused", "resumed", "fired by hand", "cancelled"]
    );
}

#[test]
fn what_cannot_be_set_is_refused_with_the_reason() {
    let database = TestDatabase::migrated();
    let workspace = workspace(&database);
    let refused = |code, arguments: &[&str]| {
        let base = ["alarms", "set", "--workspace", &workspace];
        database.refused(code, &[&base, arguments].concat())
    };
    assert!(refused(2, &[]).contains("--cron"));
    let bad = refused(2, &["--cron", "0 0 30 2 *"]);
    assert!(bad.contains("never fires") && bad.contains("^^^^"), "{bad}");
    assert!(refused(2, &["--cron", "* * * * *", "--zone", "Europe/Zürich"]).contains("Europe/Zurich"));
    assert!(refused(2, &["--in", "5m", "--at", "2030-01-01T00:00:00Z"]).contains("cannot be used with"));
    assert!(refused(2, &["--in", "5m", "--target", "ftp://x/"]).contains("http"));
    assert!(refused(2, &["--in", "5m", "--misfire", "skip", "--catch-up", "3"]).contains("--catch-up"));
    let nobody = "0199a0de-0000-7000-8000-000000000000";
    assert!(
        database
            .refused(3, &["alarms", "set", "--workspace", nobody, "--in", "5m"])
            .contains("no workspace")
    );
    for verb in ["show", "pause", "resume", "fire", "cancel", "occurrences"] {
        assert!(
            database
                .refused(3, &["alarms", verb, nobody])
                .contains("no alarm"),
            "{verb}"
        );
    }
}

#[test]
fn a_backfill_is_previewed_before_it_is_made() {
    let database = TestDatabase::migrated();
    let workspace = workspace(&database);
    let set = database.json(&["alarms", "set", "--workspace", &workspace, "--cron", "0 * * * *"]);
    let id = text(&set, "id");
    let range = [
        "alarms",
        "backfill",
        &id,
        "--from",
        "2026-01-01T00:00:00Z",
        "--to",
        "2026-01-01T03:00:00Z",
    ];
    let preview = database.json(&[&range[..], &["--dry-run"]].concat());
    assert_eq!((&preview["count"], &preview["fired"]), (&json!(3), &json!(false)));
    assert!(database.refused(2, &range).contains("no terminal"));
    let done = database.json(&[&range[..], &["--yes"]].concat());
    assert_eq!((&done["count"], &done["fired"]), (&json!(3), &json!(true)));
    let waiting = database.json(&["alarms", "occurrences", &id, "--status", "pending"]);
    assert_eq!(waiting.as_array().map(Vec::len), Some(3));
    let far = [
        "alarms",
        "backfill",
        &id,
        "--from",
        "2020-01-01T00:00:00Z",
        "--to",
        "2026-01-01T03:00:00Z",
        "--dry-run",
    ];
    assert!(database.refused(2, &far).contains("more than 1000"));
}

#[test]
fn the_secret_of_a_recipient_is_shown_to_whoever_has_the_signing_secret() {
    let database = TestDatabase::migrated();
    let master = text(&database.json(&["alarms", "secrets", "generate"]), "secret");
    assert!(master.starts_with("whsec_"));
    let url = database.url();
    let secrets = |arguments: &[&str]| {
        let environment = [
            ("STATIONMASTER_DATABASE_URL", url.as_str()),
            ("STATIONMASTER_ALARMS__SIGNING_SECRET", master.as_str()),
        ];
        run(
            &[&["alarms", "secrets"], arguments, &["--json"]].concat(),
            &environment,
            "",
        )
    };
    let read = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
    let without = database.refused(2, &["alarms", "secrets", "show", "https://hooks.example/x"]);
    assert!(without.contains("alarms.signing_secret"), "{without}");
    let first = read(&secrets(&["show", "https://hooks.example/x"]).stdout);
    assert_eq!(
        (&first["target"], &first["generation"]),
        (&json!("https://hooks.example"), &json!(1))
    );
    let same = read(&secrets(&["show", "https://hooks.example/y"]).stdout);
    assert_eq!(first, same);
    let router = read(&secrets(&["show", "router"]).stdout);
    assert_eq!(router["target"], "router");
    assert!(router["secret"] != first["secret"] && router["secret"] != master.as_str());
    assert_eq!(secrets(&["show", "ftp://hooks.example"]).code, 2);
    let second = read(&secrets(&["rotate", "https://hooks.example", "--yes"]).stdout);
    assert_ne!(first["secret"], second["secret"]);
    assert_eq!(second, read(&secrets(&["show", "https://hooks.example"]).stdout));
    assert_eq!(router, read(&secrets(&["show", "router"]).stdout));
    let list = secrets(&["list"]).stdout;
    assert!(
        list.contains("hooks.example") && !list.contains("whsec_"),
        "{list}"
    );
    let shown = run(
        &["config", "show", "--json"],
        &[("STATIONMASTER_ALARMS__SIGNING_SECRET", master.as_str())],
        "",
    );
    assert!(
        !shown.stdout.contains(master.trim_start_matches("whsec_")),
        "{}",
        shown.stdout
    );
}
