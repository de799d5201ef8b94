//! The metrics of the HTTP API. Routes are those of the program, not what callers ask for, so that nobody can make more of them.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::{Metrics, metrics, seconds};

/// A histogram for each route.
type ByRoute = Family<[(&'static str, String); 1], Histogram, fn() -> Histogram>;

metrics! {
    /// See the module.
    pub(crate) struct RequestMetrics {
        counter answered: Family<[(&'static str, String); 3], Counter>, "stationmaster_http_requests"["route, method, status"],
            "Requests that were answered; the route `none` is whatever no route was found for, or nobody was let in to";
        histogram took: ByRoute = Family::new_with_constructor(seconds), "stationmaster_http_request_duration_seconds"["route"],
            "Time that requests took until their answer began";
        gauge under_way: Gauge, "stationmaster_http_requests_under_way",
            "Requests that are being answered";
    }
}

impl Metrics {
    /// A request came in.
    pub fn request_began(&self) {
        self.requests.under_way.inc();
    }

    /// Its answer has begun, or nobody waits for it any more.
    pub fn request_ended(&self) {
        self.requests.under_way.dec();
    }

    /// A request was answered. The route and the method must be of a bounded set.
    pub fn answered(&self, route: &str, method: &str, status: u16, took: Duration) {
        let by = [
            ("route", route.to_owned()),
            ("method", method.to_owned()),
            ("status", status.to_string()),
        ];
        self.requests.answered.get_or_create(&by).inc();
        let by = [("route", route.to_owned())];
        self.requests.took.get_or_create(&by).observe(took.as_secs_f64());
    }
}
