//! What is printed beside a result for people to type: it works as printed, in the same place and with the same filters.

use std::process::Command;

use crate::served::Served;
use crate::support::{GRAPH, binary, text};

/// What a shell makes of a line that was printed, here without what the environment would say of a server.
fn typed(line: &str, token: &str) -> (bool, String, String) {
    let ended = Command::new("bash")
        .args(["-c", line])
        .env_clear()
        .env("STATIONMASTER_TOKEN", token)
        .output()
        .unwrap();
    let [out, errors] = [ended.stdout, ended.stderr].map(|said| String::from_utf8(said).unwrap());
    (ended.status.success(), out, errors)
}

/// The command behind these words.
fn hint<'a>(said: &'a str, words: &str) -> &'a str {
    let line = said.lines().find_map(|line| line.split_once(words));
    line.unwrap_or_else(|| panic!("no {words:?} in {said}")).1
}

#[test]
fn a_list_that_goes_on_prints_the_whole_command_that_goes_on() {
    let served = Served::start();
    let (workspace, workflow) = served.database.workflow(GRAPH);
    served.database.done(&["workspaces", "pause", &workspace]);
    for number in 0..5 {
        let input = format!(r#"{{"note": "it's number {number}"}}"#);
        let add = ["queue", "add", "--workspace", &workspace, "--workflow", &workflow];
        served.done(&[&add[..], &["--input", &input]].concat());
    }
    // The flags are said, and nothing is in the environment but the token.
    let list = [
        "queue",
        "list",
        "--url",
        &served.url,
        "--search",
        "it's number",
        "--limit",
        "2",
        "-o",
        "wide",
        "--created-after",
        "1h ago",
        "--status",
        "pending,claimed",
    ];
    let first = binary(&list, &[("STATIONMASTER_TOKEN", &served.token)])
        .output()
        .unwrap();
    let said = String::from_utf8(first.stderr).unwrap();
    let mut shown = vec![String::from_utf8(first.stdout).unwrap()];
    let mut next = hint(&said, "There is more: ").to_owned();
    assert_eq!(next.matches("--before").count(), 1, "{next}");
    loop {
        let (well, out, errors) = typed(&next, &served.token);
        assert!(well, "{next}: {errors}");
        shown.push(out);
        match errors.split_once("There is more: ") {
            Some((_, line)) => line.trim().clone_into(&mut next),
            None => break,
        }
        assert_eq!(next.matches("--before").count(), 1, "{next}");
    }
    let lengths: Vec<usize> = shown.iter().map(|page| page.lines().count() - 1).collect();
    assert_eq!(lengths, [2, 2, 1], "{shown:?}");
}

#[test]
fn what_to_type_next_works_in_the_place_where_the_command_worked() {
    let served = Served::start();
    let bad = r#"{"nodes": [{"id": "bridge", "type": "fail", "message": "the bridge is out"}]}"#;
    let (workspace, workflow) = served.database.workflow(bad);
    let item = served.database.enqueue(&workspace, &workflow);
    while served.json(&["queue", "show", &item])["outcome"] != "FAILED" {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let run = |arguments: &[&str]| {
        let arguments = [arguments, &["--url", &served.url]].concat();
        let ended = binary(&arguments, &[("STATIONMASTER_TOKEN", &served.token)])
            .output()
            .unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        String::from_utf8(said).unwrap()
    };
    let said = run(&["executions", "watch", &item]);
    let (well, shown, errors) = typed(hint(&said, "See why: "), &served.token);
    assert!(
        well && shown.contains("the bridge is out"),
        "{said}{shown}{errors}"
    );
    let group = text(&served.json(&["failures"])[0], "id");
    let said = run(&["failures", "show", &group]);
    let retry = format!("{} --dry-run", hint(&said, "Try them again: "));
    let (well, shown, errors) = typed(&retry, &served.token);
    assert!(
        well && shown.contains("Matching: 1 failure"),
        "{said}{shown}{errors}"
    );
    let said = run(&["queue", "retry-all", "--all", "--detach", "--yes"]);
    let (well, shown, errors) = typed(hint(&said, "Wait for the end: "), &served.token);
    assert!(well, "{said}{shown}{errors}");
}

#[test]
fn the_audit_and_signals_are_listed_by_times_as_people_write_them() {
    let served = Served::start();
    served.done(&["workspaces", "create", "north"]);
    served.done(&["signals", "send", "shop", "order.paid", "--id", "now"]);
    served.done(&["signals", "send", "shop", "order.paid", "--id", "then"]);
    let past = "update stationmaster_internal.signals_inbox set received_at = now() - interval '3 days' where id = 'then'";
    served.database.execute(past);
    let audit =
        "update stationmaster.audit set at = now() - interval '3 days' where action = 'workspace.create'";
    served.database.execute(audit);
    for (arguments, expected) in [
        (&["--since", "1h"][..], &["now"][..]),
        (&["--until", "1 day ago"], &["then"]),
        (&["--since", "4d", "--until", "yesterday"], &["then"]),
        (&["--since", "4 days ago", "--project", "shop"], &["now", "then"]),
        (&["--since", "1h", "--until", "30m"], &[]),
    ] {
        let list = [&["signals", "list"][..], arguments].concat();
        for found in [served.json(&list), served.database.json(&list)] {
            let found = found.as_array().unwrap().iter();
            let mut ids: Vec<String> = found.map(|signal| text(signal, "id")).collect();
            ids.sort();
            assert_eq!(ids, expected, "{list:?}");
        }
    }
    for (arguments, is_there) in [
        (&["--since", "1h"][..], false),
        (&["--until", "1 day ago"], true),
        (&["--since", "4d", "--workspace", "north"], true),
        (&["--since", "1h", "--workspace", "north"], false),
    ] {
        let list = [&["audit", "list"][..], arguments].concat();
        for found in [served.json(&list), served.database.json(&list)] {
            let mut found = found.as_array().unwrap().iter();
            let made = found.any(|line| line["action"] == "workspace.create");
            assert_eq!(made, is_there, "{list:?}");
        }
    }
    assert!(
        served
            .refused(2, &["audit", "list", "--since", "sometime"])
            .contains("not a time")
    );
}
