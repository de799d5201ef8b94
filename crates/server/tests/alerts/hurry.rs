//! The shipped rules with shorter waits, so that a fault need not last for an hour. What is asked stays what it is:
//!
//! - `for`: a minute becomes a second, and none is longer than ten
//! - ranges: a minute becomes two seconds, and none is longer than thirty
//! - an age of a quarter of an hour (900 seconds) becomes half a minute

use std::fmt::Write as _;
use std::time::Duration;

/// The rules, hurried.
pub(crate) fn hurried(rules: &str) -> String {
    let lines = rules.lines().map(|line| match line.trim_start() {
        words if words.starts_with("for: ") => {
            let wait = length(words.trim_start_matches("for: "));
            let wait = (wait / 60).min(Duration::from_secs(10));
            format!("        for: {}s", wait.as_secs())
        }
        words if words.starts_with("expr: ") => ranges(line).replace("> 900", "> 30"),
        _ => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

fn ranges(line: &str) -> String {
    let mut parts = line.split('[');
    let mut hurried = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (range, rest) = part.split_once(']').unwrap();
        let range = (length(range) / 30).min(Duration::from_secs(30));
        let _ = write!(hurried, "[{}s]{rest}", range.as_secs());
    }
    hurried
}

fn length(words: &str) -> Duration {
    let (count, unit) = words.split_at(words.len() - 1);
    let count = count.parse().unwrap();
    match unit {
        "m" => Duration::from_mins(count),
        "h" => Duration::from_hours(count),
        _ => panic!("a time in minutes or hours: {words}"),
    }
}

#[test]
fn only_waits_are_hurried() {
    let rules = "      - alert: A
        expr: 'sum(rate(a[5m])) > 0.1 and max(b) > 900 or increase(c[1h]) > 2'
        for: 6h
        labels:
";
    let wanted = "      - alert: A
        expr: 'sum(rate(a[10s])) > 0.1 and max(b) > 30 or increase(c[30s]) > 2'
        for: 10s
        labels:
";
    assert_eq!(hurried(rules), wanted);
}
