//! The metrics of dispatchers and signals.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::signals::DeadReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Taking {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// See the module.
pub(crate) struct DispatcherMetrics {
    active: Gauge,
    stale: Gauge,
    terminations: Counter,
    cleanup_errors: Counter,
    takeovers: Family<Taking, Counter>,
    takeover_seconds: Histogram,
    evictions: Counter,
    inbox_depth: Gauge,
    inbox_oldest: Gauge<f64, AtomicU64>,
    routed: Counter,
    dead: Family<Reason, Counter>,
}

impl DispatcherMetrics {
    pub(super) fn new() -> Self {
        Self {
            active: Gauge::default(),
            stale: Gauge::default(),
            terminations: Counter::default(),
            cleanup_errors: Counter::default(),
            takeovers: Family::default(),
            takeover_seconds: Histogram::new(exponential_buckets(0.05, 2.0, 12)),
            evictions: Counter::default(),
            inbox_depth: Gauge::default(),
            inbox_oldest: Gauge::default(),
            routed: Counter::default(),
            dead: Family::default(),
        }
    }

    #[rustfmt::skip]
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("dispatcher_active", "Dispatchers that this server owns", self.active.clone());
        registry.register("dispatcher_stale", "Left-over runs, heartbeats and rows at the supervisor's last look", self.stale.clone());
        registry.register("dispatcher_terminations", "Runs that the supervisor ended", self.terminations.clone());
        registry.register("dispatcher_cleanup_errors", "Acts of the supervisor that failed and will be tried again", self.cleanup_errors.clone());
        registry.register("dispatcher_takeovers", "Dispatchers taken: fresh, handed over, or after a lease ran out; and whether their run was started", self.takeovers.clone());
        registry.register("dispatcher_takeover_duration_seconds", "From the end of a lease, a hand-over or the making of a dispatcher until its run was started", self.takeover_seconds.clone());
        registry.register("dispatcher_evictions", "Servers taken off a dispatcher's list because they were not heard of", self.evictions.clone());
        registry.register("signals_inbox_depth", "Signals that wait to be routed (counted up to 100,000)", self.inbox_depth.clone());
        registry.register("signals_inbox_oldest_age_seconds", "Age of the oldest signal that waits", self.inbox_oldest.clone());
        registry.register("signals_routed", "Signals that became queue items", self.routed.clone());
        registry.register("signals_dead", "Signals that were put aside, by reason", self.dead.clone());
        for kind in ["fresh", "handover", "takeover"] {
            for outcome in ["started", "failed"] {
                drop(self.takeovers.get_or_create(&Taking { kind, outcome }));
            }
        }
        for reason in DeadReason::ALL {
            drop(self.dead.get_or_create(&Reason { reason: reason.as_str() }));
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
        self.takeovers.get_or_create(&Taking { kind, outcome }).inc();
        if let Some(latency) = latency {
            self.takeover_seconds.observe(latency.as_secs_f64());
        }
    }

    pub(crate) fn evicted(&self, servers: usize) {
        self.evictions.inc_by(servers as u64);
    }

    pub(crate) fn inbox(&self, waiting: i64, oldest: f64) {
        self.inbox_depth.set(waiting);
        self.inbox_oldest.set(oldest);
    }

    pub(crate) fn routed(&self, signals: u64) {
        self.routed.inc_by(signals);
    }

    pub(crate) fn dead(&self, reason: DeadReason) {
        self.dead
            .get_or_create(&Reason {
                reason: reason.as_str(),
            })
            .inc();
    }
}
