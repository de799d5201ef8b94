//! The benchmarks run, on little: their figures are for others, but each must do its work and tell the truth about it.

use serde_json::Value;

use crate::support::{TestDatabase, run};

#[track_caller]
fn figures(database: &TestDatabase, lane: &str, scenario: &str, arguments: &[&str]) -> Value {
    let url = database.url();
    let arguments = [
        &["bench", lane, "--scenario", scenario, "--on", &url, "--json"],
        arguments,
    ]
    .concat();
    let temporal = std::env::var("STATIONMASTER_TEST_TEMPORAL_CLI").unwrap();
    let ended = run(&arguments, &[("STATIONMASTER_TEST_TEMPORAL_CLI", &temporal)], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    result[scenario].clone()
}

#[test]
fn executions_are_measured_one_scenario_after_the_other_on_one_database() {
    let database = TestDatabase::empty();
    let noop = figures(
        &database,
        "executions",
        "noop",
        &["--items", "300", "--workspaces", "3"],
    );
    assert_eq!(noop["executions"], 300, "{noop}");
    assert_eq!(noop["overshoot"], 0, "{noop}");
    assert_eq!(noop["doubles"], 0, "{noop}");
    assert!(noop["claim"]["p50"].as_f64().unwrap() > 0.0, "{noop}");
    assert!(noop["share_of_bare"].as_f64().unwrap() > 0.0, "{noop}");

    let limits = figures(&database, "executions", "limits", &["--items", "56"]);
    assert_eq!(limits["executions"], 56, "{limits}");
    assert_eq!(limits["overshoot"], 0, "{limits}");

    let idle = figures(&database, "executions", "idle", &["--items", "3"]);
    assert!(idle["rested"]["p50"].as_f64().unwrap() > 0.0, "{idle}");

    let horizon = figures(&database, "executions", "horizon", &["--items", "300"]);
    assert!(horizon["ratio"].as_f64().unwrap() > 0.0, "{horizon}");
}

#[test]
fn alarms_are_measured_and_none_is_missing_or_doubled() {
    let database = TestDatabase::empty();
    let burst = figures(
        &database,
        "alarms",
        "burst",
        &["--alarms", "60", "--targets", "2", "--answer-after", "1"],
    );
    assert_eq!(burst["missing"], 0, "{burst}");
    assert_eq!(burst["duplicates"], 0, "{burst}");
    assert!(burst["share_of_bare"].as_f64().unwrap() > 0.0, "{burst}");
}

#[test]
fn starts_on_temporal_are_measured() {
    let database = TestDatabase::empty();
    let starts = figures(&database, "executions", "temporal", &["--items", "20"]);
    assert!(starts["share_of_bare"].as_f64().unwrap() > 0.0, "{starts}");
}
