//! What is told through the API: by a server to whoever has no way to the database, and in part by the database alone.

use std::collections::BTreeSet;

use jiff::{Timestamp, ToSpan as _};
use stationmaster_client::wire::{OverviewQuery, Server, Token};
use stationmaster_client::{Client, Error};

use super::{Deadline, Finding, all, owners, within};
use crate::output::word;

pub(super) async fn look(client: &Client, deadline: Deadline) -> Vec<Finding> {
    all(vec![
        within(deadline, "api.token", token(client)),
        within(deadline, "api.overview", overview(client)),
        within(deadline, "servers.alive", servers(client)),
        within(deadline, "dispatchers.owners", owners::look(client, None)),
    ])
    .await
}

pub(super) fn refused(id: &'static str, error: &Error) -> Vec<Finding> {
    let advice = match error {
        Error::Unauthenticated(_) | Error::Forbidden(_) => {
            "Use a token that may look: see `stationmaster contexts`"
        }
        Error::Transport(_) => "Is the server running, and is its address right?",
        _ => "The log of the server, or of the database, may tell more",
    };
    vec![Finding::problem(id, error.to_string(), advice)]
}

async fn token(client: &Client) -> Vec<Finding> {
    const ID: &str = "api.token";
    match client.own_token().await {
        Ok(token) => vec![judge_token(&token)],
        // An open server asks nobody.
        Err(Error::NotFound(_)) => vec![Finding::ok(ID, "none is asked for")],
        Err(error) => refused(ID, &error),
    }
}

fn judge_token(token: &Token) -> Finding {
    const ID: &str = "api.token";
    let role = word(&token.role);
    let seen = format!("{} may do what a {role} may", token.name);
    let soon = Timestamp::now() + (7 * 24).hours();
    match token.expires_at {
        Some(end) if end < soon => {
            let advice = "Make another one in time: stationmaster tokens create";
            Finding::warning(ID, format!("{seen}, until {end}"), advice)
        }
        Some(end) => Finding::ok(ID, format!("{seen}, until {end}")),
        None => Finding::ok(ID, seen),
    }
}

async fn overview(client: &Client) -> Vec<Finding> {
    const ID: &str = "api.overview";
    match client.overview(&OverviewQuery::default()).await {
        Ok(overview) if overview.open => {
            let advice = "Only for a machine of one's own: set http.open = false, and make tokens";
            vec![Finding::note(
                ID,
                "whoever reaches this server may do everything",
                advice,
            )]
        }
        Ok(overview) => {
            let numbers = overview.overview;
            let seen = format!(
                "{} items wait, {} executions run",
                numbers.waiting, numbers.running
            );
            vec![Finding::ok(ID, seen)]
        }
        Err(error) => refused(ID, &error),
    }
}

pub(super) async fn servers(client: &Client) -> Vec<Finding> {
    match client.servers().await {
        Ok(servers) => judge_servers(&servers),
        Err(error) => refused("servers.alive", &error),
    }
}

fn judge_servers(servers: &[Server]) -> Vec<Finding> {
    let alive: Vec<&Server> = servers.iter().filter(|server| server.alive).collect();
    if alive.is_empty() {
        let advice = "Start one: stationmaster serve";
        return vec![Finding::warning("servers.alive", "no server is alive", advice)];
    }
    let names: Vec<&str> = alive.iter().map(|server| server.name.as_str()).collect();
    let mut findings = vec![Finding::ok(
        "servers.alive",
        format!("{}: {}", alive.len(), names.join(", ")),
    )];
    let without: Vec<&str> = alive
        .iter()
        .filter(|server| !server.engine_up)
        .map(|server| server.name.as_str())
        .collect();
    if !without.is_empty() {
        let advice = "See engine.reachable; they go on by themselves as soon as it answers";
        let seen = format!("the engine does not answer {}", without.join(", "));
        findings.push(Finding::problem("servers.engine", seen, advice));
    }
    if alive.iter().all(|server| !server.claiming) {
        let advice = "They are stopping, or their lane is switched off: see executions.enabled";
        findings.push(Finding::note(
            "servers.claiming",
            "no server takes new work",
            advice,
        ));
    }
    let versions: BTreeSet<&str> = alive.iter().map(|server| server.version.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        let advice = "Fine while an upgrade is under way; finish it";
        findings.push(Finding::note("servers.versions", versions.join(" and "), advice));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    fn server(name: &str, alive: bool, engine_up: bool, version: &str) -> Server {
        let now = Timestamp::now();
        Server {
            id: uuid::Uuid::now_v7(),
            name: name.to_owned(),
            version: version.to_owned(),
            engine: "embedded".to_owned(),
            engine_up,
            claiming: true,
            started_at: now,
            seen_at: now,
            alive,
        }
    }

    fn worst(servers: &[Server]) -> Severity {
        let findings = judge_servers(servers);
        findings.iter().map(|finding| finding.severity).max().unwrap()
    }

    #[test]
    fn servers_are_judged_by_what_they_tell() {
        assert_eq!(worst(&[]), Severity::Warning);
        assert_eq!(worst(&[server("a", false, true, "1")]), Severity::Warning);
        assert_eq!(
            worst(&[server("a", true, true, "1"), server("b", true, true, "1")]),
            Severity::Ok
        );
        assert_eq!(
            worst(&[server("a", true, true, "1"), server("b", true, true, "2")]),
            Severity::Note
        );
        assert_eq!(worst(&[server("a", true, false, "1")]), Severity::Problem);
    }
}
