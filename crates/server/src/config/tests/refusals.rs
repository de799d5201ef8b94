//! What is told about words that are wrong.

use std::path::Path;

use super::*;

#[test]
fn secrets_are_hidden_in_complaints() {
    let file = "database_url = 'mysql://ann:s3cret@db'\n[temporal]\napi_key = \"s3cret\\u0007\"\n";
    let wrong = load_with(Some(file), &[], set(&["s3cret"])).err().unwrap();
    assert_eq!(wrong.len(), 3);
    let broken = complaint(load_with(
        Some("\n\ndatabase_url = \"postgres://ann:s3cret@db\n"),
        &[],
        Flags::default(),
    ));
    assert!(broken.problem.starts_with("line 3 is not TOML"), "{broken}");
    for complaint in wrong.iter().chain([&broken]) {
        assert!(!complaint.to_string().contains("s3cret"), "{complaint}");
    }
}

#[test]
fn unknown_names_are_refused_with_what_may_have_been_meant() {
    for (key, meant) in [
        ("executions.batchsize", "executions.batch_size"),
        ("execution.batch_size", "executions.batch_size"),
        ("poll_interval", "executions.poll_interval"),
        ("data_base_url", "database_url"),
        ("lissten", "listen"),
    ] {
        let wrong = complaint(from_set(&[&format!("{key}=1")]));
        assert_eq!(
            (wrong.setting.as_str(), wrong.remedy),
            (key, format!("Did you mean {meant}?"))
        );
    }
    let variable = [("STATIONMASTER_EXECUTIONS_BATCH_SIZE", "1")];
    let wrong = complaint(load_with(None, &variable, Flags::default()));
    assert_eq!(
        wrong.origin,
        "environment variable STATIONMASTER_EXECUTIONS_BATCH_SIZE"
    );
    assert_eq!(wrong.remedy, "Did you mean STATIONMASTER_EXECUTIONS__BATCH_SIZE?");
    let file = complaint(load_with(
        Some("[executoins]\nenabled = true"),
        &[],
        Flags::default(),
    ));
    assert_eq!(file.remedy, "Did you mean executions.enabled?");
    let far = complaint(from_set(&["colour=red"]));
    assert!(far.remedy.starts_with("Take it out"), "{far}");
}

#[test]
fn values_that_cannot_be_are_refused_with_what_can() {
    for (pair, remedy) in [
        (
            "database_url=mysql://db",
            "postgres://user:password@host:5432/database",
        ),
        ("database_pool=1", "a number from 2 to 500; the default is 16"),
        ("migrate_at_start=perhaps", "true or false"),
        ("engine=steam", "embedded or temporal"),
        ("listen=localhost:7373", "an IP address and a port"),
        ("http.body_limit=1", "1024 to 67108864"),
        ("http.rate_limit=0", "1 to 1000000"),
        ("http.event_retention=1", "as in 250ms, 5s"),
        ("shutdown_timeout=0s", "a duration"),
        ("server_name=\u{7}", "a name"),
        ("log.format=xml", "pretty or json"),
        ("log.level=a=b=c", "a level"),
        ("temporal.address=", "host:port"),
        ("executions.batch_size=0", "1 to 10000"),
        ("executions.batch_size=10001", "1 to 10000"),
        ("executions.start_concurrency=0", "1 to 10000"),
        ("executions.max_attempts=0", "1 to 1000"),
        ("executions.max_recoveries=0", "1 to 1000"),
        ("executions.poll_interval=5", "as in 250ms, 5s"),
        ("executions.close_interval=0ms", "a duration"),
        ("executions.task_queue=", "a name"),
        ("heartbeats=smoke", "postgres or redis"),
        ("dispatchers.projects=shop", "project/task-queue"),
        ("dispatchers.batch_size=0", "1 to 5000"),
        ("dispatchers.continue_after=10", "50 to 40000"),
        ("dispatchers.webhook_url=ftp://tower", "http: or https:"),
        ("dispatchers.webhook_secret=short", "whsec_<base64>"),
        ("redis_url=http://cache", "redis://"),
        ("alarms.router_url=ftp://router", "http: or https:"),
        ("alarms.tick=11s", "10ms to 10s"),
        ("alarms.batch_size=0", "1 to 10000"),
        ("alarms.max_failures=101", "1 to 100"),
        ("alarms.allow_targets=10.0.0.0/40", "networks like 10.0.0.0/8"),
        ("alarms.signing_secret=s3cret", "whsec_"),
    ] {
        let wrong = complaint(from_set(&[pair]));
        let key = pair.split('=').next().unwrap();
        assert_eq!(
            (wrong.setting.as_str(), wrong.origin),
            (key, format!("flag --set {key}"))
        );
        assert!(wrong.remedy.contains(remedy), "{pair}: {}", wrong.remedy);
    }
    let open = complaint(from_set(&["listen=0.0.0.0:1", "http.open=true"]));
    assert!(open.problem.contains("could do everything"), "{}", open.problem);
    let half = complaint(from_set(&["http.tls_cert=cert.pem"]));
    assert!(half.problem.contains("only work together"), "{}", half.problem);
}

#[test]
fn values_that_cannot_work_together_are_refused() {
    for pairs in [
        &["executions.claim_lease=14s"][..],
        &["executions.start_timeout=26s"],
        &["executions.retry_base=2m"],
        &["alarms.lease=34s"],
        &["alarms.delivery_timeout=116s"],
        &["alarms.per_target=513"],
        &["alarms.previous_signing_secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        &["redis_url=rediss://cache", "redis_tls_cert_file=c.pem"],
        &["redis_url=redis://cache", "redis_tls_ca_file=ca.pem"],
        &["temporal.tls_cert_file=c.pem"],
        &["temporal.tls_key_file=k.pem"],
        &["temporal.tls_server_name=temporal"],
        &["heartbeats=redis"],
        &[
            "dispatchers.lease=30s",
            "dispatchers.stale_after=60s",
            "dispatchers.heartbeat_interval=30s",
        ],
        &["dispatchers.lease=21s"],
        &[
            "dispatchers.heartbeat_interval=12s",
            "dispatchers.stale_after=23s",
        ],
        &["dispatchers.stale_after=99s"],
        &["dispatchers.scan_interval=94s"],
        &["dispatchers.second_look=81s"],
        &["dispatchers.cleanup_timeout=84s"],
        &["dispatchers.sla=41s"],
        &["dispatchers.webhook_secret=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    ] {
        let wrong = complaint(from_set(pairs));
        let key = pairs.last().unwrap().split('=').next().unwrap();
        assert!(
            wrong.setting.contains(key) && wrong.origin.contains("--set"),
            "{wrong}"
        );
    }
    for pairs in [
        &["executions.claim_lease=15s"][..],
        &["executions.start_timeout=25s"],
        &["heartbeats=redis", "redis_url=rediss://cache"],
        &["redis_url=rediss://cache", "redis_tls_ca_file=ca.pem"],
        &["dispatchers.stale_after=98s"],
        &["dispatchers.sla=42s"],
        &["dispatchers.lease=20s"],
        &["temporal.tls_ca_file=ca.pem", "temporal.tls_server_name=temporal"],
        &[
            "temporal.tls=true",
            "temporal.tls_cert_file=c.pem",
            "temporal.tls_key_file=k.pem",
        ],
    ] {
        assert!(from_set(pairs).is_ok(), "{pairs:?}");
    }
}

#[test]
fn a_relation_with_an_unreadable_side_is_not_complained_about() {
    let wrong = complaint(from_set(&[
        "executions.claim_lease=12s",
        "executions.start_timeout=soon",
    ]));
    assert_eq!(wrong.setting, "executions.start_timeout");
}

#[test]
fn all_complaints_are_told_together() {
    let file = "engine = 'steam'\ncolour = 'red'\n[executions]\nbatch_size = [1]\n";
    let environment = [
        ("STATIONMASTER_LISTEN", "somewhere:1"),
        ("STATIONMASTER_SHOUT", "yes"),
    ];
    let flags = set(&["executions.retry_base=1h", "database_pool=0", "nonsense"]);
    let wrong = load_with(Some(file), &environment, flags).err().unwrap();
    let mut named: Vec<&str> = wrong.iter().map(|complaint| complaint.setting.as_str()).collect();
    named.sort_unstable();
    let expected = [
        "--set",
        "STATIONMASTER_SHOUT",
        "colour",
        "database_pool",
        "engine",
        "executions.batch_size",
        "executions.retry_base, executions.retry_cap",
        "listen",
    ];
    assert_eq!(named, expected);
}

#[test]
fn a_setting_given_twice_by_one_source_is_refused() {
    let mut flags = set(&["listen=127.0.0.1:2"]);
    flags.listen = Some("127.0.0.1:1".to_owned());
    let wrong = complaint(load_with(None, &[], flags));
    assert_eq!(
        (wrong.setting.as_str(), wrong.problem.as_str()),
        ("listen", "it is given twice")
    );
    let environment = [
        ("STATIONMASTER_REDIS_URL", "redis://a"),
        ("STATIONMASTER_REDIS_URL_FILE", "b"),
    ];
    assert!(load_with(None, &environment, Flags::default()).is_err());
}

#[test]
fn a_file_that_cannot_be_read_is_refused() {
    let flags = Flags {
        config: Some(Path::new("/nowhere/stationmaster.toml").to_owned()),
        ..Flags::default()
    };
    let wrong = complaint(load_from(&flags, std::iter::empty()).map_err(|complaints| complaints.0));
    assert!(wrong.origin.contains("/nowhere/stationmaster.toml"), "{wrong}");
}
