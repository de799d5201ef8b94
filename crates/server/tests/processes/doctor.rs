//! The doctor beside a real Temporal and a real Redis: alive, and each of them gone.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::Connection as _;

use crate::support::{
    DevServer, ENDLESS, Launch, Redis, Temporal, TestDatabase, command, eventually, free_port,
};

/// Where everything is.
struct Site {
    database: TestDatabase,
    temporal: String,
    namespace: String,
    redis: String,
}

impl Site {
    fn launch(&self) -> Launch {
        Launch::on(&self.database)
            .temporal(&self.temporal, &self.namespace)
            .with("HEARTBEATS", "redis")
            .with("REDIS_URL", &self.redis)
    }

    /// What the doctor says; its exit code must be that of its report.
    async fn examine(&self) -> Value {
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_stationmaster"));
        doctor
            .args(["doctor", "--json"])
            .env_clear()
            .env("STATIONMASTER_DATABASE_URL", &self.database.url)
            .env("STATIONMASTER_ENGINE", "temporal")
            .env("STATIONMASTER_TEMPORAL__ADDRESS", &self.temporal)
            .env("STATIONMASTER_TEMPORAL__NAMESPACE", &self.namespace)
            .env("STATIONMASTER_HEARTBEATS", "redis")
            .env("STATIONMASTER_REDIS_URL", &self.redis);
        let began = Instant::now();
        let output = tokio::task::spawn_blocking(move || doctor.output().unwrap())
            .await
            .unwrap();
        println!("examined in {:?}", began.elapsed());
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let problem = i32::from(report["worst"] == "problem");
        assert_eq!(output.status.code(), Some(problem), "{report:#}");
        report
    }
}

/// How bad it is, and what was seen.
fn finding(report: &Value, id: &str) -> (String, String) {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|finding| finding["id"] == id);
    let found = found.unwrap_or_else(|| panic!("no {id} in {report:#}"));
    let word = |field: &str| found[field].as_str().unwrap().to_owned();
    (word("severity"), word("seen"))
}

/// Each finding is of this severity, and says this.
#[track_caller]
fn assert_found(report: &Value, expected: &[(&str, &str, &str)]) {
    for (id, severity, words) in expected {
        let (found, seen) = finding(report, id);
        assert_eq!(&found, severity, "{id}: {report:#}");
        assert!(seen.contains(words), "{id}: {seen}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporal_and_redis_are_told_with_their_versions_owners_and_clocks_and_each_is_missed_alone() {
    let (temporal_port, redis_port) = (free_port(), free_port());
    let server = DevServer::start(temporal_port, None);
    let redis = Redis::start(redis_port);
    let temporal = Temporal::of(&server).await;
    let site = Site {
        database: TestDatabase::new().await,
        temporal: temporal.address.clone(),
        namespace: temporal.namespace.clone(),
        redis: format!("redis://127.0.0.1:{redis_port}/0"),
    };
    let running = site.launch().start_ready().await;
    let workflow = site.database.workflow(1, ENDLESS).await;
    site.database.enqueue(workflow, 1).await;
    site.database.until_count("RUNNING", 1).await;
    command(
        &site.database,
        &["signals", "send", "shop", "order.paid", "--id", "s"],
    );
    eventually("somebody owns the dispatcher", async || {
        command(&site.database, &["dispatchers", "list"])[0]["state"] == "owned"
    })
    .await;

    let report = site.examine().await;
    assert_found(
        &report,
        &[
            ("engine.reachable", "ok", "Temporal 1."),
            ("engine.retention", "ok", "remembers closed runs for"),
            ("engine.record", "ok", "it is the one on record"),
            ("engine.clock", "ok", "at most"),
            ("redis.reachable", "ok", "heartbeats are kept there"),
            ("servers.alive", "ok", "1: "),
            ("dispatchers.owners", "ok", "dispatcher-shop-default by "),
            ("dispatchers.owners", "ok", "(epoch 1)"),
            ("database.clock", "ok", "of this machine"),
        ],
    );

    drop(redis);
    let report = site.examine().await;
    assert_found(
        &report,
        &[
            ("redis.reachable", "problem", ""),
            ("engine.reachable", "ok", "Temporal 1."),
            ("dispatchers.owners", "ok", "(epoch 1)"),
        ],
    );

    let _redis = Redis::start(redis_port);
    drop(server);
    let report = site.examine().await;
    assert_found(
        &report,
        &[
            ("engine.reachable", "problem", ""),
            ("redis.reachable", "ok", "Redis "),
            ("database.schema", "ok", ""),
        ],
    );
    drop(running);

    // One that knows nothing stands in its place.
    let server = DevServer::start(temporal_port, None);
    let _emptied = Temporal::named(&server.address, &site.namespace).await;
    let report = site.examine().await;
    assert_found(&report, &[("engine.record", "problem", "on record is")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_that_is_not_there_is_told() {
    let temporal = Temporal::shared().await;
    let site = Site {
        database: TestDatabase::new().await,
        temporal: temporal.address.clone(),
        namespace: "nowhere".to_owned(),
        redis: "redis://127.0.0.1:1".to_owned(),
    };
    let report = site.examine().await;
    assert_found(&report, &[("engine.reachable", "problem", "nowhere")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_somebody_has_locked_holds_up_no_other_look() {
    let temporal = Temporal::shared().await;
    let site = Site {
        database: TestDatabase::new().await,
        temporal: temporal.address.clone(),
        namespace: temporal.namespace.clone(),
        redis: "redis://127.0.0.1:1".to_owned(),
    };
    let mut connection = sqlx::PgConnection::connect(&site.database.url).await.unwrap();
    let mut held = connection.begin().await.unwrap();
    sqlx::query("lock table stationmaster_internal.servers in access exclusive mode")
        .execute(&mut *held)
        .await
        .unwrap();
    let began = Instant::now();
    let report = site.examine().await;
    // It takes four seconds at most, and a busy machine some more; one look after the other would take far longer.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_found(
        &report,
        &[
            ("servers.alive", "warning", "no answer"),
            ("dispatchers.owners", "warning", "no answer"),
            ("database.rights", "ok", ""),
            ("locks.table", "ok", ""),
            ("engine.reachable", "ok", "Temporal 1."),
        ],
    );
    held.rollback().await.unwrap();
}
