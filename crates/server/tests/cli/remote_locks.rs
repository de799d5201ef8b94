//! A command under a lock that was had through a server: the same codes, the same promises as on the database.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::served::Served;
use crate::support::binary;

/// Starts `lock run` through the server, with a command that goes on until its input is closed or it is stopped.
fn holder(served: &Served, name: &str, arguments: &[&str]) -> Child {
    let line = [&["lock", "run", name], arguments, &["--", "cat"]].concat();
    let environment = [
        ("STATIONMASTER_URL", served.url.as_str()),
        ("STATIONMASTER_TOKEN", &served.token),
    ];
    let child = binary(&line, &environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let started = Instant::now();
    while !served.json(&["locks", "list"])[0]["held"]
        .as_bool()
        .unwrap_or_default()
    {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the lock is not held"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

#[test]
fn a_command_runs_under_a_lock_of_a_server_with_its_token_and_its_code_is_passed_on() {
    let served = Served::start();
    let script = "echo $STATIONMASTER_LOCK_NAME $STATIONMASTER_LOCK_TOKEN; exit 7";
    let ended = served.run_as(&served.token, &["lock", "run", "night", "--", "sh", "-c", script]);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (7, "night 1\n"),
        "{}",
        ended.stderr
    );
    let locks = served.json(&["locks", "list"]);
    assert_eq!(
        (&locks[0]["held"], &locks[0]["token"]),
        (&false.into(), &1.into())
    );
    let lines = served.json(&["audit", "list", "--action", "lock.acquire"]);
    assert!(
        lines[0]["actor"].as_str().unwrap().starts_with("token:boss:"),
        "{lines}"
    );
    let missing = served.run_as(&served.token, &["lock", "run", "night", "--", "/nowhere"]);
    assert_eq!(missing.code, 127, "{}", missing.stderr);
    let denied = served.run_as("smt_nonsense", &["lock", "run", "night", "--", "true"]);
    assert_eq!(denied.code, 125, "{}", denied.stderr);
}

#[test]
fn a_lock_is_excluded_from_both_sides() {
    let served = Served::start();
    let hold = ["--at-most", "1h", "--at-least", "1h", "--", "true"];
    served.database.done(&[&["lock", "run", "a"], &hold[..]].concat());
    let taken = served.run_as(&served.token, &["lock", "run", "a", "--", "false"]);
    assert_eq!(taken.code, 75, "{}", taken.stderr);
    assert!(taken.stderr.contains("is taken: cli:"), "{}", taken.stderr);
    served.done(&[&["lock", "run", "b"], &hold[..]].concat());
    let taken = served
        .database
        .run(&["lock", "run", "b", "--wait", "300ms", "--", "false"]);
    assert_eq!(taken.code, 75, "{}", taken.stderr);
}

#[test]
fn a_lock_of_a_server_is_kept_while_the_command_runs_and_its_loss_stops_the_command() {
    let served = Served::start();
    served.done(&["lock", "run", "kept", "--at-most", "1s", "--", "sleep", "3"]);
    served.database.execute("delete from shedlock");
    let mut child = holder(&served, "lost", &["--at-most", "2s"]);
    // Waiting for the end would close its input, at which the command ends by itself.
    let _input = child.stdin.take();
    served.done(&["locks", "release", "lost", "--yes"]);
    assert_eq!(child.wait().unwrap().code(), Some(79));
}

#[test]
fn a_command_that_ends_before_the_loss_of_a_server_s_lock_is_noticed_is_told_all_the_same() {
    let served = Served::start();
    // The next extension, which would notice it, is minutes away.
    let mut child = holder(&served, "lost", &["--at-most", "10m"]);
    served.done(&["locks", "release", "lost", "--yes"]);
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(79));
}
