//! Configuration: flags, environment and a TOML file become one checked [`Config`], or every complaint at once.
//!
//! Nothing else in the program reads a setting from outside. What a setting is (key, default, help, how it is read) stands
//! once, in the table of `settings`; parsing, `config show` and docs/configuration.md all come from there. Whoever holds
//! a [`Config`] holds one whose values and relations were checked. This module must not know what the settings are used for.
//!
//! Reading order: `settings` (the table), `sources` (who said what), `parse` (words into values), `relations` (values
//! against each other), `complaint`, `mask`, `reference` (the generated page); then `contexts` and `target`, which say where
//! a command works.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use stationmaster_core::db::{self, Database};
use stationmaster_core::executions::exclusive::Exclusive;
use stationmaster_core::locks::{LockTable, Terms};
use stationmaster_core::wake::guard::{Allowed, Guard};
use stationmaster_core::wake::signature::Secret;
use stationmaster_core::{alarms, dispatchers, executions};

mod complaint;
mod contexts;
mod flags;
mod mask;
mod parse;
mod reference;
mod relations;
mod settings;
mod sources;
mod target;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use complaint::{Complaint, Complaints};
pub(crate) use contexts::{Contexts, Stored};
pub(crate) use flags::Flags;
pub(crate) use parse::duration;
pub(crate) use reference::{reference, template};
pub(crate) use settings::is_secret;
pub(crate) use target::{Target, TargetFlags, before_contexts, no_context, target, token_of_the_environment};
pub(crate) use value::Effective;
#[cfg(test)]
use value::Origin;

/// Every setting, checked. No `Debug`: it holds passwords.
pub(crate) struct Config {
    /// Where the database is; commands that need it say how to set it.
    pub(crate) database_url: Option<String>,
    /// What lies on the way to it.
    pub(crate) database_way: Way,
    /// Connections at most.
    pub(crate) database_pool: u32,
    /// Apply migrations when a server starts.
    pub(crate) migrate_at_start: bool,
    /// Where executions run.
    pub(crate) engine: Engine,
    /// Where the HTTP server listens.
    pub(crate) listen: SocketAddr,
    /// The HTTP server.
    pub(crate) http: Http,
    /// What this server is called; see [`Config::server_name`].
    pub(crate) server_name: Option<String>,
    /// How long an orderly end may take.
    pub(crate) shutdown_timeout: Duration,
    /// What is logged, and how.
    pub(crate) log: Log,
    /// Where traces go.
    pub(crate) traces: Traces,
    /// Where Temporal is and who we are to it.
    pub(crate) temporal: Temporal,
    /// Dispatch executions on this server at all.
    pub(crate) executions_enabled: bool,
    /// The lane of executions, but for its exclusive mode; whoever runs it asks [`Config::executions()`].
    pub(crate) executions: executions::Settings,
    /// What `http` nodes of the embedded engine may call beside public addresses.
    pub(crate) node_targets: Vec<Allowed>,
    /// One server at a time.
    pub(crate) exclusive: ExclusiveMode,
    /// Named locks.
    pub(crate) locks: Locks,
    /// For the heartbeats of dispatchers.
    pub(crate) redis_url: Option<String>,
    /// How a connection to it is secured.
    pub(crate) redis_tls: RedisTls,
    /// Where dispatchers write their heartbeats.
    pub(crate) heartbeats: Heartbeats,
    /// The lane of dispatchers and signals.
    pub(crate) dispatchers: dispatchers::Settings,
    /// What the supervisor's times must fit in.
    pub(crate) dispatchers_sla: Duration,
    /// Where events of dispatchers are posted; there is one whenever there is a secret.
    pub(crate) webhook_url: Option<String>,
    /// What signs them.
    pub(crate) webhook_secret: Option<Secret>,
    /// Fire alarms on this server at all.
    pub(crate) alarms_enabled: bool,
    /// The lane of alarms; whoever runs it asks [`Config::alarms()`].
    pub(crate) alarms: alarms::Settings,
    /// What `stationmaster dev` needs to know.
    pub(crate) dev: Dev,
}

/// What lies between a server and its database.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// The address that avoids a pooler.
    pub(crate) direct_url: Option<String>,
    /// Do prepared statements survive?
    pub(crate) prepared: bool,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            direct_url: None,
            prepared: true,
        }
    }
}

/// The HTTP server.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Http {
    /// Ask nobody for a token; only on a loopback address.
    pub(crate) open: bool,
    /// Our certificate; there is a key whenever there is one.
    pub(crate) tls_cert: Option<PathBuf>,
    /// Our key; there is a certificate whenever there is one.
    pub(crate) tls_key: Option<PathBuf>,
    /// Connections to PostgreSQL for requests.
    pub(crate) database_pool: u32,
    /// The largest body, in bytes.
    pub(crate) body_limit: usize,
    /// How long a request may take.
    pub(crate) request_timeout: Duration,
    /// Connections at once.
    pub(crate) max_connections: usize,
    /// Requests at once.
    pub(crate) max_in_flight: usize,
    /// Streams of events at once.
    pub(crate) max_streams: usize,
    /// Requests a second, for each token.
    pub(crate) rate_limit: u32,
    /// Tokens a minute that open no door, for each address.
    pub(crate) auth_failures: u32,
    /// How long events are kept.
    pub(crate) event_retention: Duration,
    /// How long lines of the audit are kept.
    pub(crate) audit_retention: Duration,
    /// How long what happened in each minute is kept.
    pub(crate) history_retention: Duration,
    /// A change must say what it expects.
    pub(crate) require_if_match: bool,
    /// Metrics need a token.
    pub(crate) protect_metrics: bool,
    /// Pages show everything and do nothing.
    pub(crate) dashboard_read_only: bool,
    /// Where Temporal shows runs to people.
    pub(crate) temporal_ui_url: Option<String>,
}

/// Where executions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Engine {
    /// In this very process.
    #[default]
    Embedded,
    /// On a Temporal cluster.
    Temporal,
}

/// What is logged, and how.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// For people or for machines.
    pub(crate) format: LogFormat,
    /// A filter of the crate `tracing`, checked.
    pub(crate) level: String,
    /// What says the same again is counted, and told again after this time.
    pub(crate) repeat_after: Duration,
}

/// Where traces go.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// The collector, by OTLP over gRPC; none: nothing is exported.
    pub(crate) otlp_endpoint: Option<String>,
    /// What this service is called there.
    pub(crate) service_name: String,
    /// The share of traces that are kept, unless the caller has decided.
    pub(crate) sample: f64,
}

/// For people or for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Where Temporal is and who we are to it. No `Debug`: it holds a key.
#[derive(Default)]
pub(crate) struct Temporal {
    /// `host:port` or a URL.
    pub(crate) address: String,
    /// The namespace.
    pub(crate) namespace: String,
    /// Sent as a bearer token with every call.
    pub(crate) api_key: Option<String>,
    /// Speak TLS.
    pub(crate) tls: bool,
    /// The authority that signed the server's certificate.
    pub(crate) tls_ca_file: Option<PathBuf>,
    /// Our certificate; there is a key whenever there is one.
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Our key; there is a certificate whenever there is one.
    pub(crate) tls_key_file: Option<PathBuf>,
    /// The name to expect in the server's certificate.
    pub(crate) tls_server_name: Option<String>,
}

/// One server at a time; the rest means something only when it is on.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveMode {
    pub(crate) on: bool,
    pub(crate) at_most: Duration,
    pub(crate) at_least: Duration,
    pub(crate) recovery_interval: Duration,
    pub(crate) recovery_at_most: Duration,
    pub(crate) recovery_at_least: Duration,
    pub(crate) stale_after: Duration,
}

/// Named locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    /// The table that ShedLock applications share.
    pub(crate) table: LockTable,
}

/// How the connection to Redis is secured.
#[derive(Debug, Default)]
pub(crate) struct RedisTls {
    /// The authority that signed its certificate.
    pub(crate) authority: Option<PathBuf>,
    /// Our certificate; there is a key whenever there is one.
    pub(crate) certificate: Option<PathBuf>,
    /// Our key; there is a certificate whenever there is one.
    pub(crate) key: Option<PathBuf>,
}

/// Where dispatchers write their heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Heartbeats {
    /// The database.
    #[default]
    Postgres,
    /// Redis; then there is a `redis_url`.
    Redis,
}

/// What `stationmaster dev` needs to know.
#[derive(Debug, Default)]
pub(crate) struct Dev {
    /// Where its database lives; none: a folder that `dev` names itself.
    pub(crate) data_dir: Option<PathBuf>,
    /// Where the database's programs are; none: they are looked for.
    pub(crate) postgres_bin: Option<PathBuf>,
    /// Begin with an example.
    pub(crate) example: bool,
}

impl Config {
    /// A value that means nothing: the defaults of the table fill every field before anybody sees it.
    fn blank() -> Self {
        Self {
            database_url: None,
            database_way: Way::default(),
            database_pool: 0,
            migrate_at_start: false,
            engine: Engine::default(),
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            http: Http::default(),
            server_name: None,
            shutdown_timeout: Duration::ZERO,
            log: Log::default(),
            traces: Traces::default(),
            temporal: Temporal::default(),
            executions_enabled: false,
            executions: executions::Settings::default(),
            node_targets: Vec::new(),
            exclusive: ExclusiveMode::default(),
            locks: Locks::default(),
            redis_url: None,
            redis_tls: RedisTls::default(),
            heartbeats: Heartbeats::default(),
            dispatchers: dispatchers::Settings::default(),
            dispatchers_sla: Duration::ZERO,
            webhook_url: None,
            webhook_secret: None,
            alarms_enabled: false,
            alarms: alarms::Settings::default(),
            dev: Dev::default(),
        }
    }

    /// How the lane of executions behaves; `None` when it is switched off.
    pub(crate) fn executions(&self) -> Option<executions::Settings> {
        self.executions_enabled.then(|| executions::Settings {
            exclusive: self.exclusive(),
            ..self.executions.clone()
        })
    }

    /// How the exclusive mode behaves; `None` when all servers work at once.
    fn exclusive(&self) -> Option<Exclusive> {
        let given = &self.exclusive;
        // Terms that cannot be kept were complained about.
        given.on.then_some(Exclusive {
            table: self.locks.table.clone(),
            turn: Terms::new(given.at_most, given.at_least).ok()?,
            recovery: Terms::new(given.recovery_at_most, given.recovery_at_least).ok()?,
            recovery_interval: given.recovery_interval,
            stale_after: given.stale_after,
        })
    }

    /// What works, but not as one may think; said when a server starts.
    pub(crate) fn warnings(&self) -> Vec<String> {
        relations::warnings(self)
    }

    /// How the lane of alarms behaves; `None` when it is switched off.
    pub(crate) fn alarms(&self) -> Option<alarms::Settings> {
        self.alarms_enabled.then(|| self.alarms.clone())
    }

    /// Connections to PostgreSQL that a server with these settings opens at most.
    pub(crate) fn connections(&self) -> u32 {
        self.database_pool + self.http.database_pool + db::BESIDE_POOLS
    }

    /// Where `http` nodes of the embedded engine may go.
    pub(crate) fn node_guard(&self) -> Guard {
        Guard::new(self.node_targets.clone())
    }

    /// The database at this address, through a pooler if these settings say so. Connections are made when they are used.
    pub(crate) fn database(&self, url: &str, connections: u32) -> Result<Database, db::Error> {
        self.by_its_way(Database::new(url, connections)?)
    }

    /// The same for a server, with the connections that its requests have.
    pub(crate) fn database_of_server(&self, url: &str) -> Result<Database, db::Error> {
        let database = Database::new(url, self.database_pool)?;
        self.by_its_way(database.with_requests(self.http.database_pool))
    }

    fn by_its_way(&self, mut database: Database) -> Result<Database, db::Error> {
        if let Some(direct) = &self.database_way.direct_url {
            database = database.behind_pooler(direct)?;
        }
        Ok(if self.database_way.prepared {
            database
        } else {
            database.without_prepared()
        })
    }

    /// Where wakes may go, whether or not this server sends them.
    pub(crate) fn wake_guard(&self) -> Guard {
        Guard::new(self.alarms.allow_targets.clone())
    }

    /// What this server is called: as configured, or the name of its host.
    pub(crate) fn server_name(&self) -> String {
        let host = || {
            nix::unistd::gethostname()
                .ok()
                .and_then(|name| name.into_string().ok())
        };
        self.server_name
            .clone()
            .or_else(host)
            .unwrap_or_else(|| "stationmaster".to_owned())
    }
}

/// Where data of this user belongs, as the environment says.
pub(crate) fn user_data_folder() -> Option<PathBuf> {
    let home = std::env::home_dir().map(|home| home.join(".local/share"));
    std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).or(home)
}

/// What `cargo xtask bench` hands over: the folder for throw-away databases, and the program of Temporal's dev server.
pub(crate) fn bench_surroundings() -> (PathBuf, Option<PathBuf>) {
    let folder =
        std::env::var_os("STATIONMASTER_BENCH_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    (
        folder,
        std::env::var_os("STATIONMASTER_TEST_TEMPORAL_CLI").map(PathBuf::from),
    )
}

/// A configuration and where each of its values came from.
pub(crate) struct Loaded {
    /// The configuration.
    pub(crate) config: Config,
    /// The values in the order of the table, fit to be shown.
    pub(crate) values: Vec<Effective>,
}

/// Reads and checks everything.
pub(crate) fn load(flags: &Flags) -> Result<Loaded, Complaints> {
    load_from(flags, std::env::vars_os())
}

fn load_from(
    flags: &Flags,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Loaded, Complaints> {
    let mut complaints = Vec::new();
    let mut given = sources::gather(flags, environment, &mut complaints);
    let mut config = Config::blank();
    let mut values = Vec::new();
    let mut wrong = Vec::new();
    for setting in settings::SETTINGS {
        setting.apply_default(&mut config);
        match setting.take(given.remove(setting.key), &mut config) {
            Ok(value) => values.push(value),
            Err(complaint) => {
                wrong.push(setting.key);
                complaints.push(complaint);
            }
        }
    }
    settings::apply_defaults_of_exclusive_mode(&mut config, &mut values);
    complaints.extend(relations::check(&config, &values, &wrong));
    if complaints.is_empty() {
        Ok(Loaded { config, values })
    } else {
        Err(Complaints(complaints))
    }
}
