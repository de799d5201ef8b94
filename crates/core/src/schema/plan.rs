//! What a migration would do, told before it is done: which versions and parts are missing, and which tables that are there now it would lock,
//! how, and how large they are. It reads the same files that would be applied, and the planner's estimates; it changes nothing.

use serde::Serialize;
use sqlx::PgConnection;

use super::{Applied, MIGRATIONS};
use crate::db::{Database, Error, within};

/// See the module.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The versions that would be applied, in order, each in a transaction.
    pub migrations: Vec<Step>,
    /// Functions, views, triggers and rights that would be applied again, in one transaction at the end. They lock what they stand on for moments.
    pub parts: Vec<&'static str>,
}

/// A version.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Its number.
    pub version: i64,
    /// What it is about.
    pub description: String,
    /// Tables that are there and that it touches. Those that it makes itself are nobody's yet.
    pub tables: Vec<Touched>,
}

/// A table that would be locked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Touched {
    /// Which.
    pub table: String,
    /// What others cannot do meanwhile.
    pub lock: Lock,
    /// Its rows, as PostgreSQL estimates them.
    pub rows: i64,
    /// Must all of it be read, so that the lock lasts the longer the larger it is? About a second for each million rows then; otherwise moments.
    pub reads_all: bool,
}

/// What a lock keeps others from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    /// Nothing that servers do.
    None,
    /// Writing.
    Writes,
    /// Reading and writing.
    Everything,
}

impl Database {
    /// What [`Database::migrate`] would do now.
    pub async fn plan(&self) -> Result<Plan, Error> {
        self.check_server().await?;
        let mut session = self.own().session().await?;
        let applied = Applied::read(&mut session).await?;
        if let Err(error @ Error::Schema { found, needed }) = applied.check()
            && found > needed
        {
            return Err(error);
        }
        let mut migrations = Vec::new();
        let missing = MIGRATIONS
            .iter()
            .filter(|migration| !applied.versions.contains(&migration.version));
        for migration in missing {
            let mut tables = Vec::new();
            for (table, lock, reads_all) in touched(migration.sql.as_str()) {
                if let Some(rows) = rows_of(&mut session, &table).await? {
                    tables.push(Touched {
                        table,
                        lock,
                        rows,
                        reads_all,
                    });
                }
            }
            migrations.push(Step {
                version: migration.version,
                description: migration.description.to_string(),
                tables,
            });
        }
        let parts = applied.stale_parts();
        Ok(Plan {
            migrations,
            parts: parts.iter().map(|part| part.name).collect(),
        })
    }
}

/// `None`: it is not there yet.
async fn rows_of(connection: &mut PgConnection, table: &str) -> Result<Option<i64>, Error> {
    let query = "select greatest(reltuples, 0)::bigint from pg_class where oid = to_regclass($1)";
    within(sqlx::query_scalar(query).bind(table).fetch_optional(connection)).await
}

/// The tables that statements alter, index or drop, each with the hardest of its locks.
fn touched(sql: &str) -> Vec<(String, Lock, bool)> {
    let code: String = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase();
    let mut found: Vec<(String, Lock, bool)> = Vec::new();
    for statement in code.split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let after = |word: &str| {
            let at = words.iter().position(|other| *other == word)?;
            let rest = &words[at + 1..];
            rest.iter()
                .find(|word| !["if", "exists", "not", "only"].contains(word))
        };
        let (table, lock, reads_all) = match words[..] {
            ["alter", "table", ..] => {
                let quick = statement.contains("not valid") || !rewrites(statement);
                (after("table"), Lock::Everything, !quick)
            }
            ["create", "index", "concurrently", ..] | ["create", "unique", "index", "concurrently", ..] => {
                (after("on"), Lock::None, true)
            }
            ["create", "index", ..] | ["create", "unique", "index", ..] => (after("on"), Lock::Writes, true),
            ["create", "trigger", ..] => (after("on"), Lock::Writes, false),
            ["drop", "table", ..] => (after("table"), Lock::Everything, false),
            ["update", ..] => (after("update"), Lock::None, true),
            ["delete", "from", ..] => (after("from"), Lock::None, true),
            _ => continue,
        };
        let Some(table) = table else { continue };
        let table = table.split('(').next().unwrap_or_default().to_owned();
        match found.iter_mut().find(|(known, _, _)| *known == table) {
            Some((_, harder, all)) => {
                *harder = lock.max(*harder);
                *all |= reads_all;
            }
            None => found.push((table, lock, reads_all)),
        }
    }
    found
}

/// Does a change of a table look at every row?
fn rewrites(statement: &str) -> bool {
    [
        "set not null",
        "add constraint",
        "add check",
        "add primary key",
        "add unique",
        " type ",
        "add foreign key",
        "generated always as (",
    ]
    .iter()
    .any(|words| statement.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_knows_which_statements_lock_what() {
        let sql = "-- alter table a.commented add column x int;\n\
                   create table a.new (id int);\n\
                   alter table a.b add column c int;\n\
                   create index on a.b (c);\n\
                   create unique index concurrently b_c on a.d (c);\n\
                   alter table a.e add constraint f check (c > 0) not valid;\n\
                   alter table only a.g alter column c set not null;\n";
        assert_eq!(
            touched(sql),
            [
                ("a.b".to_owned(), Lock::Everything, true),
                ("a.d".to_owned(), Lock::None, true),
                ("a.e".to_owned(), Lock::Everything, false),
                ("a.g".to_owned(), Lock::Everything, true),
            ]
        );
    }
}
