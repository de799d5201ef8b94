//! Servers for tests: with the embedded engine or another, and one that can be killed.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::alarms;
use stationmaster_core::db::Database;
use stationmaster_core::engine::Engine;
use stationmaster_core::engine::embedded::EmbeddedEngine;
use stationmaster_core::executions::Settings;
use stationmaster_core::observe::Metrics;
use stationmaster_core::presence::Presence;
use stationmaster_core::station::{Parts, Station};
use stationmaster_core::wake::guard::Guard;
use uuid::Uuid;

/// Connections of one server; the cluster is shared by all tests.
const CONNECTIONS: u32 = 4;
/// Far beyond what an orderly end takes.
const DEADLINE: Duration = Duration::from_secs(20);

/// Tests listen on this machine.
fn anywhere() -> Guard {
    Guard::new(vec!["127.0.0.0/8".parse().unwrap()])
}

/// A server inside the test.
pub(crate) struct Server {
    pub(crate) station: Station,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Server {
    /// Starts a server with the embedded engine.
    pub(crate) async fn start(url: &str, settings: Settings) -> Self {
        Self::start_as(url, settings, Presence::new("test")).await
    }

    /// The same under a presence of one's own, for short leases.
    pub(crate) async fn start_as(url: &str, settings: Settings, presence: Presence) -> Self {
        let database = Database::new(url, CONNECTIONS).unwrap();
        let engine = EmbeddedEngine::guarded(database.clone(), presence.clone(), anywhere()).unwrap();
        Self::start_with(database, presence, Arc::new(engine), settings).await
    }

    /// Starts a server whose nodes call public addresses only.
    pub(crate) async fn start_guarded(url: &str, settings: Settings) -> Self {
        let (database, presence) = (Database::new(url, CONNECTIONS).unwrap(), Presence::new("test"));
        let engine = EmbeddedEngine::new(database.clone(), presence.clone()).unwrap();
        Self::start_with(database, presence, Arc::new(engine), settings).await
    }

    /// Starts a server with an engine that all servers share.
    pub(crate) async fn start_outside(url: &str, settings: Settings, engine: Arc<dyn Engine>) -> Self {
        let database = Database::new(url, CONNECTIONS).unwrap();
        Self::start_with(database, Presence::new("test"), engine, settings).await
    }

    async fn start_with(
        database: Database,
        presence: Presence,
        engine: Arc<dyn Engine>,
        settings: Settings,
    ) -> Self {
        let metrics = Arc::new(Metrics::new());
        let parts = Parts {
            database,
            presence,
            engine: Arc::clone(&engine),
            executions: Some(settings),
            alarms: None,
            dispatchers: None,
            metrics: Arc::clone(&metrics),
        };
        Self {
            station: Station::start(parts).await.unwrap(),
            engine,
            metrics,
        }
    }

    /// Starts a server that only fires alarms.
    pub(crate) async fn start_alarms(url: &str, settings: alarms::Settings) -> Self {
        Self::start_alarms_as(url, settings, Presence::new("test")).await
    }

    /// The same under a presence of one's own, for short leases.
    pub(crate) async fn start_alarms_as(url: &str, settings: alarms::Settings, presence: Presence) -> Self {
        let database = Database::new(url, CONNECTIONS).unwrap();
        let engine: Arc<dyn Engine> =
            Arc::new(EmbeddedEngine::guarded(database.clone(), presence.clone(), anywhere()).unwrap());
        let metrics = Arc::new(Metrics::new());
        let parts = Parts {
            database,
            presence,
            engine: Arc::clone(&engine),
            executions: None,
            dispatchers: None,
            alarms: Some(alarms::Setup::new(settings).unwrap()),
            metrics: Arc::clone(&metrics),
        };
        Self {
            station: Station::start(parts).await.unwrap(),
            engine,
            metrics,
        }
    }

    /// The id under which it holds claims.
    pub(crate) fn id(&self) -> Uuid {
        self.station.presence().id().0
    }

    /// Stops in order.
    pub(crate) async fn stop(self) {
        self.station.shut_down(DEADLINE).await;
    }

    /// The whole part of a metric, by its name and labels as they are printed; nothing printed is 0.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics.render();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let whole = value.and_then(|value| value.split('.').next()?.parse().ok());
        whole.unwrap_or_default()
    }

    /// The executions that its engine says are open.
    pub(crate) async fn open_runs(&self) -> Vec<Uuid> {
        let page = self.engine.open_runs(None).await.unwrap();
        page.rows.into_iter().map(|run| run.execution_id.0).collect()
    }
}

/// A server on a runtime of its own, that can be killed: every task of it ends where it stands, nothing is said to
/// anybody, as with kill -9.
pub(crate) struct Mortal {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) server: Server,
}

impl Mortal {
    pub(crate) async fn start(url: &str, settings: Settings, presence: Presence) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let url = url.to_owned();
        let server = runtime
            .spawn(async move { Server::start_as(&url, settings, presence).await })
            .await
            .unwrap();
        Self {
            runtime: Some(runtime),
            server,
        }
    }

    /// The same for a server that only fires alarms.
    pub(crate) async fn start_alarms(url: &str, settings: alarms::Settings, presence: Presence) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let url = url.to_owned();
        let server = runtime
            .spawn(async move { Server::start_alarms_as(&url, settings, presence).await })
            .await
            .unwrap();
        Self {
            runtime: Some(runtime),
            server,
        }
    }

    pub(crate) fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
