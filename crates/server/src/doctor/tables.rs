//! What stands in the tables: dead rows, whoever keeps them from being cleaned up, servers and what they hold, locks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use stationmaster_core::db::{self, Database};
use stationmaster_core::health::{self, Horizon, Table};
use stationmaster_core::locks::Locks;
use stationmaster_core::observe::Metrics;

use super::{Finding, note, ok, warning};
use crate::config::Config;

/// A snapshot older than this many transactions, or seconds, holds cleaning up.
const OLD_TRANSACTIONS: i32 = 1_000_000;
const OLD_SECONDS: f64 = 300.0;
/// Dead rows that are worth a word: more than this, and more than live.
const DEAD: i64 = 100_000;
/// Recovery takes seconds; whatever is over for so long is not being recovered.
const RECOVERY: Duration = Duration::from_mins(1);

pub(super) async fn horizon(database: &Database) -> Result<Finding, db::Error> {
    Ok(match health::horizon(database).await? {
        None => ok("database.horizon", "nobody holds an old snapshot"),
        Some(oldest) => judge_horizon(&oldest),
    })
}

fn judge_horizon(oldest: &Horizon) -> Finding {
    const ID: &str = "database.horizon";
    let age = oldest.age.unwrap_or_default();
    let seconds = oldest.seconds.unwrap_or_default();
    let application = if oldest.application.is_empty() {
        String::new()
    } else {
        format!(" ({})", oldest.application)
    };
    let doing = oldest
        .doing
        .as_deref()
        .map_or_else(String::new, |doing| format!(", doing {doing}"));
    let seen = format!(
        "the oldest snapshot is held by {} {}{application}, {}{doing}: {age} transactions, {:.0} s",
        oldest.kind,
        oldest.name,
        oldest.state,
        seconds.abs()
    );
    if age < OLD_TRANSACTIONS && seconds < OLD_SECONDS {
        return ok(ID, seen);
    }
    let advice = match oldest.kind.as_str() {
        "session" => format!(
            "Vacuum cannot clean up behind it: end it, or select pg_terminate_backend({})",
            oldest.name
        ),
        "prepared transaction" => format!(
            "Vacuum cannot clean up behind it: rollback prepared '{}'",
            oldest.name
        ),
        _ => format!(
            "Vacuum cannot clean up behind it: let its reader come back, or select pg_drop_replication_slot('{}')",
            oldest.name
        ),
    };
    warning(ID, seen, advice)
}

pub(super) async fn dead(database: &Database) -> Result<Vec<Finding>, db::Error> {
    const ID: &str = "database.dead_rows";
    let tables = health::tables(database).await?;
    let told = |table: &Table| {
        let (name, dead, live) = (&table.name, table.dead, table.live);
        let size = table.bytes >> 20;
        format!("{name} has {dead} dead rows and {live} live ones, {size} MiB")
    };
    let worth_a_word = |table: &&Table| table.dead > DEAD && table.dead > table.live;
    let advice = "Let autovacuum keep up, and see database.horizon for who is in its way";
    let mut findings: Vec<Finding> = tables
        .iter()
        .filter(worth_a_word)
        .map(|table| warning(ID, told(table), advice))
        .collect();
    if findings.is_empty() {
        let most = tables.first();
        findings.push(ok(ID, most.map_or_else(|| "no statistics yet".to_owned(), told)));
    }
    Ok(findings)
}

/// A duty that nobody holds while servers live is taken within its lease; one of a dead server is about to be.
pub(super) async fn duties(database: &Database) -> Result<Finding, db::Error> {
    const ID: &str = "servers.duties";
    let duties = health::duties(database).await?;
    let orphans = duties.iter().filter(|duty| duty.held && !duty.alive);
    let orphans: Vec<&str> = orphans.map(|duty| duty.name.as_str()).collect();
    if !orphans.is_empty() {
        let seen = format!("held by servers that are gone: {}", orphans.join(", "));
        let advice = "A living server takes over when the lease ends; look again in a minute";
        return Ok(note(ID, seen, advice));
    }
    if duties.is_empty() {
        return Ok(ok(ID, "none yet"));
    }
    let told = duties.iter().map(|duty| {
        let by = duty.server.as_deref().unwrap_or("nobody");
        let held = if duty.held { "" } else { ", not held" };
        format!("{} by {by} (epoch {}{held})", duty.name, duty.epoch)
    });
    Ok(ok(ID, told.collect::<Vec<_>>().join("; ")))
}

pub(super) async fn claims(database: &Database) -> Result<Finding, db::Error> {
    const ID: &str = "servers.claims";
    let health::Claims { overdue, ready } = health::claims(database, RECOVERY).await?;
    if overdue > 0 {
        let seen = format!("{overdue} claims have run out and nobody has recovered them");
        let advice = "Does a server run? Its log tells why recovery does not: see servers.alive";
        return Ok(warning(ID, seen, advice));
    }
    let ready = if ready >= 1000 {
        "1000 or more".to_owned()
    } else {
        ready.to_string()
    };
    Ok(ok(ID, format!("none is overdue; {ready} items are ready")))
}

pub(super) async fn locks(database: &Database, config: &Config) -> Result<Finding> {
    const ID: &str = "locks.table";
    Ok(
        match Locks::new(
            database.clone(),
            config.locks.table.clone(),
            Arc::new(Metrics::new()),
        )
        .problem()
        .await?
        {
            None => ok(ID, "it is there and can be used"),
            Some(problem) => warning(ID, problem, "Until then there are no named locks"),
        },
    )
}

#[cfg(test)]
mod tests {
    use stationmaster_client::wire::Severity;

    use super::*;

    #[test]
    fn an_old_snapshot_is_told_with_its_holder_and_what_to_do() {
        let mut oldest = Horizon {
            kind: "session".to_owned(),
            name: "4711".to_owned(),
            application: "report".to_owned(),
            state: "idle in transaction".to_owned(),
            age: Some(7),
            seconds: Some(2.0),
            doing: Some("select".to_owned()),
        };
        assert_eq!(judge_horizon(&oldest).severity, Severity::Ok);
        oldest.seconds = Some(301.0);
        let finding = judge_horizon(&oldest);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding
                .seen
                .contains("4711 (report), idle in transaction, doing select"),
            "{finding:?}"
        );
        assert!(finding.advice.unwrap().contains("pg_terminate_backend(4711)"));
        oldest.kind = "replication slot".to_owned();
        oldest.age = Some(2_000_000);
        assert!(
            judge_horizon(&oldest)
                .advice
                .unwrap()
                .contains("pg_drop_replication_slot")
        );
    }
}
