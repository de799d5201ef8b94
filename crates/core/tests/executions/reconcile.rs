//! I7: our rows and the engine's runs are compared from both sides, and a destructive act comes only at a second look.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::engine::{CloseStatus, Engine};
use stationmaster_core::executions::operate::{self, Complete};
use stationmaster_core::executions::{Settings, strays};
use stationmaster_core::id::ExecutionId;

use crate::common::scripted::{Mood, ScriptedEngine};
use crate::common::{NOOP, Server, Testbed, brisk, eventually};

fn comparing_often() -> Settings {
    Settings {
        reconcile_interval: Duration::from_millis(200),
        ..brisk()
    }
}

async fn server(testbed: &Testbed, engine: &Arc<ScriptedEngine>) -> Server {
    Server::start_outside(
        &testbed.url,
        comparing_often(),
        Arc::clone(engine) as Arc<dyn Engine>,
    )
    .await
}

#[tokio::test]
async fn a_run_that_the_engine_does_not_know_any_more_is_closed_at_the_second_look() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(2, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = server(&testbed, &engine).await;
    let items = testbed.enqueue_many(tenant, 3).await;
    testbed.reaches(items[1], "RUNNING").await;
    let lost = testbed.execution(items[0]).await.id;
    engine.forget(ExecutionId(lost));
    let marked =
        "select count(*) from stationmaster_internal.executions_active where missing_since is not null";
    eventually("it is missed at the first look", async || {
        testbed.number(marked).await == 1
    })
    .await;
    testbed.reaches(items[0], "FAILED").await;
    let ended = testbed.execution_by_id(ExecutionId(lost)).await;
    assert_eq!(ended.reason.as_deref(), Some("engine_lost"));
    testbed.reaches(items[2], "RUNNING").await;
    assert_eq!(
        testbed.outcome(items[1]).await,
        "RUNNING",
        "the one that the engine knows is left alone"
    );
    assert_eq!(server.metric("stationmaster_executions_reconciled_total"), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_run_that_was_missed_once_and_is_there_again_is_left_alone() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let slow = Settings {
        reconcile_interval: Duration::from_secs(1),
        ..brisk()
    };
    let server = Server::start_outside(&testbed.url, slow, Arc::clone(&engine) as Arc<dyn Engine>).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    engine.forget(ExecutionId(execution));
    let marked =
        "select count(*) from stationmaster_internal.executions_active where missing_since is not null";
    eventually("it is missed at the first look", async || {
        testbed.number(marked).await == 1
    })
    .await;
    engine.begin(ExecutionId(execution));
    // It is in the list of open runs again, so nobody has to be asked about it.
    engine.close(ExecutionId(execution), CloseStatus::Completed);
    testbed.reaches(item, "COMPLETED").await;
    server.stop().await;
}

#[tokio::test]
async fn a_run_that_is_over_by_our_record_is_terminated_at_the_second_look_and_audited() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let server = server(&testbed, &engine).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = testbed.execution(item).await.id;
    let completion = Complete {
        force: false,
        status: CloseStatus::Completed,
        output: None,
        error: None,
    };
    operate::complete(&testbed.database, ExecutionId(execution), completion, "alice")
        .await
        .unwrap();
    eventually("the run is terminated", async || {
        engine.terminations(ExecutionId(execution)) == 1
    })
    .await;
    let audited =
        "select count(*) from stationmaster.audit where action = 'execution.terminate' and subject = $1";
    let audited = || {
        sqlx::query_scalar::<_, i64>(audited)
            .bind(execution.to_string())
            .fetch_one(testbed.pool())
    };
    eventually("it is audited", async || audited().await.unwrap() == 1).await;
    assert_eq!(
        testbed.outcome(item).await,
        "COMPLETED",
        "the record stays as it was"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_run_that_we_have_no_record_of_is_left_alone() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    let stranger = ExecutionId::new();
    engine.begin(stranger);
    let server = server(&testbed, &engine).await;
    // One of ours goes through both looks while the stranger stands beside it.
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    engine.forget(ExecutionId(testbed.execution(item).await.id));
    testbed.reaches(item, "FAILED").await;
    assert_eq!(engine.terminations(stranger), 0);
    assert_eq!(testbed.count("stray_runs").await, 0, "it is somebody else's");
    server.stop().await;
}

/// As after a failover that lost the last commits: the engine runs it for a workspace of ours, and no row tells of it.
#[tokio::test]
async fn a_run_for_our_workspace_that_no_row_tells_of_is_told_once_and_ended_when_somebody_says_so() {
    let testbed = Testbed::new().await;
    let (workspace, _) = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.tell_workspace(workspace);
    let (stray, other) = (ExecutionId::new(), ExecutionId::new());
    engine.begin(stray);
    engine.begin(other);
    let servers = [server(&testbed, &engine).await, server(&testbed, &engine).await];
    eventually("both are told", async || testbed.count("stray_runs").await == 2).await;
    let told = |action: &str, execution: ExecutionId| {
        format!(
            "select count(*) from stationmaster.audit where action = '{action}' and subject = '{execution}'"
        )
    };
    let found = strays::list(&testbed.database, Some(stray), None, 10)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].workspace_id, workspace.0);
    assert_eq!((engine.terminations(stray), engine.terminations(other)), (0, 0));

    let end = async |run: &str| {
        let reason = Some("enqueued again");
        strays::end(&testbed.database, stray, run, reason, "alice")
            .await
            .unwrap()
    };
    assert!(!end("another run").await, "an end names the run");
    assert!(end(&found[0].run_id).await);
    eventually("it is ended", async || engine.terminations(stray) > 0).await;
    eventually("and is a stray no more", async || {
        testbed.count("stray_runs").await == 1
    })
    .await;
    for action in ["execution.stray", "execution.end_stray", "execution.stray_ended"] {
        assert_eq!(testbed.number(&told(action, stray)).await, 1, "{action}");
    }
    assert_eq!(engine.terminations(other), 0);
    engine.close(other, CloseStatus::Completed);
    eventually("what ends by itself is forgotten", async || {
        testbed.count("stray_runs").await == 0
    })
    .await;
    for server in servers {
        server.stop().await;
    }
}

/// The rows come back, with the old primary: it is no stray any more, and a wish to end it ends nothing.
#[tokio::test]
async fn a_stray_whose_row_is_back_is_not_ended() {
    let testbed = Testbed::new().await;
    let tenant = testbed.tenant(1, NOOP).await;
    let engine = ScriptedEngine::new(Mood::Willing);
    engine.tell_workspace(tenant.0);
    let seldom = Settings {
        reconcile_interval: Duration::from_hours(1),
        ..brisk()
    };
    let first = Arc::clone(&engine) as Arc<dyn Engine>;
    let first = Server::start_outside(&testbed.url, seldom, first).await;
    let item = testbed.enqueue(tenant).await;
    testbed.reaches(item, "RUNNING").await;
    let execution = ExecutionId(testbed.execution(item).await.id);
    let stray = ExecutionId::new();
    engine.begin(stray);
    // Both were noted before, and somebody wants both ended: first the one whose row is back.
    let note = format!(
        "insert into stationmaster_internal.stray_runs (run_id, execution_id, workspace_id, engine_id, end_wished_at, end_wished_by)
         select s.run_id, s.execution_id, a.workspace_id, a.engine_id, now() - s.ago, 'alice'
         from stationmaster_internal.executions_active a
         cross join lateral (values (a.run_id, a.execution_id, interval '1 minute'),
                                    ('run-of-{stray}', '{stray}'::uuid, interval '1 second')) as s (run_id, execution_id, ago)"
    );
    assert_eq!(testbed.run(&note).await, 2);
    testbed.run("select pg_notify('stationmaster', 'cancel')").await;
    eventually("the other one is ended", async || engine.terminations(stray) == 1).await;
    assert_eq!(engine.terminations(execution), 0);
    assert_eq!(testbed.outcome(item).await, "RUNNING");
    first.stop().await;
    let server = server(&testbed, &engine).await;
    eventually("it is forgotten", async || testbed.count("stray_runs").await == 0).await;
    assert_eq!(engine.terminations(execution), 0);
    server.stop().await;
}
