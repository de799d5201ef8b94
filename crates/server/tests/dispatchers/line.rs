//! A line of servers on one database and one Temporal, with a project whose signals start a workflow.

use std::time::Duration;

use temporalio_client::tonic::IntoRequest as _;
use temporalio_common::protos::temporal::api::common::v1::WorkflowExecution;
use temporalio_common::protos::temporal::api::enums::v1::{EventType, WorkflowExecutionStatus};
use temporalio_common::protos::temporal::api::history::v1::HistoryEvent;
use temporalio_common::protos::temporal::api::history::v1::history_event::Attributes;
use temporalio_common::protos::temporal::api::workflow::v1::WorkflowExecutionInfo;
use temporalio_common::protos::temporal::api::workflowservice::v1::GetWorkflowExecutionHistoryRequest;
use uuid::Uuid;

use crate::support::{ENDLESS, Launch, Process, Temporal, TestDatabase, eventually};

pub(crate) const DISPATCHER: &str = "dispatcher-shop-default";
/// Short enough for tests, long enough for a busy machine.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// As `quick` sets it.
pub(crate) const SLA: Duration = Duration::from_secs(15);

/// Short intervals, in the right proportions.
pub(crate) fn quick(launch: Launch) -> Launch {
    launch
        .with("DISPATCHERS__LEASE", "3s")
        .with("DISPATCHERS__HEARTBEAT_INTERVAL", "1s")
        .with("DISPATCHERS__STALE_AFTER", "4s")
        .with("DISPATCHERS__SCAN_INTERVAL", "1s")
        .with("DISPATCHERS__SECOND_LOOK", "500ms")
        .with("DISPATCHERS__CHECK_INTERVAL", "1s")
        .with("DISPATCHERS__SLA", "15s")
        .with("EXECUTIONS__ENABLED", "false")
}

pub(crate) struct Line {
    pub(crate) database: TestDatabase,
    pub(crate) temporal: Temporal,
    pub(crate) launch: Launch,
}

/// A row of the public relation.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct Row {
    pub(crate) owner: Option<Uuid>,
    pub(crate) epoch: i64,
    pub(crate) owned: bool,
    pub(crate) run_id: Option<String>,
}

impl Line {
    pub(crate) async fn new() -> Self {
        let (database, temporal) = (TestDatabase::new().await, Temporal::shared().await);
        let launch = quick(Launch::on(&database).temporal(&temporal.address, &temporal.namespace));
        let line = Self {
            database,
            temporal,
            launch,
        };
        line.trigger().await;
        line
    }

    /// The trigger `paid` of the project `shop`.
    pub(crate) async fn trigger(&self) {
        trigger(&self.database).await;
    }

    pub(crate) async fn send(&self, signals: i32) {
        send(&self.database, signals).await;
    }

    /// A server that is ready and owns the dispatcher.
    pub(crate) async fn owner(&self) -> Process {
        let owner = self.launch.start_ready().await;
        self.until_owned(1).await;
        owner
    }

    pub(crate) async fn row(&self) -> Row {
        row(&self.database).await
    }

    /// Waits until a run of this epoch or a later one is on record.
    pub(crate) async fn until_owned(&self, epoch: i64) -> Row {
        eventually(&format!("epoch {epoch} has its run"), async || {
            let row = self.row().await;
            row.owned && row.epoch >= epoch && row.run_id.is_some()
        })
        .await;
        self.row().await
    }

    pub(crate) async fn until_registered(&self, servers: i64) {
        let query = "select count(*) from stationmaster_internal.dispatcher_servers where dispatcher_id = 'dispatcher-shop-default'";
        eventually(&format!("{servers} servers stand by"), async || {
            self.database.number(query).await == servers
        })
        .await;
    }

    pub(crate) async fn until_routed(&self, signals: i64) {
        until_routed(&self.database, signals).await;
    }

    pub(crate) async fn story(&self) -> Vec<String> {
        story(&self.database).await
    }

    /// The runs of the dispatcher on Temporal, oldest first.
    pub(crate) async fn runs(&self) -> Vec<WorkflowExecutionInfo> {
        let named = |run: &WorkflowExecutionInfo| run.execution.as_ref().unwrap().workflow_id == DISPATCHER;
        let mut runs: Vec<WorkflowExecutionInfo> =
            self.temporal.runs().await.into_iter().filter(named).collect();
        runs.sort_by_key(|run| run.start_time.map(|at| (at.seconds, at.nanos)));
        runs
    }

    pub(crate) async fn open_runs(&self) -> usize {
        let open = |run: &&WorkflowExecutionInfo| run.status() == WorkflowExecutionStatus::Running;
        self.runs().await.iter().filter(open).count()
    }

    /// When the run's last event was written, and what it was.
    pub(crate) async fn end_of(&self, run_id: &str) -> (EventType, (i64, i32)) {
        let events = self.history(run_id).await;
        let last = events.last().unwrap();
        let at = last.event_time.unwrap();
        (last.event_type(), (at.seconds, at.nanos))
    }

    /// When a worker first took up the run.
    pub(crate) async fn first_step_of(&self, run_id: &str) -> (i64, i32) {
        let mut first = None;
        eventually("the run is taken up", async || {
            let events = self.history(run_id).await;
            let step = events
                .iter()
                .find(|event| event.event_type() == EventType::WorkflowTaskStarted);
            first = step.map(|event| event.event_time.unwrap());
            first.is_some()
        })
        .await;
        let at = first.unwrap();
        (at.seconds, at.nanos)
    }

    /// How often a run has checked itself.
    pub(crate) async fn checks_of(&self, run_id: &str) -> usize {
        let events = self.history(run_id).await.into_iter();
        let activities = events.filter_map(|event| match event.attributes? {
            Attributes::ActivityTaskScheduledEventAttributes(scheduled) => scheduled.activity_type,
            _ => None,
        });
        activities.filter(|activity| activity.name == "check").count()
    }

    async fn history(&self, run_id: &str) -> Vec<HistoryEvent> {
        let message = GetWorkflowExecutionHistoryRequest {
            namespace: self.temporal.namespace.clone(),
            execution: Some(WorkflowExecution {
                workflow_id: DISPATCHER.to_owned(),
                run_id: run_id.to_owned(),
            }),
            ..GetWorkflowExecutionHistoryRequest::default()
        };
        let answer = self
            .temporal
            .service()
            .get_workflow_execution_history(message.into_request())
            .await;
        answer.unwrap().into_inner().history.unwrap().events
    }
}

pub(crate) async fn trigger(database: &TestDatabase) {
    let (_, definition) = database.workflow(1_000, ENDLESS).await;
    let query = "insert into stationmaster.triggers (project, name, workflow_definition_id) values ('shop', 'paid', $1)";
    sqlx::query(query)
        .bind(definition)
        .execute(&database.pool)
        .await
        .unwrap();
    let query = "insert into stationmaster.dispatchers (id, project, task_queue) values ('dispatcher-shop-default', 'shop', 'default')";
    sqlx::query(query).execute(&database.pool).await.unwrap();
}

pub(crate) async fn send(database: &TestDatabase, signals: i32) {
    let query = "insert into stationmaster.signals (project, name, payload) select 'shop', 'paid', to_jsonb(n) from generate_series(1, $1) n";
    sqlx::query(query)
        .bind(signals)
        .execute(&database.pool)
        .await
        .unwrap();
}

pub(crate) async fn row(database: &TestDatabase) -> Row {
    let query =
        "select owner, epoch, (lease_until > now() and handed_over_at is null) is true as owned, run_id
                 from stationmaster.dispatchers where id = 'dispatcher-shop-default'";
    sqlx::query_as(query).fetch_one(&database.pool).await.unwrap()
}

pub(crate) async fn until_routed(database: &TestDatabase, signals: i64) {
    let routed = "select count(*) from stationmaster_internal.signals_settled where status = 'ROUTED'";
    eventually(&format!("{signals} signals are routed"), async || {
        database.number(routed).await >= signals
    })
    .await;
    let items = "select count(*) from stationmaster_internal.queue_items";
    assert_eq!(database.number(items).await, signals, "each was routed once");
    let apart =
        "select count(distinct item_id) from stationmaster_internal.signals_settled where status = 'ROUTED'";
    assert_eq!(database.number(apart).await, signals);
}

pub(crate) async fn story(database: &TestDatabase) -> Vec<String> {
    let query = "select event from stationmaster.dispatcher_events where dispatcher_id = 'dispatcher-shop-default' order by id";
    sqlx::query_scalar(query).fetch_all(&database.pool).await.unwrap()
}
