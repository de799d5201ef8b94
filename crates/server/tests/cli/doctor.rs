//! The doctor: what it sees, how bad it is, and what to do.

use std::io::Read as _;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::served::Served;
use crate::support::{TestDatabase, run};

fn findings(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().unwrap();
    let word = |finding: &'_ Value, field: &str| -> String { finding[field].as_str().unwrap().to_owned() };
    assert_eq!(
        report.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["findings", "worst"]
    );
    for finding in findings {
        for (name, value) in finding.as_object().unwrap() {
            assert!(
                ["id", "severity", "seen", "advice"].contains(&name.as_str()),
                "{finding}"
            );
            assert!(value.is_string(), "{finding}");
        }
        assert!(
            ["ok", "note", "warning", "problem"].contains(&finding["severity"].as_str().unwrap()),
            "{finding}"
        );
        let advised = finding["advice"].is_string();
        assert_eq!(advised, word(finding, "severity") != "ok", "{finding}");
        assert!(!word(finding, "seen").is_empty(), "{finding}");
    }
    findings
        .iter()
        .map(|finding| {
            (
                finding["id"].as_str().unwrap(),
                finding["severity"].as_str().unwrap(),
            )
        })
        .collect()
}

/// The report of a doctor. The databases of the tests are quick and not durable, which it finds.
fn examine(database: &TestDatabase, arguments: &[&str]) -> Value {
    let ended = database.run(&[&["doctor", "--json"], arguments].concat());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let problem = findings(&report)
        .iter()
        .any(|(_, severity)| *severity == "problem");
    assert_eq!(
        (ended.code, report["worst"] == "problem"),
        (i32::from(problem), problem),
        "{report:#}"
    );
    assert_eq!(severity(&report, "database.durability"), "problem", "{report:#}");
    report
}

fn severity<'a>(report: &'a Value, id: &str) -> &'a str {
    let found = findings(report).into_iter().find(|(known, _)| *known == id);
    found.unwrap_or_else(|| panic!("no {id} in {report}")).1
}

#[test]
fn a_database_with_a_server_is_in_order() {
    let served = Served::start();
    // That its engine answers is on record with the heartbeat after the one by which it came.
    let begun = Instant::now();
    let report = loop {
        let report = examine(&served.database, &[]);
        if findings(&report).iter().all(|(id, _)| *id != "servers.engine") {
            break report;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{report:#}");
    };
    for id in [
        "database.reachable",
        "database.schema",
        "database.version",
        "database.connections",
        "database.clock",
        "database.horizon",
        "database.rights",
        "database.wall",
        "database.dead_rows",
        "servers.alive",
        "servers.duties",
        "servers.claims",
        "dispatchers.owners",
        "locks.table",
        "engine.reachable",
        "redis.reachable",
        "wakes.egress",
        "zones.version",
    ] {
        assert_eq!(severity(&report, id), "ok", "{id}: {report:#}");
    }
    let said = served.database.run(&["doctor"]).stdout;
    assert!(
        said.starts_with("STATE") && said.contains("zone data 20"),
        "{said}"
    );
    let quiet = examine(&served.database, &["--quiet"]);
    assert!(
        findings(&quiet).iter().all(|(_, severity)| *severity != "ok"),
        "{quiet}"
    );

    let through = served.run_as(&served.token, &["doctor", "--json"]);
    assert_eq!(
        through.code, 1,
        "the databases of the tests are not durable: {}",
        through.stderr
    );
    let through: Value = serde_json::from_str(&through.stdout).unwrap();
    let ids =
        |report: &Value| -> Vec<String> { findings(report).iter().map(|(id, _)| (*id).to_owned()).collect() };
    let (ready, rest) = (ids(&through)[..2].to_vec(), ids(&through)[2..].to_vec());
    assert_eq!(ready, ["server.ready", "api.token"], "{through:#}");
    assert_eq!(rest, ids(&report), "a server looks at what the command looks at");
}

#[test]
fn what_is_wrong_is_told_with_what_to_do_and_exit_code_1() {
    let database = TestDatabase::empty();
    let without = database.run(&["doctor", "--json"]);
    assert_eq!(without.code, 1, "{}", without.stderr);
    let report: Value = serde_json::from_str(&without.stdout).unwrap();
    assert_eq!(severity(&report, "database.schema"), "problem");
    assert!(
        without.stdout.contains("stationmaster migrate"),
        "{}",
        without.stdout
    );
    assert_eq!(without.stderr, "", "everything is in the report");

    database.done(&["migrate"]);
    let report = examine(&database, &[]);
    assert_eq!(severity(&report, "servers.alive"), "warning", "there is none");

    let away = [
        ("STATIONMASTER_DATABASE_URL", "postgres://127.0.0.1:1/x"),
        ("STATIONMASTER_ENGINE", "temporal"),
        ("STATIONMASTER_TEMPORAL__ADDRESS", "127.0.0.1:1"),
        ("STATIONMASTER_REDIS_URL", "redis://:planted@127.0.0.1:1/0"),
        (
            "STATIONMASTER_ALARMS__ROUTER_URL",
            "http://127.0.0.1:1/internal/wake",
        ),
    ];
    let ended = run(&["doctor", "--json"], &away, "");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    for (id, expected) in [
        ("database.reachable", "problem"),
        ("engine.reachable", "problem"),
        ("redis.reachable", "warning"),
        ("wakes.egress", "warning"),
    ] {
        assert_eq!(severity(&report, id), expected, "{report:#}");
    }
    assert!(!ended.stdout.contains("planted"), "{}", ended.stdout);
}

#[test]
fn whoever_does_not_answer_holds_nobody_up() {
    // Takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    std::thread::spawn(move || {
        let held: Vec<_> = silent.incoming().collect();
        drop(held);
    });
    let urls = [
        format!("postgres://{address}/x"),
        address.to_string(),
        format!("redis://{address}"),
    ];
    let environment = [
        ("STATIONMASTER_DATABASE_URL", urls[0].as_str()),
        ("STATIONMASTER_ENGINE", "temporal"),
        ("STATIONMASTER_TEMPORAL__ADDRESS", &urls[1]),
        ("STATIONMASTER_REDIS_URL", &urls[2]),
    ];
    let began = std::time::Instant::now();
    let mut child = crate::support::binary(&["doctor", "--json"], &environment)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    // Four seconds at most, and a busy machine some more.
    println!("over after {:?}", began.elapsed());
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(severity(&report, "database.reachable"), "problem");
    assert_ne!(severity(&report, "redis.reachable"), "ok");
    assert_ne!(severity(&report, "engine.reachable"), "ok");
}

#[test]
fn the_settings_of_the_database_are_told_and_not_those_of_our_own_sessions() {
    let database = TestDatabase::migrated();
    let seen = |report: &Value| -> String {
        let findings = report["findings"].as_array().unwrap();
        let id = "database.idle_in_transaction";
        let one = findings.iter().find(|finding| finding["id"] == id);
        one.unwrap()["seen"].as_str().unwrap().to_owned()
    };
    let forever = examine(&database, &[]);
    assert_eq!(
        severity(&forever, "database.idle_in_transaction"),
        "note",
        "{forever:#}"
    );
    let name = database.url().rsplit('/').next().unwrap().to_owned();
    let name = name.split('?').next().unwrap();
    database.execute(&format!(
        "alter database {name} set idle_in_transaction_session_timeout = '7min'"
    ));
    let bounded = examine(&database, &[]);
    assert_eq!(severity(&bounded, "database.idle_in_transaction"), "ok");
    assert!(seen(&bounded).contains("420 s"), "{}", seen(&bounded));
}

#[test]
fn a_transaction_that_is_held_open_is_found() {
    let database = TestDatabase::migrated();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use sqlx::Connection as _;
        let mut connection = sqlx::PgConnection::connect(&database.url()).await.unwrap();
        let mut held = connection.begin().await.unwrap();
        sqlx::query("set transaction isolation level repeatable read")
            .execute(&mut *held)
            .await
            .unwrap();
        sqlx::query("select count(*) from stationmaster.plans")
            .execute(&mut *held)
            .await
            .unwrap();
        let pid: i32 = sqlx::query_scalar("select pg_backend_pid()")
            .fetch_one(&mut *held)
            .await
            .unwrap();
        let report = examine(&database, &[]);
        let horizon = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|finding| finding["id"] == "database.horizon");
        let seen = horizon.unwrap()["seen"].as_str().unwrap();
        // Other tests of this server may hold an older one.
        assert!(
            seen.contains("session") && seen.contains(" transactions"),
            "{seen}, ours is {pid}"
        );
        held.rollback().await.unwrap();
    });
}
