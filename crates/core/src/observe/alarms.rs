//! The metrics of the alarms lane.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::alarms::OccurrenceStatus;
use crate::wake::answer::Class;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByClass {
    class: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByStatus {
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

/// What happens to alarms, counted.
pub(crate) struct AlarmMetrics {
    lateness: Histogram,
    claim_seconds: Histogram,
    batch_size: Histogram,
    wake_seconds: Histogram,
    wakes: Family<ByClass, Counter>,
    fired: Counter,
    failed: Family<ByClass, Counter>,
    retried: Counter,
    released: Family<ByReason, Counter>,
    missed: Family<ByStatus, Counter>,
    recovered: Counter,
    auto_paused: Counter,
    open_targets: Gauge,
    open: Gauge,
    late: Gauge<f64, AtomicU64>,
    failing: Gauge,
}

impl AlarmMetrics {
    pub(super) fn new() -> Self {
        let seconds = || Histogram::new(exponential_buckets(0.001, 2.0, 15));
        Self {
            // From a millisecond to more than an hour.
            lateness: Histogram::new(exponential_buckets(0.001, 2.0, 23)),
            claim_seconds: seconds(),
            batch_size: Histogram::new(exponential_buckets(1.0, 2.0, 12)),
            wake_seconds: seconds(),
            wakes: Family::default(),
            fired: Counter::default(),
            failed: Family::default(),
            retried: Counter::default(),
            released: Family::default(),
            missed: Family::default(),
            recovered: Counter::default(),
            auto_paused: Counter::default(),
            open_targets: Gauge::default(),
            open: Gauge::default(),
            late: Gauge::default(),
            failing: Gauge::default(),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let lateness = "Time from the due instant of an occurrence to its first wake";
        registry.register("alarm_lateness_seconds", lateness, self.lateness.clone());
        registry.register(
            "alarms_fired",
            "Occurrences whose wake was accepted",
            self.fired.clone(),
        );
        registry.register(
            "alarms_failed",
            "Occurrences that failed for good, by class of answer",
            self.failed.clone(),
        );
        registry.register(
            "alarm_wakes",
            "Wakes sent, by class of answer",
            self.wakes.clone(),
        );
        registry.register(
            "alarm_wake_duration_seconds",
            "Time that a target took to answer",
            self.wake_seconds.clone(),
        );
        registry.register(
            "alarms_retried",
            "Wakes that were not accepted and will be tried again",
            self.retried.clone(),
        );
        let released = "Claims given back without a try, by reason";
        registry.register("alarms_released", released, self.released.clone());
        let missed = "Occurrences that will not fire: skipped, or coalesced into another";
        registry.register("alarms_missed", missed, self.missed.clone());
        registry.register(
            "alarms_recovered",
            "Wakes taken over from lost servers",
            self.recovered.clone(),
        );
        let paused = "Alarms paused because their occurrences kept failing, or their target is gone";
        registry.register("alarms_auto_paused", paused, self.auto_paused.clone());
        registry.register(
            "alarm_claim_batch_size",
            "Occurrences taken by a claim",
            self.batch_size.clone(),
        );
        registry.register(
            "alarm_claim_duration_seconds",
            "Time that a claim took",
            self.claim_seconds.clone(),
        );
        let open_targets = "Wake targets that do not answer and whose wakes are held back";
        registry.register("alarm_targets_open", open_targets, self.open_targets.clone());
        registry.register(
            "alarm_occurrences_open",
            "Occurrences due and not settled",
            self.open.clone(),
        );
        let late = "How late the longest-waiting alarm is that is due and not claimed";
        registry.register("alarm_oldest_due_seconds", late, self.late.clone());
        registry.register(
            "alarms_failing",
            "Alarms whose last occurrence failed",
            self.failing.clone(),
        );
    }

    pub(super) fn show_zeroes(&self) {
        for class in Class::ALL {
            let by = ByClass {
                class: class.as_str(),
            };
            drop(self.wakes.get_or_create(&by));
            if *class != Class::Accepted {
                drop(self.failed.get_or_create(&by));
            }
        }
        for reason in ["full", "unreachable", "stopped"] {
            drop(self.released.get_or_create(&ByReason { reason }));
        }
        for status in [OccurrenceStatus::Skipped, OccurrenceStatus::Coalesced] {
            self.missed(status, 0);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a batch is small")]
    pub(crate) fn claimed(&self, occurrences: usize, took: Duration) {
        self.batch_size.observe(occurrences as f64);
        self.claim_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn late(&self, seconds: f64) {
        self.lateness.observe(seconds.max(0.0));
    }

    pub(crate) fn answered(&self, class: Class, took: Duration) {
        let by = ByClass {
            class: class.as_str(),
        };
        self.wakes.get_or_create(&by).inc();
        self.wake_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn fired(&self, occurrences: u64) {
        self.fired.inc_by(occurrences);
    }

    pub(crate) fn failed(&self, class: Class) {
        let by = ByClass {
            class: class.as_str(),
        };
        self.failed.get_or_create(&by).inc();
    }

    pub(crate) fn retried(&self) {
        self.retried.inc();
    }

    pub(crate) fn released(&self, reason: &'static str) {
        self.released.get_or_create(&ByReason { reason }).inc();
    }

    pub(crate) fn missed(&self, status: OccurrenceStatus, occurrences: u64) {
        let by = ByStatus {
            status: status.as_str(),
        };
        self.missed.get_or_create(&by).inc_by(occurrences);
    }

    pub(crate) fn recovered(&self, occurrences: usize) {
        self.recovered.inc_by(occurrences as u64);
    }

    pub(crate) fn auto_paused(&self) {
        self.auto_paused.inc();
    }

    pub(crate) fn open_targets(&self, targets: usize) {
        self.open_targets.set(i64::try_from(targets).unwrap_or(i64::MAX));
    }

    pub(crate) fn standing(&self, open: i64, late: f64, failing: i64) {
        self.open.set(open);
        self.late.set(late.max(0.0));
        self.failing.set(failing);
    }
}
