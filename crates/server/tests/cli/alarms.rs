//! Expressions tried out, without a server and without a database.

use serde_json::{Value, json};

use crate::support::{Ended, run};

fn next(arguments: &[&str]) -> Ended {
    run(&[&["alarms", "next"], arguments].concat(), &[], "")
}

#[test]
fn the_next_fires_are_told_with_offsets_a_description_and_notes() {
    let spring = [
        "30 2 * * *",
        "--zone",
        "america/new_york",
        "--from",
        "2024-03-09T00:00:00Z",
        "--count",
        "3",
    ];
    let ended = next(&spring);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    for told in [
        "At 02:30 every day",
        "America/New_York",
        "\n2024-03-09T02:30:00-05:00\n",
        "\n2024-03-10T03:00:00-04:00  moved: 02:30:00 on 2024-03-10 does not exist",
        "\n2024-03-11T02:30:00-04:00",
    ] {
        assert!(ended.stdout.contains(told), "{told}: {}", ended.stdout);
    }
    let ended = next(&[&spring[..], &["--json", "--dst", "skip"]].concat());
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&answer["description"], &answer["zone"], &answer["dst"]),
        (
            &json!("At 02:30 every day"),
            &json!("America/New_York"),
            &json!("skip")
        )
    );
    assert_eq!(answer["zone_data_version"].as_str().unwrap().len(), 5);
    assert_eq!(
        answer["fires"][1],
        json!({
            "at": "2024-03-11T02:30:00-04:00",
            "utc": "2024-03-11T06:30:00Z",
            "note": "before this one, 02:30:00 on 2024-03-10 was skipped: it does not exist",
            "effect": { "kind": "skipped_before", "wanted": "2024-03-10T02:30:00", "times": 1 },
        })
    );
}

#[test]
fn without_more_words_ten_fires_from_now_on_in_utc_are_told() {
    let ended = next(&["@hourly", "--json"]);
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    let fires = answer["fires"].as_array().unwrap();
    assert_eq!((fires.len(), &answer["zone"]), (10, &json!("UTC")));
    assert!(
        fires
            .iter()
            .all(|fire| fire["utc"].as_str() > answer["from"].as_str()),
        "{answer}"
    );
}

#[test]
fn a_bad_expression_is_refused_with_its_place() {
    let ended = next(&["0 0 30 2 *"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_eq!(
        ended.stderr,
        "error: this never fires: there is no day 30 of the month in February\n  0 0 30 2 *\n      ^^^^\n"
    );
    let ended = next(&["0 25 * * *", "--json"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    let said: Value = serde_json::from_str(&ended.stderr).unwrap();
    let error = &said["error"];
    assert_eq!(
        (&error["kind"], &error["exit_code"]),
        (&json!("usage"), &json!(2))
    );
    assert_eq!(
        error["place"],
        json!({ "expression": "0 25 * * *", "start": 2, "end": 4 })
    );
}

#[test]
fn an_unknown_zone_is_refused_with_what_is_like_it() {
    let ended = next(&["@daily", "--zone", "Europe/Zürich"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(
        ended.stderr.contains("did you mean Europe/Zurich"),
        "{}",
        ended.stderr
    );
}
