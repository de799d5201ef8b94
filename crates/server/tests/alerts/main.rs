//! Every alert tried for real: a real Prometheus with our rules scrapes real servers, the fault is caused, the alert fires, the fault is
//! mended, the alert is over. They are among the tests; `cargo xtask alerts` runs them alone and prints a table.
//!
//! The rules are the shipped ones, hurried ([`hurry`]): the same expressions, with shorter waits. While an alert fires, the commands of its
//! runbook are run ([`runbook`]).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../processes/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests use the rest of it")]
mod support;

mod certificate;
mod clocks;
mod commands;
mod database;
mod engine;
mod fleet;
mod hurry;
mod quiet;
mod runbook;
mod trial;
mod work;

use std::collections::BTreeSet;

/// Every alert, without the name that all of them begin with, and the fault by which it is tried. The table of the runbooks says the same.
const FAULTS: [(&str, &str); 35] = [
    ("Down", "a server is killed (-9)"),
    ("NotReady", "the host of the database falls silent"),
    (
        "NoServer",
        "the host of the database falls silent for all servers",
    ),
    (
        "ServerLost",
        "a server is killed while somebody's transaction keeps its row locked",
    ),
    ("ClockSkew", "the clock of a server is set ahead by ten seconds"),
    (
        "CertificateEnds",
        "a server shows a certificate that ends in five days",
    ),
    (
        "ZoneDataOld",
        "what a server tells of its zone data is changed on its way to Prometheus: it is part of the binary",
    ),
    ("ZoneDataDiffers", "the same, for one of two servers"),
    (
        "RequestsFail",
        "requests go on while the host of the database is silent",
    ),
    (
        "DispatchStalled",
        "somebody's transaction keeps the capacity of a workspace locked",
    ),
    (
        "QueueAge",
        "a workspace is full with runs that do not end, and more is enqueued",
    ),
    ("EngineAway", "Temporal falls silent"),
    (
        "NoWorkers",
        "an execution runs on a task queue that no worker polls",
    ),
    (
        "StrayRuns",
        "the rows of an execution that runs are deleted, as by a failover that loses the last commits",
    ),
    ("ItemsFailed", "the engine refuses what a workflow is made of"),
    ("FailuresRising", "twenty executions fail"),
    (
        "RecoveryStorm",
        "a server with sixty executions in its hands is killed",
    ),
    (
        "LimitOvershoot",
        "a counter is changed by hand: nothing else leads there",
    ),
    (
        "StaleWrites",
        "a server is stopped past its lease with twelve wakes under way, and goes on",
    ),
    ("AlarmsLate", "somebody's transaction keeps a due alarm locked"),
    ("AlarmsExhausted", "a target refuses a wake"),
    ("WakesFail", "a target answers 500"),
    ("TargetOpen", "nobody listens at a target"),
    (
        "DispatcherUnattended",
        "the only server that may own dispatchers is killed, and a signal comes",
    ),
    (
        "SignalsWait",
        "Temporal falls silent for the owner of the dispatcher",
    ),
    (
        "DispatcherDuplicate",
        "somebody starts a run of an older epoch again and again",
    ),
    (
        "DispatcherStale",
        "the same: what the supervisor removes comes back",
    ),
    (
        "SupervisorFails",
        "Temporal falls silent, then refuses connections",
    ),
    (
        "SupervisorAbsent",
        "the host of the database falls silent for all servers",
    ),
    (
        "TakeoverRetries",
        "Temporal falls silent for the server that takes a dispatcher over",
    ),
    ("DeadLetters", "a signal comes that no trigger knows"),
    ("DatabaseUnknown", "the host of the database falls silent"),
    (
        "OldTransaction",
        "somebody's transaction has written and stays open",
    ),
    (
        "ConnectionsUsedUp",
        "requests wait for a table that somebody keeps locked",
    ),
    ("LockErrors", "the table of the locks is renamed"),
];

#[test]
fn every_alert_has_a_fault_by_which_it_is_tried_and_the_table_of_the_runbooks_tells_it() {
    let rules = trial::repository_file("ops/prometheus/alerts.yml");
    let names = rules.lines().filter_map(|line| {
        line.trim_start()
            .strip_prefix("- alert: Stationmaster")
            .map(str::to_owned)
    });
    let tried = FAULTS.iter().map(|(alert, _)| (*alert).to_owned());
    assert_eq!(names.collect::<BTreeSet<_>>(), tried.collect::<BTreeSet<_>>());
    let page = trial::repository_file("docs/runbooks/README.md");
    for (alert, fault) in FAULTS {
        let row = format!("| `Stationmaster{alert}` | {fault} | ");
        assert_eq!(page.matches(&row).count(), 1, "{row}");
    }
}
