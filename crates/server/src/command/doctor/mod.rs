//! `stationmaster doctor`: looks at everything that Stationmaster stands on and says what it saw, how bad it is, and what to do.
//!
//! Each check is a small function with a deadline of its own; all of them run at once, so the whole is over within five
//! seconds, whoever does not answer. Directly on a database everything is looked at; through a server, what a server tells.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use comfy_table::Cell;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use serde::Serialize;

use super::Context;
use crate::config::Target;
use crate::failure::PassedOn;
use crate::output::{cell, maybe, status, table};

mod database;
mod outside;
mod server;
mod tables;

/// No check takes longer.
const DEADLINE: Duration = Duration::from_secs(3);

/// How to look.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Only say what is not in order
    #[arg(long)]
    quiet: bool,
}

/// How bad it is, from nothing to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// In order.
    Ok,
    /// Good to know.
    Note,
    /// Will hurt some day, or hurts a little.
    Warning,
    /// Does not work like this.
    Problem,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What a check saw.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// Which check; the name does not change.
    id: &'static str,
    severity: Severity,
    /// What was seen.
    seen: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Finding {
    fn ok(id: &'static str, seen: impl Into<String>) -> Self {
        Self {
            id,
            severity: Severity::Ok,
            seen: seen.into(),
            advice: None,
        }
    }

    fn new(id: &'static str, severity: Severity, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            severity,
            ..Self::ok(id, seen)
        }
    }

    fn note(id: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(id, Severity::Note, seen, advice)
    }

    fn warning(id: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(id, Severity::Warning, seen, advice)
    }

    fn problem(id: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(id, Severity::Problem, seen, advice)
    }
}

/// What one check comes to.
type Check<'a> = BoxFuture<'a, Vec<Finding>>;

/// A check with its deadline, under the name of what it asks about.
fn within<'a>(id: &'static str, look: impl Future<Output = Vec<Finding>> + Send + 'a) -> Check<'a> {
    async move {
        if let Ok(findings) = tokio::time::timeout(DEADLINE, look).await {
            return findings;
        }
        let seen = format!("no answer within {} s", DEADLINE.as_secs());
        let advice = "Look at what it asks, and whether it is overloaded";
        vec![Finding::warning(id, seen, advice)]
    }
    .boxed()
}

/// What all checks saw.
#[derive(Serialize)]
struct Report {
    /// How bad the worst is.
    worst: Severity,
    findings: Vec<Finding>,
}

pub(crate) async fn run(args: &DoctorArgs, context: &Context) -> Result<()> {
    let mut findings = match context.target()? {
        Target::Api(api) => server::look(&Context::client(&api)?).await,
        Target::Database => {
            let config = context.settings()?.config;
            let (inside, outside) = tokio::join!(database::look(&config, context), outside::look(&config));
            [inside, outside].concat()
        }
    };
    let worst = findings.iter().map(|finding| finding.severity).max();
    let worst = worst.unwrap_or(Severity::Ok);
    if args.quiet {
        findings.retain(|finding| finding.severity > Severity::Ok);
    }
    context.format.print(&Report { worst, findings }, for_people)?;
    if worst == Severity::Problem {
        return Err(PassedOn(1).into());
    }
    Ok(())
}

fn for_people(report: &Report) -> String {
    if report.findings.is_empty() {
        return "Everything is in order.".to_owned();
    }
    let row = |finding: &Finding| -> Vec<Cell> {
        vec![
            status(finding.severity.word()),
            cell(finding.id),
            cell(&finding.seen),
            maybe(finding.advice.as_ref()),
        ]
    };
    table(
        &["STATE", "CHECK", "SEEN", "WHAT TO DO"],
        report.findings.iter().map(row),
    )
}

/// Runs checks at once, in the order in which they are told.
async fn all(checks: Vec<Check<'_>>) -> Vec<Finding> {
    join_all(checks).await.concat()
}
