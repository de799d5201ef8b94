//! The metrics of the alarms lane.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::{Labelled, Measured, metrics, seconds, sizes};
use crate::alarms::OccurrenceStatus;
use crate::wake::answer::Class;

metrics! {
    /// What happens to alarms, counted.
    pub(crate) struct AlarmMetrics {
        // From a millisecond to more than an hour.
        histogram lateness: Histogram = Histogram::new(exponential_buckets(0.001, 2.0, 23)), "stationmaster_alarm_lateness_seconds",
            "Time from the due instant of an occurrence to its first wake";
        counter fired: Counter, "stationmaster_alarms_fired",
            "Occurrences whose wake was accepted";
        counter failed: Labelled<1>, "stationmaster_alarms_failed"["class"],
            "Occurrences that failed for good, by class of answer";
        counter wakes: Labelled<1>, "stationmaster_alarm_wakes"["class"],
            "Wakes sent, by class of answer";
        histogram wake_seconds: Histogram = seconds(), "stationmaster_alarm_wake_duration_seconds",
            "Time that a target took to answer";
        counter retried: Counter, "stationmaster_alarms_retried",
            "Wakes that were not accepted and will be tried again";
        counter released: Labelled<1>, "stationmaster_alarms_released"["reason"],
            "Claims given back without a try, by reason";
        counter missed: Labelled<1>, "stationmaster_alarms_missed"["status"],
            "Occurrences that will not fire: skipped, or coalesced into another";
        counter recovered: Counter, "stationmaster_alarms_recovered",
            "Wakes taken over from lost servers";
        counter auto_paused: Counter, "stationmaster_alarms_auto_paused",
            "Alarms paused because their occurrences kept failing, or their target is gone";
        histogram batch_size: Histogram = sizes(), "stationmaster_alarm_claim_batch_size",
            "Occurrences taken by a claim";
        histogram claim_seconds: Histogram = seconds(), "stationmaster_alarm_claim_duration_seconds",
            "Time that a claim took";
        gauge open_targets: Gauge, "stationmaster_alarm_targets_open",
            "Wake targets that do not answer and whose wakes are held back";
        gauge open: Measured, "stationmaster_alarm_occurrences_open",
            "Occurrences due and not settled";
        gauge late: Measured, "stationmaster_alarm_oldest_due_seconds",
            "How late the longest-waiting alarm is that is due and not claimed";
        gauge failing: Measured, "stationmaster_alarms_failing",
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
