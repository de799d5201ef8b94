//! Puts a server together from its settings: database, engine, background work, HTTP. `serve` and `dev` both run it; they
//! differ in where the settings come from.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sqlx::{ConnectOptions as _, Connection as _};
use stationmaster_core::access;
use stationmaster_core::alarms;
use stationmaster_core::db::{self, Database};
use stationmaster_core::dispatchers::heartbeats::redis::{Files, RedisHeartbeats};
use stationmaster_core::dispatchers::supervisor::Office;
use stationmaster_core::dispatchers::{self, HeartbeatChoice, Webhook};
use stationmaster_core::engine::dispatchers::DispatcherEngine;
use stationmaster_core::engine::embedded::{EmbeddedDispatchers, EmbeddedEngine};
use stationmaster_core::engine::{Engine as _, OtherEngine, record};
use stationmaster_core::locks::Locks;
use stationmaster_core::observe::Metrics;
use stationmaster_core::pooler;
use stationmaster_core::presence::Presence;
use stationmaster_core::schema;
use stationmaster_core::session::Wall;
use stationmaster_core::station::{Parts, StartError, Station};
use stationmaster_schedule::zone_data_version;
use stationmaster_temporal::{
    ClientIdentity, TemporalConfig, TemporalDispatchers, TemporalEngine, TemporalTls,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Engine, Heartbeats, Temporal};
use crate::failure::{Kind, Refusal};
use crate::service::Manager;
use crate::{http, version};

/// How long a server takes that was told twice to stop: enough to say goodbye, so that others need not wait for its leases.
const HURRY: Duration = Duration::from_secs(2);

/// How long a database may take to let somebody in.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that runs.
pub(crate) struct Running {
    pub(crate) database: Database,
    pub(crate) address: SocketAddr,
    station: Arc<Station>,
    stop: CancellationToken,
    http: tokio::task::JoinHandle<()>,
}

/// Starts everything: the tables first, then the background work, then the doors.
pub(crate) async fn start(
    config: &Arc<Config>,
    database: Database,
    listener: TcpListener,
) -> Result<Running> {
    let address = listener.local_addr()?;
    tokio::select! {
        prepared = prepare(config, &database, address) => prepared?,
        () = http::waiting::answer(&listener, config.http.tls_cert.is_some()) => {}
    }
    let certificate = http::Certificate::of(&config.http)?;
    let presence = Presence::new(&config.server_name());
    let (engine, dispatcher_engine) = engine(config, &database, &presence)?;
    let metrics = Arc::new(Metrics::new());
    metrics.made_from(
        version::NUMBER,
        version::COMMIT,
        &schema::newest().to_string(),
        zone_data_version(),
    );
    let locks = Locks::new(
        database.for_requests(),
        config.locks.table.clone(),
        Arc::clone(&metrics),
    );
    look_at_locks(config, &locks).await;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let parts = Parts {
        database: database.clone(),
        presence,
        engine,
        executions: config.executions(),
        alarms: config.alarms().map(alarms::Setup::new).transpose()?,
        dispatchers: Some(dispatchers::Parts {
            settings: config.dispatchers.clone(),
            engine: dispatcher_engine,
            heartbeats: heartbeats(config)?,
            webhook: webhook(config),
        }),
        metrics: Arc::clone(&metrics),
    };
    let station = Arc::new(Station::start(parts).await.map_err(refuse_engine)?);
    let stop = CancellationToken::new();
    let parts = http::Parts {
        database: database.clone(),
        station: Arc::clone(&station),
        metrics,
        locks,
        settings: config.http.clone(),
        certificate,
        targets: config.wake_guard(),
        config: Arc::clone(config),
    };
    let http = tokio::spawn(http::serve(listener, parts, stop.clone()));
    Ok(Running {
        database,
        address,
        station,
        stop,
        http,
    })
}

/// Another engine than the one on record: nothing is done with it until somebody says that it is meant.
fn refuse_engine(error: StartError) -> anyhow::Error {
    match error {
        StartError::OtherEngine(other) => refusal(&other).into(),
        StartError::Database(error) => error.into(),
    }
}

fn refusal(other: &OtherEngine) -> Refusal {
    Refusal::new(
        Kind::Conflict,
        other.to_string(),
        "Name the engine on record in the settings. If the other one is meant, stop all servers and run: stationmaster engine change",
    )
}

/// A lock table that cannot be used is said at once. It stops nothing: whoever needs it tries again until it can be.
async fn look_at_locks(config: &Config, locks: &Locks) {
    let problem = if config.migrate_at_start {
        locks.prepare().await
    } else {
        locks.problem().await
    };
    match problem {
        Ok(None) => {}
        Ok(Some(problem)) if config.executions_enabled && config.exclusive.on => {
            tracing::error!("{problem} Nothing is dispatched until then: the exclusive mode needs it.");
        }
        Ok(Some(problem)) => tracing::warn!("{problem} Until then there are no named locks."),
        Err(error) => tracing::warn!(%error, "Could not look at the lock table"),
    }
}

/// Beyond this machine nobody is let in unless there are tokens to tell people apart; and it is said how far the doors open.
async fn admit_nobody_unknown(config: &Config, database: &Database, address: SocketAddr) -> Result<()> {
    let local = address.ip().is_loopback();
    if config.http.open {
        tracing::warn!("Open: whoever reaches {address} may do everything (setting http.open)");
    } else if !access::any_active(database).await? {
        let make = "stationmaster tokens create --role admin NAME";
        if !local {
            let words = format!(
                "{address} can be reached from other machines, and there is no token to keep them out"
            );
            return Err(Refusal::usage(words, format!("Make one first: {make}")).into());
        }
        tracing::warn!("There is no token yet, so every request to the API is refused. Make one: {make}");
    }
    if !local && config.http.tls_cert.is_none() {
        tracing::warn!(
            "Tokens travel unencrypted to {address}: set http.tls_cert and http.tls_key, or put TLS before it"
        );
    }
    if let Wall::Missing(reason) = database.raise_wall().await? {
        tracing::warn!(
            reason,
            "Row-level security does not stand behind the API: its own checks stand alone. Let a role with CREATEROLE migrate"
        );
    }
    Ok(())
}

/// Makes the database ready for a server. One that is still starting, or that goes away in the middle of it, is waited for;
/// everything else is said at once.
async fn prepare(config: &Config, database: &Database, address: SocketAddr) -> Result<()> {
    let mut said = false;
    loop {
        match prepare_once(config, database, address).await {
            Err(error) if is_away(&error) => {
                if !said {
                    let error = format!("{error:#}");
                    tracing::warn!(error, "The database is not there yet; waiting for it");
                    said = true;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            other => return other,
        }
    }
}

async fn prepare_once(config: &Config, database: &Database, address: SocketAddr) -> Result<()> {
    database.choose_host().await?;
    if config.database_way.prepared {
        pooler::refuse_lost_statements(database).await?;
    }
    if config.migrate_at_start {
        let migrated = database.migrate().await;
        migrated.context("the tables could not be brought up to date")?;
    }
    database.check_schema().await?;
    admit_nobody_unknown(config, database, address).await
}

fn is_away(error: &anyhow::Error) -> bool {
    use sqlx::Error::{Io, PoolTimedOut};
    use stationmaster_core::db::Error;
    let Some(error) = error.downcast_ref::<Error>() else {
        return false;
    };
    match error {
        Error::Timeout(_)
        | Error::Silent
        | Error::NoHost(_)
        | Error::Sql(Io(_) | PoolTimedOut)
        | Error::Migration {
            source: Io(_) | PoolTimedOut,
            ..
        } => true,
        // Starting up, shutting down, crashed, too many connections.
        _ => matches!(
            error.code().as_deref(),
            Some("57P03" | "57P01" | "57P02" | "53300")
        ),
    }
}

type Engines = (
    Arc<dyn stationmaster_core::engine::Engine>,
    Arc<dyn DispatcherEngine>,
);

fn engine(config: &Config, database: &Database, presence: &Presence) -> Result<Engines> {
    match config.engine {
        Engine::Embedded => {
            let engine = EmbeddedEngine::guarded(database.clone(), presence.clone(), config.node_guard())?;
            Ok((Arc::new(engine), Arc::new(EmbeddedDispatchers::new())))
        }
        Engine::Temporal => {
            let (engine, dispatchers) = temporal_engines(config)?;
            Ok((engine, Arc::new(dispatchers)))
        }
    }
}

fn temporal_engines(config: &Config) -> Result<(Arc<TemporalEngine>, TemporalDispatchers)> {
    let settings = temporal(&config.temporal, &config.server_name());
    let engine = Arc::new(TemporalEngine::new(&settings)?);
    let dispatchers = TemporalDispatchers::new(Arc::clone(&engine), &settings)?;
    Ok((engine, dispatchers))
}

/// The engine of the dispatchers alone, for commands that only ask or reconcile.
pub(crate) fn dispatcher_engine(config: &Config) -> Result<Arc<dyn DispatcherEngine>> {
    match config.engine {
        Engine::Embedded => Ok(Arc::new(EmbeddedDispatchers::new())),
        Engine::Temporal => Ok(Arc::new(temporal_engines(config)?.1)),
    }
}

/// The engine of executions alone, for commands that ask who it is.
pub(crate) fn executions_engine(
    config: &Config,
    database: &Database,
) -> Result<Arc<dyn stationmaster_core::engine::Engine>> {
    let presence = Presence::new(&config.server_name());
    engine(config, database, &presence).map(|(engine, _)| engine)
}

/// The engine of the dispatchers for a command that acts: only on the engine on record.
async fn acting_dispatcher_engine(config: &Config, database: &Database) -> Result<Arc<dyn DispatcherEngine>> {
    if config.engine == Engine::Embedded {
        return dispatcher_engine(config);
    }
    let (engine, dispatchers) = temporal_engines(config)?;
    let identity = engine.identity().await?;
    let name = stationmaster_core::engine::Engine::name(&*engine);
    let known = record::recognise(database, name, &identity, &config.server_name()).await?;
    known.map_err(|other| refusal(&other))?;
    engine.bind_to(Some(&identity));
    Ok(Arc::new(dispatchers))
}

/// Whoever compares leases, heartbeats and the engine's runs, for a command that does so once.
pub(crate) async fn office(config: &Config, database: Database) -> Result<Office> {
    let heartbeats = heartbeats(config)?.store(&database);
    let engine = acting_dispatcher_engine(config, &database).await?;
    let settings = Arc::new(config.dispatchers.clone());
    Ok(Office::new(
        database,
        engine,
        heartbeats,
        settings,
        Arc::new(Metrics::new()),
    ))
}

/// Where heartbeats are kept.
fn heartbeats(config: &Config) -> Result<HeartbeatChoice> {
    match (config.heartbeats, &config.redis_url) {
        (Heartbeats::Redis, Some(url)) => {
            let tls = &config.redis_tls;
            let files = Files {
                authority: tls.authority.clone(),
                own: tls.certificate.clone().zip(tls.key.clone()),
            };
            let store = RedisHeartbeats::new(url, files)
                .context("the settings redis_url and redis_tls_* cannot be used")?;
            Ok(HeartbeatChoice::Redis(Arc::new(store)))
        }
        _ => Ok(HeartbeatChoice::Postgres),
    }
}

fn webhook(config: &Config) -> Option<Webhook> {
    Some(Webhook {
        url: config.webhook_url.clone()?,
        secret: config.webhook_secret.clone(),
    })
}

/// Temporal's settings.
pub(crate) fn temporal(settings: &Temporal, identity: &str) -> TemporalConfig {
    let client = match (&settings.tls_cert_file, &settings.tls_key_file) {
        (Some(certificate), Some(key)) => Some(ClientIdentity {
            certificate: certificate.clone(),
            key: key.clone(),
        }),
        _ => None,
    };
    let ca_certificate = settings.tls_ca_file.clone();
    let wants_tls = settings.tls || client.is_some() || ca_certificate.is_some();
    let tls = wants_tls.then(|| TemporalTls {
        ca_certificate,
        server_name: settings.tls_server_name.clone(),
        client,
    });
    TemporalConfig {
        address: settings.address.clone(),
        namespace: settings.namespace.clone(),
        identity: format!("stationmaster@{identity}"),
        rpc_timeout: Duration::from_secs(10),
        tls,
        api_key: settings.api_key.clone(),
    }
}

impl Running {
    /// Runs until the process is told to stop, then stops in order.
    pub(crate) async fn until_told_to_stop(self, patience: Duration, manager: Option<Manager>) -> Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut told = async || {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        let unwanted = Arc::clone(&self.station);
        let alive = async {
            match &manager {
                Some(manager) => manager.keep_alive().await,
                None => std::future::pending().await,
            }
        };
        let mut alive = std::pin::pin!(alive);
        tokio::select! {
            () = told() => {}
            () = unwanted.presence().unwanted() => tracing::info!("Somebody wishes that this server leaves"),
            () = &mut alive => {}
        }
        if let Some(manager) = &manager {
            manager.stopping();
        }
        tracing::info!("Stopping; told again, this server hurries");
        let station = Arc::clone(&self.station);
        tokio::select! {
            stopped = self.shut_down(patience) => return stopped,
            () = told() => {}
            () = &mut alive => {}
        }
        tracing::warn!("Told to stop again: hurrying. What is under way is left to its leases");
        station.shut_down(HURRY.min(patience)).await;
        Ok(())
    }

    /// Stops in order: no new requests, no new claims, what is under way is finished or given back.
    pub(crate) async fn shut_down(self, patience: Duration) -> Result<()> {
        self.stop.cancel();
        // Whoever still reads an answer gets a moment, while the intake has stopped already.
        let doors = tokio::time::timeout(patience.min(Duration::from_secs(2)), self.http);
        let (_, ()) = tokio::join!(doors, self.station.shut_down(patience));
        Ok(())
    }
}

/// Opens one connection beside the pool: a pool waits for a server that refuses, in the hope that it is starting, and then
/// says only that it waited. A person wants to know at once, and why.
pub(crate) async fn reach(database: &Database) -> std::result::Result<(), db::Error> {
    database.choose_host().await?;
    let options = database.pool().connect_options();
    let connection = tokio::time::timeout(PATIENCE, options.connect()).await;
    let connection = connection.map_err(|_| db::Error::Timeout(PATIENCE))??;
    // It was only to see whether there is one.
    let _ = connection.close().await;
    Ok(())
}
