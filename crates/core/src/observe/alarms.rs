//! The metrics of the alarms lane.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Labelled, Measured, metrics, seconds};
use crate::alarms::OccurrenceStatus;
use crate::wake::answer::Class;

metrics! {
    /// What happens to alarms, counted.
    pub(crate) struct AlarmMetrics {
        // From a millisecond to more than an hour.
        lateness: Histogram = exponential_buckets(0.001, 2.0, 23), "alarm_lateness_seconds",
            "Time from the due instant of an occurrence to its first wake";
        fired: Counter, "alarms_fired",
            "Occurrences whose wake was accepted";
        failed: Labelled<1>, "alarms_failed",
            "Occurrences that failed for good, by class of answer";
        wakes: Labelled<1>, "alarm_wakes",
            "Wakes sent, by class of answer";
        wake_seconds: Histogram = seconds(), "alarm_wake_duration_seconds",
            "Time that a target took to answer";
        retried: Counter, "alarms_retried",
            "Wakes that were not accepted and will be tried again";
        released: Labelled<1>, "alarms_released",
            "Claims given back without a try, by reason";
        missed: Labelled<1>, "alarms_missed",
            "Occurrences that will not fire: skipped, or coalesced into another";
        recovered: Counter, "alarms_recovered",
            "Wakes taken over from lost servers";
        auto_paused: Counter, "alarms_auto_paused",
            "Alarms paused because their occurrences kept failing, or their target is gone";
        batch_size: Histogram = exponential_buckets(1.0, 2.0, 12), "alarm_claim_batch_size",
            "Occurrences taken by a claim";
        claim_seconds: Histogram = seconds(), "alarm_claim_duration_seconds",
            "Time that a claim took";
        open_targets: Gauge, "alarm_targets_open",
            "Wake targets that do not answer and whose wakes are held back";
        open: Measured, "alarm_occurrences_open",
            "Occurrences due and not settled";
        late: Measured, "alarm_oldest_due_seconds",
            "How late the longest-waiting alarm is that is due and not claimed";
        failing: Measured, "alarms_failing",
            "Alarms whose last occurrence failed";
    }
}

impl AlarmMetrics {
    pub(super) fn show_zeroes(&self) {
        for class in Class::ALL {
            let by = [("class", class.as_str())];
            drop(self.wakes.get_or_create(&by));
            if *class != Class::Accepted {
                drop(self.failed.get_or_create(&by));
            }
        }
        for reason in ["full", "unreachable", "stopped"] {
            drop(self.released.get_or_create(&[("reason", reason)]));
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
        self.wakes.get_or_create(&[("class", class.as_str())]).inc();
        self.wake_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn fired(&self, occurrences: u64) {
        self.fired.inc_by(occurrences);
    }

    pub(crate) fn failed(&self, class: Class) {
        self.failed.get_or_create(&[("class", class.as_str())]).inc();
    }

    pub(crate) fn retried(&self) {
        self.retried.inc();
    }

    pub(crate) fn released(&self, reason: &'static str) {
        self.released.get_or_create(&[("reason", reason)]).inc();
    }

    pub(crate) fn missed(&self, status: OccurrenceStatus, occurrences: u64) {
        let by = [("status", status.as_str())];
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

    pub(crate) fn standing(&self, [open, late, failing]: [f64; 3]) {
        self.open.set(open);
        // Not `max`, which would make nought of what is not known.
        self.late.set(if late < 0.0 { 0.0 } else { late });
        self.failing.set(failing);
    }
}
