//! The alerts as Prometheus' own tool sees them.

use crate::scene::{fed, repository_path};
use crate::support::setting;

#[test]
fn every_alert_fires_when_its_fault_lasts_and_is_over_when_the_fault_is() {
    let promtool = setting("STATIONMASTER_TEST_PROMTOOL");
    for (what, file) in [
        (["check", "config"], "ops/prometheus/prometheus.yml"),
        (["test", "rules"], "ops/prometheus/alerts_test.yml"),
    ] {
        let file = repository_path(file);
        let (fine, said) = fed(&promtool, &[what[0], what[1], &file], "");
        assert!(fine, "{said}");
    }
}
