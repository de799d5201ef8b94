//! Servers that dispatch, and questions about what they did.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::alarms;
use stationmaster_core::db::Database;
use stationmaster_core::dispatchers::inspect::{self, Dispatcher, DispatcherEvent};
use stationmaster_core::dispatchers::{DispatcherId, HeartbeatChoice, Parts, Settings, Webhook};
use stationmaster_core::engine::embedded::{EmbeddedDispatchers, EmbeddedEngine};
use stationmaster_core::id::{DefinitionId, WorkspaceId};
use stationmaster_core::observe::Metrics;
use stationmaster_core::presence::Presence;
use stationmaster_core::signals::send::{NewSignal, send, send_all};
use stationmaster_core::signals::triggers::{self, Place, TriggerChange};
use stationmaster_core::station::{self, Station};
use uuid::Uuid;

use crate::common::{Testbed, brisk};

/// Short enough for tests, long enough for a busy machine.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Settings with a short lease and short looks.
pub(crate) fn quick() -> Settings {
    Settings {
        lease: LEASE,
        heartbeat_interval: Duration::from_millis(300),
        stale_after: Duration::from_secs(2),
        scan_interval: Duration::from_millis(500),
        second_look: Duration::from_millis(300),
        check_interval: Duration::from_millis(300),
        ..Settings::default()
    }
}

/// How a server dispatches.
pub(crate) struct Dispatch {
    pub(crate) settings: Settings,
    pub(crate) heartbeats: HeartbeatChoice,
    pub(crate) webhook: Option<Webhook>,
    /// Runs executions as well.
    pub(crate) executions: bool,
    /// Fires alarms as well.
    pub(crate) alarms: bool,
}

impl Default for Dispatch {
    fn default() -> Self {
        Self {
            settings: quick(),
            heartbeats: HeartbeatChoice::Postgres,
            webhook: None,
            executions: false,
            alarms: false,
        }
    }
}

/// A server on a runtime of its own, so that it can be killed: every task of it ends where it stands.
pub(crate) struct Server {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) station: Arc<Station>,
    metrics: Arc<Metrics>,
}

impl Server {
    pub(crate) async fn start(testbed: &Testbed) -> Self {
        Self::with(testbed, Dispatch::default()).await
    }

    pub(crate) async fn with(testbed: &Testbed, dispatch: Dispatch) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (url, metrics) = (testbed.url.clone(), Arc::new(Metrics::new()));
        let counted = Arc::clone(&metrics);
        let station = runtime.spawn(async move {
            let database = Database::new(&url, 6).unwrap();
            let presence = Presence::with_lease("test", Duration::from_secs(2));
            let engine = EmbeddedEngine::new(database.clone(), presence.clone()).unwrap();
            let parts = station::Parts {
                database,
                presence,
                engine: Arc::new(engine),
                executions: dispatch.executions.then(brisk),
                alarms: dispatch
                    .alarms
                    .then(|| alarms::Setup::new(alarms::Settings::default()).unwrap()),
                dispatchers: Some(Parts {
                    settings: dispatch.settings,
                    engine: Arc::new(EmbeddedDispatchers::new()),
                    heartbeats: dispatch.heartbeats,
                    webhook: dispatch.webhook,
                }),
                metrics: counted,
            };
            Station::start(parts).await.unwrap()
        });
        Self {
            station: Arc::new(station.await.unwrap()),
            runtime: Some(runtime),
            metrics,
        }
    }

    pub(crate) fn id(&self) -> Uuid {
        self.station.presence().id().0
    }

    /// Stops in order.
    pub(crate) async fn stop(mut self) {
        let station = Arc::clone(&self.station);
        let runtime = self.runtime.take().unwrap();
        runtime
            .spawn(async move { station.shut_down(Duration::from_secs(20)).await })
            .await
            .unwrap();
        runtime.shutdown_background();
    }

    /// As kill -9 does: nothing is said to anybody.
    pub(crate) fn kill(mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// The whole part of a metric, by its name and labels as they are printed.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics.render();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .and_then(|value| value.split('.').next()?.parse().ok())
            .unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn shop() -> DispatcherId {
    DispatcherId::of("shop", "default")
}

impl Testbed {
    /// A workspace, a definition, and the trigger `paid` of the project `shop` that leads to it.
    pub(crate) async fn shop(&self, graph: &str) -> (WorkspaceId, DefinitionId) {
        let tenant = self.tenant(1_000, graph).await;
        self.trigger("shop", "paid", tenant.1, None).await;
        tenant
    }

    pub(crate) async fn trigger(
        &self,
        project: &str,
        name: &str,
        definition: DefinitionId,
        schema: Option<&str>,
    ) {
        let place = Place {
            project,
            task_queue: None,
            name,
        };
        let trigger = TriggerChange {
            workflow_definition_id: definition.0,
            payload_schema: Some(schema.map(crate::common::raw)),
            priority: Some(0),
        };
        triggers::set(&self.database, place, &trigger, None)
            .await
            .unwrap();
    }

    /// Sends a signal of the project `shop`; its id.
    pub(crate) async fn signal(&self, name: &str) -> String {
        let sent = send(&self.database, NewSignal::new("shop", name), "tester").await;
        sent.unwrap().id
    }

    /// Sends many in one statement.
    pub(crate) async fn signals(&self, name: &str, count: usize) {
        let signals = vec![NewSignal::new("shop", name); count];
        send_all(&self.database, signals, "tester").await.unwrap();
    }

    pub(crate) async fn dispatcher(&self) -> Dispatcher {
        inspect::show(&self.database, &shop())
            .await
            .unwrap()
            .expect("the dispatcher is on record")
    }

    pub(crate) async fn events(&self) -> Vec<DispatcherEvent> {
        let mut events = inspect::events(&self.database, Some(&shop()), None, 1_000)
            .await
            .unwrap();
        events.reverse();
        events
    }

    /// What happened, in order, in one word each.
    pub(crate) async fn story(&self) -> Vec<String> {
        self.events().await.into_iter().map(|event| event.event).collect()
    }

    /// How many signals are in this status.
    pub(crate) async fn in_status(&self, status: &str) -> i64 {
        self.number(&format!(
            "select count(*) from stationmaster.signals where status = '{status}'"
        ))
        .await
    }

    /// Each signal became one queue item.
    pub(crate) async fn assert_routed_once(&self, count: i64) {
        assert_eq!(self.in_status("ROUTED").await, count);
        assert_eq!(self.count("queue_items").await, count, "one item for each signal");
        let apart = "select count(distinct queue_item_id) from stationmaster.signals";
        assert_eq!(self.number(apart).await, count, "and none for two");
    }
}
