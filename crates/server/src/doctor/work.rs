//! The work itself: what failed and needs a person, and what waits although it should not.

use anyhow::Result;
use stationmaster_client::Client;
use stationmaster_client::wire::{FailureGroup, FailureQuery, PageQuery, Stray};
use stationmaster_core::db::{self, Database};
use stationmaster_core::health::{self, DeadAlarm, Standstill};

use super::{Finding, note, ok, problem, warning};
use crate::output::counted;

/// Groups that are counted.
const MOST: u32 = 500;
/// Workspaces that are named.
const NAMED: usize = 5;

pub(super) async fn failures(client: &Client) -> Result<Finding> {
    let query = FailureQuery {
        limit: Some(MOST),
        ..FailureQuery::default()
    };
    Ok(judge_failures(&client.failures(&query).await?.items))
}

fn judge_failures(groups: &[FailureGroup]) -> Finding {
    const ID: &str = "work.failures";
    let Some(newest) = groups.first() else {
        return ok(ID, "nothing needs a person");
    };
    let count: i64 = groups.iter().map(|group| group.count).sum();
    let verb = if count == 1 { "needs" } else { "need" };
    let seen = format!(
        "{} in {} {verb} a person; the newest, at {}: {}",
        counted(count, "failure"),
        counted(groups.len(), "group"),
        newest.last_at,
        newest.message
    );
    warning(
        ID,
        seen,
        "Look, then retry them or set them aside: stationmaster failures",
    )
}

pub(super) async fn strays(client: &Client) -> Result<Finding> {
    let query = PageQuery {
        limit: Some(MOST),
        ..PageQuery::default()
    };
    Ok(judge_strays(&client.strays(&query).await?.items))
}

fn judge_strays(strays: &[Stray]) -> Finding {
    const ID: &str = "work.strays";
    if strays.is_empty() {
        return ok(ID, "every run that the engine holds open for us is on record");
    }
    let mut names: Vec<String> = strays
        .iter()
        .take(NAMED)
        .map(|stray| format!("execution-{}", stray.execution_id))
        .collect();
    if strays.len() > NAMED {
        names.push(format!("and {} more", strays.len() - NAMED));
    }
    let seen = format!(
        "the engine holds {} open that no row tells of: {}",
        counted(strays.len(), "run"),
        names.join(", ")
    );
    let advice = "They were lost with a failover, or are younger than a restored backup, and hold no slot. Look at them on the engine; let them end, enqueue anew what is missing, or end them: stationmaster executions end-stray EXECUTION";
    warning(ID, seen, advice)
}

pub(super) async fn alarms(database: &Database) -> Result<Finding, db::Error> {
    Ok(judge_alarms(&health::dead_alarms(database).await?))
}

fn judge_alarms(dead: &[DeadAlarm]) -> Finding {
    const ID: &str = "work.alarms";
    let Some(newest) = dead.first() else {
        return ok(ID, "every alarm that is set can fire");
    };
    let whose = newest.workspace.as_deref().unwrap_or("(deleted)");
    let seen = format!(
        "{} can never fire; the newest, {} of workspace {whose}: {}",
        counted(dead.len(), "alarm"),
        newest.name,
        newest.why
    );
    let advice = "Set them anew with another time, or cancel them; see which: stationmaster alarms list --status failed";
    warning(ID, seen, advice)
}

pub(super) async fn standstill(database: &Database) -> Result<Vec<Finding>, db::Error> {
    Ok(judge(&health::standstill(database).await?))
}

fn judge(waiting: &[Standstill]) -> Vec<Finding> {
    let named = |why: &str| {
        let which: Vec<&Standstill> = waiting.iter().filter(|one| one.why == why).collect();
        let mut names: Vec<String> = which
            .iter()
            .take(NAMED)
            .map(|one| format!("{} for {} s", one.name, one.seconds))
            .collect();
        if which.len() > NAMED {
            names.push(format!("and {} more", which.len() - NAMED));
        }
        (!names.is_empty()).then(|| names.join(", "))
    };
    let mut findings = Vec::new();
    if let Some(names) = named("stuck") {
        let seen = format!("items wait although there are free slots: {names}");
        let advice = "Does a server take work, and does its engine answer? See servers.alive and servers.engine; the log of the servers tells more";
        findings.push(problem("work.stuck", seen, advice));
    }
    if let Some(names) = named("no slots") {
        let seen = format!("items wait in workspaces that have no slot at all: {names}");
        findings.push(warning(
            "work.no_slots",
            seen,
            "Give them a limit or another plan: stationmaster workspaces set NAME --limit N",
        ));
    }
    if let Some(names) = named("paused") {
        let seen = format!("items wait in workspaces that are paused: {names}");
        findings.push(note(
            "work.paused",
            seen,
            "Resume them when it is time: stationmaster workspaces resume NAME",
        ));
    }
    if findings.is_empty() {
        findings.push(ok("work.stuck", "nothing waits that could run"));
    }
    findings
}
