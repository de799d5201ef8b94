//! The events of the designs behind Stationmaster, in the log of a real server: each at its level, with its fields.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::scene::{Scene, request};
use crate::support::receiver::{Receiver, Reply};
use crate::support::{Alarms, Launch, PATIENCE, eventually, free_port};

/// Level, how the line begins, and the fields that it must have.
type Event = (&'static str, &'static str, &'static [&'static str]);

/// Those of executions, of dispatchers and of alarms. What only Temporal leads to is asked for where dispatchers run there.
const EVENTS: [Event; 33] = [
    ("DEBUG", "Processing ", &["items"]),
    ("INFO", "Workspace at capacity", &["workspace", "active", "limit"]),
    (
        "INFO",
        "Dispatching queue item",
        &["item", "execution", "workspace", "workflow"],
    ),
    (
        "INFO",
        "Dispatched execution",
        &["item", "execution", "workspace"],
    ),
    (
        "ERROR",
        "Failed to start Temporal workflow",
        &["item", "execution", "attempt", "error"],
    ),
    (
        "ERROR",
        "Error processing queue item",
        &["item", "error", "attempt"],
    ),
    ("WARN", "Workflow definition not found", &["workspace", "item"]),
    ("WARN", "Workspace not found", &["workspace"]),
    ("INFO", "Stationmaster is ready", &["address", "server"]),
    ("INFO", "Stopping", &[]),
    ("INFO", "Dispatcher started", &["dispatcher", "epoch"]),
    ("WARN", "Execution not found for retry", &["item"]),
    ("INFO", "Recovered ", &["items", "requeued"]),
    (
        "WARN",
        "A server is gone; nothing is left in its hands",
        &["server", "name"],
    ),
    (
        "INFO",
        "Dispatcher taken over",
        &["dispatcher", "epoch", "former", "vacant_for"],
    ),
    (
        "INFO",
        "Dispatcher is back",
        &["dispatcher", "epoch", "run", "seconds"],
    ),
    (
        "WARN",
        "Evicted servers that were not heard of",
        &["dispatcher", "servers"],
    ),
    ("INFO", "Handed a dispatcher over", &["dispatcher"]),
    ("DEBUG", "Routed signals", &["dispatcher", "routed", "dead"]),
    (
        "WARN",
        "Lost a dispatcher: its lease had run out",
        &["dispatcher", "epoch"],
    ),
    (
        "ERROR",
        "The supervisor could not clean up; it tries again",
        &["dispatcher", "act", "error"],
    ),
    (
        "INFO",
        "Removed a heartbeat that was left behind",
        &["dispatcher", "epoch", "server"],
    ),
    ("DEBUG", "Firing ", &["occurrences"]),
    ("INFO", "Alarm fired", &["alarm", "scheduled_for", "attempt"]),
    (
        "ERROR",
        "Alarm failed",
        &["alarm", "scheduled_for", "attempt", "error"],
    ),
    (
        "WARN",
        "Alarm not accepted; it will be tried again",
        &["alarm", "scheduled_for", "attempt", "error", "retry_in"],
    ),
    (
        "WARN",
        "Occurrence missed",
        &["alarm", "scheduled_for", "occurrences", "reason"],
    ),
    ("INFO", "Recovered ", &["occurrences"]),
    (
        "ERROR",
        "Alarm paused: its occurrences keep failing, or its target is gone",
        &["alarm"],
    ),
    ("ERROR", "Alarm cannot fire any more", &["alarm", "error"]),
    (
        "ERROR",
        "A wake target does not answer; its wakes are held back",
        &["target_origin", "error"],
    ),
    ("INFO", "A wake target answers again", &["target_origin"]),
    ("WARN", "The driver of PostgreSQL warns", &["library", "said"]),
];

/// What is said only at the end.
const LAST: [&str; 2] = ["Stopping", "Handed a dispatcher over"];

/// Servers that notice soon that one of them is gone.
fn quick(alarms: &Alarms) -> Launch {
    alarms
        .launch()
        .with("HTTP__OPEN", "true")
        .with("LOG__LEVEL", "info,stationmaster_core=debug")
        .with("EXECUTIONS__RETRY_BASE", "10ms")
        .with("EXECUTIONS__RETRY_CAP", "20ms")
        .with("DISPATCHERS__LEASE", "3s")
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .with("DISPATCHERS__STALE_AFTER", "4s")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s")
        .with("DISPATCHERS__SECOND_LOOK", "500ms")
        .with("DISPATCHERS__CHECK_INTERVAL", "1s")
        .with("DISPATCHERS__CLEANUP_TIMEOUT", "1s")
        .with("DISPATCHERS__SLA", "15s")
}

/// A server that owns a dispatcher, runs something and sends a wake, and is lost while another stands by.
async fn lose_a_server(alarms: Alarms) -> Scene {
    let launch = quick(&alarms);
    let mut lost = launch.start_ready().await;
    let workflow = alarms.database.workflow(5, crate::support::ENDLESS).await;
    alarms.database.enqueue(workflow, 2).await;
    alarms
        .run("insert into stationmaster.signals (project, name) values ('mill', 'ground')")
        .await;
    let started = "Dispatcher started";
    eventually("it owns a dispatcher", async || lost.said(started) == 1).await;
    alarms.database.until_count("RUNNING", 2).await;
    alarms.receiver.next("/slow", [Reply::held()]);
    alarms.now("/slow").await;
    alarms.until_arrived(1).await;
    let scene = Scene::on(alarms, &launch).await;
    eventually("the other one stands by", async || {
        let query = "select count(*) from stationmaster_internal.dispatcher_servers";
        scene.database().number(query).await == 2
    })
    .await;
    lost.kill();
    scene
}

/// Alarms that were missed, that are paused because their target is gone, and that can never fire, as nobody could have set them.
async fn trouble_alarms(alarms: &Alarms) {
    let missed = alarms.set("/missed", "cron_expr => '* * * * *'").await;
    let broken = alarms.set("/broken", "cron_expr => '* * * * *'").await;
    let unplanned = "select count(*) from stationmaster.alarms where kind = 'cron' and next_fire_at is null";
    eventually("they are planned", async || {
        alarms.database.number(unplanned).await == 0
    })
    .await;
    alarms
        .run(&format!(
            "update stationmaster_internal.alarm_definitions set timezone = 'Nowhere/Land' where id = '{broken}'"
        ))
        .await;
    alarms
        .run(&format!(
            "update stationmaster_internal.alarm_standings set next_due_at = date_trunc('minute', now() - interval '5 minutes'),
                 next_fire_at = date_trunc('minute', now() - interval '5 minutes')
             where alarm_id in ('{missed}', '{broken}')"
        ))
        .await;
    alarms.receiver.always("/gone", Reply::status(410));
    alarms.set("/gone", "cron_expr => '* * * * * *'").await;
}

/// A target at which nobody listens for a while.
async fn trouble_a_target(scene: &Scene) {
    let port = free_port();
    let target = format!("http://127.0.0.1:{port}/nobody");
    let series = scene.alarms.set_at(&target, "cron_expr => '* * * * * *'").await;
    eventually("it is held back", async || {
        scene.server.said("its wakes are held back") > 0
    })
    .await;
    let _receiver = Receiver::start_at(&format!("127.0.0.1:{port}")).await;
    scene
        .alarms
        .run(&format!(
            "update stationmaster.alarms set status = 'active' where id = '{series}' and status = 'paused'"
        ))
        .await;
    eventually("it answers again", async || {
        scene.server.said("A wake target answers again") > 0
    })
    .await;
}

/// What somebody who is gone has left behind cannot be removed at once; and a dispatcher goes to somebody else.
async fn trouble_dispatchers(scene: &Scene) {
    scene
        .alarms
        .run(
            "with ghost as (
                 insert into stationmaster.dispatchers (id, project, task_queue, owner, epoch, engine, taken_at, lease_until, resting_since)
                 values (stationmaster.dispatcher_id('ghost', 'default'), 'ghost', 'default', gen_random_uuid(), 1, 'embedded',
                         now() - interval '2 hours', now() - interval '1 hour', now())
                 returning id, owner
             )
             insert into stationmaster_internal.dispatcher_heartbeats (dispatcher_id, project, task_queue, server_id, epoch, beat_at)
             select id, 'ghost', 'default', owner, 1, now() - interval '1 hour' from ghost",
        )
        .await;
    let row = "select from stationmaster.dispatchers where project = 'ghost' for update";
    let held = scene.database().lock(row).await;
    eventually("it could not be removed", async || {
        scene.server.said("The supervisor could not clean up") > 0
    })
    .await;
    held.rollback().await.unwrap();
    // Only what it has taken over can it lose.
    eventually("it owns the dispatcher of the one that is gone", async || {
        scene.server.said("Dispatcher taken over") > 0
    })
    .await;
    scene
        .alarms
        .run("update stationmaster.dispatchers set epoch = epoch + 1 where project = 'mill'")
        .await;
}

/// Holds what every server needs for longer than a driver finds right.
async fn hold_up_the_database(scene: &Scene) {
    let mut transaction = scene.database().pool.begin().await.unwrap();
    sqlx::query("lock table stationmaster_internal.servers in access exclusive mode")
        .execute(&mut *transaction)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    transaction.rollback().await.unwrap();
}

fn is(line: &Value, (level, words, fields): Event) -> bool {
    line["level"] == level
        && line["message"]
            .as_str()
            .is_some_and(|message| message.starts_with(words))
        && fields.iter().all(|field| !line[*field].is_null())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_tells_every_event_at_its_level_and_nothing_that_was_carried() {
    let mut scene = lose_a_server(Alarms::new().await).await;
    let secret = "a secret that nobody else needs to know";
    let (workspace, workflow) = scene.database().workflow(5, crate::support::SHORT).await;
    let input = format!(r#"{{"password": "{secret}"}}"#);
    scene
        .database()
        .enqueue_with(workspace, workflow, 1, &input)
        .await;
    scene.run_executions().await;
    scene.send_signals().await;
    scene.fire_alarms().await;
    trouble_alarms(&scene.alarms).await;
    trouble_dispatchers(&scene).await;
    trouble_a_target(&scene).await;
    hold_up_the_database(&scene).await;
    let nothing = format!("/v1/queue/{}/retry", uuid::Uuid::nil());
    let (status, _, answer) = request(&scene.address, "POST", &nothing, "", &[]).await;
    assert_eq!(status, 404, "{answer}");
    let orphans = scene.database().workflow(1, crate::support::ENDLESS).await;
    scene.database().enqueue(orphans, 2).await;
    scene
        .alarms
        .run(&format!(
            "delete from stationmaster.workspaces where id = '{}'",
            orphans.0
        ))
        .await;
    let lines = |log: String| -> Vec<Value> {
        let parsed = log.lines().filter_map(|line| serde_json::from_str(line).ok());
        parsed.collect()
    };
    let missing = || -> Vec<&Event> {
        let said = lines(scene.server.log());
        let running = EVENTS.iter().filter(|event| !LAST.contains(&event.1));
        let missing = running.filter(|event| !said.iter().any(|line| is(line, **event)));
        missing.collect()
    };
    let begun = Instant::now();
    while !missing().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "nobody said {:?}", missing());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scene.server.signal(nix::sys::signal::Signal::SIGTERM);
    scene.server.ended().await;
    let log = scene.server.log();
    let said = lines(log.clone());
    assert_eq!(said.len(), log.lines().count(), "every line is JSON");
    for event in EVENTS {
        assert!(said.iter().any(|line| is(line, event)), "{event:?}");
    }
    for line in &said {
        let target = line["target"].as_str().unwrap();
        assert!(
            target.starts_with("stationmaster") || line["level"] == "INFO",
            "a library's own words: {line}"
        );
    }
    assert!(!log.contains(secret), "inputs are nobody's business");
    let url = &scene.database().url;
    let password = url::Url::parse(url).unwrap().password().map(str::to_owned);
    assert!(password.is_none_or(|password| !log.contains(&password)));
}
