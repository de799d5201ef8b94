//! Every metric that is documented is told, moves when what it counts happens, and no other is told.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::scene::{Scene, Values, fed, repository_file, request, sum};
use crate::support::{eventually, setting};

/// What one healthy server on the embedded engine cannot bring about, and which test sees it move.
const ELSEWHERE: [(&str, &str); 23] = [
    ("queue_stale_recovery_count", "core: executions/recovery.rs"),
    (
        "stationmaster_queue_items_released_total",
        "core: executions/outage.rs",
    ),
    (
        "stationmaster_executions_reconciled_total",
        "core: executions/reconcile.rs",
    ),
    ("stationmaster_executions_reset_total", "processes/life.rs"),
    ("stationmaster_stray_runs", "processes/failover.rs"),
    (
        "stationmaster_stale_writes_refused_total",
        "core: executions/late_writes.rs",
    ),
    (
        "stationmaster_capacity_counters_mended_total",
        "core: executions/housekeeping.rs",
    ),
    ("stationmaster_engine_breaker_open", "core: executions/outage.rs"),
    ("stationmaster_task_queues_without_workers", "processes/life.rs"),
    ("stationmaster_executions_without_workers", "processes/life.rs"),
    ("stationmaster_alarms_released_total", "core: alarms/isolation.rs"),
    ("stationmaster_alarms_missed_total", "core: alarms/misfire.rs"),
    ("stationmaster_alarms_recovered_total", "processes/alarm_kills.rs"),
    (
        "stationmaster_alarms_auto_paused_total",
        "core: alarms/answers.rs",
    ),
    ("stationmaster_alarms_failing", "core: alarms/answers.rs"),
    ("stationmaster_alarm_targets_open", "core: alarms/isolation.rs"),
    ("dispatcher_stale", "dispatchers/leftovers.rs"),
    ("stationmaster_dispatchers_duplicate", "dispatchers/zombies.rs"),
    ("dispatcher_terminations_total", "dispatchers/leftovers.rs"),
    ("dispatcher_cleanup_errors_total", "dispatchers/leftovers.rs"),
    (
        "stationmaster_dispatcher_evictions_total",
        "core: dispatchers/ownership.rs",
    ),
    ("stationmaster_locks_lost_total", "core: locks/keep_alive.rs"),
    ("shedlock_acquisition_failures", "core: locks/exclusive.rs"),
];

/// What is something only while nobody does the work: the test below sees them.
const WAITING: [&str; 8] = [
    "stationmaster_signals_inbox_depth",
    "stationmaster_signals_inbox_oldest_age_seconds",
    "stationmaster_queue_runnable_age_seconds",
    "stationmaster_alarm_oldest_due_seconds",
    "stationmaster_dispatchers_unattended",
    "stationmaster_database_lock_waits",
    "stationmaster_database_oldest_transaction_seconds",
    "stationmaster_database_horizon_transactions",
];

/// What is told only by a listener that shows a certificate: a test of its module sees it.
const CERTIFICATE: &str = "stationmaster_certificate_expires_timestamp_seconds";

/// Seen at the end, by a counter that was tampered with.
const OVERDRAWN: &str = "stationmaster_workspaces_overdrawn";

/// The rows of the page: name, kind, labels.
fn documented() -> Vec<(String, String, String)> {
    let page = repository_file("docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let plain = |cell: &str| cell.replace('`', "");
        (plain(cells[1]), plain(cells[2]), plain(cells[3]))
    })
    .collect()
}

/// Has it counted, or does it tell something that is not nought?
fn has_moved(values: &Values, name: &str, kind: &str) -> bool {
    let sample = if kind == "histogram" {
        format!("{name}_count")
    } else {
        name.to_owned()
    };
    let moved = sum(values, &sample);
    moved.is_finite() && moved != 0.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_documented_metric_moves_and_none_is_undocumented() {
    let scene = Scene::new().await;
    let quiet = scene.values().await;
    scene.run_executions().await;
    scene.fire_alarms().await;
    scene.send_signals().await;
    scene.use_locks().await;
    scene.operate().await;

    let at = |values: &Values, name: &str| values.get(name).copied().unwrap_or(f64::NAN);
    let is = |values: &Values, name: &str, many: f64| (at(values, name) - many).abs() < 0.5;
    // Seven short ones, and two by signals; three that fail by themselves, two that are refused, one whose workflow is gone.
    scene
        .reads(&[
            (
                r#"stationmaster_executions_finished_total{status="COMPLETED"}"#,
                9.0,
            ),
            (r#"queue_items_failed_total{reason="refused"}"#, 2.0),
            (r#"queue_items_failed_total{reason="definition_gone"}"#, 1.0),
            (r#"stationmaster_executions_finished_total{status="FAILED"}"#, 6.0),
            // Two and one are active still.
            ("queue_items_dispatched_total", 9.0 + 3.0 + 3.0),
            (r#"stationmaster_alarm_wakes_total{class="accepted"}"#, 1.0),
            (r#"stationmaster_alarms_failed_total{class="refused"}"#, 1.0),
            ("stationmaster_signals_routed_total", 2.0),
            (
                r#"stationmaster_signals_dead_total{reason="unknown_signal"}"#,
                1.0,
            ),
        ])
        .await;
    scene
        .until("the gauges tell how it stands", |values| {
            is(values, "stationmaster_executions_active", 3.0)
                && is(values, "stationmaster_queue_depth", 3.0)
                && is(values, "stationmaster_workspaces_full", 1.0)
                && is(values, r#"stationmaster_servers{state="live"}"#, 1.0)
                && is(values, r#"stationmaster_dispatchers{state="owned"}"#, 1.0)
                && is(values, "stationmaster_ready", 1.0)
                && is(values, "stationmaster_queue_items_retried_total", 4.0)
                && is(values, "stationmaster_lock_acquisitions_skipped_total", 1.0)
                && at(values, "stationmaster_clock_skew_seconds").abs() < 5.0
                && at(values, "stationmaster_queue_oldest_age_seconds") > 0.0
                && at(values, "stationmaster_queue_runnable_age_seconds") < 0.5
                && is(values, "dispatcher_stale", 0.0)
                && sum(values, "stationmaster_supervisor_looks_total") > 0.5
                && is(values, r#"stationmaster_http_requests_total{route="/v1/locks/{name}",method="POST",status="409"}"#, 1.0)
        })
        .await;
    // A workspace that left more to do was counted once for each claim that did so; the one whose last slot was taken was not.
    let values = scene.values().await;
    assert!(is(&values, "queue_items_at_capacity_total", 2.0), "{values:#?}");
    let batches = at(&values, "queue_processing_duration_seconds_count");
    assert!(batches > 0.5 && is(&values, "queue_processing_batch_size_count", batches));

    let documented = documented();
    let (mut still, mut last) = (Vec::new(), values);
    eventually("everything that is documented has moved", async || {
        last = scene.values().await;
        let unmoved = documented.iter().filter(|(name, kind, _)| {
            let elsewhere = ELSEWHERE.iter().any(|(other, _)| other == name);
            let special =
                WAITING.contains(&name.as_str()) || [CERTIFICATE, OVERDRAWN].contains(&name.as_str());
            !elsewhere && !special && !has_moved(&last, name, kind)
        });
        still = unmoved.map(|(name, _, _)| name.clone()).collect();
        if !still.is_empty() {
            println!("not yet: {still:?}");
        }
        still.is_empty()
    })
    .await;
    told_is_documented(&scene.text().await, &documented);
    scene
        .alarms
        .run("update stationmaster_internal.workspace_capacity set active = active - 1 where active = 2")
        .await;
    scene
        .until("a counter that says too little is noticed", |values| {
            is(values, OVERDRAWN, 1.0)
        })
        .await;
    assert!(
        quiet
            .keys()
            .all(|sample| !sample.contains("workspace=\"(others)\"")),
        "nobody is left over"
    );

    // Prometheus' tool has nothing to say, but for the one name that ends like a part of a histogram and is not ours to choose.
    let (_, said) = fed(
        &setting("STATIONMASTER_TEST_PROMTOOL"),
        &["check", "metrics"],
        &scene.text().await,
    );
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("queue_stale_recovery_count "))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Whatever is told stands in the page, with its kind and its labels.
fn told_is_documented(text: &str, documented: &[(String, String, String)]) {
    let mut family = ("", BTreeSet::new());
    for line in text.lines().filter(|line| !line.starts_with("# HELP ")) {
        let Some(head) = line.strip_prefix("# TYPE ") else {
            for label in labels(line) {
                assert!(
                    family.1.contains(label),
                    "{} has an undocumented label {label}: {line}",
                    family.0
                );
            }
            continue;
        };
        let (name, kind) = head.split_once(' ').unwrap();
        let row = documented.iter().find(|(other, _, _)| other == name);
        let (_, documented_kind, labels) = row.unwrap_or_else(|| panic!("{name} is not in docs/metrics.md"));
        assert_eq!(kind, documented_kind, "{name}");
        let le = (kind == "histogram").then_some("le");
        family = (name, labels.split(", ").chain(le).collect());
    }
}

/// The names of a sample's labels.
fn labels(sample: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let Some((_, mut rest)) = sample.split_once('{') else {
        return names;
    };
    while let Some((name, value)) = rest.split_once("=\"") {
        names.push(name.trim_start_matches(','));
        let end = value.replace("\\\"", "..").find('"').unwrap();
        rest = &value[end + 1..];
    }
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrapes_do_not_pile_up_behind_a_table_that_somebody_keeps_locked() {
    let scene = Scene::idle().await;
    let lock = scene
        .database()
        .lock("lock table stationmaster_internal.executions_active in access exclusive mode")
        .await;
    let waiting = "select count(*) from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock' and query like '%for the gauges%'";
    // Each that is not answered within two seconds is given up; PostgreSQL does not know.
    let (begun, mut scrapes, mut most) = (Instant::now(), 0, 0);
    while begun.elapsed() < Duration::from_secs(16) {
        let values = scene.values().await;
        assert!(values["stationmaster_queue_depth"].is_nan());
        most = most.max(scene.database().number(waiting).await);
        scrapes += 1;
    }
    println!("{scrapes} scrapes, at most {most} of them waited at once");
    assert!((1..=4).contains(&most), "{most}");
    lock.rollback().await.unwrap();
    scene
        .until("it is told again", |values| {
            sum(values, "stationmaster_queue_depth") == 0.0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_work_tells_what_waits_for_one_that_would() {
    let scene = Scene::idle().await;
    let database = scene.database();
    let workflow = database.workflow(1, crate::support::ENDLESS).await;
    database.enqueue(workflow, 2).await;
    scene.alarms.now("/never").await;
    scene.send_signals().await;
    // Somebody's snapshot, and somebody who waits for a lock.
    let mut holder = database.pool.begin().await.unwrap();
    for statement in [
        "set transaction isolation level repeatable read",
        "update stationmaster.plans set weight = weight where name = 'FREE'",
    ] {
        sqlx::query(statement).execute(&mut *holder).await.unwrap();
    }
    let pool = database.pool.clone();
    let waiter = tokio::spawn(async move {
        let update = "update stationmaster.plans set weight = weight where name = 'FREE'";
        sqlx::query(update).execute(&pool).await.unwrap();
    });
    scene
        .until("everything that waits is told", |values| {
            let silent: Vec<_> = WAITING
                .iter()
                .filter(|name| {
                    let value = sum(values, name);
                    value.is_nan() || value <= 0.0
                })
                .collect();
            println!("not yet: {silent:?}");
            silent.is_empty() && sum(values, "stationmaster_queue_depth") > 1.5
        })
        .await;
    // Scheduled for later, or in a workspace that is paused: that is no reason to worry.
    holder.rollback().await.unwrap();
    waiter.await.unwrap();
    scene
        .alarms
        .run("update stationmaster.workspaces set paused = true")
        .await;
    scene
        .until("what is paused is not old", |values| {
            sum(values, "stationmaster_queue_oldest_age_seconds") == 0.0
                && sum(values, "stationmaster_queue_runnable_age_seconds") == 0.0
        })
        .await;

    let ask =
        async |accept: &str| request(&scene.address, "GET", "/metrics", "", &[("accept", accept)]).await;
    let (_, head, text) = ask("application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.2").await;
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(
        text.ends_with("# EOF\n") && text.contains("# TYPE queue_items_dispatched counter"),
        "{text}"
    );
    for accept in ["text/plain", "*/*"] {
        let (_, head, text) = ask(accept).await;
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        assert!(
            !text.contains("# EOF") && text.contains("# TYPE queue_items_dispatched_total counter"),
            "{text}"
        );
    }
}
