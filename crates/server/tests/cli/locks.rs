//! Locks by the command line: a command under a lock, who holds what, and a lock freed by hand.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{TestDatabase, binary, run, text};

/// A command under a lock that runs until its standard input is closed, or it is stopped.
struct Holder {
    child: Child,
}

impl Holder {
    fn start(database: &TestDatabase, name: &str, arguments: &[&str], script: &str) -> Self {
        let url = database.url();
        let line = [&["lock", "run", name], arguments, &["--", "sh", "-c", script]].concat();
        let child = binary(&line, &[("STATIONMASTER_DATABASE_URL", &url)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let holder = Self { child };
        eventually("the lock is held", || is_held(database, name));
        holder
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("it is there");
    }

    /// Waits for its end: the exit code, the words on stdout and on stderr.
    fn ended(mut self) -> (i32, String, String) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("it ends");
        let words = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (
            output.status.code().expect("it was not killed"),
            words(output.stdout),
            words(output.stderr),
        )
    }
}

/// Ends when its input does. The shell itself stays, so that it can be asked to do more before it ends.
const UNTIL_TOLD: &str = "cat";

#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "not within 30 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn listed(database: &TestDatabase, name: &str) -> Option<Value> {
    let locks = database.json(&["locks", "list"]);
    let found = locks
        .as_array()
        .expect("a list")
        .iter()
        .find(|lock| lock["name"] == name);
    found.cloned()
}

fn is_held(database: &TestDatabase, name: &str) -> bool {
    listed(database, name).is_some_and(|lock| lock["held"] == true)
}

#[test]
fn a_command_runs_under_the_lock_with_its_token_and_its_code_is_passed_on() {
    let database = TestDatabase::migrated();
    let show =
        "echo $STATIONMASTER_LOCK_NAME $STATIONMASTER_LOCK_TOKEN; test -n \"$STATIONMASTER_LOCK_HOLDER\"";
    assert_eq!(
        database.done(&["lock", "run", "nightly", "--", "sh", "-c", show]),
        "nightly 1\n"
    );
    assert_eq!(
        database.done(&["locks", "run", "nightly", "--", "sh", "-c", show]),
        "nightly 2\n"
    );
    for code in [1, 3, 75, 200] {
        let ended = database.run(&[
            "lock",
            "run",
            "nightly",
            "--",
            "sh",
            "-c",
            &format!("exit {code}"),
        ]);
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (code, ""),
            "nothing of ours is said"
        );
    }
    let killed = database.run(&["lock", "run", "nightly", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.code, 128 + 9);
    assert!(!is_held(&database, "nightly"), "each has given it back");
}

#[test]
fn a_command_under_a_lock_may_call_us_again() {
    let database = TestDatabase::migrated();
    let binary = env!("CARGO_BIN_EXE_stationmaster");
    let listed = database.done(&["lock", "run", "nightly", "--", binary, "locks", "list", "--json"]);
    let locks: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&locks[0]["held"], &locks[0]["token"]), (&true.into(), &1.into()));
    assert!(text(&locks[0], "by").starts_with("cli:"), "{locks}");
}

#[test]
fn a_lock_that_is_taken_has_a_code_of_its_own_and_the_command_is_not_run() {
    let database = TestDatabase::migrated();
    let holder = Holder::start(&database, "nightly", &[], UNTIL_TOLD);
    let by = text(&listed(&database, "nightly").unwrap(), "by");
    let refused = database.refused(75, &["lock", "run", "nightly", "--", "echo", "I ran"]);
    assert!(refused.contains(&by) && refused.contains("--wait"), "{refused}");
    let refused = database.refused(
        75,
        &["lock", "run", "nightly", "--wait", "300ms", "--", "echo", "I ran"],
    );
    assert!(refused.contains("in time"), "{refused}");
    let json = database.run(&["lock", "run", "nightly", "--json", "--", "echo"]);
    let error: Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!(
        (&error["error"]["kind"], &error["error"]["exit_code"]),
        (&"taken".into(), &75.into())
    );
    assert_eq!(holder.ended().0, 0);
    database.done(&["lock", "run", "nightly", "--", "true"]);
}

#[test]
fn a_lock_is_waited_for_and_held_for_at_least_as_long_as_it_must_be() {
    let database = TestDatabase::migrated();
    database.done(&["lock", "run", "nightly", "--at-least", "2s", "--", "true"]);
    assert!(is_held(&database, "nightly"), "the command was quick");
    database.refused(75, &["lock", "run", "nightly", "--", "true"]);
    database.done(&["lock", "run", "nightly", "--wait", "30s", "--", "true"]);
}

#[test]
fn a_lock_is_kept_for_longer_than_at_most_while_the_command_runs() {
    let database = TestDatabase::migrated();
    let holder = Holder::start(&database, "nightly", &["--at-most", "6s"], UNTIL_TOLD);
    let since = text(&listed(&database, "nightly").unwrap(), "since");
    let since: jiff::Timestamp = since.parse().unwrap();
    eventually("more time has passed", || {
        jiff::Timestamp::now().duration_since(since) > jiff::SignedDuration::from_secs(7)
    });
    database.refused(75, &["lock", "run", "nightly", "--", "true"]);
    assert_eq!(holder.ended().0, 0);
    assert!(!is_held(&database, "nightly"));
}

#[test]
fn a_command_whose_lock_is_lost_is_told_and_stopped() {
    let database = TestDatabase::migrated();
    let script = "trap 'echo stopped; exit 0' TERM; while true; do sleep 0.05; done";
    let holder = Holder::start(&database, "nightly", &["--at-most", "2s"], script);
    database.done(&["locks", "release", "nightly", "--yes"]);
    let (code, said, told) = holder.ended();
    assert_eq!((code, said.as_str()), (79, "stopped\n"), "{told}");
    assert!(
        told.contains("the lock nightly was lost while the command ran"),
        "{told}"
    );
}

#[test]
fn a_command_that_ends_before_the_loss_of_its_lock_is_noticed_is_told_all_the_same() {
    let database = TestDatabase::migrated();
    // The next extension, which would notice it, is minutes away.
    let holder = Holder::start(&database, "nightly", &["--at-most", "10m"], UNTIL_TOLD);
    database.done(&["locks", "release", "nightly", "--yes"]);
    let (code, _, told) = holder.ended();
    assert_eq!(code, 79, "{told}");
    assert!(
        told.contains("the lock nightly was lost while the command ran"),
        "{told}"
    );
}

#[test]
fn a_command_that_does_not_stop_when_its_lock_is_lost_is_killed_with_all_it_started() {
    let database = TestDatabase::migrated();
    let script = "trap '' TERM; (trap '' TERM; while true; do sleep 0.05; done) & wait";
    let holder = Holder::start(
        &database,
        "nightly",
        &["--at-most", "2s", "--grace", "200ms"],
        script,
    );
    database.done(&["locks", "release", "nightly", "--yes"]);
    // The pipes are closed only when the last process that has them is gone.
    assert_eq!(holder.ended().0, 79);
}

#[test]
fn signals_are_passed_on_to_the_command() {
    let database = TestDatabase::migrated();
    for (signal, name, code) in [
        (Signal::SIGTERM, "TERM", 7),
        (Signal::SIGINT, "INT", 8),
        (Signal::SIGHUP, "HUP", 9),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let ready = folder.path().join("ready");
        let script = format!(
            "trap 'exit {code}' {name}; touch {}; while true; do sleep 0.05; done",
            ready.display()
        );
        let holder = Holder::start(&database, "nightly", &[], &script);
        eventually("the command is ready", || ready.exists());
        holder.signal(signal);
        assert_eq!(holder.ended().0, code, "{name}");
        assert!(!is_held(&database, "nightly"), "it was given back");
    }
}

#[test]
fn what_cannot_be_run_says_so_and_keeps_no_lock() {
    let database = TestDatabase::migrated();
    assert!(
        database
            .refused(127, &["lock", "run", "nightly", "--", "no-such-program"])
            .contains("no-such-program")
    );
    database.refused(126, &["lock", "run", "nightly", "--", "/"]);
    assert!(!is_held(&database, "nightly"));
    for (wrong, told) in [
        (&["lock", "run", "nightly"][..], "COMMAND"),
        (&["lock", "run", "", "--", "true"], "empty"),
        (
            &["lock", "run", "nightly", "--at-most", "0s", "--", "true"],
            "no time at all",
        ),
        (
            &[
                "lock",
                "run",
                "nightly",
                "--at-most",
                "1s",
                "--at-least",
                "2s",
                "--",
                "true",
            ],
            "must not be longer",
        ),
    ] {
        let refusal = database.refused(2, wrong);
        assert!(refusal.contains(told), "{wrong:?}: {refusal}");
    }
    let long = "x".repeat(65);
    assert!(
        database
            .refused(2, &["lock", "run", &long, "--", "true"])
            .contains("65 characters")
    );
}

#[test]
fn a_failure_before_the_command_is_not_taken_for_the_commands_own() {
    let nowhere = [("STATIONMASTER_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")];
    let ended = run(&["lock", "run", "nightly", "--", "true"], &nowhere, "");
    assert_eq!(ended.code, 125, "{}", ended.stderr);
    assert!(ended.stderr.contains("PostgreSQL"), "{}", ended.stderr);
    let database = TestDatabase::migrated();
    let missing = [
        "--set",
        "locks.table=nowhere",
        "lock",
        "run",
        "nightly",
        "--",
        "true",
    ];
    let told = database.refused(125, &missing);
    assert!(told.contains("The lock table nowhere is not there"), "{told}");
    assert!(
        database
            .refused(5, &["--set", "locks.table=nowhere", "locks", "list"])
            .contains("nowhere")
    );
}

#[test]
fn a_lock_is_released_only_after_a_word_and_it_is_on_record() {
    let database = TestDatabase::migrated();
    assert!(
        database
            .refused(3, &["locks", "release", "nightly", "--yes"])
            .contains("there is no lock")
    );
    database.done(&["lock", "run", "nightly", "--at-least", "1m", "--", "true"]);
    assert!(
        database
            .refused(2, &["locks", "release", "nightly"])
            .contains("--yes"),
        "nobody can be asked"
    );
    let tried = database.json(&["locks", "release", "nightly", "--dry-run"]);
    assert_eq!(
        (&tried["held"], &tried["released"]),
        (&true.into(), &false.into())
    );
    assert!(is_held(&database, "nightly"));
    let released = database.json(&["locks", "release", "nightly", "--yes"]);
    assert_eq!(released["released"], true);
    assert!(!is_held(&database, "nightly"));
    assert!(
        database
            .done(&["locks", "release", "nightly", "--yes"])
            .contains("Nobody holds")
    );
    let shown = database.done(&["locks", "list"]);
    assert!(
        shown.starts_with("NAME") && shown.contains("nightly") && shown.contains("free"),
        "{shown}"
    );
}

#[test]
fn migrate_makes_the_lock_table_of_the_setting() {
    let database = TestDatabase::empty();
    let table = "locks.table=\"Our Locks\"";
    let migrated = database.json(&["migrate", "--set", table]);
    assert_eq!(migrated["lock_table"], Value::Null);
    database.done(&["lock", "run", "nightly", "--set", table, "--", "true"]);
    assert_eq!(
        database.json(&["locks", "list"]),
        Value::Array(Vec::new()),
        "the other table is another"
    );
    let checked = database.json(&["migrate", "--check", "--set", "locks.table=nowhere"]);
    assert!(text(&checked, "lock_table").contains("nowhere"), "{checked}");
}
