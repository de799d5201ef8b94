//! Who shares the work, and whether they can.

use std::collections::BTreeSet;

use stationmaster_client::wire::Server;
use stationmaster_client::{Client, Result};

use super::{Finding, note, ok, problem, warning};

pub(super) async fn look(client: &Client) -> Result<Vec<Finding>> {
    Ok(judge_servers(&client.servers().await?))
}

fn judge_servers(servers: &[Server]) -> Vec<Finding> {
    let alive: Vec<&Server> = servers.iter().filter(|server| server.alive).collect();
    if alive.is_empty() {
        let advice = "Start one: stationmaster serve";
        return vec![warning("servers.alive", "no server is alive", advice)];
    }
    let named = |which: fn(&Server) -> bool| {
        let which = alive.iter().filter(|server| which(server));
        let names: Vec<&str> = which.map(|server| server.name.as_str()).collect();
        names.join(", ")
    };
    let seen = format!("{}: {}", alive.len(), named(|_| true));
    let mut findings = vec![ok("servers.alive", seen)];
    let without = named(|server| !server.engine_up);
    if !without.is_empty() {
        let advice = "See engine.reachable; where that is in order, their way to it or their settings differ: ask the doctor through them (--url), or read their logs. They go on by themselves as soon as it answers";
        let seen = format!("the engine does not answer {without}");
        findings.push(problem("servers.engine", seen, advice));
    }
    if alive.iter().all(|server| !server.claiming) {
        let advice = "They are stopping, or their lane is switched off: see executions.enabled";
        findings.push(note("servers.claiming", "no server takes new work", advice));
    }
    let draining = named(|server| server.draining);
    if !draining.is_empty() {
        let advice = "Somebody wished it. To let one take work again: stationmaster servers resume NAME";
        let seen = format!("{draining} takes no new work");
        findings.push(note("servers.draining", seen, advice));
    }
    let versions: BTreeSet<&str> = alive.iter().map(|server| server.version.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        let advice = "Fine while an upgrade is under way; finish it";
        findings.push(note("servers.versions", versions.join(" and "), advice));
    }
    findings
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use stationmaster_client::wire::Severity;

    use super::*;

    fn server(name: &str, alive: bool, engine_up: bool, version: &str) -> Server {
        let now = Timestamp::now();
        Server {
            id: uuid::Uuid::now_v7(),
            name: name.to_owned(),
            version: version.to_owned(),
            engine: "embedded".to_owned(),
            engine_up,
            engine_away_at: None,
            claiming: true,
            started_at: now,
            seen_at: now,
            alive,
            draining: false,
            in_hand: 0,
            left_at: None,
            ended: None,
            recovered: 0,
            recovered_by: None,
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
        let draining = Server {
            draining: true,
            ..server("a", true, true, "1")
        };
        assert_eq!(worst(&[draining, server("b", true, true, "1")]), Severity::Note);
    }
}
