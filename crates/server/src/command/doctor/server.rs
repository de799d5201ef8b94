//! What is told through the API: by a server to whoever has no way to the database, and in part by the database alone.

use std::collections::BTreeSet;

use jiff::{Timestamp, ToSpan as _};
use stationmaster_client::wire::{OverviewQuery, Server, Token};
use stationmaster_client::{Client, Error, Result};

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

async fn token(client: &Client) -> Result<Finding> {
    match client.own_token().await {
        // An open server asks nobody.
        Err(Error::NotFound(_)) => Ok(Finding::ok("api.token", "none is asked for")),
        asked => Ok(judge_token(&asked?)),
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

async fn overview(client: &Client) -> Result<Finding> {
    const ID: &str = "api.overview";
    let overview = client.overview(&OverviewQuery::default()).await?;
    if overview.open {
        let seen = "whoever reaches this server may do everything";
        let advice = "Only for a machine of one's own: set http.open = false, and make tokens";
        return Ok(Finding::note(ID, seen, advice));
    }
    let (waiting, running) = (overview.overview.waiting, overview.overview.running);
    Ok(Finding::ok(
        ID,
        format!("{waiting} items wait, {running} executions run"),
    ))
}

pub(super) async fn servers(client: &Client) -> Result<Vec<Finding>> {
    Ok(judge_servers(&client.servers().await?))
}

fn judge_servers(servers: &[Server]) -> Vec<Finding> {
    let alive: Vec<&Server> = servers.iter().filter(|server| server.alive).collect();
    if alive.is_empty() {
        let advice = "Start one: stationmaster serve";
        return vec![Finding::warning("servers.alive", "no server is alive", advice)];
    }
    let named = |which: fn(&Server) -> bool| {
        let which = alive.iter().filter(|server| which(server));
        let names: Vec<&str> = which.map(|server| server.name.as_str()).collect();
        names.join(", ")
    };
    let seen = format!("{}: {}", alive.len(), named(|_| true));
    let mut findings = vec![Finding::ok("servers.alive", seen)];
    let without = named(|server| !server.engine_up);
    if !without.is_empty() {
        let advice = "See engine.reachable; they go on by themselves as soon as it answers";
        let seen = format!("the engine does not answer {without}");
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
