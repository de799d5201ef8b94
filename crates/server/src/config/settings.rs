//! The table: every setting there is, once. A new setting is a field of [`Config`] and a row here.

use std::time::Duration;

use stationmaster_core::wake::signature::Secret;

use super::mask::{Secrecy, shown};
use super::parse::{
    Parsed, address, boolean, choice, duration, duration_between, filter, list, number, pairs, path, share,
    url, webhook_secret, words,
};
use super::value::{Effective, Given, Origin, Text};
use super::{Complaint, Config, Engine, Heartbeats, LogFormat};

/// One setting.
pub(super) struct Setting {
    /// Its name, with dots.
    pub(super) key: &'static str,
    /// Its value when nobody says anything; none: it may be left out.
    pub(super) default: Option<&'static str>,
    /// What may be given, to follow the word "give".
    pub(super) form: &'static str,
    /// What it is for, in a line.
    pub(super) help: &'static str,
    /// What of it must not be shown.
    pub(super) secrecy: Secrecy,
    apply: fn(&mut Config, &str) -> Parsed<()>,
}

const DURATION: &str = "a duration, as in 250ms, 5s, 1m or 7d";
const BOOLEAN: &str = "true or false";
const NAME: &str = "a name";
const PATH: &str = "a path";

const fn setting(
    key: &'static str,
    default: &'static str,
    form: &'static str,
    help: &'static str,
    apply: fn(&mut Config, &str) -> Parsed<()>,
) -> Setting {
    Setting {
        key,
        default: Some(default),
        form,
        help,
        secrecy: Secrecy::Open,
        apply,
    }
}

const fn optional(
    key: &'static str,
    form: &'static str,
    help: &'static str,
    apply: fn(&mut Config, &str) -> Parsed<()>,
) -> Setting {
    Setting {
        key,
        default: None,
        form,
        help,
        secrecy: Secrecy::Open,
        apply,
    }
}

fn put<T>(place: &mut T, value: Parsed<T>) -> Parsed<()> {
    *place = value?;
    Ok(())
}

/// Every setting, in the order in which they are shown. Laid out by hand: a row is key, default and form; help; place.
#[rustfmt::skip]
pub(super) static SETTINGS: &[Setting] = &[
    Setting { secrecy: Secrecy::Password, ..optional("database_url", "a URL like postgres://user:password@host:5432/database",
        "Where PostgreSQL is. `dev` brings its own; everything else needs it",
        |c, t| put(&mut c.database_url, url(t, &["postgres", "postgresql"]).map(Some))) },
    setting("database_pool", "16", "a number from 2 to 500",
        "Connections to PostgreSQL at most, beside the one that listens",
        |c, t| put(&mut c.database_pool, number(t, 2..=500))),
    setting("migrate_at_start", "true", BOOLEAN,
        "Apply migrations when a server starts; otherwise run `stationmaster migrate` before",
        |c, t| put(&mut c.migrate_at_start, boolean(t))),
    setting("engine", "embedded", "embedded or temporal",
        "Where executions run",
        |c, t| put(&mut c.engine, choice(t, &[("embedded", Engine::Embedded), ("temporal", Engine::Temporal)]))),
    setting("listen", "127.0.0.1:7373", "an IP address and a port",
        "Where the HTTP server listens. Beyond this machine only once there is a token: see `stationmaster tokens create`",
        |c, t| put(&mut c.listen, address(t))),
    optional("server_name", NAME,
        "What this server is called in lists and histories; the name of the host when left out",
        |c, t| put(&mut c.server_name, words(t).map(Some))),
    setting("shutdown_timeout", "30s", DURATION,
        "How long an orderly end may take before what is left is covered by its leases",
        |c, t| put(&mut c.shutdown_timeout, duration(t))),
    Setting { secrecy: Secrecy::Password, ..optional("redis_url", "a URL like redis://:password@host:6379/0",
        "Where Redis is, for the heartbeats of dispatchers",
        |c, t| put(&mut c.redis_url, url(t, &["redis", "rediss"]).map(Some))) },
    setting("heartbeats", "postgres", "postgres or redis",
        "Where dispatchers write their heartbeats. They are never the fence: leases in PostgreSQL are",
        |c, t| put(&mut c.heartbeats, choice(t, &[("postgres", Heartbeats::Postgres), ("redis", Heartbeats::Redis)]))),

    setting("log.format", "pretty", "pretty or json",
        "Lines for people, or one JSON object a line",
        |c, t| put(&mut c.log.format, choice(t, &[("pretty", LogFormat::Pretty), ("json", LogFormat::Json)]))),
    setting("log.level", "info", "a level (error, warn, info, debug, trace) or a filter like info,stationmaster_core=debug",
        "What is logged",
        |c, t| put(&mut c.log.level, filter(t))),

    optional("traces.otlp_endpoint", "a URL like http://localhost:4317",
        "Where an OpenTelemetry collector takes traces, by OTLP over gRPC; left out, none are sent",
        |c, t| put(&mut c.traces.otlp_endpoint, url(t, &["http", "https"]).map(Some))),
    setting("traces.service_name", "stationmaster", NAME,
        "What this service is called in traces",
        |c, t| put(&mut c.traces.service_name, words(t))),
    setting("traces.sample", "1", "a share from 0 to 1",
        "The share of rounds that are traced",
        |c, t| put(&mut c.traces.sample, share(t))),

    setting("http.open", "false", BOOLEAN,
        "Ask nobody for a token; only on a loopback address. `dev` does so",
        |c, t| put(&mut c.http.open, boolean(t))),
    optional("http.tls_cert", PATH,
        "Our certificate and those that signed it, PEM: the server speaks TLS. Read at the start",
        |c, t| put(&mut c.http.tls_cert, path(t).map(Some))),
    optional("http.tls_key", PATH,
        "The key of our certificate, PEM",
        |c, t| put(&mut c.http.tls_key, path(t).map(Some))),
    setting("http.body_limit", "262144", "a number of bytes from 1024 to 67108864",
        "The largest body of a request",
        |c, t| put(&mut c.http.body_limit, number(t, 1_024..=67_108_864))),
    setting("http.request_timeout", "30s", DURATION,
        "How long a request may take; streams of events may take for ever",
        |c, t| put(&mut c.http.request_timeout, duration(t))),
    setting("http.max_connections", "1024", "a number from 1 to 100000",
        "Connections at once; more wait to be accepted",
        |c, t| put(&mut c.http.max_connections, number(t, 1..=100_000))),
    setting("http.max_in_flight", "256", "a number from 1 to 100000",
        "Requests under way at once; more are refused with 503",
        |c, t| put(&mut c.http.max_in_flight, number(t, 1..=100_000))),
    setting("http.max_streams", "256", "a number from 1 to 100000",
        "Streams of events at once; more are refused with 503",
        |c, t| put(&mut c.http.max_streams, number(t, 1..=100_000))),
    setting("http.rate_limit", "500", "a number from 1 to 1000000",
        "Requests a second for each token, on each server; more are refused with 429",
        |c, t| put(&mut c.http.rate_limit, number(t, 1..=1_000_000))),
    setting("http.auth_failures", "30", "a number from 1 to 1000000",
        "Tokens a minute from one address that open no door; more are refused with 429",
        |c, t| put(&mut c.http.auth_failures, number(t, 1..=1_000_000))),
    setting("http.event_retention", "1d", DURATION,
        "How long events are kept for listeners that come back",
        |c, t| put(&mut c.http.event_retention, duration(t))),
    setting("http.audit_retention", "400d", DURATION,
        "How long lines of the audit are kept",
        |c, t| put(&mut c.http.audit_retention, duration(t))),
    setting("http.require_if_match", "false", BOOLEAN,
        "Refuse PUT, PATCH and DELETE of what has a tag when they do not say what they expect (428)",
        |c, t| put(&mut c.http.require_if_match, boolean(t))),
    setting("http.protect_metrics", "false", BOOLEAN,
        "Ask for a token at `/metrics` too",
        |c, t| put(&mut c.http.protect_metrics, boolean(t))),

    setting("temporal.address", "127.0.0.1:7233", "host:port, or a URL that begins with http: or https:",
        "Where Temporal is, for the engine `temporal`",
        |c, t| put(&mut c.temporal.address, words(t))),
    setting("temporal.namespace", "default", NAME,
        "The namespace that executions run in; it must exist",
        |c, t| put(&mut c.temporal.namespace, words(t))),
    Setting { secrecy: Secrecy::Whole, ..optional("temporal.api_key", "a key",
        "Sent as a bearer token with every call",
        |c, t| put(&mut c.temporal.api_key, words(t).map(Some))) },
    setting("temporal.tls", "false", BOOLEAN,
        "Speak TLS to Temporal; an authority or a certificate of our own turns it on as well",
        |c, t| put(&mut c.temporal.tls, boolean(t))),
    optional("temporal.tls_ca_file", PATH,
        "The authority that signed Temporal's certificate, PEM; the system's authorities when left out",
        |c, t| put(&mut c.temporal.tls_ca_file, path(t).map(Some))),
    optional("temporal.tls_cert_file", PATH,
        "Our certificate, PEM, where Temporal asks for one",
        |c, t| put(&mut c.temporal.tls_cert_file, path(t).map(Some))),
    optional("temporal.tls_key_file", PATH,
        "The key of our certificate, PEM",
        |c, t| put(&mut c.temporal.tls_key_file, path(t).map(Some))),
    optional("temporal.tls_server_name", NAME,
        "The name to expect in Temporal's certificate, when it is not the host of the address",
        |c, t| put(&mut c.temporal.tls_server_name, words(t).map(Some))),

    setting("executions.enabled", "true", BOOLEAN,
        "Dispatch executions on this server",
        |c, t| put(&mut c.executions.enabled, boolean(t))),
    setting("executions.poll_interval", "5s", DURATION,
        "Look for work this often even when nobody says that there is any",
        |c, t| put(&mut c.executions.poll_interval, duration(t))),
    setting("executions.batch_size", "1000", "a number from 1 to 10000",
        "The most that one claim takes; in the exclusive mode 10 when left out",
        |c, t| put(&mut c.executions.batch_size, number(t, 1..=10_000))),
    setting("executions.max_attempts", "3", "a number from 1 to 1000",
        "Starts that the engine may refuse before an item fails for good; a workflow may have its own",
        |c, t| put(&mut c.executions.max_attempts, number(t, 1..=1_000))),
    setting("executions.max_recoveries", "10", "a number from 1 to 1000",
        "Servers that may be lost with an item in their hands before it is put aside",
        |c, t| put(&mut c.executions.max_recoveries, number(t, 1..=1_000))),
    setting("executions.claim_lease", "30s", DURATION,
        "How long a claim holds unless it is renewed; at least 5 s longer than a start may take (in the exclusive mode: than a batch of them, and 2m when left out)",
        |c, t| put(&mut c.executions.claim_lease, duration(t))),
    setting("executions.start_timeout", "10s", DURATION,
        "How long one start may take",
        |c, t| put(&mut c.executions.start_timeout, duration(t))),
    setting("executions.start_concurrency", "64", "a number from 1 to 10000",
        "Starts under way at once",
        |c, t| put(&mut c.executions.start_concurrency, number(t, 1..=10_000))),
    setting("executions.retry_base", "1s", DURATION,
        "The first wait between starts that the engine refused; it doubles each time, with full jitter",
        |c, t| put(&mut c.executions.retry_base, duration(t))),
    setting("executions.retry_cap", "1m", DURATION,
        "The longest such wait",
        |c, t| put(&mut c.executions.retry_cap, duration(t))),
    setting("executions.task_queue", "stationmaster", NAME,
        "The task queue of workflows that name none",
        |c, t| put(&mut c.executions.task_queue, words(t))),
    setting("executions.workflow_type", "stationmaster-workflow", NAME,
        "The workflow type of workflows that name none",
        |c, t| put(&mut c.executions.workflow_type, words(t))),
    setting("executions.retention", "7d", DURATION,
        "How long finished executions are kept",
        |c, t| put(&mut c.executions.retention, duration(t))),
    setting("executions.reconcile_interval", "30s", DURATION,
        "How often our rows and the engine's runs are compared",
        |c, t| put(&mut c.executions.reconcile_interval, duration(t))),
    setting("executions.close_interval", "250ms", DURATION,
        "How often the engine is asked which runs have closed; less often while none has and it answers slowly",
        |c, t| put(&mut c.executions.close_interval, duration(t))),
    setting("executions.exclusive", "false", BOOLEAN,
        "Let one server at a time work through the queue, in turns under the lock `processExecutionQueue`, one item after another",
        |c, t| put(&mut c.executions.exclusive, boolean(t))),
    setting("executions.exclusive_at_most", "4m", DURATION,
        "In the exclusive mode: how long a turn's lock holds should its server be lost; a server that lives extends it",
        |c, t| put(&mut c.executions.exclusive_at_most, duration(t))),
    setting("executions.exclusive_at_least", "10s", DURATION,
        "In the exclusive mode: how long a turn's lock stays held, however quick the turn was",
        |c, t| put(&mut c.executions.exclusive_at_least, duration(t))),
    setting("executions.exclusive_recovery_interval", "1m", DURATION,
        "In the exclusive mode: time between two recoveries, under the lock `recoverStaleQueueItems`",
        |c, t| put(&mut c.executions.exclusive_recovery_interval, duration(t))),
    setting("executions.exclusive_recovery_at_most", "2m", DURATION,
        "In the exclusive mode: how long the lock of a recovery holds should its server be lost",
        |c, t| put(&mut c.executions.exclusive_recovery_at_most, duration(t))),
    setting("executions.exclusive_recovery_at_least", "30s", DURATION,
        "In the exclusive mode: how long the lock of a recovery stays held",
        |c, t| put(&mut c.executions.exclusive_recovery_at_least, duration(t))),
    setting("executions.exclusive_stale_after", "5m", DURATION,
        "In the exclusive mode: a claim that nobody looks after any more is recovered when it is this old",
        |c, t| put(&mut c.executions.exclusive_stale_after, duration(t))),

    setting("locks.table", "shedlock", "the name of a table, with or without its schema, such as shedlock, jobs.shedlock or \"ShedLock\"",
        "The table of named locks, which ShedLock applications may share; without a schema it is found by the search path",
        |c, t| put(&mut c.locks.table, t.parse())),

    setting("dispatchers.enabled", "true", BOOLEAN,
        "Own dispatchers on this server, or stand by them; without it this server only supervises",
        |c, t| put(&mut c.dispatchers.enabled, boolean(t))),
    optional("dispatchers.projects", "project/task-queue, and more after commas",
        "Dispatchers that exist from the start; others appear with their first trigger or signal",
        |c, t| put(&mut c.dispatchers.projects, pairs(t))),
    setting("dispatchers.lease", "15s", DURATION,
        "How long an owner's lease holds unless it is renewed, which happens five times as often; a standby takes over after it",
        |c, t| put(&mut c.dispatchers.lease, duration(t))),
    setting("dispatchers.heartbeat_interval", "10s", DURATION,
        "How often an owner writes its heartbeat; shorter than the lease",
        |c, t| put(&mut c.dispatchers.heartbeat_interval, duration(t))),
    setting("dispatchers.stale_after", "20s", DURATION,
        "Heartbeats and servers that were not heard of for so long are stale; at least the lease and two heartbeats",
        |c, t| put(&mut c.dispatchers.stale_after, duration(t))),
    setting("dispatchers.scan_interval", "15s", DURATION,
        "How often the supervisor compares leases, heartbeats and the engine's runs",
        |c, t| put(&mut c.dispatchers.scan_interval, duration(t))),
    setting("dispatchers.second_look", "2s", DURATION,
        "How long the supervisor waits before it looks again at what seems left behind",
        |c, t| put(&mut c.dispatchers.second_look, duration(t))),
    setting("dispatchers.cleanup_timeout", "5s", DURATION,
        "How long one act of the supervisor may take",
        |c, t| put(&mut c.dispatchers.cleanup_timeout, duration(t))),
    setting("dispatchers.sla", "2m", DURATION,
        "Nothing of a killed server is left after this; stale_after, scan_interval, second_look and cleanup_timeout must fit in",
        |c, t| put(&mut c.dispatchers.sla, duration(t))),
    setting("dispatchers.check_interval", "10s", DURATION,
        "How often a dispatcher checks itself and evicts servers that were not heard of",
        |c, t| put(&mut c.dispatchers.check_interval, duration(t))),
    setting("dispatchers.poll_interval", "1s", DURATION,
        "Look for signals this often even when nobody says that there are any",
        |c, t| put(&mut c.dispatchers.poll_interval, duration(t))),
    setting("dispatchers.batch_size", "500", "a number from 1 to 5000",
        "The most signals that one statement routes",
        |c, t| put(&mut c.dispatchers.batch_size, number(t, 1..=5_000))),
    setting("dispatchers.evict_batch", "50", "a number from 1 to 1000",
        "The most servers that one self-check evicts",
        |c, t| put(&mut c.dispatchers.evict_batch, number(t, 1..=1_000))),
    setting("dispatchers.continue_after", "4000", "a number from 50 to 40000",
        "A dispatcher's workflow continues as new after so many events of history",
        |c, t| put(&mut c.dispatchers.continue_after, number(t, 50..=40_000))),
    setting("dispatchers.retention", "7d", DURATION,
        "How long settled signals, dead letters among them, and the events of dispatchers are kept; ids are remembered as long",
        |c, t| put(&mut c.dispatchers.retention, duration(t))),
    optional("dispatchers.webhook_url", "a URL that begins with http: or https:",
        "Takeovers, evictions and terminations are posted there",
        |c, t| put(&mut c.dispatchers.webhook_url, url(t, &["http", "https"]).map(Some))),
    Setting { secrecy: Secrecy::Whole, ..optional("dispatchers.webhook_secret", "a key of Standard Webhooks, as in whsec_<base64>",
        "Signs what is posted",
        |c, t| put(&mut c.dispatchers.webhook_secret, webhook_secret(t).map(Some))) },

    setting("alarms.enabled", "true", BOOLEAN,
        "Fire alarms on this server",
        |c, t| put(&mut c.alarms.enabled, boolean(t))),
    optional("alarms.router_url", "a URL that begins with http: or https:",
        "Where wakes go that name no target: to the path /internal/wake below it. It need not be public",
        |c, t| put(&mut c.alarms.router_url, url(t, &["http", "https"]).map(Some))),
    setting("alarms.tick", "1s", "a duration from 10ms to 10s",
        "Look for due alarms this often even when none is known of",
        |c, t| put(&mut c.alarms.tick, duration_between(t, Duration::from_millis(10)..=Duration::from_secs(10)))),
    setting("alarms.lease", "2m", DURATION,
        "How long a claim holds; at least 5 s longer than a delivery may take",
        |c, t| put(&mut c.alarms.lease, duration(t))),
    setting("alarms.batch_size", "100", "a number from 1 to 10000",
        "What one claim takes; under a backlog, four times as much",
        |c, t| put(&mut c.alarms.batch_size, number(t, 1..=10_000))),
    setting("alarms.concurrency", "512", "a number from 1 to 10000",
        "Wakes under way at once",
        |c, t| put(&mut c.alarms.concurrency, number(t, 1..=10_000))),
    setting("alarms.per_target", "32", "a number from 1 to 10000",
        "Of these, to one target (scheme, host and port)",
        |c, t| put(&mut c.alarms.per_target, number(t, 1..=10_000))),
    setting("alarms.delivery_timeout", "30s", DURATION,
        "How long one wake may take",
        |c, t| put(&mut c.alarms.delivery_timeout, duration(t))),
    setting("alarms.max_failures", "5", "a number from 1 to 100",
        "Tries of an occurrence before it fails; an alarm may have its own",
        |c, t| put(&mut c.alarms.max_failures, number(t, 1..=100))),
    setting("alarms.misfire_grace", "30s", DURATION,
        "An occurrence that is later than this is missed, and the misfire policy decides",
        |c, t| put(&mut c.alarms.misfire_grace, duration(t))),
    setting("alarms.misfire_window", "24h", DURATION,
        "How far back missed occurrences of a series are made up for; an alarm may have its own",
        |c, t| put(&mut c.alarms.misfire_window, duration(t))),
    optional("alarms.allow_targets", "hosts, host:port or networks like 10.0.0.0/8, with commas between them",
        "Targets, beside the router, that need not have public addresses",
        |c, t| put(&mut c.alarms.allow_targets, list(t))),
    Setting { secrecy: Secrecy::Whole, ..optional("alarms.signing_secret", "a secret like whsec_ and the base64 of 24 to 64 bytes",
        "Signs wakes (Standard Webhooks); the secrets of targets are derived from it. Without it wakes are not signed",
        |c, t| put(&mut c.alarms.signing_secret, Secret::parse(t).map(Some))) },
    Setting { secrecy: Secrecy::Whole, ..optional("alarms.previous_signing_secret", "a secret like whsec_ and the base64 of 24 to 64 bytes",
        "The signing secret before, which signs as well while receivers change over",
        |c, t| put(&mut c.alarms.previous_signing_secret, Secret::parse(t).map(Some))) },
    setting("alarms.retention", "30d", DURATION,
        "How long settled occurrences and ended alarms are kept",
        |c, t| put(&mut c.alarms.retention, duration(t))),

    optional("dev.data_dir", PATH,
        "Where `stationmaster dev` keeps its database",
        |c, t| put(&mut c.dev.data_dir, path(t).map(Some))),
    optional("dev.postgres_bin", PATH,
        "The folder of PostgreSQL's programs (initdb, postgres) for `dev`; looked for when left out",
        |c, t| put(&mut c.dev.postgres_bin, path(t).map(Some))),
    setting("dev.example", "true", BOOLEAN,
        "Begin `dev` with an example workspace and workflow",
        |c, t| put(&mut c.dev.example, boolean(t))),
];

/// Settings that have another default in the exclusive mode.
const DEFAULTS_OF_EXCLUSIVE_MODE: [(&str, &str); 2] =
    [("executions.batch_size", "10"), ("executions.claim_lease", "2m")];

/// Puts the defaults of the exclusive mode where nobody said anything else.
pub(super) fn apply_defaults_of_exclusive_mode(config: &mut Config, values: &mut [Effective]) {
    if !config.executions.exclusive {
        return;
    }
    for (key, default) in DEFAULTS_OF_EXCLUSIVE_MODE {
        let setting = SETTINGS.iter().find(|setting| setting.key == key);
        let value = values
            .iter_mut()
            .find(|value| value.key == key && value.origin == Origin::Default);
        if let (Some(setting), Some(value)) = (setting, value) {
            let applied = (setting.apply)(config, default);
            debug_assert!(applied.is_ok(), "the default of {key} is not valid: {applied:?}");
            value.value = Some(default.to_owned());
        }
    }
}

impl Setting {
    /// The environment variable that gives it.
    pub(super) fn variable(&self) -> String {
        format!(
            "STATIONMASTER_{}",
            self.key.replace('.', "__").to_ascii_uppercase()
        )
    }

    /// May its value be kept in a file of its own?
    pub(super) fn may_be_in_file(&self) -> bool {
        self.secrecy != Secrecy::Open
    }

    /// Puts the default where the value goes.
    pub(super) fn apply_default(&self, config: &mut Config) {
        if let Some(default) = self.default {
            let applied = (self.apply)(config, default);
            debug_assert!(
                applied.is_ok(),
                "the default of {} is not valid: {applied:?}",
                self.key
            );
        }
    }

    /// Puts what was given where the value goes, and says what may be shown of it.
    pub(super) fn take(&self, given: Option<Given>, config: &mut Config) -> Result<Effective, Complaint> {
        let Some(given) = given else {
            let value = self.default.map(str::to_owned);
            return Ok(Effective {
                key: self.key,
                value,
                origin: Origin::Default,
            });
        };
        let text = self.read(&given)?;
        // An empty value takes an optional setting away, whatever weaker sources say.
        if self.default.is_none() && text.is_empty() {
            return Ok(Effective {
                key: self.key,
                value: None,
                origin: given.origin,
            });
        }
        match (self.apply)(config, &text) {
            Ok(()) => Ok(Effective {
                key: self.key,
                value: Some(shown(&text, self.secrecy)),
                origin: given.origin,
            }),
            Err(problem) => Err(self.complaint(&given.origin, problem)),
        }
    }

    fn read(&self, given: &Given) -> Result<String, Complaint> {
        match &given.text {
            Text::Here(text) => Ok(text.clone()),
            Text::InFile(path) => match std::fs::read_to_string(path) {
                // Editors and `echo` end a file with a newline that is no part of the secret.
                Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => Err(Complaint {
                    setting: self.key.to_owned(),
                    origin: given.origin.to_string(),
                    problem: format!("the file {} cannot be read: {error}", path.display()),
                    remedy: "Name a file that this user may read and that holds the value, nothing else."
                        .to_owned(),
                }),
            },
        }
    }

    fn complaint(&self, origin: &Origin, problem: String) -> Complaint {
        let example = self
            .default
            .map(|default| format!("; the default is {default}"))
            .unwrap_or_default();
        let remedy = format!("Give {}{example}.", self.form);
        Complaint {
            setting: self.key.to_owned(),
            origin: origin.to_string(),
            problem,
            remedy,
        }
    }
}
