//! What stands in the tables: dead rows, whoever keeps them from being cleaned up, servers and what they hold, locks.

use std::time::Duration;

use stationmaster_core::db::Database;
use stationmaster_core::health::{self, Horizon, Table};

use super::super::Context;
use super::Finding;
use super::database::unanswered;

/// A snapshot older than this many transactions, or seconds, holds cleaning up.
const OLD_TRANSACTIONS: i32 = 1_000_000;
const OLD_SECONDS: f64 = 300.0;
/// Dead rows that are worth a word: more than this, and more than live.
const DEAD: i64 = 100_000;
/// Recovery takes seconds; whatever is over for so long is not being recovered.
const RECOVERY: Duration = Duration::from_mins(1);

pub(super) async fn horizon(database: &Database) -> Vec<Finding> {
    match health::horizon(database).await {
        Ok(None) => vec![Finding::ok("database.horizon", "nobody holds an old snapshot")],
        Ok(Some(oldest)) => vec![judge_horizon(&oldest)],
        Err(error) => unanswered("database.horizon", &error),
    }
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
        "the oldest snapshot is held by {} {}{application}, {}{doing}: {age} transactions, {seconds:.0} s",
        oldest.kind, oldest.name, oldest.state
    );
    if age < OLD_TRANSACTIONS && seconds < OLD_SECONDS {
        return Finding::ok(ID, seen);
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
    Finding::warning(ID, seen, advice)
}

pub(super) async fn dead(database: &Database) -> Vec<Finding> {
    const ID: &str = "database.dead_rows";
    let tables = match health::tables(database).await {
        Ok(tables) => tables,
        Err(error) => return unanswered(ID, &error),
    };
    let told = |table: &Table| {
        format!(
            "{} has {} dead rows and {} live ones, {} MiB",
            table.name,
            table.dead,
            table.live,
            table.bytes >> 20
        )
    };
    let worth_a_word = |table: &&Table| table.dead > DEAD && table.dead > table.live;
    let findings: Vec<Finding> = tables
        .iter()
        .filter(worth_a_word)
        .map(|table| {
            let advice = "Let autovacuum keep up, and see database.horizon for who is in its way";
            Finding::warning(ID, told(table), advice)
        })
        .collect();
    if !findings.is_empty() {
        return findings;
    }
    let most = tables
        .first()
        .map_or_else(|| "no statistics yet".to_owned(), told);
    vec![Finding::ok(ID, most)]
}

/// A duty that nobody holds while servers live is taken within its lease; one of a dead server is about to be.
pub(super) async fn duties(database: &Database) -> Vec<Finding> {
    const ID: &str = "servers.duties";
    let duties = match health::duties(database).await {
        Ok(duties) => duties,
        Err(error) => return unanswered(ID, &error),
    };
    let told: Vec<String> = duties
        .iter()
        .map(|duty| {
            let by = duty.server.as_deref().unwrap_or("nobody");
            let held = if duty.held { "" } else { ", not held" };
            format!("{} by {by} (epoch {}{held})", duty.name, duty.epoch)
        })
        .collect();
    let orphans: Vec<&str> = duties
        .iter()
        .filter(|duty| duty.held && !duty.alive)
        .map(|duty| duty.name.as_str())
        .collect();
    if !orphans.is_empty() {
        let seen = format!("held by servers that are gone: {}", orphans.join(", "));
        let advice = "A living server takes over when the lease ends; look again in a minute";
        return vec![Finding::note(ID, seen, advice)];
    }
    vec![Finding::ok(
        ID,
        if told.is_empty() {
            "none yet".to_owned()
        } else {
            told.join("; ")
        },
    )]
}

pub(super) async fn claims(database: &Database) -> Vec<Finding> {
    const ID: &str = "servers.claims";
    match health::claims(database, RECOVERY).await {
        Ok(claims) if claims.overdue > 0 => {
            let seen = format!(
                "{} claims have run out and nobody has recovered them",
                claims.overdue
            );
            vec![Finding::warning(
                ID,
                seen,
                "Does a server run? Its log tells why recovery does not: see servers.alive",
            )]
        }
        Ok(claims) => {
            let ready = if claims.ready >= 1000 {
                "1000 or more".to_owned()
            } else {
                claims.ready.to_string()
            };
            vec![Finding::ok(
                ID,
                format!("none is overdue; {ready} items are ready"),
            )]
        }
        Err(error) => unanswered(ID, &error),
    }
}

pub(super) async fn locks(database: &Database, context: &Context) -> Vec<Finding> {
    const ID: &str = "locks.table";
    let locks = match context.locks(database) {
        Ok(locks) => locks,
        Err(error) => return unanswered(ID, &error),
    };
    match locks.problem().await {
        Ok(None) => vec![Finding::ok(ID, "it is there and can be used")],
        Ok(Some(problem)) => vec![Finding::warning(
            ID,
            problem,
            "Until then there are no named locks",
        )],
        Err(error) => unanswered(ID, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
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
