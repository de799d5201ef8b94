//! The database: can it be reached, is it new enough, how is it set, are our tables there, may we use them.

use std::sync::Arc;

use anyhow::Context as _;
use jiff::SignedDuration;
use stationmaster_client::Client;
use stationmaster_client::wire::Severity;
use stationmaster_core::db::{Database, Error};
use stationmaster_core::health::{self, Server};
use stationmaster_core::pooler::BEHIND_A_POOLER;
use stationmaster_core::session::Wall;
use stationmaster_core::task::chain;

use super::{
    Check, Deadline, Finding, REACH, all, note, ok, owners, panicked, pooler, problem, servers, silence,
    survived, tables, timeout, warning, within, work,
};
use crate::config::{Config, Heartbeats};
use crate::{http, wiring};

const SCHEMA: &str = "database.schema";
/// The oldest PostgreSQL that has what we need.
const OLDEST: i32 = 150_000;
/// One for each question that may have to wait for somebody's lock, so that the others need not.
const CONNECTIONS: u32 = 8;
/// Clocks further apart are worth a word.
const APART: f64 = 2.0;

pub(super) async fn look(config: &Arc<Config>, actor: &str, deadline: Deadline) -> Vec<Finding> {
    const ID: &str = "database.reachable";
    let unreachable = |seen: String, advice: &str| vec![problem(ID, seen, advice)];
    let reached = timeout(REACH, survived(reach(config))).await;
    let database = match reached {
        Ok(Ok(Ok(database))) => database,
        Ok(Err(panic)) => return vec![panicked(ID, &panic)],
        Ok(Ok(Err(error))) => {
            let seen = chain(error.as_ref());
            if error.downcast_ref().is_some_and(Error::is_of_a_pooler) {
                return unreachable(seen, BEHIND_A_POOLER);
            }
            let advice = unreachable_advice(&seen);
            return unreachable(seen, advice);
        }
        Err(_) => {
            let advice = "Is PostgreSQL running, and is the way to it open? Nothing else of it was looked at";
            return unreachable("no answer".to_owned(), advice);
        }
    };
    let client = match http::alone(Client::builder(), actor, &database, config) {
        Ok(client) => client,
        Err(error) => {
            let advice = "Mend the settings; nothing else of it was looked at";
            return unreachable(format!("{error:#}"), advice);
        }
    };
    let database = &database;
    let mut findings = vec![ok(ID, "it answers")];
    let mut checks: Vec<Check<'_>> = vec![
        within(deadline, pooler::ID, pooler::look(database, config)),
        within(
            deadline,
            "database.version",
            version_and_settings(database, config),
        ),
        within(deadline, "database.clock", clock(database)),
        within(deadline, "database.horizon", tables::horizon(database)),
    ];
    let schema = timeout(REACH.min(deadline.left() / 2), survived(schema(database))).await;
    let schema = match schema {
        Ok(Ok(schema)) => schema,
        Ok(Err(panic)) => panicked(SCHEMA, &panic),
        Err(_) => silence(SCHEMA),
    };
    if schema.severity == Severity::Ok {
        let owners = owners::look(&client, stale_after(config));
        checks.extend([
            within(deadline, "database.rights", rights(database)),
            within(deadline, "database.wall", wall(database)),
            within(deadline, "database.dead_rows", tables::dead(database)),
            within(deadline, "servers.alive", servers::look(&client)),
            within(deadline, "servers.duties", tables::duties(database)),
            within(deadline, "servers.claims", tables::claims(database)),
            within(deadline, "dispatchers.owners", owners),
            within(deadline, "locks.table", tables::locks(database, config)),
            within(deadline, "work.failures", work::failures(&client)),
            within(deadline, "work.strays", work::strays(&client)),
            within(deadline, "work.stuck", work::standstill(database)),
            within(deadline, "work.alarms", work::alarms(database)),
        ]);
    }
    findings.push(schema);
    findings.extend(all(checks).await);
    findings
}

async fn reach(config: &Config) -> anyhow::Result<Database> {
    let url = config.database_url.as_ref();
    let url = url.context("no database is configured: the setting database_url is missing")?;
    let database = config.database(url, CONNECTIONS)?;
    wiring::reach(&database).await?;
    Ok(database)
}

/// When a heartbeat is old; those in Redis are not seen here.
fn stale_after(config: &Config) -> Option<SignedDuration> {
    let here = config.heartbeats == Heartbeats::Postgres;
    let stale = SignedDuration::try_from(config.dispatchers.stale_after);
    here.then(|| stale.unwrap_or(SignedDuration::MAX))
}

async fn schema(database: &Database) -> Finding {
    const ID: &str = SCHEMA;
    match database.check_schema().await {
        Ok(()) => ok(ID, "the tables are those of this version"),
        Err(Error::Schema { found: 0, .. }) => {
            problem(ID, "there are no tables yet", "Run: stationmaster migrate")
        }
        Err(Error::Schema { found, needed }) => {
            let seen = format!("the tables are at version {found}, this program needs {needed}");
            let advice = if found < needed {
                "Run: stationmaster migrate"
            } else {
                "Use a newer version of this program"
            };
            problem(ID, seen, advice)
        }
        Err(Error::Parts(parts)) => {
            let seen = format!(
                "functions and views are those of another version: {}",
                parts.join(", ")
            );
            problem(ID, seen, "Run: stationmaster migrate")
        }
        Err(error @ Error::BeforeRelease) => problem(
            ID,
            error.to_string(),
            "Use a new database, or drop both schemas and run: stationmaster migrate",
        ),
        Err(error @ Error::Torn { .. }) => problem(
            ID,
            error.to_string(),
            "Restore both schemas, or drop the other one too and run: stationmaster migrate",
        ),
        Err(error) => problem(ID, chain(&error), "The database's own log may tell more"),
    }
}

async fn version_and_settings(database: &Database, config: &Config) -> Result<Vec<Finding>, Error> {
    Ok(judge(&health::server(database).await?, config))
}

fn judge(server: &Server, config: &Config) -> Vec<Finding> {
    let mut findings = vec![version(server), durability(server)];
    findings.push(if server.setting("autovacuum") == "off" {
        let advice = "Switch autovacuum on: dead rows make every claim slower";
        problem("database.autovacuum", "off", advice)
    } else {
        ok("database.autovacuum", "on")
    });
    findings.push(idle(server));
    if server.setting("jit") == "on" {
        let advice = "Our statements are short: `alter role ... set jit = off` spares their planning";
        findings.push(note("database.jit", "on", advice));
    }
    findings.push(connections(server, config));
    findings
}

fn version(server: &Server) -> Finding {
    const ID: &str = "database.version";
    let seen = format!("PostgreSQL {}", server.version);
    if server.version_number < OLDEST {
        return problem(ID, seen, "Use PostgreSQL 15 or newer");
    }
    if server.read_only {
        let advice = "Let the setting database_url name the primary";
        return problem(ID, format!("{seen}, a standby that cannot be written to"), advice);
    }
    ok(ID, seen)
}

fn durability(server: &Server) -> Finding {
    const ID: &str = "database.durability";
    for setting in ["fsync", "full_page_writes"] {
        if server.setting(setting) == "off" {
            let advice =
                format!("Switch {setting} on: after a power cut, acknowledged work may be gone or broken");
            return problem(ID, format!("{setting} is off"), advice);
        }
    }
    match server.setting("synchronous_commit") {
        "off" => {
            let advice = "Switch synchronous_commit on: a crash of the database loses what was acknowledged just before";
            warning(ID, "synchronous_commit is off", advice)
        }
        value => ok(ID, format!("synchronous_commit is {value}")),
    }
}

fn idle(server: &Server) -> Finding {
    const ID: &str = "database.idle_in_transaction";
    match server.number("idle_in_transaction_session_timeout") {
        0 => {
            let advice = "Set idle_in_transaction_session_timeout, such as 5min: a forgotten transaction stops vacuum for all";
            note(ID, "sessions may stay idle in a transaction for ever", advice)
        }
        time => ok(ID, format!("ended after {} s", time / 1000)),
    }
}

/// One more server with these settings must find room.
fn connections(server: &Server, config: &Config) -> Finding {
    const ID: &str = "database.connections";
    let most = server.number("max_connections") - server.number("superuser_reserved_connections");
    let (used, needed) = (server.connections, i64::from(config.connections()));
    let seen = format!("{used} of {most} are used; a server with these settings takes up to {needed}");
    let advice =
        "Raise max_connections, lower database_pool or http.database_pool, or put a pooler in between";
    match most - used {
        free if free < needed => warning(ID, seen, advice),
        free if free < needed * 2 => note(ID, seen, format!("There is room for one more server. {advice}")),
        _ => ok(ID, seen),
    }
}

async fn clock(database: &Database) -> Result<Finding, Error> {
    const ID: &str = "database.clock";
    let clock = health::clock(database).await?;
    let seen = format!(
        "the database is {:.3} s {} this machine, give or take {:.3} s",
        clock.ahead.abs(),
        if clock.ahead < 0.0 { "behind" } else { "ahead of" },
        clock.uncertain.as_secs_f64()
    );
    if clock.ahead.abs() - clock.uncertain.as_secs_f64() > APART {
        let advice = "Let both keep time by NTP: the database's clock decides what is due, this one only what people are told";
        return Ok(warning(ID, seen, advice));
    }
    Ok(ok(ID, seen))
}

async fn rights(database: &Database) -> Result<Finding, Error> {
    const ID: &str = "database.rights";
    let rights = health::rights(database).await?;
    if !rights.closed.is_empty() {
        let seen = format!("{} may not use {}", rights.role, rights.closed.join(", "));
        let advice = format!(
            "As the owner: grant usage on schema stationmaster, stationmaster_internal to {0}; \
             grant all on all tables in schema stationmaster, stationmaster_internal to {0}",
            rights.role
        );
        return Ok(problem(ID, seen, advice));
    }
    if !rights.may_migrate {
        let seen = format!("{} may use the tables, and not change them", rights.role);
        let advice = "Let another role run `stationmaster migrate`, and set migrate_at_start = false";
        return Ok(note(ID, seen, advice));
    }
    let seen = format!("{} may use the tables and change them", rights.role);
    Ok(ok(ID, seen))
}

async fn wall(database: &Database) -> Result<Finding, Error> {
    const ID: &str = "database.wall";
    Ok(match database.raise_wall().await? {
        Wall::Stands => ok(ID, "row-level security stands behind the API's own checks"),
        Wall::Missing(reason) => {
            let seen = format!("row-level security does not stand: {reason}");
            let advice = "Let a role with CREATEROLE run `stationmaster migrate`; until then the API's own checks stand alone";
            warning(ID, seen, advice)
        }
    })
}

/// What to do about a database that lets nobody in. What it says of its connections is in the words of every version.
fn unreachable_advice(seen: &str) -> &'static str {
    let full = ["connection slots", "too many clients", "too many connections"];
    if full.iter().any(|words| seen.contains(words)) {
        return "It runs, and all its connections are in use: let a superuser look who has them (pg_stat_activity), end what should not be there, or raise max_connections. Nothing else of it was looked at";
    }
    "Is PostgreSQL running, and does the setting database_url name it? Nothing else of it was looked at"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sqlx::types::Json;

    use super::*;

    #[test]
    fn a_database_without_a_free_connection_is_told_from_one_that_is_not_there() {
        for seen in [
            "database: FATAL: remaining connection slots are reserved for non-replication superuser connections",
            "database: FATAL: sorry, too many clients already",
            "database: too many connections for role \"station\"",
        ] {
            assert!(unreachable_advice(seen).starts_with("It runs"), "{seen}");
        }
        assert!(unreachable_advice("connection refused").starts_with("Is PostgreSQL running"));
    }

    fn seen(settings: &[(&str, &str)]) -> Server {
        let usual = [
            ("synchronous_commit", "on"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("autovacuum", "on"),
            ("jit", "off"),
            ("max_connections", "100"),
            ("superuser_reserved_connections", "3"),
            ("idle_in_transaction_session_timeout", "60000"),
        ];
        let settings: BTreeMap<String, String> = usual
            .iter()
            .chain(settings)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Server {
            version: "15.1".to_owned(),
            version_number: 150_001,
            read_only: false,
            settings: Json(settings),
            connections: 10,
        }
    }

    #[test]
    fn a_server_as_it_should_be_is_in_order() {
        for finding in [version(&seen(&[])), durability(&seen(&[])), idle(&seen(&[]))] {
            assert_eq!(finding.severity, Severity::Ok, "{finding:?}");
        }
    }

    #[test]
    fn each_danger_is_told_with_its_weight() {
        let old = Server {
            version_number: 140_009,
            ..seen(&[])
        };
        let standby = Server {
            read_only: true,
            ..seen(&[])
        };
        for (finding, severity) in [
            (version(&old), Severity::Problem),
            (version(&standby), Severity::Problem),
            (durability(&seen(&[("fsync", "off")])), Severity::Problem),
            (
                durability(&seen(&[("synchronous_commit", "off")])),
                Severity::Warning,
            ),
            (
                idle(&seen(&[("idle_in_transaction_session_timeout", "0")])),
                Severity::Note,
            ),
        ] {
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert!(finding.advice.is_some(), "{finding:?}");
        }
    }
}
