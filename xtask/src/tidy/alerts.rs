//! The rules for what people on call use: an alert leads to a runbook and has a test, and neither alerts nor the dashboard ask for a metric
//! that no server tells. A query for a metric that was renamed away would be healthy for ever.

use std::collections::HashSet;

use super::Violation;
use super::tree::{Source, Tree};

const ALERTS: &str = "ops/prometheus/alerts.yml";
const TESTS: &str = "ops/prometheus/alerts_test.yml";
const DASHBOARD: &str = "ops/grafana/stationmaster.json";
const METRICS: &str = "docs/metrics.md";
const RUNBOOKS: &str = "docs/runbooks/README.md";

/// Names of metrics of ours begin like this.
const BEGINNINGS: [&str; 4] = ["stationmaster_", "queue_", "dispatcher_", "shedlock_"];
/// What Prometheus makes of a histogram.
const ENDINGS: [&str; 3] = ["_bucket", "_count", "_sum"];

/// Every alert names a runbook that is there, is in the list of the runbooks, has a severity and a test.
pub(crate) fn every_alert_has_a_runbook_and_a_test(tree: &Tree) -> Vec<Violation> {
    let Some(alerts) = file(tree, ALERTS) else {
        return Vec::new();
    };
    let text = |path| file(tree, path).map_or("", |file| file.text.as_str());
    let (tests, list) = (text(TESTS), text(RUNBOOKS));
    let mut violations = Vec::new();
    let lines: Vec<(usize, &str)> = alerts.lines().collect();
    let starts: Vec<usize> = (0..lines.len())
        .filter(|at| lines[*at].1.trim_start().starts_with("- alert:"))
        .collect();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(lines.len());
        let (number, first) = lines[start];
        let name = value(first).unwrap_or_default();
        let field = |key: &str| {
            let mut of_it = lines[start..end].iter();
            of_it.find_map(|(_, line)| line.trim_start().starts_with(key).then(|| value(line))?)
        };
        let mut complain = |words: String| violations.push(alerts.violation_at(number, words));
        match field("runbook_url:") {
            Some(runbook) if tree.paths.contains(runbook) => {}
            Some(runbook) => complain(format!("{name}: there is no runbook {runbook}")),
            None => complain(format!("{name} names no runbook")),
        }
        for key in ["severity:", "summary:", "description:"] {
            if field(key).is_none_or(str::is_empty) {
                complain(format!("{name} has no {}", key.trim_end_matches(':')));
            }
        }
        if !tests.contains(&format!("alertname=\"{name}\", severity=")) {
            complain(format!("{name} has no test in {TESTS} that sees it fire"));
        }
        if !list.contains(&format!("`{name}`")) {
            complain(format!("{name} is not in {RUNBOOKS}"));
        }
    }
    violations
}

/// Every metric that an alert, a runbook or the dashboard asks for is in the page of the metrics.
pub(crate) fn every_metric_that_is_asked_for_is_documented(tree: &Tree) -> Vec<Violation> {
    let documented: HashSet<&str> = file(tree, METRICS)
        .into_iter()
        .flat_map(|page| page.text.lines())
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let asks = |file: &&Source| {
        [ALERTS, DASHBOARD].contains(&file.path.as_str()) || file.path.starts_with("docs/runbooks/")
    };
    let mut violations = Vec::new();
    for file in tree.files.iter().filter(asks) {
        for (number, line) in file.lines() {
            let unknown = metrics(line).filter(|name| {
                let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
                !documented.contains(name) && !stem.is_some_and(|stem| documented.contains(stem))
            });
            violations.extend(unknown.map(|name| {
                file.violation_at(
                    number,
                    format!("no server tells the metric `{name}`: see {METRICS}"),
                )
            }));
        }
    }
    violations
}

/// The words of a line that can be nothing but names of metrics.
fn metrics(line: &str) -> impl Iterator<Item = &str> {
    let words =
        line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.' || c == '-' || c == '/'));
    words.filter(|word| {
        let plain = word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        plain && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning)) && !NO_METRICS.contains(word)
    })
}

/// They look like metrics and are schemas and tables.
const NO_METRICS: [&str; 3] = ["stationmaster_internal", "queue_items", "queue_pending"];

fn file<'a>(tree: &'a Tree, path: &str) -> Option<&'a Source> {
    tree.files.iter().find(|file| file.path == path)
}

/// What stands behind the colon, without quotes.
fn value(line: &str) -> Option<&str> {
    let (_, value) = line.split_once(": ")?;
    Some(value.trim().trim_matches('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "      - alert: A\n        expr: 'queue_items_failed_total > 0'\n        labels:\n          severity: warning\n        \
                        annotations:\n          summary: 's'\n          description: 'd'\n          runbook_url: docs/runbooks/a.md\n";

    fn tree(alerts: &str, tests: &str, list: &str) -> Tree {
        Tree::of(&[
            (ALERTS, alerts),
            (TESTS, tests),
            (RUNBOOKS, list),
            ("docs/runbooks/a.md", ""),
            (
                METRICS,
                "| `queue_items_failed_total` | counter |\n| `stationmaster_wait_seconds` | histogram |\n",
            ),
        ])
    }

    #[test]
    fn an_alert_without_runbook_severity_test_or_place_in_the_list_is_found() {
        let tests = "alertname=\"A\", severity=\"warning\"";
        let wrong = |alerts: &str, tests: &str, list: &str| {
            every_alert_has_a_runbook_and_a_test(&tree(alerts, tests, list)).len()
        };
        assert_eq!(wrong(GOOD, tests, "| `A` |"), 0);
        assert_eq!(wrong(&GOOD.replace("a.md", "b.md"), tests, "| `A` |"), 1);
        assert_eq!(wrong(&GOOD.replace("runbook_url", "other"), tests, "| `A` |"), 1);
        assert_eq!(wrong(&GOOD.replace("severity: warning", ""), tests, "| `A` |"), 1);
        assert_eq!(wrong(GOOD, "", "| `A` |"), 1);
        assert_eq!(wrong(GOOD, tests, ""), 1);
    }

    #[test]
    fn a_metric_that_nobody_tells_is_found() {
        let wrong = |text: &str| every_metric_that_is_asked_for_is_documented(&tree(text, "", "")).len();
        assert_eq!(
            wrong("rate(queue_items_failed_total[5m]) + stationmaster_wait_seconds_bucket"),
            0
        );
        assert_eq!(wrong("max(stationmaster_wait_second)"), 1);
        assert_eq!(wrong("queue_items_failed"), 1);
        assert_eq!(wrong("ops/grafana/stationmaster_x.json stationmaster-serve"), 0);
    }
}
