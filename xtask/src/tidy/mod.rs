//! `cargo xtask tidy`: the house rules that neither the compiler nor clippy knows. A rule is a function from the tree to
//! what violates it; it reads no file itself, so its tests can show it a tree that breaks it.

mod alerts;
mod invariants;
mod logs;
mod markdown;
mod rust;
mod sql;
mod tree;
mod twins;

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use crate::repository::Repository;
use tree::Tree;

/// A rule: finds what violates it.
type Rule = fn(&Tree) -> Vec<Violation>;

const RULES: [Rule; 12] = [
    rust::files_are_short,
    rust::modules_begin_with_a_header,
    rust::nothing_is_unfinished,
    sql::files_begin_with_a_header,
    sql::files_hold_one_statement,
    sql::files_are_used,
    markdown::links_lead_somewhere,
    alerts::every_alert_has_a_runbook_and_a_test,
    alerts::every_metric_that_is_asked_for_is_documented,
    invariants::named_tests_exist,
    logs::the_page_tells_every_line_that_is_said_and_no_other,
    twins::edits_fit_and_tests_exist,
];

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    path: String,
    /// Counted from one; zero when the whole file is meant.
    line: usize,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.path, self.message),
            line => write!(formatter, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks the whole repository.
pub(crate) fn run(repository: &Repository) -> Result<ExitCode> {
    let tree = Tree::read(repository)?;
    let violations: Vec<Violation> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for violation in &violations {
        eprintln!("{violation}");
    }
    eprintln!(
        "tidy: {} files, {} violations",
        tree.files.len(),
        violations.len()
    );
    Ok(if violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
