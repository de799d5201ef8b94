//! Values against each other: each is fine by itself, together they cannot work. Deadlines nest (invariant I6), and a
//! setting that would silently do nothing is refused.

use std::time::Duration;

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
