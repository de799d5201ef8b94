//! What a person on call has: the metrics of a real server, a real Prometheus that scrapes it, the alerts, the dashboard, and what a service
//! manager hears.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../processes/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the other tests use the rest of it")]
mod support;

mod alerts;
mod backup;
mod duties;
mod exemplars;
mod logs;
mod metrics;
mod migrations;
mod packages;
mod prometheus;
mod scene;
mod service;
mod traces;
mod upgrades;
