//! Every metric, in one place: what it is called, what it counts. Telemetry stays apart from logic: the lanes call a
//! method named for what happened and know nothing of registries.

pub(crate) mod trace;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

mod alarms;
mod dispatchers;

use alarms::AlarmMetrics;
use dispatchers::DispatcherMetrics;

use crate::engine::CloseStatus;
use crate::executions::EndReason;

/// The reasons for which an item may fail; a bounded set, so that the label stays bounded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    write: &'static str,
}

/// The metrics of a server.
pub struct Metrics {
    registry: Registry,
    batch_size: Histogram,
    claim_seconds: Histogram,
    start_seconds: Histogram,
    dispatched: Counter,
    at_capacity: Counter,
    failed: Family<Reason, Counter>,
    retried: Counter,
    released: Counter,
    finished: Family<Status, Counter>,
    recovered: Gauge,
    reconciled: Counter,
    stale_writes: Family<Write, Counter>,
    counters_mended: Counter,
    breaker_open: Gauge,
    pending: Gauge,
    active: Gauge,
    oldest_age: Gauge<f64, AtomicU64>,
    lock_attempts: Counter,
    locks_acquired: Counter,
    locks_skipped: Counter,
    lock_failures: Gauge,
    locks_lost: Counter,
    lock_seconds: Histogram,
    pub(crate) alarms: AlarmMetrics,
    /// Of dispatchers and signals.
    pub(crate) dispatchers: DispatcherMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that have counted nothing yet.
    #[must_use]
    pub fn new() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        let mut metrics = Self {
            registry: Registry::default(),
            batch_size: Histogram::new(exponential_buckets(1.0, 2.0, 12)),
            claim_seconds: seconds(),
            start_seconds: seconds(),
            dispatched: Counter::default(),
            at_capacity: Counter::default(),
            failed: Family::default(),
            retried: Counter::default(),
            released: Counter::default(),
            finished: Family::default(),
            recovered: Gauge::default(),
            reconciled: Counter::default(),
            stale_writes: Family::default(),
            counters_mended: Counter::default(),
            breaker_open: Gauge::default(),
            pending: Gauge::default(),
            active: Gauge::default(),
            oldest_age: Gauge::default(),
            lock_attempts: Counter::default(),
            locks_acquired: Counter::default(),
            locks_skipped: Counter::default(),
            lock_failures: Gauge::default(),
            locks_lost: Counter::default(),
            lock_seconds: Histogram::new(exponential_buckets(0.01, 3.0, 12)),
            alarms: AlarmMetrics::new(),
            dispatchers: DispatcherMetrics::new(),
        };
        metrics.register();
        metrics.register_locks();
        metrics.show_zeroes();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "queue_processing_batch_size",
            "Items taken by a claim",
            self.batch_size.clone(),
        );
        registry.register(
            "queue_processing_duration_seconds",
            "Time that a claim took",
            self.claim_seconds.clone(),
        );
        registry.register(
            "engine_start_duration_seconds",
            "Time that the engine took to start a run",
            self.start_seconds.clone(),
        );
        registry.register(
            "queue_items_dispatched",
            "Items whose execution was started",
            self.dispatched.clone(),
        );
        registry.register(
            "queue_items_at_capacity",
            "Claims that left a workspace full with more to do",
            self.at_capacity.clone(),
        );
        registry.register(
            "queue_items_failed",
            "Items that failed for good, by reason",
            self.failed.clone(),
        );
        registry.register(
            "queue_items_retried",
            "Starts that the engine refused and that will be tried again",
            self.retried.clone(),
        );
        registry.register(
            "queue_items_released",
            "Claims given back without a try",
            self.released.clone(),
        );
        registry.register(
            "executions_finished",
            "Executions that ended, by status",
            self.finished.clone(),
        );
        registry.register(
            "queue_stale_recovery_count",
            "Claims recovered from lost servers",
            self.recovered.clone(),
        );
        registry.register(
            "executions_reconciled",
            "Executions whose completion had been lost",
            self.reconciled.clone(),
        );
        registry.register(
            "stale_writes_refused",
            "Writes of former holders that changed nothing",
            self.stale_writes.clone(),
        );
        registry.register(
            "capacity_counters_mended",
            "Capacity counters that differed from their rows (should stay 0)",
            self.counters_mended.clone(),
        );
        registry.register(
            "engine_breaker_open",
            "1 while the engine is away and claims are held back",
            self.breaker_open.clone(),
        );
        registry.register(
            "queue_depth",
            "Items that wait (estimated when very many)",
            self.pending.clone(),
        );
        registry.register(
            "executions_active",
            "Executions that hold a slot",
            self.active.clone(),
        );
        registry.register(
            "queue_oldest_age_seconds",
            "Age of the oldest waiting item",
            self.oldest_age.clone(),
        );
        self.alarms.register(registry);
        self.dispatchers.register(registry);
    }

    fn register_locks(&mut self) {
        let registry = &mut self.registry;
        registry.register(
            "shedlock_acquisition_attempts",
            "Times that a lock was asked for",
            self.lock_attempts.clone(),
        );
        registry.register(
            "shedlock_acquisitions",
            "Locks that were acquired",
            self.locks_acquired.clone(),
        );
        registry.register(
            "shedlock_acquisitions_skipped",
            "Locks that somebody else held: skipped, which is no error",
            self.locks_skipped.clone(),
        );
        registry.register(
            "shedlock_acquisition_failures",
            "Locks that could not be asked for because of an error; a lock that is taken does not count here",
            self.lock_failures.clone(),
        );
        registry.register(
            "shedlock_locks_lost",
            "Locks that ran out or were taken away while their holder was at work",
            self.locks_lost.clone(),
        );
        registry.register(
            "shedlock_hold_seconds",
            "Time for which locks were held",
            self.lock_seconds.clone(),
        );
    }

    /// What has not happened yet is shown as zero, so that an alert can tell it from a metric that is not there.
    fn show_zeroes(&self) {
        for reason in EndReason::NOT_STARTED {
            drop(self.failed.get_or_create(&Reason {
                reason: reason.as_str(),
            }));
        }
        for status in CloseStatus::ALL {
            drop(self.finished.get_or_create(&Status {
                status: status.as_str(),
            }));
        }
        self.alarms.show_zeroes();
        for write in [
            "settle",
            "close",
            "alarm",
            "route",
            "evict",
            "lease",
            "run",
            "heartbeat",
        ] {
            drop(self.stale_writes.get_or_create(&Write { write }));
        }
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
    pub(crate) fn claimed(&self, items: usize, took: Duration) {
        self.batch_size.observe(items as f64);
        self.claim_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn started(&self, took: Duration) {
        self.start_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn dispatched(&self, items: u64) {
        self.dispatched.inc_by(items);
    }

    pub(crate) fn at_capacity(&self) {
        self.at_capacity.inc();
    }

    pub(crate) fn failed(&self, reason: EndReason) {
        self.failed
            .get_or_create(&Reason {
                reason: reason.as_str(),
            })
            .inc();
    }

    pub(crate) fn retried(&self) {
        self.retried.inc();
    }

    pub(crate) fn released(&self) {
        self.released.inc();
    }

    pub(crate) fn finished(&self, status: CloseStatus) {
        self.finished
            .get_or_create(&Status {
                status: status.as_str(),
            })
            .inc();
    }

    pub(crate) fn recovered(&self, items: usize) {
        // A gauge that only grows: counters carry the suffix `_total`, and this name is fixed.
        self.recovered.inc_by(i64::try_from(items).unwrap_or(i64::MAX));
    }

    pub(crate) fn reconciled(&self, executions: usize) {
        self.reconciled.inc_by(executions as u64);
    }

    pub(crate) fn stale_write(&self, write: &'static str) {
        self.stale_writes.get_or_create(&Write { write }).inc();
    }

    pub(crate) fn counter_mended(&self) {
        self.counters_mended.inc();
    }

    pub(crate) fn engine_breaker(&self, open: bool) {
        self.breaker_open.set(i64::from(open));
    }

    pub(crate) fn depth(&self, pending: i64, active: i64, oldest_age: f64) {
        self.pending.set(pending);
        self.active.set(active);
        self.oldest_age.set(oldest_age);
    }

    pub(crate) fn lock_asked(&self) {
        self.lock_attempts.inc();
    }

    pub(crate) fn lock_acquired(&self) {
        self.locks_acquired.inc();
    }

    pub(crate) fn lock_skipped(&self) {
        self.locks_skipped.inc();
    }

    pub(crate) fn lock_failed(&self) {
        // A gauge that only grows: counters carry the suffix `_total`, and this name is fixed.
        self.lock_failures.inc();
    }

    pub(crate) fn lock_lost(&self, held_for: Duration) {
        self.locks_lost.inc();
        self.lock_seconds.observe(held_for.as_secs_f64());
    }

    pub(crate) fn lock_held(&self, seconds: f64) {
        self.lock_seconds.observe(seconds);
    }
}
