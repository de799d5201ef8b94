//! Values against each other: each is fine by itself, together they cannot work. Deadlines nest (invariant I6), and a
//! setting that would silently do nothing is refused.

use std::time::Duration;

use stationmaster_core::locks::Terms;

use super::value::Effective;
use super::{Complaint, Config, Heartbeats};

/// What a claim must hold longer than a start may take: time to renew it, and to write down what came of the start.
const MARGIN: Duration = Duration::from_secs(5);

struct Relation {
    between: &'static [&'static str],
    /// What is wrong, and what to do.
    check: fn(&Config) -> Option<(String, String)>,
}

static RELATIONS: &[Relation] = &[
    Relation {
        between: &["executions.claim_lease", "executions.start_timeout"],
        check: |config| {
            let needed = config.executions.start_timeout + MARGIN;
            (config.executions.claim_lease < needed).then(|| {
                let problem = "a claim could run out while its start is still under way".to_owned();
                (
                    problem,
                    format!("Give claim_lease at least {needed:?}, which is start_timeout and {MARGIN:?}."),
                )
            })
        },
    },
    Relation {
        between: &[
            "executions.exclusive",
            "executions.claim_lease",
            "executions.batch_size",
            "executions.start_timeout",
        ],
        check: |config| {
            let executions = &config.executions;
            let starts = u32::try_from(executions.batch_size).unwrap_or(u32::MAX);
            let needed = executions
                .start_timeout
                .saturating_mul(starts)
                .saturating_add(MARGIN);
            let single = executions.start_timeout.saturating_add(MARGIN);
            // A lease that is too short for a single start is complained about above.
            (executions.exclusive && (single..needed).contains(&executions.claim_lease)).then(|| {
                let problem =
                    "in the exclusive mode items are started one after another, and the claims of the last \
                               could run out before their turn"
                        .to_owned();
                (
                    problem,
                    format!(
                        "Give claim_lease at least {needed:?}, or a smaller batch_size or start_timeout."
                    ),
                )
            })
        },
    },
    Relation {
        between: &["alarms.lease", "alarms.delivery_timeout"],
        check: |config| {
            let needed = config.alarms.delivery_timeout + MARGIN;
            (config.alarms.lease < needed).then(|| {
                let problem = "a claim could run out while its wake is still under way".to_owned();
                (
                    problem,
                    format!("Give lease at least {needed:?}, which is delivery_timeout and {MARGIN:?}."),
                )
            })
        },
    },
    Relation {
        between: &["executions.exclusive_at_most", "executions.exclusive_at_least"],
        check: |config| {
            let executions = &config.executions;
            unkeepable(executions.exclusive_at_most, executions.exclusive_at_least)
        },
    },
    Relation {
        between: &[
            "executions.exclusive_recovery_at_most",
            "executions.exclusive_recovery_at_least",
        ],
        check: |config| {
            let executions = &config.executions;
            unkeepable(
                executions.exclusive_recovery_at_most,
                executions.exclusive_recovery_at_least,
            )
        },
    },
    Relation {
        between: &["alarms.per_target", "alarms.concurrency"],
        check: |config| {
            (config.alarms.per_target > config.alarms.concurrency).then(|| {
                let problem = "one target could have more wakes under way than there are in all".to_owned();
                (
                    problem,
                    "Give per_target at most what concurrency says.".to_owned(),
                )
            })
        },
    },
    Relation {
        between: &["alarms.signing_secret", "alarms.previous_signing_secret"],
        check: |config| {
            let alarms = &config.alarms;
            (alarms.previous_signing_secret.is_some() && alarms.signing_secret.is_none()).then(|| {
                let problem = "a secret before means nothing without the one of now".to_owned();
                (problem, "Give signing_secret as well, or neither.".to_owned())
            })
        },
    },
    Relation {
        between: &["executions.retry_base", "executions.retry_cap"],
        check: |config| {
            (config.executions.retry_base > config.executions.retry_cap).then(|| {
                let problem = "the first wait is longer than the longest".to_owned();
                (problem, "Give retry_base at most what retry_cap says.".to_owned())
            })
        },
    },
    Relation {
        between: &["dispatchers.heartbeat_interval", "dispatchers.lease"],
        check: |config| {
            let lane = &config.dispatchers;
            (lane.heartbeat_interval >= lane.lease).then(|| {
                let problem = "an owner would write its heartbeat less often than its lease ends".to_owned();
                (
                    problem,
                    "Give heartbeat_interval less than what lease says.".to_owned(),
                )
            })
        },
    },
    Relation {
        between: &[
            "dispatchers.stale_after",
            "dispatchers.lease",
            "dispatchers.heartbeat_interval",
        ],
        check: |config| {
            let lane = &config.dispatchers;
            let needed = lane.lease.max(lane.heartbeat_interval * 2);
            (lane.stale_after < needed).then(|| {
                let problem = "a healthy dispatcher could look stale".to_owned();
                (
                    problem,
                    format!("Give stale_after at least {needed:?}: the lease, and two heartbeats."),
                )
            })
        },
    },
    Relation {
        between: &[
            "dispatchers.sla",
            "dispatchers.stale_after",
            "dispatchers.scan_interval",
            "dispatchers.second_look",
            "dispatchers.cleanup_timeout",
        ],
        check: |config| {
            let lane = &config.dispatchers;
            let sum = lane.stale_after + lane.scan_interval + lane.second_look + lane.cleanup_timeout;
            (sum > lane.sla).then(|| {
                let problem = format!("what a killed server leaves could stay for {sum:?}, and {:?} are allowed", lane.sla);
                let remedy = "Shorten stale_after, scan_interval, second_look or cleanup_timeout, or allow more by sla.";
                (problem, remedy.to_owned())
            })
        },
    },
    Relation {
        between: &["dispatchers.webhook_secret", "dispatchers.webhook_url"],
        check: |config| {
            let lane = &config.dispatchers;
            (lane.webhook_secret.is_some() && lane.webhook_url.is_none()).then(|| {
                let problem = "a key signs nothing while nothing is posted".to_owned();
                (problem, "Give webhook_url, or take the secret out.".to_owned())
            })
        },
    },
    Relation {
        between: &["temporal.tls_cert_file", "temporal.tls_key_file"],
        check: |config| {
            (config.temporal.tls_cert_file.is_some() != config.temporal.tls_key_file.is_some()).then(|| {
                let problem = "a certificate and its key only work together".to_owned();
                (problem, "Give both of them, or neither.".to_owned())
            })
        },
    },
    Relation {
        between: &["temporal.tls", "temporal.tls_server_name"],
        check: |config| {
            let temporal = &config.temporal;
            let speaks_tls =
                temporal.tls || temporal.tls_ca_file.is_some() || temporal.tls_cert_file.is_some();
            (temporal.tls_server_name.is_some() && !speaks_tls).then(|| {
                let problem = "a name to expect in a certificate means nothing without TLS".to_owned();
                (
                    problem,
                    "Set temporal.tls to true, or take the name out.".to_owned(),
                )
            })
        },
    },
    Relation {
        between: &["http.open", "listen"],
        check: |config| {
            (config.http.open && !config.listen.ip().is_loopback()).then(|| {
                let problem = "whoever reaches this address could do everything".to_owned();
                (
                    problem,
                    "Set http.open to false, or listen on a loopback address.".to_owned(),
                )
            })
        },
    },
    Relation {
        between: &["http.tls_cert", "http.tls_key"],
        check: |config| {
            (config.http.tls_cert.is_some() != config.http.tls_key.is_some()).then(|| {
                let problem = "a certificate and its key only work together".to_owned();
                (problem, "Give both of them, or neither.".to_owned())
            })
        },
    },
    Relation {
        between: &["heartbeats", "redis_url"],
        check: |config| {
            (config.heartbeats == Heartbeats::Redis && config.redis_url.is_none()).then(|| {
                let problem = "heartbeats go to Redis, but nobody says where it is".to_owned();
                (
                    problem,
                    "Give redis_url, or set heartbeats to postgres.".to_owned(),
                )
            })
        },
    },
];

/// Can a lock be held on these terms?
fn unkeepable(at_most: Duration, at_least: Duration) -> Option<(String, String)> {
    let refusal = Terms::new(at_most, at_least).err()?;
    Some((
        refusal.to_string(),
        "Give at_least at most what at_most says, and both at most ten years.".to_owned(),
    ))
}

/// What works, but costs more than one may think.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let executions = &config.executions;
    let mut warnings = Vec::new();
    if !(executions.enabled && executions.exclusive) {
        return warnings;
    }
    let (least, poll) = (executions.exclusive_at_least, executions.poll_interval);
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
    let (least, interval) = (
        executions.exclusive_recovery_at_least,
        executions.exclusive_recovery_interval,
    );
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
        .filter(|relation| !relation.between.iter().any(|key| wrong.contains(key)));
    let broken = readable.filter_map(|relation| Some((relation, (relation.check)(config)?)));
    broken
        .map(|(relation, (problem, remedy))| {
            let origin = |key: &&str| {
                values
                    .iter()
                    .find(|value| value.key == *key)
                    .map(|value| value.origin.to_string())
            };
            let origins: Vec<String> = relation.between.iter().filter_map(origin).collect();
            let setting = relation.between.join(", ");
            Complaint {
                setting,
                origin: origins.join(", "),
                problem,
                remedy,
            }
        })
        .collect()
}
