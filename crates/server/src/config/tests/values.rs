//! What becomes of words that are right.

use super::*;
use crate::config::settings::SETTINGS;

#[test]
fn the_defaults_are_valid_and_are_those_of_the_core() {
    let loaded = right(load_with(None, &[], Flags::default()));
    assert_eq!(
        format!("{:?}", loaded.config.executions().unwrap()),
        format!("{:?}", executions::Settings::default())
    );
    assert_eq!(
        format!("{:?}", loaded.config.dispatchers),
        format!("{:?}", dispatchers::Settings::default())
    );
    assert_eq!(loaded.config.engine, Engine::Embedded);
    assert_eq!(loaded.config.listen.to_string(), "127.0.0.1:7373");
    assert_eq!(loaded.config.database_pool, 16);
    assert!(loaded.config.migrate_at_start && loaded.config.dev.example);
    assert!(loaded.values.iter().all(|value| value.origin == Origin::Default));
    assert_eq!(loaded.values.len(), SETTINGS.len());
}

#[test]
fn keys_and_variables_are_unique_and_helped() {
    for (index, setting) in SETTINGS.iter().enumerate() {
        assert!(
            !setting.help.is_empty() && !setting.help.ends_with('.'),
            "{}",
            setting.key
        );
        for other in &SETTINGS[index + 1..] {
            assert!(
                setting.key != other.key && setting.variable() != other.variable(),
                "{}",
                setting.key
            );
        }
    }
}

#[test]
fn flags_are_stronger_than_the_environment_and_the_environment_is_stronger_than_the_file() {
    let file = "[executions]\nbatch_size = 1\nmax_attempts = 1\npoll_interval = '1s'\n";
    let environment = [
        ("STATIONMASTER_EXECUTIONS__BATCH_SIZE", "2"),
        ("STATIONMASTER_EXECUTIONS__MAX_ATTEMPTS", "2"),
    ];
    let loaded = right(load_with(
        Some(file),
        &environment,
        set(&["executions.batch_size=3"]),
    ));
    let executions = &loaded.config.executions;
    assert_eq!((executions.batch_size, executions.max_attempts), (3, 2));
    assert_eq!(executions.poll_interval, Duration::from_secs(1));
    assert_eq!(executions.max_recoveries, 10);

    let origin = |key| value(&loaded, key).origin.clone();
    assert_eq!(
        origin("executions.batch_size"),
        Origin::Flag("--set executions.batch_size".to_owned())
    );
    let variable = "STATIONMASTER_EXECUTIONS__MAX_ATTEMPTS".to_owned();
    assert_eq!(origin("executions.max_attempts"), Origin::Environment(variable));
    assert!(matches!(origin("executions.poll_interval"), Origin::File(_)));
    assert_eq!(origin("executions.max_recoveries"), Origin::Default);
}

#[test]
fn named_flags_give_their_settings() {
    let flags = Flags {
        database_url: Some("postgres://db/main".to_owned()),
        engine: Some("temporal".to_owned()),
        listen: Some("[::1]:0".to_owned()),
        temporal_address: Some("temporal:7233".to_owned()),
        temporal_namespace: Some("trains".to_owned()),
        log_level: Some("debug".to_owned()),
        ..Flags::default()
    };
    let loaded = right(load_with(None, &[("STATIONMASTER_ENGINE", "embedded")], flags));
    assert_eq!(loaded.config.database_url.as_deref(), Some("postgres://db/main"));
    assert_eq!(loaded.config.engine, Engine::Temporal);
    assert_eq!(loaded.config.listen.to_string(), "[::1]:0");
    assert_eq!(loaded.config.temporal.address, "temporal:7233");
    assert_eq!(loaded.config.temporal.namespace, "trains");
    assert_eq!(loaded.config.log.level, "debug");
    assert_eq!(
        value(&loaded, "listen").origin,
        Origin::Flag("--listen".to_owned())
    );
}

#[test]
fn the_environment_may_name_the_file_and_a_flag_names_it_better() {
    let (weak, strong) = (written("database_pool = 20"), written("database_pool = 30"));
    let environment = || [("STATIONMASTER_CONFIG".into(), weak.path().into())].into_iter();
    let by_environment = right(load_from(&Flags::default(), environment()));
    assert_eq!(by_environment.config.database_pool, 20);
    let flags = Flags {
        config: Some(strong.path().to_owned()),
        ..Flags::default()
    };
    assert_eq!(right(load_from(&flags, environment())).config.database_pool, 30);
}

#[test]
fn a_secret_may_be_kept_in_a_file_of_its_own() {
    let secret = written("postgres://ann:s3cret@db/main\n");
    let path = secret.path().to_str().unwrap();
    let by_environment = right(load_with(
        None,
        &[("STATIONMASTER_DATABASE_URL_FILE", path)],
        Flags::default(),
    ));
    let by_file = right(load_with(
        Some(&format!("database_url_file = '{path}'")),
        &[],
        Flags::default(),
    ));
    for loaded in [&by_environment, &by_file] {
        assert_eq!(
            loaded.config.database_url.as_deref(),
            Some("postgres://ann:s3cret@db/main")
        );
    }
    let origin = Origin::Environment("STATIONMASTER_DATABASE_URL_FILE".to_owned());
    assert_eq!(value(&by_environment, "database_url").origin, origin);

    let missing = complaint(load_with(
        None,
        &[("STATIONMASTER_TEMPORAL__API_KEY_FILE", "/nowhere")],
        Flags::default(),
    ));
    assert_eq!(missing.setting, "temporal.api_key");
    assert!(missing.problem.contains("/nowhere"), "{missing}");
    // Only secrets have such files.
    assert!(load_with(None, &[("STATIONMASTER_ENGINE_FILE", path)], Flags::default()).is_err());
}

#[test]
fn secrets_are_hidden_where_values_are_shown() {
    let loaded = right(from_set(&[
        "database_url=postgres://ann:s3cret@db/main",
        "redis_url=redis://:s3cret@cache",
        "temporal.api_key=s3cret",
    ]));
    assert_eq!(
        value(&loaded, "database_url").value.as_deref(),
        Some("postgres://ann:***@db/main")
    );
    assert_eq!(value(&loaded, "temporal.api_key").value.as_deref(), Some("***"));
    let shown = serde_json::to_string(&loaded.values).unwrap();
    assert!(!shown.contains("s3cret"), "{shown}");
}

#[test]
fn variables_of_others_are_left_alone() {
    let environment = [
        ("STATIONMASTER_TEST_DATABASE_URL", "x"),
        ("STATIONMASTER_BENCH_SECONDS", "x"),
        ("STATION_MASTER", "x"),
        ("DATABASE_URL", "x"),
    ];
    assert!(load_with(None, &environment, Flags::default()).is_ok());
}

#[test]
fn what_a_stronger_source_replaces_is_not_looked_at() {
    let file = "engine = 'steam'\ndatabase_url_file = '/nowhere'";
    let loaded = load_with(
        Some(file),
        &[],
        set(&["engine=embedded", "database_url=postgres://db/main"]),
    );
    assert!(loaded.is_ok());
}

#[test]
fn an_empty_value_takes_an_optional_setting_away() {
    let loaded = right(load_with(
        Some("server_name = 'north'"),
        &[("STATIONMASTER_SERVER_NAME", "")],
        Flags::default(),
    ));
    assert_eq!(loaded.config.server_name, None);
    assert!(!loaded.config.server_name().is_empty());
    assert_eq!(value(&loaded, "server_name").value, None);
}

#[test]
fn a_lane_that_is_switched_off_has_no_settings() {
    assert!(
        right(from_set(&["executions.enabled=false"]))
            .config
            .executions()
            .is_none()
    );
}

#[test]
fn every_field_follows_its_setting() {
    let loaded = right(from_set(&[
        "migrate_at_start=false",
        "log.format=json",
        "alarms.router_url=https://router/wake",
        "alarms.allow_targets=hooks.internal, 10.0.0.0/8",
        "dev.data_dir=data",
        "dev.postgres_bin=bin",
        "dev.example=false",
        "shutdown_timeout=1m",
        "executions.retention=1h",
        "executions.retry_cap=2m",
        "dispatchers.projects=shop/default",
        "dispatchers.webhook_url=https://tower/incidents",
    ]));
    let Config {
        migrate_at_start,
        log,
        alarms,
        dev,
        shutdown_timeout,
        executions,
        dispatchers,
        webhook_url,
        ..
    } = loaded.config;
    assert_eq!(dispatchers.projects, [("shop".to_owned(), "default".to_owned())]);
    assert_eq!(webhook_url.as_deref(), Some("https://tower/incidents"));
    assert!(!migrate_at_start && !dev.example);
    assert_eq!(log.format, LogFormat::Json);
    assert_eq!(alarms.router_url.unwrap().as_str(), "https://router/wake");
    assert_eq!(alarms.allow_targets.len(), 2);
    assert_eq!(
        (dev.data_dir, dev.postgres_bin),
        (Some("data".into()), Some("bin".into()))
    );
    assert_eq!(shutdown_timeout, Duration::from_mins(1));
    assert_eq!(
        (executions.retention, executions.retry.cap),
        (Duration::from_hours(1), Duration::from_mins(2))
    );
}
