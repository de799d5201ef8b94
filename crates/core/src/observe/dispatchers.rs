//! The metrics of dispatchers and signals.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Labelled, Measured, metrics};
use crate::signals::DeadReason;

metrics! {
    /// See the module.
    pub(crate) struct DispatcherMetrics {
        active: Gauge, "dispatcher_active",
            "Dispatchers that this server owns";
        stale: Gauge, "dispatcher_stale",
            "Left-over runs, heartbeats and rows at the supervisor's last look";
        terminations: Counter, "dispatcher_terminations",
            "Runs that the supervisor ended";
        cleanup_errors: Counter, "dispatcher_cleanup_errors",
            "Acts of the supervisor that failed and will be tried again";
        takeovers: Labelled<2>, "dispatcher_takeovers",
            "Dispatchers taken: fresh, handed over, woken by a signal, or after a lease ran out; and whether their run was started";
        takeover_seconds: Histogram = exponential_buckets(0.05, 2.0, 12), "dispatcher_takeover_duration_seconds",
            "From the end of a lease, a hand-over or the making of a dispatcher until its run was started";
        evictions: Counter, "dispatcher_evictions",
            "Servers taken off a dispatcher's list because they were not heard of";
        inbox_depth: Measured, "signals_inbox_depth",
            "Signals that wait to be routed (counted up to 100,000)";
        inbox_oldest: Measured, "signals_inbox_oldest_age_seconds",
            "Age of the oldest signal that waits";
        routed: Counter, "signals_routed",
            "Signals that became queue items";
        dead: Labelled<1>, "signals_dead",
            "Signals that were put aside, by reason";
    }
}

impl DispatcherMetrics {
    pub(super) fn show_zeroes(&self) {
        for kind in ["fresh", "handover", "takeover", "woken"] {
            for outcome in ["started", "failed"] {
                drop(
                    self.takeovers
                        .get_or_create(&[("kind", kind), ("outcome", outcome)]),
                );
            }
        }
        for reason in DeadReason::ALL {
            drop(self.dead.get_or_create(&[("reason", reason.as_str())]));
        }
    }

    pub(crate) fn active(&self, dispatchers: usize) {
        self.active.set(i64::try_from(dispatchers).unwrap_or(i64::MAX));
    }

    pub(crate) fn stale(&self, things: usize) {
        self.stale.set(i64::try_from(things).unwrap_or(i64::MAX));
    }

    pub(crate) fn terminated(&self) {
        self.terminations.inc();
    }

    pub(crate) fn cleanup_error(&self) {
        self.cleanup_errors.inc();
    }

    pub(crate) fn taken(&self, kind: &'static str, outcome: &'static str, latency: Option<Duration>) {
        self.takeovers
            .get_or_create(&[("kind", kind), ("outcome", outcome)])
            .inc();
        if let Some(latency) = latency {
            self.takeover_seconds.observe(latency.as_secs_f64());
        }
    }

    pub(crate) fn evicted(&self, servers: usize) {
        self.evictions.inc_by(servers as u64);
    }

    pub(crate) fn inbox(&self, [waiting, oldest]: [f64; 2]) {
        self.inbox_depth.set(waiting);
        self.inbox_oldest.set(oldest);
    }

    pub(crate) fn routed(&self, signals: u64) {
        self.routed.inc_by(signals);
    }

    pub(crate) fn dead(&self, reason: DeadReason) {
        self.dead.get_or_create(&[("reason", reason.as_str())]).inc();
    }
}
