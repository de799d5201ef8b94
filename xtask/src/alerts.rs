//! `cargo xtask alerts`: every alert tried for real. The trials are tests of the server, and run with the others; this runs them alone, and
//! prints what `docs/runbooks/README.md` keeps.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::repository::{self, Repository, code_of};
use crate::test::Surroundings;

/// Names the file to which the tests write a row for each alert.
const REPORT_SETTING: &str = "STATIONMASTER_ALERTS_REPORT";
/// They mostly wait.
const ABREAST: &str = "4";

/// Runs them; the code is 1 when one failed, or an alert was not tried.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode> {
    let surroundings = Surroundings::provide(repository)?;
    let report = repository.target.join("alerts.md");
    // Rows of another run must not be taken for this one's.
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let mut command = repository.cargo();
    command.args([
        "test",
        "--workspace",
        "--test",
        "alerts",
        "--no-fail-fast",
        "--",
        "--test-threads",
        ABREAST,
    ]);
    command.env(REPORT_SETTING, &report);
    surroundings.given_to(&mut command);
    let status = repository::run(&mut command)?;
    let rules = fs::read_to_string(repository.root.join("ops/prometheus/alerts.yml"))?;
    let rows = fs::read_to_string(&report).context("no alert was tried")?;
    let (table, untried) = table(&rules, &rows);
    println!("{table}");
    for alert in &untried {
        eprintln!("error: {alert} was not tried");
    }
    Ok(if untried.is_empty() {
        code_of(status)
    } else {
        ExitCode::FAILURE
    })
}

/// The rows in the order of the rules, and the alerts that have none.
fn table(rules: &str, rows: &str) -> (String, Vec<String>) {
    let mut table = "| alert | fault | fired after | cleared after |\n|---|---|---|---|\n".to_owned();
    let mut untried = Vec::new();
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- alert: "));
    for alert in alerts {
        match rows
            .lines()
            .find(|row| row.starts_with(&format!("| `{alert}` |")))
        {
            Some(row) => {
                table.push_str(row);
                table.push('\n');
            }
            None => untried.push(alert.to_owned()),
        }
    }
    (table, untried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_without_a_row_is_told() {
        let rules = "      - alert: A\n      - alert: B\n      - alert: AB\n";
        let (table, untried) = table(rules, "| `AB` | x | 1 s | 2 s |\n| `A` | y | 3 s | 4 s |\n");
        assert!(
            table.ends_with("| `A` | y | 3 s | 4 s |\n| `AB` | x | 1 s | 2 s |\n"),
            "{table}"
        );
        assert_eq!(untried, ["B"]);
    }
}
