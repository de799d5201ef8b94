//! Values against each other: each is fine by itself, together they cannot work. Deadlines nest (invariant I6), and a
//! setting that would silently do nothing is refused.

use std::time::Duration;

use stationmaster_core::locks::Terms;

use super::value::Effective;
use super::{Complaint, Config, Heartbeats};

/// What a claim must hold longer than a start may take: time to renew it, and to write down what came of the start.
const MARGIN: Duration = Duration::from_secs(5);

/// Settings, and what is wrong between them, and what to do.
type Relation = (&'static [&'static str], fn(&Config) -> Option<(String, String)>);

/// What is wrong and what to do, if it is wrong.
fn refuse(wrong: bool, problem: impl Into<String>, remedy: impl Into<String>) -> Option<(String, String)> {
    wrong.then(|| (problem.into(), remedy.into()))
}

static RELATIONS: &[Relation] = &[
    (
        &["executions.claim_lease", "executions.start_timeout"],
        |config| {
            let needed = config.executions.start_timeout + MARGIN;
            refuse(
                config.executions.claim_lease < needed,
                "a claim could run out while its start is still under way",
                format!("Give claim_lease at least {needed:?}, which is start_timeout and {MARGIN:?}."),
            )
        },
    ),
    (
        &[
            "executions.exclusive",
            "executions.claim_lease",
            "executions.batch_size",
            "executions.start_timeout",
        ],
        |config| {
            let executions = &config.executions;
            let starts = u32::try_from(executions.batch_size).unwrap_or(u32::MAX);
            let needed = executions
                .start_timeout
                .saturating_mul(starts)
                .saturating_add(MARGIN);
            let single = executions.start_timeout.saturating_add(MARGIN);
            refuse(
                // A lease that is too short for a single start is complained about above.
                config.exclusive.on && (single..needed).contains(&executions.claim_lease),
                "in the exclusive mode items are started one after another, and the claims of the last \
                 could run out before their turn",
                format!("Give claim_lease at least {needed:?}, or a smaller batch_size or start_timeout."),
            )
        },
    ),
    (&["alarms.lease", "alarms.delivery_timeout"], |config| {
        let needed = config.alarms.delivery_timeout + MARGIN;
        refuse(
            config.alarms.lease < needed,
            "a claim could run out while its wake is still under way",
            format!("Give lease at least {needed:?}, which is delivery_timeout and {MARGIN:?}."),
        )
    }),
    (
        &["executions.exclusive_at_most", "executions.exclusive_at_least"],
        |config| unkeepable(config.exclusive.at_most, config.exclusive.at_least),
    ),
    (
        &[
            "executions.exclusive_recovery_at_most",
            "executions.exclusive_recovery_at_least",
        ],
        |config| {
            let mode = &config.exclusive;
            unkeepable(mode.recovery_at_most, mode.recovery_at_least)
        },
    ),
    (&["alarms.per_target", "alarms.concurrency"], |config| {
        refuse(
            config.alarms.per_target > config.alarms.concurrency,
            "one target could have more wakes under way than there are in all",
            "Give per_target at most what concurrency says.",
        )
    }),
    (
        &["alarms.signing_secret", "alarms.previous_signing_secret"],
        |config| {
            refuse(
                config.alarms.previous_secret.is_some() && config.alarms.signing_secret.is_none(),
                "a secret before means nothing without the one of now",
                "Give signing_secret as well, or neither.",
            )
        },
    ),
    (&["executions.retry_base", "executions.retry_cap"], |config| {
        refuse(
            config.executions.retry.base > config.executions.retry.cap,
            "the first wait is longer than the longest",
            "Give retry_base at most what retry_cap says.",
        )
    }),
    (
        &["dispatchers.heartbeat_interval", "dispatchers.lease"],
        |config| {
            refuse(
                config.dispatchers.heartbeat_interval >= config.dispatchers.lease,
                "an owner would write its heartbeat less often than its lease ends",
                "Give heartbeat_interval less than what lease says.",
            )
        },
    ),
    (
        &[
            "dispatchers.stale_after",
            "dispatchers.lease",
            "dispatchers.heartbeat_interval",
        ],
        |config| {
            let lane = &config.dispatchers;
            let needed = lane.lease.max(lane.heartbeat_interval * 2);
            refuse(
                lane.stale_after < needed,
                "a healthy dispatcher could look stale",
                format!("Give stale_after at least {needed:?}: the lease, and two heartbeats."),
            )
        },
    ),
    (
        &[
            "dispatchers.sla",
            "dispatchers.stale_after",
            "dispatchers.scan_interval",
            "dispatchers.second_look",
            "dispatchers.cleanup_timeout",
        ],
        |config| {
            let (lane, sla) = (&config.dispatchers, config.dispatchers_sla);
            let sum = lane.stale_after + lane.scan_interval + lane.second_look + lane.cleanup_timeout;
            refuse(
                sum > sla,
                format!("what a killed server leaves could stay for {sum:?}, and {sla:?} are allowed"),
                "Shorten stale_after, scan_interval, second_look or cleanup_timeout, or allow more by sla.",
            )
        },
    ),
    (
        &["dispatchers.webhook_secret", "dispatchers.webhook_url"],
        |config| {
            refuse(
                config.webhook_secret.is_some() && config.webhook_url.is_none(),
                "a key signs nothing while nothing is posted",
                "Give webhook_url, or take the secret out.",
            )
        },
    ),
    (&["temporal.tls_cert_file", "temporal.tls_key_file"], |config| {
        let temporal = &config.temporal;
        half_a_pair(temporal.tls_cert_file.is_some(), temporal.tls_key_file.is_some())
    }),
    (&["temporal.tls", "temporal.tls_server_name"], |config| {
        let temporal = &config.temporal;
        let speaks_tls = temporal.tls || temporal.tls_ca_file.is_some() || temporal.tls_cert_file.is_some();
        refuse(
            temporal.tls_server_name.is_some() && !speaks_tls,
            "a name to expect in a certificate means nothing without TLS",
            "Set temporal.tls to true, or take the name out.",
        )
    }),
    (&["http.open", "listen"], |config| {
        refuse(
            config.http.open && !config.listen.ip().is_loopback(),
            "whoever reaches this address could do everything",
            "Set http.open to false, or listen on a loopback address.",
        )
    }),
    (&["http.tls_cert", "http.tls_key"], |config| {
        half_a_pair(config.http.tls_cert.is_some(), config.http.tls_key.is_some())
    }),
    (&["redis_tls_cert_file", "redis_tls_key_file"], |config| {
        let tls = &config.redis_tls;
        half_a_pair(tls.certificate.is_some(), tls.key.is_some())
    }),
    (
        &["redis_url", "redis_tls_ca_file", "redis_tls_cert_file"],
        |config| {
            let tls = &config.redis_tls;
            let is_plain = config
                .redis_url
                .as_ref()
                .is_none_or(|url| !url.starts_with("rediss:"));
            refuse(
                is_plain && (tls.authority.is_some() || tls.certificate.is_some()),
                "certificates mean nothing on a connection that is not encrypted",
                "Let redis_url begin with rediss://, or leave the certificates out.",
            )
        },
    ),
    (&["heartbeats", "redis_url"], |config| {
        refuse(
            config.heartbeats == Heartbeats::Redis && config.redis_url.is_none(),
            "heartbeats go to Redis, but nobody says where it is",
            "Give redis_url, or set heartbeats to postgres.",
        )
    }),
];

/// Can a lock be held on these terms?
fn unkeepable(at_most: Duration, at_least: Duration) -> Option<(String, String)> {
    let refusal = Terms::new(at_most, at_least).err()?;
    refuse(
        true,
        refusal.to_string(),
        "Give at_least at most what at_most says, and both at most ten years.",
    )
}

fn half_a_pair(certificate: bool, key: bool) -> Option<(String, String)> {
    refuse(
        certificate != key,
        "a certificate and its key only work together",
        "Give both of them, or neither.",
    )
}

/// What works, but costs more than one may think.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let (executions, mode) = (&config.executions, &config.exclusive);
    let mut warnings = Vec::new();
    if !(config.executions_enabled && mode.on) {
        return warnings;
    }
    let (least, poll) = (mode.at_least, executions.poll_interval);
    if least > poll {
        let polls = polls_for(least, poll);
        warnings.push(format!(
            "executions.exclusive_at_least ({least:?}) is longer than executions.poll_interval ({poll:?}): the lock of a turn \
             is still held when the next poll comes, so {idle} of {polls} polls are idle and at most {batch} items start \
             every {every:?}. To use every poll, give exclusive_at_least at most {poll:?}",
            idle = polls - 1,
            batch = executions.batch_size,
            every = poll.saturating_mul(polls),
        ));
    }
    let (least, interval) = (mode.recovery_at_least, mode.recovery_interval);
    if least > interval {
        let scans = polls_for(least, interval);
        warnings.push(format!(
            "executions.exclusive_recovery_at_least ({least:?}) is longer than executions.exclusive_recovery_interval \
             ({interval:?}): {idle} of {scans} recoveries are idle",
            idle = scans - 1,
        ));
    }
    warnings
}

/// How many polls go by until a lock that was held from the first on is free.
fn polls_for(least: Duration, poll: Duration) -> u32 {
    let polls = least.as_nanos().div_ceil(poll.as_nanos().max(1));
    u32::try_from(polls).unwrap_or(u32::MAX).max(2)
}

/// Checks every relation whose values could be read; of the others nothing can be said yet.
pub(super) fn check(config: &Config, values: &[Effective], wrong: &[&str]) -> Vec<Complaint> {
    let readable = RELATIONS
        .iter()
        .filter(|(between, _)| !between.iter().any(|key| wrong.contains(key)));
    let broken = readable.filter_map(|(between, check)| Some((between, check(config)?)));
    broken
        .map(|(between, (problem, remedy))| {
            let origin = |key: &&str| values.iter().find(|value| value.key == *key);
            let origins = between.iter().filter_map(origin);
            let origins: Vec<String> = origins.map(|value| value.origin.to_string()).collect();
            Complaint::new(between.join(", "), origins.join(", "), problem, remedy)
        })
        .collect()
}
