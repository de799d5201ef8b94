//! Which engine it is: what runs on one is judged by servers of that one alone.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use stationmaster_core::db::Database;
use stationmaster_core::engine::record::{self, Changed, Runs};
use stationmaster_core::engine::{
    Close, CloseStatus, Engine, Identity, OpenRun, Page, RunState, StartOutcome, StartRequest, Told,
};
use stationmaster_core::executions::{Settings, operate};
use stationmaster_core::id::ExecutionId;
use stationmaster_core::observe::Metrics;
use stationmaster_core::presence::Presence;
use stationmaster_core::station::{Parts, StartError, Station};

use crate::common::counting::wrong_counters;
use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually};

/// A scripted engine with an identity of its own.
struct Named {
    key: &'static str,
    script: Arc<ScriptedEngine>,
}

impl Named {
    fn new(key: &'static str, mood: Mood) -> Arc<Self> {
        let script = ScriptedEngine::new(mood);
        Arc::new(Self { key, script })
    }

    fn identity_of(key: &str) -> Identity {
        Identity {
            key: key.to_owned(),
            place: format!("the yard {key}"),
        }
    }
}

impl Engine for Named {
    fn name(&self) -> &'static str {
        self.script.name()
    }

    fn identity(&self) -> Told<'_, Identity> {
        let answer = self.script.check();
        async move { answer.await.map(|()| Self::identity_of(self.key)) }.boxed()
    }

    fn start<'a>(&'a self, request: &'a StartRequest, deadline: Duration) -> BoxFuture<'a, StartOutcome> {
        self.script.start(request, deadline)
    }

    fn describe<'a>(&'a self, executions: &'a [ExecutionId]) -> Told<'a, Vec<RunState>> {
        self.script.describe(executions)
    }

    fn cancel<'a>(&'a self, execution: ExecutionId, reason: &'a str) -> Told<'a, ()> {
        self.script.cancel(execution, reason)
    }

    fn terminate<'a>(&'a self, run: &'a OpenRun, reason: &'a str) -> Told<'a, ()> {
        self.script.terminate(run, reason)
    }

    fn closed_since(&self, since: Timestamp) -> Told<'_, (Vec<Close>, Timestamp)> {
        self.script.closed_since(since)
    }

    fn open_runs(&self, page: Option<Vec<u8>>) -> Told<'_, Page<OpenRun>> {
        self.script.open_runs(page)
    }

    fn check(&self) -> Told<'_, ()> {
        self.script.check()
    }
}

fn quick() -> Settings {
    Settings {
        reconcile_interval: Duration::from_millis(200),
        claim_lease: Duration::from_secs(1),
        ..brisk()
    }
}

async fn start(testbed: &Testbed, engine: Arc<Named>) -> Result<Station, StartError> {
    let parts = Parts {
        database: Database::new(&testbed.url, 4).unwrap(),
        presence: Presence::with_lease("another", Duration::from_millis(500)),
        engine,
        executions: Some(quick()),
        alarms: None,
        dispatchers: None,
        metrics: Arc::new(Metrics::new()),
    };
    Station::start(parts).await
}

#[tokio::test]
async fn a_server_with_another_engine_is_refused_with_both_names() {
    let testbed = Testbed::new().await;
    let first = Named::new("north", Mood::Willing);
    let server = Server::start_outside(&testbed.url, quick(), first).await;
    let refused = start(&testbed, Named::new("south", Mood::Willing)).await;
    let Err(StartError::OtherEngine(other)) = refused else {
        panic!("it was let in");
    };
    let words = other.to_string();
    assert!(
        words.contains("the yard north") && words.contains("the yard south"),
        "{words}"
    );
    assert_eq!(testbed.count("servers").await, 1, "the refused one has left");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_meets_another_engine_late_ends_frees_and_starts_nothing() {
    let testbed = Testbed::new().await;
    let (north, south) = (
        Named::new("north", Mood::Willing),
        Named::new("south", Mood::Away),
    );
    let right = Server::start_outside(&testbed.url, quick(), Arc::<Named>::clone(&north)).await;
    let tenant = testbed.tenant(2, NOOP).await;
    let items = [testbed.enqueue(tenant).await, testbed.enqueue(tenant).await];
    for item in items {
        testbed.reaches(item, "RUNNING").await;
    }
    // The wrong engine is away when its server starts, and comes up when the right server is gone.
    let wrong = start(&testbed, Arc::clone(&south)).await.ok().unwrap();
    right.stop().await;
    let waits = testbed.enqueue(testbed.tenant(1, NOOP).await).await;
    south.script.feel(Mood::Willing);
    eventually("the wrong server has found out", async || {
        let problems = wrong.readiness().problems.join("; ");
        problems.contains("the yard north") && problems.contains("the yard south")
    })
    .await;
    // Several rounds of everything that judges.
    tokio::time::sleep(Duration::from_secs(2)).await;
    for item in items {
        assert_eq!(testbed.outcome(item).await, "RUNNING");
    }
    assert_eq!(testbed.status(waits).await, "PENDING");
    assert_eq!(south.script.asked_in_all(), 0, "nothing was started");
    wrong.shut_down(Duration::from_secs(5)).await;
    assert_eq!(wrong_counters(&testbed).await, []);
}

#[tokio::test]
async fn changing_engines_waits_for_the_servers_and_ends_what_ran_on_the_old_one() {
    let testbed = Testbed::new().await;
    let north = Named::new("north", Mood::Willing);
    let server = Server::start_outside(&testbed.url, quick(), Arc::<Named>::clone(&north)).await;
    let tenant = testbed.tenant(1, NOOP).await;
    let (first, second) = (testbed.enqueue(tenant).await, testbed.enqueue(tenant).await);
    testbed.reaches(first, "RUNNING").await;
    let database = Database::new(&testbed.url, 2).unwrap();
    let south = Named::identity_of("south");
    let change = async |runs| {
        record::change(&database, "scripted", &south, runs, "a test")
            .await
            .unwrap()
    };
    assert!(matches!(change(Runs::End).await, Changed::Served(servers) if servers == ["test"]));
    server.stop().await;
    let Changed::Done { from, executions } = change(Runs::End).await else {
        panic!("the server has stopped");
    };
    assert_eq!((from.as_deref(), executions), (Some("the yard north"), 1));
    assert_eq!(testbed.outcome(first).await, "FAILED");
    assert_eq!(wrong_counters(&testbed).await, []);

    assert!(
        start(&testbed, north).await.is_err(),
        "the old one is another engine now"
    );
    let south = Named::new("south", Mood::Willing);
    let server = Server::start_outside(&testbed.url, quick(), south).await;
    testbed.reaches(second, "RUNNING").await;
    server.stop().await;
}

#[tokio::test]
async fn runs_that_moved_with_their_engine_keep_their_slots() {
    let testbed = Testbed::new().await;
    let north = Named::new("north", Mood::Willing);
    let server = Server::start_outside(&testbed.url, quick(), Arc::<Named>::clone(&north)).await;
    let tenant = testbed.tenant(1, NOOP).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    server.stop().await;
    let database = Database::new(&testbed.url, 2).unwrap();
    let identity = Named::identity_of("south");
    let changed = record::change(&database, "scripted", &identity, Runs::Keep, "a test").await;
    assert!(matches!(changed.unwrap(), Changed::Done { executions: 1, .. }));
    let south = Named::new("south", Mood::Willing);
    south.script.begin(ExecutionId(execution));
    let server = Server::start_outside(&testbed.url, quick(), Arc::<Named>::clone(&south)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(testbed.outcome(item).await, "RUNNING");
    south.script.close(ExecutionId(execution), CloseStatus::Completed);
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_slept_through_a_change_claims_nothing_for_the_old_engine() {
    let testbed = Testbed::new().await;
    let north = Named::new("north", Mood::Willing);
    let server = Server::start_outside(&testbed.url, quick(), Arc::<Named>::clone(&north)).await;
    let tenant = testbed.tenant(1, NOOP).await;
    // Behind its back, as when it was stopped for longer than its lease.
    testbed
        .run("update stationmaster_internal.engines set retired_at = now() where name = 'scripted'")
        .await;
    testbed
        .run("insert into stationmaster_internal.engines (name, identity, place, recorded_by) values ('scripted', 'south', 'the yard south', 'x')")
        .await;
    let item = testbed.enqueue(tenant).await;
    eventually("it has found out", async || {
        server
            .station
            .readiness()
            .problems
            .join("; ")
            .contains("the yard south")
    })
    .await;
    assert_eq!(testbed.status(item).await, "PENDING");
    assert_eq!(north.script.asked_in_all(), 0);
    server.stop().await;
}

/// Each of those who judge is shown two: one of its own engine, which it must deal with, and one of another, which it must not.
#[tokio::test]
async fn what_runs_on_another_engine_is_neither_ended_nor_recovered_nor_cancelled() {
    let testbed = Testbed::new().await;
    let north = Named::new("north", Mood::Willing);
    let server = Server::start_outside(&testbed.url, quick(), Arc::<Named>::clone(&north)).await;
    let tenant = testbed.tenant(8, NOOP).await;
    let items = testbed.enqueue_many(tenant, 8).await;
    let mut executions = Vec::new();
    for item in &items {
        testbed.reaches(*item, "RUNNING").await;
        executions.push(ExecutionId(testbed.execution(*item).await.id));
    }
    let (ours, theirs) = executions.split_at(4);
    let theirs: [ExecutionId; 4] = theirs.try_into().unwrap();
    testbed
        .run("insert into stationmaster_internal.engines (name, identity, place, recorded_by, retired_at) values ('scripted', 'old', 'gone', 'x', now())")
        .await;
    let change = "update stationmaster_internal.executions_active
                  set engine_id = (select id from stationmaster_internal.engines where identity = 'old') where execution_id = any ($1)";
    let query = sqlx::query(change).bind(&theirs[..]);
    query.execute(testbed.pool()).await.unwrap();
    // A start whose server is gone, a run that is gone, one that has closed, and one that somebody wants cancelled.
    let claimed = "update stationmaster_internal.executions_active
                   set state = 'STARTING', lease_until = now() - interval '1 s', holder = gen_random_uuid() where execution_id = any ($1)";
    let query = sqlx::query(claimed).bind(vec![ours[0], theirs[0]]);
    query.execute(testbed.pool()).await.unwrap();
    for one in [ours, &theirs] {
        north.script.forget(one[1]);
        north.script.close(one[2], CloseStatus::Completed);
        let wish = operate::cancel(&testbed.database, one[3].0, None, "alice");
        wish.await.unwrap();
    }
    eventually("its own are dealt with", async || {
        testbed.outcome(items[0]).await == "RUNNING"
            && testbed.outcome(items[1]).await == "FAILED"
            && testbed.outcome(items[2]).await == "COMPLETED"
            && north.script.cancels(ours[3]) == 1
    })
    .await;
    // Several rounds more of everything that judges.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let states: Vec<(ExecutionId, String)> =
        sqlx::query_as("select execution_id, state from stationmaster_internal.executions_active where execution_id = any ($1) order by 1")
            .bind(&theirs[..])
            .fetch_all(testbed.pool())
            .await
            .unwrap();
    let found: Vec<&str> = theirs
        .iter()
        .map(|id| {
            states
                .iter()
                .find(|(found, _)| found == id)
                .map_or("gone", |(_, state)| state)
        })
        .collect();
    assert_eq!(found, ["STARTING", "RUNNING", "RUNNING", "RUNNING"]);
    assert_eq!(north.script.cancels(theirs[3]), 0);
    assert_eq!(wrong_counters(&testbed).await, []);
    server.stop().await;
}
