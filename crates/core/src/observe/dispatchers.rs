//! The metrics of dispatchers and signals.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Labelled, Measured, Told, metrics, tell};
use crate::signals::DeadReason;

metrics! {
    /// See the module.
    pub(crate) struct DispatcherMetrics {
        gauge active: Gauge, "dispatcher_active",
            "Dispatchers that this server owns";
        gauge stale: Told, "dispatcher_stale",
            "Left-over runs, heartbeats and rows at the supervisor's last look; told by the server that looks for all";
        gauge duplicates: Told, "stationmaster_dispatchers_duplicate",
            "Owned dispatchers of which an older run is still open, at that look; what such a run writes is refused";
        counter looks: Labelled<1>, "stationmaster_supervisor_looks"["outcome"],
            "Looks of the supervisor: seen, or in part unanswered (by the engine or the store of heartbeats)";
        counter terminations: Counter, "dispatcher_terminations",
            "Runs that the supervisor ended";
        counter cleanup_errors: Counter, "dispatcher_cleanup_errors",
            "Acts of the supervisor that failed and will be tried again";
        counter takeovers: Labelled<2>, "stationmaster_dispatcher_takeovers"["kind, outcome"],
            "Dispatchers taken: fresh, handed over, woken by a signal, or after a lease ran out; and whether their run was started";
        histogram takeover_seconds: Histogram = Histogram::new(exponential_buckets(0.05, 2.0, 12)), "stationmaster_dispatcher_takeover_duration_seconds",
            "From the end of a lease, a hand-over or the making of a dispatcher until its run was started";
        counter evictions: Counter, "stationmaster_dispatcher_evictions",
            "Servers taken off a dispatcher's list because they were not heard of";
        gauge inbox_depth: Measured, "stationmaster_signals_inbox_depth",
            "Signals that wait to be routed (counted up to 100,000)";
        gauge inbox_oldest: Measured, "stationmaster_signals_inbox_oldest_age_seconds",
            "Age of the oldest signal that waits";
        counter routed: Counter, "stationmaster_signals_routed",
            "Signals that became queue items";
        counter dead: Labelled<1>, "stationmaster_signals_dead"["reason"],
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
        for outcome in ["seen", "unanswered"] {
            drop(self.looks.get_or_create(&[("outcome", outcome)]));
        }
        for reason in DeadReason::ALL {
            drop(self.dead.get_or_create(&[("reason", reason.as_str())]));
        }
    }

    pub(crate) fn active(&self, dispatchers: usize) {
        self.active.set(i64::try_from(dispatchers).unwrap_or(i64::MAX));
    }

    /// What the supervisor saw: left-overs, and dispatchers with an older run beside their own.
    #[expect(clippy::cast_precision_loss, reason = "far fewer")]
    pub(crate) fn looked(&self, stale: usize, duplicates: usize, answered: bool) {
        tell(&self.stale, Some(stale as f64));
        tell(&self.duplicates, Some(duplicates as f64));
        let outcome = if answered { "seen" } else { "unanswered" };
        self.looks.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// Another server looks for all, or nobody knows who does.
    pub(crate) fn looks_elsewhere(&self) {
        tell(&self.stale, None);
        tell(&self.duplicates, None);
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
