//! `stationmaster doctor`: looks at everything that Stationmaster stands on, from here or from where a server stands.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use jiff::{Timestamp, ToSpan as _};
use stationmaster_client::wire::{Examination, Finding, Severity, Token};
use stationmaster_client::{Client, Error};

use super::Context;
use crate::config::Target;
use crate::doctor::{examination, examine, note, ok, problem, warning};
use crate::failure::PassedOn;
use crate::output::{
    Column, Described, Looks, cell, column, hanging, long, looks, printable, rows, status, word,
};

/// How to look.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Only say what is not in order
    #[arg(long)]
    quiet: bool,
    /// Exit code 1 for warnings too, not for problems alone
    #[arg(long)]
    strict: bool,
}

pub(crate) async fn run(args: &DoctorArgs, context: &Context) -> Result<()> {
    let mut report = match context.target()? {
        Target::Api(api) => through(&Context::client_that_asks_once(&api.server)?).await,
        Target::Database => examine(&Arc::new(context.settings()?.config), &Context::actor()).await,
    };
    if args.quiet {
        report.findings.retain(|finding| finding.severity > Severity::Ok);
    }
    let worst = report.worst;
    context.print(&report, for_people)?;
    let bad = if args.strict {
        Severity::Warning
    } else {
        Severity::Problem
    };
    if worst >= bad {
        return Err(PassedOn(1).into());
    }
    Ok(())
}

/// Asks a server: whether it is ready, in its own words, then for all that it sees.
async fn through(client: &Client) -> Examination {
    let mut findings = readiness(client).await;
    let reached = findings.iter().all(|finding| finding.id != REACHABLE);
    if reached {
        // A server without its database keeps whoever asks waiting for some seconds, and once is enough.
        let (token, seen) = tokio::join!(token(client), client.doctor());
        findings.push(token);
        match seen {
            Ok(seen) => findings.extend(seen.findings),
            Err(error) => findings.push(refused(&error)),
        }
    }
    examination(findings)
}

const REACHABLE: &str = "server.reachable";
const READY: &str = "server.ready";

async fn readiness(client: &Client) -> Vec<Finding> {
    let error = match client.readiness().await {
        Ok(()) => return vec![ok(READY, format!("{} is ready", client.address()))],
        Err(error) => error,
    };
    let advice =
        "The rest of what it sees, or its log, tells more; it goes on by itself as soon as this is mended";
    match &error {
        Error::Unavailable { problem: told, .. } if !told.errors.is_empty() => {
            let problems = told.errors.iter();
            problems.map(|one| problem(READY, &one.detail, advice)).collect()
        }
        Error::Transport(_) => {
            let advice = "Is the server running, and is its address right?";
            vec![problem(REACHABLE, error.to_string(), advice)]
        }
        _ => vec![problem(READY, error.to_string(), advice)],
    }
}

async fn token(client: &Client) -> Finding {
    match client.own_token().await {
        Ok(token) => judge_token(&token),
        // An open server asks nobody.
        Err(Error::NotFound(_)) => {
            let advice = "Only for a machine of one's own: set http.open = false, and make tokens";
            note(
                "api.token",
                "whoever reaches this server may do everything",
                advice,
            )
        }
        Err(error) => {
            let advice = match error {
                Error::Unauthenticated(_) => {
                    "Use a token that opens this door: see `stationmaster contexts list`"
                }
                _ => "See server.ready: without its database a server cannot tell whose token it is",
            };
            problem("api.token", error.to_string(), advice)
        }
    }
}

fn judge_token(token: &Token) -> Finding {
    const ID: &str = "api.token";
    let role = word(&token.role);
    let seen = format!("{} has the role {role}", token.name);
    let soon = Timestamp::now() + (7 * 24).hours();
    match token.expires_at {
        Some(end) if end < soon => {
            let advice = "Make another one in time: stationmaster tokens create NAME --role ROLE";
            warning(ID, format!("{seen}, until {end}"), advice)
        }
        Some(end) => ok(ID, format!("{seen}, until {end}")),
        None => ok(ID, seen),
    }
}

/// The server did not look.
fn refused(error: &Error) -> Finding {
    const ID: &str = "server.doctor";
    match error {
        Error::Forbidden(_) => {
            let advice = "Use the token of an operator for all workspaces, or run the doctor on the database: --database-url";
            note(
                ID,
                "this token may not see how the server and its database are",
                advice,
            )
        }
        Error::NotFound(_) => {
            let advice = "Run the doctor on the database: --database-url";
            note(
                ID,
                "this server is of a version that does not look by itself",
                advice,
            )
        }
        _ => problem(
            ID,
            error.to_string(),
            "See server.ready; the log of the server may tell more",
        ),
    }
}

fn for_people(report: &Examination) -> String {
    if report.findings.is_empty() {
        return "Everything is in order.".to_owned();
    }
    match looks() {
        Looks {
            room: Some(room),
            wide: false,
            ..
        } => one_by_one(&report.findings, room),
        _ => rows(&report.findings),
    }
}

/// For a terminal: what to do is the point, so nothing is cut. Each finding goes on below itself, and what to do stands under it.
fn one_by_one(findings: &[Finding], room: usize) -> String {
    let head = |finding: &Finding| format!("{:<8} {:<20} ", word(&finding.severity), finding.id);
    let paragraph = |finding: &Finding| {
        let seen = hanging(&head(finding), &printable(&finding.seen), room);
        let advice = finding.advice.as_deref().map(printable);
        match advice {
            Some(advice) => format!("{seen}\n{}", hanging("         -> ", &advice, room)),
            None => seen,
        }
    };
    findings.iter().map(paragraph).collect::<Vec<_>>().join("\n")
}

impl Described for Finding {
    const COLUMNS: &'static [Column<Self>] = &[
        column("STATE", |finding| status(&word(&finding.severity))),
        column("CHECK", |finding| cell(&finding.id)),
        long("SEEN", |finding| Some(&finding.seen)),
        long("WHAT TO DO", |finding| finding.advice.as_deref()),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_a_terminal_nothing_of_a_finding_is_cut() {
        let advice = "Start a worker that polls it, and look whether it stays; else tell somebody who knows";
        let findings = [
            problem("engine.reachable", "no worker polls the task queue of it", advice),
            ok("clock", "fine"),
        ];
        let told = one_by_one(&findings, 60);
        assert!(told.lines().all(|line| line.chars().count() <= 60), "{told}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(&told).contains(advice), "{told}");
        assert_eq!(
            told.lines()
                .filter(|line| line.starts_with("problem ") || line.starts_with("ok "))
                .count(),
            2
        );
    }
}
