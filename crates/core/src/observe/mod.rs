//! Every metric, in one place: what it is called, what it counts, by which labels. Telemetry stays apart from logic: the lanes call a
//! method named for what happened and know nothing of registries.
//!
//! Names begin with `stationmaster_`, except those that the source designs fixed. A gauge that one server tells for all is there while
//! that server has the duty, and gone when it has not: whoever does not know says nothing.

pub mod trace;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::HistogramWithExemplars;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

mod alarms;
mod dispatchers;
mod format;
mod requests;
mod standing;

use alarms::AlarmMetrics;
use dispatchers::DispatcherMetrics;
pub use format::Format;
use requests::RequestMetrics;
use standing::StandingMetrics;
pub(crate) use standing::{Connections, Standing};

use crate::engine::CloseStatus;
use crate::executions::EndReason;
use stationmaster_wire::OperationStatus;

/// A counter for each set of labels, which must be a bounded one.
type Labelled<const N: usize> = Family<[(&'static str, &'static str); N], Counter>;
/// A gauge of a time.
type Measured = Gauge<f64, AtomicU64>;
/// A gauge that is there only while somebody tells it.
type Told = Family<[(&'static str, &'static str); 0], Measured>;
/// A histogram whose buckets name a trace that fell into them.
type Traced = HistogramWithExemplars<[(&'static str, String); 1]>;

/// Tells it, or takes it away.
fn tell(gauge: &Told, value: Option<f64>) {
    match value {
        Some(value) => drop(gauge.get_or_create(&[]).set(value)),
        None => gauge.clear(),
    }
}

/// From a millisecond to half a minute.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// The same with traces.
fn traced_seconds() -> Traced {
    Traced::new(exponential_buckets(0.001, 2.0, 15))
}

/// From a millisecond to nine hours: what waits may wait for long.
fn traced_waits() -> Traced {
    Traced::new(exponential_buckets(0.001, 2.0, 26))
}

/// Small numbers of things.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 12))
}

/// A metric as the page of the metrics describes it.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// As it is asked for: a counter with its `_total`, a histogram without its endings.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels; empty: none.
    pub labels: &'static str,
    /// What it tells.
    pub help: &'static str,
}

/// Defines metrics: what each is, where it is kept, how it is called (a counter without its `_total`), by which labels, and what it
/// tells. What is not made by default is made by what follows the `=`.
macro_rules! metrics {
    ($(#[$about:meta])* $visibility:vis struct $name:ident {
        $($what:ident $field:ident: $kind:ty $(= $make:expr)?, $metric:literal $([$labels:literal])?, $help:literal;)+
    }) => {
        $(#[$about])*
        $visibility struct $name {
            $($field: $kind,)+
        }

        impl $name {
            /// How each is described.
            pub(super) const TABLE: &'static [$crate::observe::Described] = &[$(
                $crate::observe::Described {
                    name: $crate::observe::metrics!(@name $what $metric),
                    kind: stringify!($what),
                    labels: concat!($($labels)?),
                    help: $help,
                },
            )+];

            /// Metrics that have counted nothing yet, on show in this registry.
            $visibility fn register(registry: &mut prometheus_client::registry::Registry) -> Self {
                $(
                    let $field: $kind = $crate::observe::metrics!(@new $($make)?);
                    registry.register($metric, $help, <$kind>::clone(&$field));
                )+
                Self { $($field,)+ }
            }
        }
    };
    (@new) => { Default::default() };
    (@new $make:expr) => { $make };
    (@name counter $metric:literal) => { concat!($metric, "_total") };
    (@name $what:ident $metric:literal) => { $metric };
}
use metrics;

metrics! {
    /// What happens to items and executions, counted.
    struct QueueMetrics {
        histogram batch_size: Histogram = sizes(), "queue_processing_batch_size",
            "Items taken by a claim";
        histogram batch_seconds: Histogram = seconds(), "queue_processing_duration_seconds",
            "Time from the beginning of a claim until the last of its items was settled";
        histogram claim_seconds: Histogram = seconds(), "stationmaster_claim_duration_seconds",
            "Time that a claim of items took";
        histogram wait_seconds: Traced = traced_waits(), "stationmaster_enqueue_to_dispatch_seconds",
            "Time from when an item could first start (its enqueue, or its time) until its run was started";
        histogram attempts: Histogram = Histogram::new([1.0, 2.0, 3.0, 5.0, 10.0, 20.0]), "stationmaster_queue_item_attempts",
            "Tries that an item took until it was started or failed for good";
        histogram start_seconds: Traced = traced_seconds(), "stationmaster_engine_start_duration_seconds",
            "Time that the engine took to start a run";
        counter starts: Labelled<1>, "stationmaster_engine_starts"["outcome"],
            "Starts asked of the engine, by what came of them";
        counter dispatched: Counter, "queue_items_dispatched",
            "Items whose execution was started";
        counter at_capacity: Counter, "queue_items_at_capacity",
            "Claims that left a workspace full with more to do";
        counter failed: Labelled<1>, "queue_items_failed"["reason"],
            "Items that failed for good, by reason";
        counter retried: Counter, "stationmaster_queue_items_retried",
            "Starts that the engine refused and that will be tried again";
        counter released: Counter, "stationmaster_queue_items_released",
            "Claims given back without a try";
        counter finished: Labelled<1>, "stationmaster_executions_finished"["status"],
            "Executions that ended, by status, whoever told of it";
        gauge recovered: Gauge, "queue_stale_recovery_count",
            "Claims recovered from lost servers since this server started; it only grows";
        counter reconciled: Counter, "stationmaster_executions_reconciled",
            "Executions whose completion had been lost";
        counter resets: Counter, "stationmaster_executions_reset",
            "Executions whose ended run was reset on the engine: they ran again, beyond the limit if there was no slot";
        counter stale_writes: Labelled<1>, "stationmaster_stale_writes_refused"["write"],
            "Writes of former holders that changed nothing";
        counter counters_mended: Counter, "stationmaster_capacity_counters_mended",
            "Capacity counters that differed from their rows (should stay 0)";
        gauge breaker_open: Gauge, "stationmaster_engine_breaker_open",
            "1 while the engine is away and claims are held back";
        gauge deserted_queues: Told, "stationmaster_task_queues_without_workers",
            "Task queues on which executions run and which no worker polls; told by the server that looks for all";
        gauge deserted: Told, "stationmaster_executions_without_workers",
            "Executions that run on such task queues; told by the server that looks for all";
        gauge pending: Measured, "stationmaster_queue_depth",
            "Items that wait, scheduled and parked ones too (estimated when very many)";
        gauge active: Measured, "stationmaster_executions_active",
            "Executions that hold a slot";
        gauge oldest_age: Measured, "stationmaster_queue_oldest_age_seconds",
            "How long the oldest item waits whose time has come; paused workspaces and workflows do not count";
        gauge runnable_age: Measured, "stationmaster_queue_runnable_age_seconds",
            "The same among the heads of queues whose workspace has a free slot: nothing but a server keeps these waiting";
    }
}

metrics! {
    /// What happens to operations, counted.
    struct OperationMetrics {
        counter ended: Labelled<1>, "stationmaster_operations_ended"["status"],
            "Operations on everything that matches that are over, by how they ended";
        counter items: Counter, "stationmaster_operation_items",
            "Things that operations have changed";
    }
}

metrics! {
    /// What happens to locks, counted.
    struct LockMetrics {
        counter lock_attempts: Counter, "stationmaster_lock_acquisition_attempts",
            "Times that a lock was asked for";
        counter locks_acquired: Counter, "stationmaster_lock_acquisitions",
            "Locks that were acquired";
        counter locks_skipped: Counter, "stationmaster_lock_acquisitions_skipped",
            "Locks that somebody else held: skipped, which is no error";
        gauge lock_failures: Gauge, "shedlock_acquisition_failures",
            "Locks that could not be asked for because of an error, since this server started; a lock that is taken does not count here";
        counter locks_lost: Counter, "stationmaster_locks_lost",
            "Locks that ran out or were taken away while their holder was at work";
        histogram lock_seconds: Histogram = Histogram::new(exponential_buckets(0.01, 3.0, 12)), "stationmaster_lock_hold_seconds",
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
    operations: OperationMetrics,
    locks: LockMetrics,
    /// Of the HTTP API.
    pub(crate) requests: RequestMetrics,
    /// What is measured when somebody looks.
    pub(crate) standing: StandingMetrics,
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
            operations: OperationMetrics::register(&mut registry),
            locks: LockMetrics::register(&mut registry),
            requests: RequestMetrics::register(&mut registry),
            standing: StandingMetrics::register(&mut registry),
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
        for outcome in ["running", "closed", "refused", "unavailable", "in_doubt"] {
            drop(self.queue.starts.get_or_create(&[("outcome", outcome)]));
        }
        for status in OperationStatus::ALL.iter().filter(|status| status.has_ended()) {
            drop(
                self.operations
                    .ended
                    .get_or_create(&[("status", status.as_str())]),
            );
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
            "operation",
        ] {
            drop(self.queue.stale_writes.get_or_create(&[("write", write)]));
        }
    }

    /// Every metric, in the order in which they are shown.
    pub fn described() -> impl Iterator<Item = &'static Described> {
        let tables = [
            QueueMetrics::TABLE,
            AlarmMetrics::TABLE,
            DispatcherMetrics::TABLE,
            OperationMetrics::TABLE,
            LockMetrics::TABLE,
            RequestMetrics::TABLE,
            StandingMetrics::TABLE,
        ];
        tables.into_iter().flatten()
    }

    /// The text that Prometheus reads, as it reads it by default.
    #[must_use]
    pub fn render(&self) -> String {
        self.render_as(Format::Text)
    }

    /// The text in either format.
    #[must_use]
    pub fn render_as(&self, format: Format) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = text::encode(&mut text, &self.registry);
        match format {
            Format::OpenMetrics => text,
            Format::Text => format::plain(&text),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
    pub(crate) fn claimed(&self, items: usize, took: Duration) {
        self.queue.batch_size.observe(items as f64);
        self.queue.claim_seconds.observe(took.as_secs_f64());
    }

    /// All of a claim has been settled, or left to others.
    pub(crate) fn processed(&self, took: Duration) {
        self.queue.batch_seconds.observe(took.as_secs_f64());
    }

    /// The engine was asked to start a run, in the current trace.
    pub(crate) fn started(&self, outcome: &'static str, took: Duration) {
        self.queue.starts.get_or_create(&[("outcome", outcome)]).inc();
        self.queue
            .start_seconds
            .observe(took.as_secs_f64(), trace::exemplar(), None);
    }

    /// An item was started, so long after it first could be, in the current trace.
    pub(crate) fn waited(&self, waited: Duration) {
        self.queue
            .wait_seconds
            .observe(waited.as_secs_f64(), trace::exemplar(), None);
    }

    /// An item came to its end in the queue, by being started or not, after so many tries.
    pub(crate) fn tried(&self, attempts: u32) {
        self.queue.attempts.observe(f64::from(attempts));
    }

    /// An execution was ended by somebody's request.
    pub fn ended_by_request(&self, status: CloseStatus) {
        self.finished(status);
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

    /// An operation is over.
    pub fn operation_ended(&self, status: OperationStatus) {
        self.operations
            .ended
            .get_or_create(&[("status", status.as_str())])
            .inc();
    }

    /// A call of an operation has changed so many things.
    pub(crate) fn operated(&self, items: u64) {
        self.operations.items.inc_by(items);
    }

    pub(crate) fn counter_mended(&self) {
        self.queue.counters_mended.inc();
    }

    pub(crate) fn engine_breaker(&self, open: bool) {
        self.queue.breaker_open.set(i64::from(open));
    }

    /// Task queues without workers and what runs on them; `None`: this server does not know.
    #[expect(clippy::cast_precision_loss, reason = "far fewer")]
    pub(crate) fn deserted(&self, found: Option<(usize, i64)>) {
        tell(
            &self.queue.deserted_queues,
            found.map(|(queues, _)| queues as f64),
        );
        tell(
            &self.queue.deserted,
            found.map(|(_, executions)| executions as f64),
        );
    }

    pub(crate) fn depth(&self, [pending, active, oldest_age, runnable_age]: [f64; 4]) {
        self.queue.pending.set(pending);
        self.queue.active.set(active);
        self.queue.oldest_age.set(oldest_age);
        self.queue.runnable_age.set(runnable_age);
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
