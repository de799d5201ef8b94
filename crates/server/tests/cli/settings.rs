//! Settings as their users meet them. How each is read is told by the tests of the module itself.

use serde_json::Value;

use crate::support::{run, written};

#[test]
fn settings_that_are_wrong_are_named_all_together() {
    let environment = [
        ("STATIONMASTER_EXECUTIONS__BATCH_SIZE", "0"),
        ("STATIONMASTER_EXECUTIONS__BATCHSIZE", "5"),
    ];
    let ended = run(&["config", "show", "--set", "engine=steam"], &environment, "");
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    for named in [
        "executions.batch_size (environment variable STATIONMASTER_EXECUTIONS__BATCH_SIZE): 0 is out of range",
        "Give a number from 1 to 10000",
        "Did you mean STATIONMASTER_EXECUTIONS__BATCH_SIZE?",
        "engine (flag --set engine)",
        "Give embedded or temporal",
    ] {
        assert!(ended.stderr.contains(named), "{named}: {}", ended.stderr);
    }
    let json = run(
        &["config", "show", "--json", "--set", "engine=steam"],
        &environment,
        "",
    );
    let said: Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!(said["error"]["complaints"].as_array().unwrap().len(), 3);
}

#[test]
fn the_effective_settings_are_shown_with_their_origins_and_without_secrets() {
    let file = written("engine = 'temporal'\n[temporal]\napi_key = 's3cret'\n");
    let path = file.path().to_str().unwrap();
    let environment = [("STATIONMASTER_DATABASE_URL", "postgres://ann:s3cret@db/main")];
    let arguments = [
        "--config",
        path,
        "--set",
        "database_pool=20",
        "config",
        "show",
        "--set",
        "listen=[::1]:80",
    ];
    let ended = run(&arguments, &environment, "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let line = |key: &str| {
        let line = ended
            .stdout
            .lines()
            .find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("engine"), format!("engine temporal file {path}"));
    assert_eq!(
        line("database_url"),
        "database_url postgres://ann:***@db/main environment variable STATIONMASTER_DATABASE_URL"
    );
    assert_eq!(line("database_pool"), "database_pool 20 flag --set database_pool");
    assert_eq!(line("listen"), "listen [::1]:80 flag --set listen");
    assert_eq!(line("log.level"), "log.level info default");
    assert!(!ended.stdout.contains("s3cret"), "{}", ended.stdout);
}

#[test]
fn commands_that_need_a_database_say_how_to_name_it() {
    let ended = run(&["workspaces", "list"], &[], "");
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("STATIONMASTER_DATABASE_URL=postgres://"),
        "{}",
        ended.stderr
    );
}

#[test]
fn commands_that_need_no_settings_are_not_stopped_by_wrong_ones() {
    let wrong = [("STATIONMASTER_ENGINE", "steam")];
    assert!(
        run(&["completions", "fish"], &wrong, "")
            .stdout
            .contains("stationmaster")
    );
    assert!(
        run(&["docs", "configuration"], &wrong, "")
            .stdout
            .contains("# Configuration")
    );
    assert!(run(&["--help"], &wrong, "").stdout.contains("Exit codes:"));
}
