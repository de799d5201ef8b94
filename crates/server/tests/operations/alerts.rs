//! The alerts as Prometheus' own tool sees them.

use crate::scene::{fed, repository_path};
use crate::support::setting;

#[test]
fn every_alert_fires_when_its_fault_lasts_and_is_over_when_the_fault_is() {
    let promtool = setting("STATIONMASTER_TEST_PROMTOOL");
    for (command, file) in [
        (["check", "config"], "ops/prometheus/prometheus.yml"),
        (["test", "rules"], "ops/prometheus/alerts_test.yml"),
    ] {
        let path = repository_path(file);
        let (passed, words) = fed(&promtool, &[command[0], command[1], &path], "");
        assert!(passed, "{words}");
    }
}
