//! The second wall around alarms, signals and dispatchers, with the API's own checks out of the way; and the audit as a part of
//! every change.

use stationmaster_client::wire::{AlarmChange, BulkReplay, NewAlarm, NewSignal};
use stationmaster_core::alarms::{backfill, edit, inspect as alarms, operate, set};
use stationmaster_core::catalogue;
use stationmaster_core::db::Database;
use stationmaster_core::dispatchers::DispatcherId;
use stationmaster_core::dispatchers::inspect as dispatchers;
use stationmaster_core::engine::CloseStatus;
use stationmaster_core::executions::{browse, inspect, operate as executions};
use stationmaster_core::id::{AlarmId, DefinitionId, ExecutionId, WorkspaceId};
use stationmaster_core::session::{Scope, Wall};
use stationmaster_core::signals::triggers::{self, Place, Trigger, TriggerChange};
use stationmaster_core::signals::{inspect as signals, replay, send};
use uuid::Uuid;

use crate::scene::Tenant;
use crate::support::{ENDLESS, TestDatabase};

/// An occurrence that was tried in vain.
const TRIED: &str = "2026-01-01T00:00:00Z";

/// What a tenant has of the lanes.
struct Owned {
    tenant: Tenant,
    alarm: AlarmId,
    project: String,
    signal: String,
    dead: String,
    execution: ExecutionId,
}

/// Two tenants with something in every table of the lanes, and no server.
struct Lanes {
    database: TestDatabase,
    core: Database,
    own: Owned,
    foreign: Owned,
}

impl Lanes {
    async fn new() -> Self {
        let database = TestDatabase::new().await;
        let core = Database::new(&database.url, 4).unwrap();
        assert_eq!(core.raise_wall().await.unwrap(), Wall::Stands);
        let own = owned(&database, &core, "own").await;
        let foreign = owned(&database, &core, "foreign").await;
        Self {
            database,
            core,
            own,
            foreign,
        }
    }

    /// The database as a token of the first tenant sees it.
    fn scoped(&self) -> Database {
        let workspace = WorkspaceId(self.own.tenant.workspace);
        self.core.on_behalf("a test", Scope::Only(vec![workspace]))
    }

    /// Everything there is in the lanes.
    async fn everything(&self) -> Vec<String> {
        let tables = [
            "stationmaster_internal.alarm_definitions",
            "stationmaster_internal.alarm_standings",
            "stationmaster_internal.alarm_events",
            "stationmaster_internal.occurrences_open",
            "stationmaster_internal.occurrences_finished",
            "stationmaster.projects",
            "stationmaster.triggers",
            "stationmaster_internal.signals_inbox",
            "stationmaster_internal.signals_pending",
            "stationmaster_internal.signals_settled",
            "stationmaster.dispatchers",
            "stationmaster_internal.executions_active",
            "stationmaster_internal.executions_finished",
        ];
        let mut rows = Vec::new();
        for table in tables {
            let query = format!("select t::text from {table} t order by 1");
            let found: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(query))
                .fetch_all(&self.database.pool)
                .await
                .unwrap();
            rows.extend(found.into_iter().map(|row| format!("{table} {row}")));
        }
        rows
    }
}

/// A trigger of the usual task queue.
async fn put_trigger(
    database: &Database,
    project: &str,
    name: &str,
    workflow: Uuid,
) -> Result<Trigger, triggers::Error> {
    let change = TriggerChange {
        workflow_definition_id: workflow,
        payload_schema: None,
        priority: Some(0),
    };
    triggers::set(database, place(project, name), &change, None).await
}

fn place<'a>(project: &'a str, name: &'a str) -> Place<'a> {
    Place {
        project,
        task_queue: Some("default"),
        name,
    }
}

fn dry_run() -> BulkReplay {
    BulkReplay {
        dry_run: true,
        ..BulkReplay::default()
    }
}

async fn owned(database: &TestDatabase, core: &Database, project: &str) -> Owned {
    let (workspace, workflow) = database.workflow(1, ENDLESS).await;
    let request = NewAlarm {
        workspace_id: workspace,
        cron_expr: Some("@hourly".to_owned()),
        ..NewAlarm::default()
    };
    let alarm = set::set(core, &request, "a test").await.unwrap().alarm();
    operate::fire(core, alarm, "a test").await.unwrap();
    put_trigger(core, project, "paid", workflow).await.unwrap();
    let waits = send::send(core, NewSignal::new(project, "paid"), "a test")
        .await
        .unwrap();
    let dead = send::send(core, NewSignal::new(project, "unheard"), "a test")
        .await
        .unwrap();
    let execution = Uuid::now_v7();
    let rows = "with dead as (delete from stationmaster_internal.signals_pending where signal_key = stationmaster_internal.signal_key($1, $6) returning *),
        settled as (insert into stationmaster_internal.signals_settled
            select signal_key, dispatcher_id, 'DEAD', null, 'unknown_signal', null, 1, 'a test', now(), 0 from dead),
        tried as (insert into stationmaster_internal.occurrence_tries (alarm_id, scheduled_for, attempt, class) values ($2, $5::text::timestamptz, 1, 'refused')),
        running as (insert into stationmaster_internal.executions_active (execution_id, item_id, seq, rank, workspace_id, workflow_definition_id,
                workflow_definition_version_id, state, holder, token, engine, engine_id, attempts, recoveries, claimed_at)
            select $3, $3, 1, 0, workspace_id, id, current_version_id, 'RUNNING', $3, 1, 'embedded', 1, 0, 0, now()
            from stationmaster.workflow_definitions where id = $4)
        select stationmaster_internal.tell_of_dispatcher((select dispatcher_id from dead), 'fresh', 1, null, null, 'a test')";
    sqlx::query(rows)
        .bind(&dead.id)
        .bind(alarm)
        .bind(execution)
        .bind(workflow)
        .bind(TRIED)
        .bind(project)
        .execute(&database.pool)
        .await
        .unwrap();
    let count = "update stationmaster_internal.workspace_capacity set active = 1 where workspace_id = $1";
    sqlx::query(count)
        .bind(workspace)
        .execute(&database.pool)
        .await
        .unwrap();
    Owned {
        tenant: Tenant { workspace, workflow },
        alarm,
        project: project.to_owned(),
        signal: waits.id,
        dead: dead.id,
        execution: ExecutionId(execution),
    }
}

fn completion() -> executions::Complete {
    executions::Complete {
        force: false,
        status: CloseStatus::Completed,
        output: None,
        error: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_the_lanes_on_behalf_of_one_tenant_find_nothing_of_another() {
    let lanes = Lanes::new().await;
    let scoped = lanes.scoped();
    for (tenant, seen) in [(&lanes.own, 1), (&lanes.foreign, 0)] {
        let alarm = tenant.alarm;
        assert_eq!(
            usize::from(alarms::alarm(&scoped, alarm).await.unwrap().is_some()),
            seen
        );
        let occurrences = alarms::occurrences(&scoped, alarm, None, None, 9)
            .await
            .unwrap()
            .rows;
        assert_eq!(occurrences.len(), seen);
        let history = alarms::history(&scoped, alarm, None, 9).await.unwrap();
        assert_eq!(history.len(), 2 * seen);
        let tries = alarms::tries(&scoped, alarm, TRIED.parse().unwrap())
            .await
            .unwrap();
        assert_eq!(tries.len(), seen);
        let signal = signals::show(&scoped, &tenant.signal, None).await.unwrap();
        assert_eq!(usize::from(signal.is_some()), seen);
        let workspace = triggers::workspace_of(&scoped, &tenant.project).await.unwrap();
        assert_eq!(usize::from(workspace.is_some()), seen);
        let which = triggers::Which {
            project: Some(&tenant.project),
            ..triggers::Which::default()
        };
        assert_eq!(triggers::list(&scoped, &which, 9).await.unwrap().len(), seen);
        let which = dispatchers::Which {
            project: Some(&tenant.project),
            ..dispatchers::Which::default()
        };
        let found = dispatchers::list(&scoped, &which, 9).await.unwrap();
        assert_eq!(found.len(), seen);
    }
    let every = alarms::AlarmQuery::default();
    assert_eq!(
        alarms::alarms(&scoped, &every, None, None, 9)
            .await
            .unwrap()
            .rows
            .len(),
        1
    );
    assert_eq!(
        signals::list(&scoped, &signals::SignalQuery::default(), None, 9)
            .await
            .unwrap()
            .rows
            .len(),
        2
    );
    let every = triggers::Which::default();
    assert_eq!(triggers::list(&scoped, &every, 9).await.unwrap().len(), 1);
    let every = dispatchers::Which::default();
    let own = dispatchers::list(&scoped, &every, 9).await.unwrap();
    assert!(own.len() == 1 && own[0].id.contains("own"), "{own:?}");
    // The lists ask for the scope themselves; the rows are behind the wall all the same.
    let mut session = scoped.session().await.unwrap();
    for (relation, own) in [
        ("alarms", 1),
        ("alarm_occurrences", 1),
        ("signals", 2),
        ("dispatchers", 1),
    ] {
        let query = format!("select count(*) from stationmaster.{relation}");
        let seen = sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(query));
        assert_eq!(seen.fetch_one(&mut *session).await.unwrap(), own, "{relation}");
    }
    let events = dispatchers::events(&scoped, None, None, 9).await.unwrap();
    let of_own = DispatcherId(own[0].id.clone());
    let of_own = dispatchers::events(&scoped, Some(&of_own), None, 9)
        .await
        .unwrap();
    assert_eq!((events.len(), events[0].id), (1, of_own[0].id), "{events:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_wall_is_missing_what_is_out_of_scope_is_found_by_nobody_all_the_same() {
    let lanes = Lanes::new().await;
    let workspace = WorkspaceId(lanes.own.tenant.workspace);
    let bare = Database::new(&lanes.database.url, 2).unwrap();
    let scoped = bare.on_behalf("a test", Scope::Only(vec![workspace]));
    let mut session = scoped.session().await.unwrap();
    let rows = sqlx::query_scalar::<_, i64>("select count(*) from stationmaster.workspaces");
    assert_eq!(
        rows.fetch_one(&mut *session).await.unwrap(),
        2,
        "there is no wall"
    );
    session.finish().await.unwrap();
    for (tenant, seen) in [(&lanes.own, true), (&lanes.foreign, false)] {
        let foreign = WorkspaceId(tenant.tenant.workspace);
        let found = [
            alarms::alarm(&scoped, tenant.alarm).await.unwrap().is_some(),
            signals::show(&scoped, &tenant.signal, None)
                .await
                .unwrap()
                .is_some(),
            inspect::execution(&scoped, tenant.execution)
                .await
                .unwrap()
                .is_some(),
            catalogue::workspace(&scoped, foreign).await.is_ok(),
            catalogue::definition(&scoped, DefinitionId(tenant.tenant.workflow))
                .await
                .is_ok(),
        ];
        assert_eq!(found, [seen; 5]);
        let asked = browse::Filter {
            workspace: Some(foreign),
            limit: 9,
            ..browse::Filter::default()
        };
        assert_eq!(
            browse::executions(&scoped, &asked).await.unwrap().rows.is_empty(),
            !seen
        );
    }
    let every = alarms::AlarmQuery::default();
    assert_eq!(
        alarms::alarms(&scoped, &every, None, None, 9)
            .await
            .unwrap()
            .rows
            .len(),
        1
    );
    assert_eq!(
        signals::list(&scoped, &signals::SignalQuery::default(), None, 9)
            .await
            .unwrap()
            .rows
            .len(),
        2
    );
    assert_eq!(
        triggers::list(&scoped, &triggers::Which::default(), 9)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        dispatchers::list(&scoped, &dispatchers::Which::default(), 9)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(catalogue::workspaces(&scoped, None, 9).await.unwrap().len(), 1);
    assert_eq!(
        catalogue::definitions(&scoped, None, None, 9)
            .await
            .unwrap()
            .len(),
        1
    );
    let dead = replay::replay_matching(&scoped, &dry_run(), "x").await.unwrap();
    assert_eq!(dead.items, 1);

    let before = lanes.everything().await;
    let alarm = lanes.foreign.alarm;
    let gone = |error: operate::Error| matches!(error, operate::Error::NotFound(_));
    assert!(gone(
        operate::cancel(&scoped, alarm, "x", None).await.unwrap_err()
    ));
    assert!(gone(operate::pause(&scoped, alarm, "x").await.unwrap_err()));
    assert!(gone(operate::fire(&scoped, alarm, "x").await.unwrap_err()));
    let replayed = replay::replay(&scoped, &lanes.foreign.dead, None, "x").await;
    assert!(
        matches!(replayed, Err(replay::Error::NotFound(_))),
        "{replayed:?}"
    );
    assert_eq!(lanes.everything().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_to_the_lanes_on_behalf_of_one_tenant_change_nothing_of_another() {
    let lanes = Lanes::new().await;
    let (scoped, own, foreign) = (lanes.scoped(), &lanes.own, &lanes.foreign);
    let before = lanes.everything().await;
    let alarm = foreign.alarm;
    let gone = |error: operate::Error| matches!(error, operate::Error::NotFound(_));
    assert!(gone(
        operate::cancel(&scoped, alarm, "x", None).await.unwrap_err()
    ));
    assert!(gone(operate::pause(&scoped, alarm, "x").await.unwrap_err()));
    assert!(gone(operate::resume(&scoped, alarm, "x").await.unwrap_err()));
    assert!(gone(operate::fire(&scoped, alarm, "x").await.unwrap_err()));
    let (from, to) = (
        "2026-01-01T00:00:00Z".parse().unwrap(),
        "2026-01-01T09:00:00Z".parse().unwrap(),
    );
    assert!(gone(
        backfill::preview(&scoped, alarm, from, to).await.unwrap_err()
    ));
    assert!(gone(
        backfill::backfill(&scoped, alarm, from, to, "x")
            .await
            .unwrap_err()
    ));
    let change = AlarmChange {
        label: Some("mine".to_owned()),
        ..AlarmChange::default()
    };
    assert!(edit::edit(&scoped, alarm, &change, "x", None).await.is_err());
    let request = NewAlarm {
        workspace_id: foreign.tenant.workspace,
        delay: Some(0.0),
        ..NewAlarm::default()
    };
    assert!(set::set(&scoped, &request, "x").await.is_err());

    let mine = own.tenant.workflow;
    let refused = [
        (foreign.project.as_str(), "paid", mine),
        (&foreign.project, "other", foreign.tenant.workflow),
        (&own.project, "other", foreign.tenant.workflow),
        ("nobody", "first", mine),
    ];
    for (project, name, workflow) in refused {
        let answer = put_trigger(&scoped, project, name, workflow).await;
        assert!(answer.is_err(), "{answer:?}");
    }
    let removed = triggers::remove(&scoped, place(&foreign.project, "paid"), None).await;
    assert!(
        matches!(removed, Err(triggers::Error::NotFound { .. })),
        "{removed:?}"
    );

    for project in [foreign.project.as_str(), "nobody"] {
        assert!(
            send::send(&scoped, NewSignal::new(project, "paid"), "x")
                .await
                .is_err()
        );
    }
    let replayed = replay::replay(&scoped, &foreign.dead, None, "x").await;
    assert!(
        matches!(replayed, Err(replay::Error::NotFound(_))),
        "{replayed:?}"
    );
    let completed = executions::complete(&scoped, foreign.execution, completion(), "x").await;
    assert!(
        matches!(completed, Err(executions::Error::NotFound(_))),
        "{completed:?}"
    );
    let wish = executions::Wish::Terminate { reason: None };
    let terminated = executions::end(&scoped, foreign.execution, wish, "x").await;
    assert!(
        matches!(terminated, Err(executions::Error::NotFound(_))),
        "{terminated:?}"
    );
    assert_eq!(lanes.everything().await, before);
    let same_id = NewSignal {
        id: Some(foreign.signal.clone()),
        ..NewSignal::new(&own.project, "paid")
    };
    let answer = send::send(&scoped, same_id, "x").await.unwrap();
    assert!(!answer.duplicate, "another tenant's signal says nothing of ours");
    // Without a filter it reaches no further than the wall.
    let done = replay::replay_matching(&scoped, &dry_run(), "x").await.unwrap();
    assert_eq!((done.items, done.more), (1, false));
    let done = replay::replay_matching(&scoped, &BulkReplay::default(), "x")
        .await
        .unwrap();
    assert_eq!((done.items, done.more), (1, false));
}

/// Every change of the lanes that a token of the first tenant may make, by its name.
async fn changes(lanes: &Lanes) -> Vec<(&'static str, bool)> {
    let (scoped, own) = (lanes.scoped(), &lanes.own);
    let (alarm, workflow) = (own.alarm, own.tenant.workflow);
    let request = NewAlarm {
        workspace_id: own.tenant.workspace,
        delay: Some(3600.0),
        ..NewAlarm::default()
    };
    let change = AlarmChange {
        label: Some("changed".to_owned()),
        ..AlarmChange::default()
    };
    let (from, to) = (
        "2026-01-01T00:00:00Z".parse().unwrap(),
        "2026-01-01T09:00:00Z".parse().unwrap(),
    );
    vec![
        ("set", set::set(&scoped, &request, "a test").await.is_ok()),
        (
            "edit",
            edit::edit(&scoped, alarm, &change, "a test", None).await.is_ok(),
        ),
        ("pause", operate::pause(&scoped, alarm, "a test").await.is_ok()),
        ("resume", operate::resume(&scoped, alarm, "a test").await.is_ok()),
        ("fire", operate::fire(&scoped, alarm, "a test").await.is_ok()),
        (
            "backfill",
            backfill::backfill(&scoped, alarm, from, to, "a test")
                .await
                .is_ok(),
        ),
        (
            "cancel",
            operate::cancel(&scoped, alarm, "a test", None).await.is_ok(),
        ),
        (
            "trigger",
            put_trigger(&scoped, &own.project, "new", workflow).await.is_ok(),
        ),
        (
            "remove",
            triggers::remove(&scoped, place(&own.project, "paid"), None)
                .await
                .is_ok(),
        ),
        (
            "replay",
            replay::replay(&scoped, &own.dead, None, "a test").await.is_ok(),
        ),
        (
            "complete",
            executions::complete(&scoped, own.execution, completion(), "a test")
                .await
                .is_ok(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_written_down_is_not_done() {
    let lanes = Lanes::new().await;
    let refuse = "create function refuse() returns trigger language plpgsql as $$ begin raise 'the audit is full'; end $$;
                  create trigger refuse before insert on stationmaster.audit for each statement execute function refuse()";
    sqlx::raw_sql(refuse).execute(&lanes.database.pool).await.unwrap();
    let before = lanes.everything().await;
    // What is paused would have to be resumed, which then changes nothing and needs no line.
    let tried = changes(&lanes).await;
    let done: Vec<&str> = tried
        .iter()
        .filter(|(name, done)| *done && *name != "resume")
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(done, [] as [&str; 0]);
    assert_eq!(lanes.everything().await, before);
    sqlx::raw_sql("drop trigger refuse on stationmaster.audit")
        .execute(&lanes.database.pool)
        .await
        .unwrap();
    for (name, done) in changes(&lanes).await {
        assert!(done, "{name}");
    }
    let audited = "select string_agg(action, ' ' order by id) from stationmaster.audit
                 where actor = 'a test' and workspace_id = $1 and action <> 'dispatcher.fresh'";
    let audited: String = sqlx::query_scalar(audited)
        .bind(lanes.own.tenant.workspace)
        .fetch_one(&lanes.database.pool)
        .await
        .unwrap();
    let expected = "alarm.set alarm.fired_by_hand alarm.set alarm.edited alarm.paused alarm.resumed alarm.fired_by_hand \
                    alarm.backfilled alarm.cancelled trigger.create trigger.delete signal.replay execution.complete";
    assert_eq!(audited, expected);
}
