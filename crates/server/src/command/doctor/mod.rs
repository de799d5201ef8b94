//! `stationmaster doctor`: looks at everything that Stationmaster stands on and says what it saw, how bad it is, and what to do.
//!
//! Each check is a small function, and all of them run at once towards one deadline, so the whole is over within five seconds,
//! whoever does not answer. Directly on a database everything is looked at; through a server, what a server tells.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use futures::future::{BoxFuture, FutureExt as _, join_all};
use serde::Serialize;
use stationmaster_core::task::chain;
use tokio::time::{Instant, timeout, timeout_at};

use super::Context;
use crate::config::Target;
use crate::failure::PassedOn;
use crate::output::{Column, Described, cell, column, maybe, rows, status, word};

mod database;
mod outside;
mod owners;
mod server;
mod tables;

/// Everything is looked at within this time.
const PATIENCE: Duration = Duration::from_secs(4);
/// A first answer is waited for no longer; the rest is for what is asked then.
const REACH: Duration = Duration::from_secs(2);

/// When this doctor has seen enough.
#[derive(Debug, Clone, Copy)]
struct Deadline(Instant);

impl Deadline {
    fn new() -> Self {
        Self(Instant::now() + PATIENCE)
    }

    /// What is left of the time, for one question after others.
    fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

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

/// What a look brings: one finding or several, or that whoever was asked refused.
trait Look: Send {
    fn findings(self, id: &'static str) -> Vec<Finding>;
}

impl Look for Finding {
    fn findings(self, _: &'static str) -> Vec<Finding> {
        vec![self]
    }
}

impl Look for Vec<Finding> {
    fn findings(self, _: &'static str) -> Vec<Finding> {
        self
    }
}

impl<L: Look, E: Into<anyhow::Error> + Send> Look for Result<L, E> {
    fn findings(self, id: &'static str) -> Vec<Finding> {
        match self {
            Ok(look) => look.findings(id),
            Err(error) => vec![refused(id, &error.into())],
        }
    }
}

/// What is said of a question that was not answered.
fn refused(id: &'static str, error: &anyhow::Error) -> Finding {
    use stationmaster_client::Error;
    let advice = match error.downcast_ref() {
        None => return Finding::warning(id, chain(error.as_ref()), "The database's own log may tell more"),
        Some(Error::Unauthenticated(_) | Error::Forbidden(_)) => {
            "Use a token that may look: see `stationmaster contexts`"
        }
        Some(Error::Transport(_)) => "Is the server running, and is its address right?",
        Some(_) => "The log of the server, or of the database, may tell more",
    };
    Finding::problem(id, error.to_string(), advice)
}

/// A check with its deadline, under the name of what it asks about.
fn within<'a, L: Look>(
    deadline: Deadline,
    id: &'static str,
    look: impl Future<Output = L> + Send + 'a,
) -> Check<'a> {
    async move {
        match timeout_at(deadline.0, look).await {
            Ok(look) => look.findings(id),
            Err(_) => vec![silence(id)],
        }
    }
    .boxed()
}

/// Whoever was asked did not answer.
fn silence(id: &'static str) -> Finding {
    let advice = "Is it overloaded, or does somebody hold a lock on what it asks for? Ask again";
    Finding::warning(id, "no answer in time", advice)
}

/// What all checks saw.
#[derive(Serialize)]
struct Report {
    /// How bad the worst is.
    worst: Severity,
    findings: Vec<Finding>,
}

pub(crate) async fn run(args: &DoctorArgs, context: &Context) -> Result<()> {
    let deadline = Deadline::new();
    let mut findings = match context.target()? {
        Target::Api(api) => server::look(&Context::client_of(&api.server)?, deadline).await,
        Target::Database => {
            let config = context.settings()?.config;
            let (inside, outside) = tokio::join!(
                database::look(&config, context, deadline),
                outside::look(&config, deadline)
            );
            [inside, outside].concat()
        }
    };
    let worst = findings.iter().map(|finding| finding.severity).max();
    let worst = worst.unwrap_or(Severity::Ok);
    if args.quiet {
        findings.retain(|finding| finding.severity > Severity::Ok);
    }
    context.print(&Report { worst, findings }, for_people)?;
    if worst == Severity::Problem {
        return Err(PassedOn(1).into());
    }
    Ok(())
}

fn for_people(report: &Report) -> String {
    if report.findings.is_empty() {
        return "Everything is in order.".to_owned();
    }
    rows(&report.findings)
}

impl Described for Finding {
    const COLUMNS: &'static [Column<Self>] = &[
        column("STATE", |finding| status(&word(&finding.severity))),
        column("CHECK", |finding| cell(finding.id)),
        column("SEEN", |finding| cell(&finding.seen)),
        column("WHAT TO DO", |finding| maybe(finding.advice.as_ref())),
    ];
}

/// Runs checks at once, in the order in which they are told.
async fn all(checks: Vec<Check<'_>>) -> Vec<Finding> {
    join_all(checks).await.concat()
}
