//! The table: every setting there is, once. A new setting is a field of [`Config`] and a row here.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use stationmaster_core::wake::signature::Secret;

use super::mask::{Secrecy, hides, shown};
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
    /// What it is for, in a line.
    pub(super) help: &'static str,
    /// What of it must not be shown.
    pub(super) secrecy: Secrecy,
    value: Value,
}

/// Where a value goes.
type Field<T> = fn(&mut Config) -> &mut T;

/// What kind of value it is and where it goes: from that follows what may be given, and how it is read.
enum Value {
    Boolean(Field<bool>),
    Time(Field<Duration>),
    Number(RangeInclusive<u32>, Field<u32>),
    Size(RangeInclusive<usize>, Field<usize>),
    Name(Field<String>),
    MaybeName(Field<Option<String>>),
    Path(Field<Option<PathBuf>>),
    /// With its form and its schemes.
    Url(&'static str, &'static [&'static str], Field<Option<String>>),
    /// With its form and a way of its own.
    Other(&'static str, fn(&mut Config, &str) -> Parsed<()>),
}

use Value::{Boolean, MaybeName, Name, Number, Other, Path, Size, Time, Url};

impl Value {
    fn form(&self) -> String {
        match self {
            Boolean(_) => "true or false".to_owned(),
            Time(_) => "a duration, as in 250ms, 5s, 1m or 7d".to_owned(),
            Number(range, _) => format!("a number from {} to {}", range.start(), range.end()),
            Size(range, _) => format!("a number from {} to {}", range.start(), range.end()),
            Name(_) | MaybeName(_) => "a name".to_owned(),
            Path(_) => "a path".to_owned(),
            Url(form, ..) | Other(form, _) => (*form).to_owned(),
        }
    }

    fn apply(&self, config: &mut Config, text: &str) -> Parsed<()> {
        match self {
            Boolean(field) => put(field(config), boolean(text)),
            Time(field) => put(field(config), duration(text)),
            Number(range, field) => put(field(config), number(text, range.clone())),
            Size(range, field) => put(field(config), number(text, range.clone())),
            Name(field) => put(field(config), words(text)),
            MaybeName(field) => put(field(config), words(text).map(Some)),
            Path(field) => put(field(config), path(text).map(Some)),
            Url(_, schemes, field) => put(field(config), url(text, schemes).map(Some)),
            Other(_, apply) => apply(config, text),
        }
    }
}

const fn setting(
    key: &'static str,
    default: Option<&'static str>,
    value: Value,
    help: &'static str,
) -> Setting {
    Setting {
        key,
        default,
        help,
        secrecy: Secrecy::Open,
        value,
    }
}

fn put<T>(place: &mut T, value: Parsed<T>) -> Parsed<()> {
    *place = value?;
    Ok(())
}

/// Every setting, in the order in which they are shown. Laid out by hand: a row is key, default and value; help.
#[rustfmt::skip]
pub(super) static SETTINGS: &[Setting] = &[
    Setting { secrecy: Secrecy::Password, ..setting("database_url", None, Url("a URL like postgres://user:password@host:5432/database", &["postgres", "postgresql"],
        |c| &mut c.database_url),
        "Where PostgreSQL is. Several hosts, separated by commas (`postgres://user:password@a:5432,b:5432/database`), are a primary and those that may take its place: the one that takes writes is used. TLS is a part of it (`?sslmode=verify-full&sslrootcert=PATH`). `dev` brings its own; everything else needs it") },
    Setting { secrecy: Secrecy::Password, ..setting("database_direct_url", None, Url("a URL like postgres://user:password@host:5432/database", &["postgres", "postgresql"],
        |c| &mut c.database_way.direct_url),
        "The way to PostgreSQL itself, where `database_url` leads to a pooler that hands out transactions (PgBouncer): for notifications, the watch and migrations") },
    setting("database_prepared", Some("true"), Boolean(|c| &mut c.database_way.prepared),
        "Whether prepared statements survive on the way to PostgreSQL. Through PgBouncer in transaction mode they do from version 1.21 on, with `max_prepared_statements` above 0; otherwise say `false`, and everything costs two round trips more"),
    setting("database_pool", Some("16"), Number(2..=500, |c| &mut c.database_pool),
        "Connections to PostgreSQL for the work at most. Requests have their own (`http.database_pool`), and up to eight keep leases, listen, watch and count"),
    setting("migrate_at_start", Some("true"), Boolean(|c| &mut c.migrate_at_start),
        "Apply migrations when a server starts; otherwise run `stationmaster migrate` before"),
    setting("engine", Some("embedded"), Other("embedded or temporal",
        |c, t| put(&mut c.engine, choice(t, &[("embedded", Engine::Embedded), ("temporal", Engine::Temporal)]))),
        "Where executions run"),
    setting("listen", Some("127.0.0.1:7373"), Other("an IP address and a port",
        |c, t| put(&mut c.listen, address(t))),
        "Where the HTTP server listens. Beyond this machine only once there is a token: see `stationmaster tokens create NAME --role ROLE`"),
    setting("server_name", None, MaybeName(|c| &mut c.server_name),
        "What this server is called in lists and histories; the name of the host when left out. A second one of that name gets -2 behind it"),
    setting("shutdown_timeout", Some("30s"), Time(|c| &mut c.shutdown_timeout),
        "How long an orderly end may take before what is left is covered by its leases"),
    Setting { secrecy: Secrecy::Password, ..setting("redis_url", None, Url("a URL like redis://:password@host:6379/0", &["redis", "rediss"],
        |c| &mut c.redis_url),
        "Where Redis is, for the heartbeats of dispatchers") },
    setting("redis_tls_ca_file", None, Path(|c| &mut c.redis_tls.authority),
        "The authority that signed the certificate of Redis, PEM, for `rediss://`; those that browsers trust when left out. Read for each connection"),
    setting("redis_tls_cert_file", None, Path(|c| &mut c.redis_tls.certificate),
        "Our certificate, PEM, where Redis asks for one. Read for each connection"),
    setting("redis_tls_key_file", None, Path(|c| &mut c.redis_tls.key),
        "The key of our certificate, PEM"),
    setting("heartbeats", Some("postgres"), Other("postgres or redis",
        |c, t| put(&mut c.heartbeats, choice(t, &[("postgres", Heartbeats::Postgres), ("redis", Heartbeats::Redis)]))),
        "Where dispatchers write their heartbeats. They are never the fence: leases in PostgreSQL are"),

    setting("log.format", Some("pretty"), Other("pretty or json",
        |c, t| put(&mut c.log.format, choice(t, &[("pretty", LogFormat::Pretty), ("json", LogFormat::Json)]))),
        "Lines for people, or one JSON object a line"),
    setting("log.level", Some("info"), Other("a level (error, warn, info, debug, trace) or a filter like info,stationmaster_core=debug",
        |c, t| put(&mut c.log.level, filter(t))),
        "What is logged"),
    setting("log.repeat_after", Some("30s"), Time(|c| &mut c.log.repeat_after),
        "A warning or an error that says the same again within this time is counted; then one line tells how many there were"),

    setting("traces.otlp_endpoint", None, Url("a URL like http://localhost:4317", &["http", "https"],
        |c| &mut c.traces.otlp_endpoint),
        "Where an OpenTelemetry collector takes traces, by OTLP over gRPC; left out, none are sent"),
    setting("traces.service_name", Some("stationmaster"), Name(|c| &mut c.traces.service_name),
        "What this service is called in traces"),
    setting("traces.sample", Some("1"), Other("a share from 0 to 1", |c, t| put(&mut c.traces.sample, share(t))),
        "The share of rounds that are traced"),

    setting("http.open", Some("false"), Boolean(|c| &mut c.http.open),
        "Ask nobody for a token; only on a loopback address. `dev` does so"),
    setting("http.tls_cert", None, Path(|c| &mut c.http.tls_cert),
        "Our certificate and those that signed it, PEM: the server speaks TLS. Read again when the file changes, for the connections that come then"),
    setting("http.tls_key", None, Path(|c| &mut c.http.tls_key),
        "The key of our certificate, PEM"),
    setting("http.database_pool", Some("8"), Number(1..=500, |c| &mut c.http.database_pool),
        "Connections to PostgreSQL for requests at most, apart from those for the work; one in eight may be busy with lists"),
    setting("http.body_limit", Some("262144"), Other("a number of bytes from 1024 to 67108864",
        |c, t| put(&mut c.http.body_limit, number(t, 1_024..=67_108_864))),
        "The largest body of a request"),
    setting("http.request_timeout", Some("30s"), Time(|c| &mut c.http.request_timeout),
        "How long a request may take; streams of events may take for ever"),
    setting("http.max_connections", Some("1024"), Size(1..=100_000, |c| &mut c.http.max_connections),
        "Connections at once; for more, those make room that have been idle the longest. No more than the limit of open files leaves beside the work"),
    setting("http.max_in_flight", Some("256"), Size(1..=100_000, |c| &mut c.http.max_in_flight),
        "Requests under way at once; more are refused with 503. Tokens for the same workspaces have together no more than are free"),
    setting("http.max_streams", Some("256"), Size(1..=100_000, |c| &mut c.http.max_streams),
        "Streams of events at once; more are refused with 503. Tokens for the same workspaces have together no more than are free"),
    setting("http.rate_limit", Some("500"), Number(1..=1_000_000, |c| &mut c.http.rate_limit),
        "Requests a second for each token, on each server; more are refused with 429"),
    setting("http.auth_failures", Some("30"), Number(1..=1_000_000, |c| &mut c.http.auth_failures),
        "Tokens a minute from one address that open no door; more are refused with 429"),
    setting("http.event_retention", Some("1d"), Time(|c| &mut c.http.event_retention),
        "How long events are kept for listeners that come back"),
    setting("http.audit_retention", Some("400d"), Time(|c| &mut c.http.audit_retention),
        "How long lines of the audit are kept"),
    setting("http.history_retention", Some("14d"), Time(|c| &mut c.http.history_retention),
        "How long what happened in each minute is kept, for charts"),
    setting("http.require_if_match", Some("false"), Boolean(|c| &mut c.http.require_if_match),
        "Refuse PUT, PATCH and DELETE of what has a tag when they do not say what they expect (428)"),
    setting("http.protect_metrics", Some("false"), Boolean(|c| &mut c.http.protect_metrics),
        "Ask for a token at `/metrics` too, one that is for all workspaces: the metrics name those that use most"),
    setting("http.dashboard_read_only", Some("false"), Boolean(|c| &mut c.http.dashboard_read_only),
        "The dashboard of this server only shows: it has no buttons and takes no forms, whatever the token may do. The API stays as it is"),
    setting("http.temporal_ui_url", None, Url("a URL like http://localhost:8233/namespaces/default", &["http", "https"],
        |c| &mut c.http.temporal_ui_url),
        "Where Temporal's UI shows the namespace, for links from the dashboard; none when left out"),

    setting("temporal.address", Some("127.0.0.1:7233"), Other("host:port, or a URL that begins with http: or https:",
        |c, t| put(&mut c.temporal.address, words(t))),
        "Where Temporal is, for the engine `temporal`"),
    setting("temporal.namespace", Some("default"), Name(|c| &mut c.temporal.namespace),
        "The namespace that executions run in; it must exist"),
    Setting { secrecy: Secrecy::Whole, ..setting("temporal.api_key", None, Other("a key",
        |c, t| put(&mut c.temporal.api_key, words(t).map(Some))),
        "Sent as a bearer token with every call") },
    setting("temporal.tls", Some("false"), Boolean(|c| &mut c.temporal.tls),
        "Speak TLS to Temporal; an authority or a certificate of our own turns it on as well"),
    setting("temporal.tls_ca_file", None, Path(|c| &mut c.temporal.tls_ca_file),
        "The authority that signed Temporal's certificate, PEM; the system's authorities when left out. Read for each connection"),
    setting("temporal.tls_cert_file", None, Path(|c| &mut c.temporal.tls_cert_file),
        "Our certificate, PEM, where Temporal asks for one. Read for each connection"),
    setting("temporal.tls_key_file", None, Path(|c| &mut c.temporal.tls_key_file),
        "The key of our certificate, PEM"),
    setting("temporal.tls_server_name", None, MaybeName(|c| &mut c.temporal.tls_server_name),
        "The name to expect in Temporal's certificate, when it is not the host of the address"),

    setting("executions.enabled", Some("true"), Boolean(|c| &mut c.executions_enabled),
        "Dispatch executions on this server"),
    setting("executions.poll_interval", Some("5s"), Time(|c| &mut c.executions.poll_interval),
        "Look for work this often even when nobody says that there is any"),
    setting("executions.batch_size", Some("1000"), Size(1..=10_000, |c| &mut c.executions.batch_size),
        "The most that one claim takes; in the exclusive mode 10 when left out"),
    setting("executions.max_attempts", Some("3"), Number(1..=1_000, |c| &mut c.executions.max_attempts),
        "Starts that the engine may refuse before an item fails for good; a workflow may have its own"),
    setting("executions.max_recoveries", Some("10"), Number(1..=1_000, |c| &mut c.executions.max_recoveries),
        "Servers that may be lost with an item in their hands before it is put aside"),
    setting("executions.claim_lease", Some("30s"), Time(|c| &mut c.executions.claim_lease),
        "How long a claim holds unless it is renewed; at least 5 s longer than a start may take (in the exclusive mode: than a batch of them, and 2m when left out)"),
    setting("executions.start_timeout", Some("10s"), Time(|c| &mut c.executions.start_timeout),
        "How long one start may take"),
    setting("executions.start_concurrency", Some("64"), Size(1..=10_000, |c| &mut c.executions.start_concurrency),
        "Starts under way at once"),
    setting("executions.allow_targets", None, Other("hosts, host:port or networks like 10.0.0.0/8, with commas between them",
        |c, t| put(&mut c.node_targets, list(t))),
        "What `http` nodes of the embedded engine may call although it has no public address. They use no proxy of the environment"),
    setting("executions.retry_base", Some("1s"), Time(|c| &mut c.executions.retry.base),
        "The first wait between starts that the engine refused; it doubles each time, with full jitter"),
    setting("executions.retry_cap", Some("1m"), Time(|c| &mut c.executions.retry.cap),
        "The longest such wait"),
    setting("executions.task_queue", Some("stationmaster"), Name(|c| &mut c.executions.task_queue),
        "The task queue of workflows that name none"),
    setting("executions.workflow_type", Some("stationmaster-workflow"), Name(|c| &mut c.executions.workflow_type),
        "The workflow type of workflows that name none"),
    setting("executions.retention", Some("7d"), Time(|c| &mut c.executions.retention),
        "How long finished executions are kept"),
    setting("executions.reconcile_interval", Some("30s"), Time(|c| &mut c.executions.reconcile_interval),
        "How often our rows and the engine's runs are compared"),
    setting("executions.close_interval", Some("250ms"), Time(|c| &mut c.executions.close_interval),
        "How often the engine is asked which runs have closed; less often while none has and it answers slowly"),
    setting("executions.exclusive", Some("false"), Boolean(|c| &mut c.exclusive.on),
        "Let one server at a time work through the queue, in turns under the lock `processExecutionQueue`, one item after another"),
    setting("executions.exclusive_at_most", Some("4m"), Time(|c| &mut c.exclusive.at_most),
        "In the exclusive mode: how long a turn's lock holds should its server be lost; a server that lives extends it"),
    setting("executions.exclusive_at_least", Some("10s"), Time(|c| &mut c.exclusive.at_least),
        "In the exclusive mode: how long a turn's lock stays held, however quick the turn was"),
    setting("executions.exclusive_recovery_interval", Some("1m"), Time(|c| &mut c.exclusive.recovery_interval),
        "In the exclusive mode: time between two recoveries, under the lock `recoverStaleQueueItems`"),
    setting("executions.exclusive_recovery_at_most", Some("2m"), Time(|c| &mut c.exclusive.recovery_at_most),
        "In the exclusive mode: how long the lock of a recovery holds should its server be lost"),
    setting("executions.exclusive_recovery_at_least", Some("30s"), Time(|c| &mut c.exclusive.recovery_at_least),
        "In the exclusive mode: how long the lock of a recovery stays held"),
    setting("executions.exclusive_stale_after", Some("5m"), Time(|c| &mut c.exclusive.stale_after),
        "In the exclusive mode: a claim that nobody looks after any more is recovered when it is this old"),

    setting("locks.table", Some("shedlock"), Other("the name of a table, with or without its schema, such as shedlock, jobs.shedlock or \"ShedLock\"",
        |c, t| put(&mut c.locks.table, t.parse())),
        "The table of named locks, which ShedLock applications may share; without a schema it is found by the search path"),

    setting("dispatchers.enabled", Some("true"), Boolean(|c| &mut c.dispatchers.enabled),
        "Own dispatchers on this server, or stand by them; without it this server only supervises"),
    setting("dispatchers.projects", None, Other("project/task-queue, and more after commas",
        |c, t| put(&mut c.dispatchers.projects, pairs(t))),
        "Dispatchers that exist from the start; others appear with their first trigger or signal"),
    setting("dispatchers.lease", Some("15s"), Time(|c| &mut c.dispatchers.lease),
        "How long an owner's lease holds unless it is renewed, which happens five times as often; a standby takes over after it"),
    setting("dispatchers.heartbeat_interval", Some("10s"), Time(|c| &mut c.dispatchers.heartbeat_interval),
        "How often an owner writes its heartbeat; shorter than the lease"),
    setting("dispatchers.stale_after", Some("20s"), Time(|c| &mut c.dispatchers.stale_after),
        "Heartbeats and servers that were not heard of for so long are stale; at least the lease and two heartbeats"),
    setting("dispatchers.scan_interval", Some("15s"), Time(|c| &mut c.dispatchers.scan_interval),
        "How often the supervisor compares leases, heartbeats and the engine's runs"),
    setting("dispatchers.second_look", Some("2s"), Time(|c| &mut c.dispatchers.second_look),
        "How long the supervisor waits before it looks again at what seems left behind"),
    setting("dispatchers.cleanup_timeout", Some("5s"), Time(|c| &mut c.dispatchers.cleanup_timeout),
        "How long one act of the supervisor may take"),
    setting("dispatchers.sla", Some("2m"), Time(|c| &mut c.dispatchers_sla),
        "Nothing of a killed server is left after this; stale_after, scan_interval, second_look and cleanup_timeout must fit in"),
    setting("dispatchers.check_interval", Some("10s"), Time(|c| &mut c.dispatchers.check_interval),
        "How often a dispatcher checks itself and evicts servers that were not heard of"),
    setting("dispatchers.poll_interval", Some("1s"), Time(|c| &mut c.dispatchers.poll_interval),
        "Look for signals this often even when nobody says that there are any"),
    setting("dispatchers.batch_size", Some("500"), Size(1..=5_000, |c| &mut c.dispatchers.batch_size),
        "The most signals that one statement routes"),
    setting("dispatchers.observe_only", Some("false"), Boolean(|c| &mut c.dispatchers.observe_only),
        "The supervisor looks, counts and logs what it would do, and removes nothing; `dispatchers reconcile` by hand does"),
    setting("dispatchers.evict", Some("true"), Boolean(|c| &mut c.dispatchers.evict),
        "Take servers that were not heard of for stale_after off the lists of dispatchers; without it that is only logged"),
    setting("dispatchers.evict_batch", Some("50"), Size(1..=1_000, |c| &mut c.dispatchers.evict_batch),
        "The most servers that one self-check evicts"),
    setting("dispatchers.continue_after", Some("4000"), Number(50..=40_000, |c| &mut c.dispatchers.continue_after),
        "A dispatcher's workflow continues as new after so many events of history"),
    setting("dispatchers.rest_after", Some("10m"), Time(|c| &mut c.dispatchers.rest_after),
        "A dispatcher rests, without an owner and a run, when no signal has waited for it for so long; the next one wakes it. Those of dispatchers.projects do not rest"),
    setting("dispatchers.retention", Some("7d"), Time(|c| &mut c.dispatchers.retention),
        "How long settled signals, dead letters among them, and the events of dispatchers are kept; ids are remembered as long"),
    setting("dispatchers.webhook_url", None, Url("a URL that begins with http: or https:", &["http", "https"],
        |c| &mut c.webhook_url),
        "Takeovers, evictions and terminations are posted there"),
    Setting { secrecy: Secrecy::Whole, ..setting("dispatchers.webhook_secret", None, Other("a key of Standard Webhooks, as in whsec_<base64>",
        |c, t| put(&mut c.webhook_secret, webhook_secret(t).map(Some))),
        "Signs what is posted") },

    setting("alarms.enabled", Some("true"), Boolean(|c| &mut c.alarms_enabled),
        "Fire alarms on this server"),
    setting("alarms.router_url", None, Other("a URL that begins with http: or https:",
        |c, t| put(&mut c.alarms.router_url, url(t, &["http", "https"]).map(|url| url.parse().ok()))),
        "Where wakes go that name no target: to the path /internal/wake below it. For these it need not be public"),
    setting("alarms.tick", Some("1s"), Other("a duration from 10ms to 10s",
        |c, t| put(&mut c.alarms.tick, duration_between(t, Duration::from_millis(10)..=Duration::from_secs(10)))),
        "Look for due alarms this often even when nobody rings; a third as often while no alarm has a time to come"),
    setting("alarms.lease", Some("2m"), Time(|c| &mut c.alarms.lease),
        "How long a claim holds; at least 5 s longer than a delivery may take"),
    setting("alarms.batch_size", Some("100"), Size(1..=10_000, |c| &mut c.alarms.batch_size),
        "What one claim takes; under a backlog, four times as much"),
    setting("alarms.concurrency", Some("512"), Size(1..=10_000, |c| &mut c.alarms.concurrency),
        "Wakes under way at once"),
    setting("alarms.per_target", Some("32"), Size(1..=10_000, |c| &mut c.alarms.per_target),
        "Of these, to one target (scheme, host and port)"),
    setting("alarms.delivery_timeout", Some("30s"), Time(|c| &mut c.alarms.delivery_timeout),
        "How long one wake may take"),
    setting("alarms.max_failures", Some("5"), Number(1..=100, |c| &mut c.alarms.max_failures),
        "Tries of an occurrence before it fails; an alarm may have its own"),
    setting("alarms.misfire_grace", Some("30s"), Time(|c| &mut c.alarms.misfire_grace),
        "An occurrence that is later than this is missed, and the misfire policy decides"),
    setting("alarms.misfire_window", Some("24h"), Time(|c| &mut c.alarms.misfire_window),
        "How far back missed occurrences of a series are made up for; an alarm may have its own"),
    setting("alarms.allow_targets", None, Other("hosts, host:port or networks like 10.0.0.0/8, with commas between them",
        |c, t| put(&mut c.alarms.allow_targets, list(t))),
        "Targets that need not have public addresses"),
    Setting { secrecy: Secrecy::Whole, ..setting("alarms.signing_secret", None, Other("a secret like whsec_ and the base64 of 24 to 64 bytes",
        |c, t| put(&mut c.alarms.signing_secret, Secret::parse(t).map(Some))),
        "The secrets that sign wakes (Standard Webhooks), one for the router and one for each target, are derived from it: `alarms secrets show`. Without it wakes are not signed") },
    Setting { secrecy: Secrecy::Whole, ..setting("alarms.previous_signing_secret", None, Other("a secret like whsec_ and the base64 of 24 to 64 bytes",
        |c, t| put(&mut c.alarms.previous_secret, Secret::parse(t).map(Some))),
        "The signing secret before: what is derived from it signs as well while receivers change over") },
    setting("alarms.retention", Some("30d"), Time(|c| &mut c.alarms.retention),
        "How long settled occurrences and ended alarms are kept"),

    setting("dev.data_dir", None, Path(|c| &mut c.dev.data_dir),
        "Where `stationmaster dev` keeps its database"),
    setting("dev.postgres_bin", None, Path(|c| &mut c.dev.postgres_bin),
        "The folder of PostgreSQL's programs (initdb, postgres) for `dev`; looked for when left out"),
    setting("dev.example", Some("true"), Boolean(|c| &mut c.dev.example),
        "Begin `dev` with an example workspace and workflow"),
];

/// Settings that have another default in the exclusive mode.
const DEFAULTS_OF_EXCLUSIVE_MODE: [(&str, &str); 2] =
    [("executions.batch_size", "10"), ("executions.claim_lease", "2m")];

/// Puts the defaults of the exclusive mode where nobody said anything else.
pub(super) fn apply_defaults_of_exclusive_mode(config: &mut Config, values: &mut [Effective]) {
    if !config.exclusive.on {
        return;
    }
    for (key, default) in DEFAULTS_OF_EXCLUSIVE_MODE {
        let setting = SETTINGS.iter().find(|setting| setting.key == key);
        let value = values
            .iter_mut()
            .find(|value| value.key == key && value.origin == Origin::Default);
        if let (Some(setting), Some(value)) = (setting, value) {
            let applied = setting.value.apply(config, default);
            debug_assert!(applied.is_ok(), "the default of {key} is not valid: {applied:?}");
            value.value = Some(default.to_owned());
        }
    }
}

/// Would something of this value be hidden, were it shown as the value of this setting?
pub(crate) fn is_secret(key: &str, value: &str) -> bool {
    let setting = SETTINGS.iter().find(|setting| setting.key == key);
    setting.is_some_and(|setting| hides(value, setting.secrecy))
}

impl Setting {
    /// What may be given, to follow the word "give".
    pub(super) fn form(&self) -> String {
        self.value.form()
    }

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
            let applied = self.value.apply(config, default);
            debug_assert!(
                applied.is_ok(),
                "the default of {} is not valid: {applied:?}",
                self.key
            );
        }
    }

    /// Puts what was given where the value goes, and says what may be shown of it.
    pub(super) fn take(&self, given: Option<Given>, config: &mut Config) -> Result<Effective, Complaint> {
        let effective = |value, origin| Effective {
            key: self.key,
            value,
            origin,
        };
        let Some(given) = given else {
            return Ok(effective(self.default.map(str::to_owned), Origin::Default));
        };
        let text = self.read(&given)?;
        // An empty value takes an optional setting away, whatever weaker sources say.
        if self.default.is_none() && text.is_empty() {
            return Ok(effective(None, given.origin));
        }
        match self.value.apply(config, &text) {
            Ok(()) => Ok(effective(Some(shown(&text, self.secrecy)), given.origin)),
            Err(problem) => Err(self.complaint(&given.origin, problem)),
        }
    }

    fn read(&self, given: &Given) -> Result<String, Complaint> {
        match &given.text {
            Text::Here(text) => Ok(text.clone()),
            Text::InFile(path) => match std::fs::read_to_string(path) {
                // Editors and `echo` end a file with a newline that is no part of the secret.
                Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => {
                    let problem = format!("the file {} cannot be read: {error}", path.display());
                    let remedy =
                        "Name a file that this user may read and that holds the value, nothing else.";
                    Err(Complaint::new(self.key, &given.origin, problem, remedy))
                }
            },
        }
    }

    fn complaint(&self, origin: &Origin, problem: String) -> Complaint {
        let example = self
            .default
            .map(|default| format!("; the default is {default}"))
            .unwrap_or_default();
        let remedy = format!("Give {}{example}.", self.form());
        Complaint::new(self.key, origin, problem, remedy)
    }
}
