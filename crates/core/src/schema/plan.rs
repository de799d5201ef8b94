//! What a migration would do, told before it is done: which versions and parts are missing, and which tables that are there now it would lock,
//! how, and how large they are. It reads the same files that would be applied, and the planner's estimates; it changes nothing.

use serde::Serialize;
use sqlx::PgConnection;
use sqlx::migrate::Migrator;

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
    /// What is done to it meanwhile.
    pub effort: Effort,
    /// For how long about, in seconds; 0: for moments.
    pub seconds: i64,
}

/// How much of a table a statement looks at, which tells how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// None of it.
    Nothing,
    /// Every row is read.
    Reads,
    /// Every row is written anew.
    Writes,
}

impl Effort {
    /// As seen on a small machine, with work going on beside it.
    fn seconds(self, rows: i64) -> i64 {
        match self {
            Self::Nothing => 0,
            Self::Reads => rows / 500_000 + 1,
            Self::Writes => rows / 20_000 + 1,
        }
    }
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
        self.plan_by(&MIGRATIONS).await
    }

    /// What [`Database::migrate_by`] would do now.
    pub async fn plan_by(&self, all: &Migrator) -> Result<Plan, Error> {
        self.check_server().await?;
        let mut session = self.own().session().await?;
        let applied = Applied::read(&mut session).await?;
        if let Err(error @ Error::Schema { found, needed }) = applied.check()
            && found > needed
        {
            return Err(error);
        }
        let mut migrations = Vec::new();
        let missing = all
            .iter()
            .filter(|migration| !applied.versions.contains(&migration.version));
        for migration in missing {
            let mut tables = Vec::new();
            for (table, lock, effort) in touched(migration.sql.as_str()) {
                if let Some(rows) = rows_of(&mut session, &table).await? {
                    tables.push(Touched {
                        table,
                        lock,
                        rows,
                        effort,
                        seconds: effort.seconds(rows),
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
    // A change of a table is one of those that inherit from it.
    let query = "select sum(greatest(c.reltuples, 0))::bigint from pg_class c
                 where c.oid = to_regclass($1) or c.oid in (select inhrelid from pg_inherits where inhparent = to_regclass($1))";
    within(sqlx::query_scalar(query).bind(table).fetch_one(connection)).await
}

/// The tables that statements alter, index, fill or drop, each with the hardest of its locks.
fn touched(sql: &str) -> Vec<(String, Lock, Effort)> {
    let code: String = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase();
    let mut found: Vec<(String, Lock, Effort)> = Vec::new();
    for statement in code.split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let after = |word: &str| {
            let at = words.iter().position(|other| *other == word)?;
            let rest = &words[at + 1..];
            rest.iter()
                .find(|word| !["if", "exists", "not", "only"].contains(word))
        };
        let (table, lock, effort) = match words[..] {
            ["alter", "table", .., "validate", "constraint", _] => {
                (after("table"), Lock::None, Effort::Reads)
            }
            ["alter", "table", ..] => (after("table"), Lock::Everything, effort_of(statement)),
            ["create", "index", "concurrently", ..] | ["create", "unique", "index", "concurrently", ..] => {
                (after("on"), Lock::None, Effort::Reads)
            }
            ["create", "index", ..] | ["create", "unique", "index", ..] => {
                (after("on"), Lock::Writes, Effort::Reads)
            }
            ["create", "trigger", ..] => (after("on"), Lock::Writes, Effort::Nothing),
            ["drop", "table", ..] => (after("table"), Lock::Everything, Effort::Nothing),
            // On its own or inside of a block that goes over the table in batches.
            _ => (filled(&words), Lock::None, Effort::Writes),
        };
        let Some(table) = table else { continue };
        let table = table.split('(').next().unwrap_or_default().to_owned();
        match found.iter_mut().find(|(known, _, _)| *known == table) {
            Some((_, harder, more)) => {
                *harder = lock.max(*harder);
                *more = effort.max(*more);
            }
            None => found.push((table, lock, effort)),
        }
    }
    found
}

/// The table whose rows a statement writes or removes.
fn filled<'a>(words: &'a [&'a str]) -> Option<&'a &'a str> {
    let is_table = |word: &&&str| word.contains('.');
    words.windows(3).find_map(|three| match three {
        ["update", "only", table] | ["delete", "from", table] => Some(table),
        ["update", table, _] => Some(table).filter(is_table),
        _ => None,
    })
}

/// What a change of a table does to its rows.
fn effort_of(statement: &str) -> Effort {
    let says = |words: &[&str]| words.iter().any(|words| statement.contains(words));
    if says(&[" type ", "generated always as ("]) {
        Effort::Writes
    } else if !says(&["not valid"])
        && says(&[
            "set not null",
            "add constraint",
            "add check",
            "add primary key",
            "add unique",
            "add foreign key",
        ])
    {
        Effort::Reads
    } else {
        Effort::Nothing
    }
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
                   alter table only a.g alter column c set not null;\n\
                   alter table a.e2 validate constraint f;\n\
                   alter table a.h alter column c type bigint;\n\
                   do $$ begin loop with batch as (select id from a.i for update) update a.i set c = 1 from batch; exit; end loop; end $$;\n\
                   delete from a.j where c = 1;\n\
                   create trigger t before update on a.k for each row execute function a.f();\n";
        assert_eq!(
            touched(sql),
            [
                ("a.b".to_owned(), Lock::Everything, Effort::Reads),
                ("a.d".to_owned(), Lock::None, Effort::Reads),
                ("a.e".to_owned(), Lock::Everything, Effort::Nothing),
                ("a.g".to_owned(), Lock::Everything, Effort::Reads),
                ("a.e2".to_owned(), Lock::None, Effort::Reads),
                ("a.h".to_owned(), Lock::Everything, Effort::Writes),
                ("a.i".to_owned(), Lock::None, Effort::Writes),
                ("a.j".to_owned(), Lock::None, Effort::Writes),
                ("a.k".to_owned(), Lock::Writes, Effort::Nothing),
            ]
        );
    }
}
