//! Every metric, in one place: what it is called, what it counts. Telemetry stays apart from logic: the lanes call a
//! method named for what happened and know nothing of registries.

pub(crate) mod trace;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text;
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

/// A counter for each set of labels, which must be a bounded one.
type Labelled<const N: usize> = Family<[(&'static str, &'static str); N], Counter>;
/// A gauge of a time.
type Measured = Gauge<f64, AtomicU64>;

/// From a millisecond to half a minute.
fn seconds() -> impl Iterator<Item = f64> {
    exponential_buckets(0.001, 2.0, 15)
}

/// Defines metrics: where each is kept, as what (a histogram with its buckets), how it is called, and what it tells.
macro_rules! metrics {
    ($(#[$about:meta])* $visibility:vis struct $name:ident {
        $($field:ident: $kind:ty $(= $buckets:expr)?, $metric:literal, $help:literal;)+
    }) => {
        $(#[$about])*
        $visibility struct $name {
            $($field: $kind,)+
        }

        impl $name {
            /// Metrics that have counted nothing yet, on show in this registry.
            $visibility fn register(registry: &mut prometheus_client::registry::Registry) -> Self {
                $(
                    let $field = $crate::observe::metrics!(@new $kind $(, $buckets)?);
                    registry.register($metric, $help, <$kind>::clone(&$field));
                )+
                Self { $($field,)+ }
            }
        }
    };
    (@new $kind:ty) => { <$kind>::default() };
    (@new $kind:ty, $buckets:expr) => { <$kind>::new($buckets) };
}
use metrics;

metrics! {
    /// What happens to items and executions, counted.
    struct QueueMetrics {
        batch_size: Histogram = exponential_buckets(1.0, 2.0, 12), "queue_processing_batch_size",
            "Items taken by a claim";
        claim_seconds: Histogram = seconds(), "queue_processing_duration_seconds",
            "Time that a claim took";
        start_seconds: Histogram = seconds(), "engine_start_duration_seconds",
            "Time that the engine took to start a run";
        dispatched: Counter, "queue_items_dispatched",
            "Items whose execution was started";
        at_capacity: Counter, "queue_items_at_capacity",
            "Claims that left a workspace full with more to do";
        failed: Labelled<1>, "queue_items_failed",
            "Items that failed for good, by reason";
        retried: Counter, "queue_items_retried",
            "Starts that the engine refused and that will be tried again";
        released: Counter, "queue_items_released",
            "Claims given back without a try";
        finished: Labelled<1>, "executions_finished",
            "Executions that ended, by status";
        recovered: Gauge, "queue_stale_recovery_count",
            "Claims recovered from lost servers";
        reconciled: Counter, "executions_reconciled",
            "Executions whose completion had been lost";
        resets: Counter, "executions_reset",
            "Executions whose ended run was reset on the engine: they ran again, beyond the limit if there was no slot";
        stale_writes: Labelled<1>, "stale_writes_refused",
            "Writes of former holders that changed nothing";
        counters_mended: Counter, "capacity_counters_mended",
            "Capacity counters that differed from their rows (should stay 0)";
        breaker_open: Gauge, "engine_breaker_open",
            "1 while the engine is away and claims are held back";
        deserted_queues: Gauge, "task_queues_without_workers",
            "Task queues on which executions run and which no worker polls, told by the server that looks for all";
        deserted: Gauge, "executions_without_workers",
            "Executions that run on such task queues";
        pending: Measured, "queue_depth",
            "Items that wait (estimated when very many)";
        active: Measured, "executions_active",
            "Executions that hold a slot";
        oldest_age: Measured, "queue_oldest_age_seconds",
            "Age of the oldest waiting item";
    }
}

metrics! {
    /// What happens to locks, counted.
    struct LockMetrics {
        lock_attempts: Counter, "shedlock_acquisition_attempts",
            "Times that a lock was asked for";
        locks_acquired: Counter, "shedlock_acquisitions",
            "Locks that were acquired";
        locks_skipped: Counter, "shedlock_acquisitions_skipped",
            "Locks that somebody else held: skipped, which is no error";
        lock_failures: Gauge, "shedlock_acquisition_failures",
            "Locks that could not be asked for because of an error; a lock that is taken does not count here";
        locks_lost: Counter, "shedlock_locks_lost",
            "Locks that ran out or were taken away while their holder was at work";
        lock_seconds: Histogram = exponential_buckets(0.01, 3.0, 12), "shedlock_hold_seconds",
            "Time for which locks were held";
    }
}

/// The metrics of a server.
pub struct Metrics {
    registry: Registry,
    queue: QueueMetrics,
    pub(crate) alarms: AlarmMetrics,
    /// Of dispatchers and signals.
    pub(crate) dispatchers: DispatcherMetrics,
    locks: LockMetrics,
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
        let mut registry = Registry::default();
        let metrics = Self {
            queue: QueueMetrics::register(&mut registry),
            alarms: AlarmMetrics::register(&mut registry),
            dispatchers: DispatcherMetrics::register(&mut registry),
            locks: LockMetrics::register(&mut registry),
            registry,
        };
        metrics.show_zeroes();
        metrics
    }

    /// What has not happened yet is shown as zero, so that an alert can tell it from a metric that is not there.
    fn show_zeroes(&self) {
        for reason in EndReason::NOT_STARTED {
            drop(self.queue.failed.get_or_create(&[("reason", reason.as_str())]));
        }
        for status in CloseStatus::ALL {
            drop(self.queue.finished.get_or_create(&[("status", status.as_str())]));
        }
        self.alarms.show_zeroes();
        self.dispatchers.show_zeroes();
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
            drop(self.queue.stale_writes.get_or_create(&[("write", write)]));
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
        self.queue.batch_size.observe(items as f64);
        self.queue.claim_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn started(&self, took: Duration) {
        self.queue.start_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn dispatched(&self, items: u64) {
        self.queue.dispatched.inc_by(items);
    }

    pub(crate) fn at_capacity(&self) {
        self.queue.at_capacity.inc();
    }

    pub(crate) fn failed(&self, reason: EndReason) {
        self.queue
            .failed
            .get_or_create(&[("reason", reason.as_str())])
            .inc();
    }

    pub(crate) fn retried(&self) {
        self.queue.retried.inc();
    }

    pub(crate) fn released(&self) {
        self.queue.released.inc();
    }

    pub(crate) fn finished(&self, status: CloseStatus) {
        self.queue
            .finished
            .get_or_create(&[("status", status.as_str())])
            .inc();
    }

    pub(crate) fn recovered(&self, items: usize) {
        // A gauge that only grows: counters carry the suffix `_total`, and this name is fixed.
        self.queue
            .recovered
            .inc_by(i64::try_from(items).unwrap_or(i64::MAX));
    }

    pub(crate) fn reconciled(&self, executions: usize) {
        self.queue.reconciled.inc_by(executions as u64);
    }

    pub(crate) fn reset(&self) {
        self.queue.resets.inc();
    }

    pub(crate) fn stale_write(&self, write: &'static str) {
        self.queue.stale_writes.get_or_create(&[("write", write)]).inc();
    }

    pub(crate) fn counter_mended(&self) {
        self.queue.counters_mended.inc();
    }

    pub(crate) fn engine_breaker(&self, open: bool) {
        self.queue.breaker_open.set(i64::from(open));
    }

    pub(crate) fn deserted(&self, task_queues: usize, executions: i64) {
        self.queue
            .deserted_queues
            .set(i64::try_from(task_queues).unwrap_or(i64::MAX));
        self.queue.deserted.set(executions);
    }

    pub(crate) fn depth(&self, [pending, active, oldest_age]: [f64; 3]) {
        self.queue.pending.set(pending);
        self.queue.active.set(active);
        self.queue.oldest_age.set(oldest_age);
    }

    pub(crate) fn lock_asked(&self) {
        self.locks.lock_attempts.inc();
    }

    pub(crate) fn lock_acquired(&self) {
        self.locks.locks_acquired.inc();
    }

    pub(crate) fn lock_skipped(&self) {
        self.locks.locks_skipped.inc();
    }

    pub(crate) fn lock_failed(&self) {
        // A gauge that only grows: counters carry the suffix `_total`, and this name is fixed.
        self.locks.lock_failures.inc();
    }

    pub(crate) fn lock_lost(&self, held_for: Duration) {
        self.locks.locks_lost.inc();
        self.locks.lock_seconds.observe(held_for.as_secs_f64());
    }

    pub(crate) fn lock_held(&self, seconds: f64) {
        self.locks.lock_seconds.observe(seconds);
    }
}
