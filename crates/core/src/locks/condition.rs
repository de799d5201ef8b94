//! The condition of the shared table: made where it may be, and told in words that say what to do where it cannot be used.
//!
//! Nothing here stops anybody: whoever needs the table tries again, and finds it as soon as it is there.

use super::{Error, LONGEST_NAME, LockTable, Locks};
use crate::db::{self, Read as _, statement};

impl Locks {
    /// Makes the table where it is missing and may be made. Answers what is wrong with it, in words; nothing: it is fine.
    pub async fn prepare(&self) -> Result<Option<String>, db::Error> {
        let query =
            sqlx::query_scalar::<_, Option<String>>("select stationmaster_internal.make_lock_table($1)")
                .bind(self.table.quoted());
        let reason = query.one(&self.database.own()).await?;
        let problem = self.problem().await?;
        Ok(match (problem, reason) {
            (Some(problem), Some(reason)) => Some(format!("{problem} It could not be made now: {reason}.")),
            (problem, _) => problem,
        })
    }

    /// What is wrong with the table, in words that say what to do; nothing: it is fine.
    pub async fn problem(&self) -> Result<Option<String>, db::Error> {
        let table = &self.table;
        let query = sqlx::query_as::<_, (bool, Vec<String>, bool)>(statement!("locks/condition"))
            .bind(table.quoted());
        let found = match query.maybe(&self.database.own()).await {
            Ok(found) => found,
            // Not even its schema may be looked into.
            Err(error) if error.code().as_deref() == Some("42501") => {
                return Ok(Some(not_allowed(table)));
            }
            Err(error) => return Err(error),
        };
        Ok(match found {
            None => Some(missing(table)),
            Some((false, ..)) => Some(not_allowed(table)),
            Some((true, columns, keyed)) => unfit(table, &columns, keyed),
        })
    }

    /// What a statement on the table answers; an error in words that say what to do.
    pub(super) async fn told<T>(&self, call: impl Future<Output = Result<T, db::Error>>) -> Result<T, Error> {
        match call.await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.explain(error).await),
        }
    }

    async fn explain(&self, error: db::Error) -> Error {
        match error.code().as_deref() {
            Some("42P01" | "3F000" | "42501" | "42703" | "42P10" | "42804" | "42883") => {
                match self.problem().await {
                    Ok(Some(problem)) => Error::Table(problem),
                    _ => Error::Database(error),
                }
            }
            Some("22001") => Error::Table(format!(
                "The columns name and locked_by of the lock table {} are too narrow: make them varchar({LONGEST_NAME}) \
                 and varchar(255).",
                self.table
            )),
            _ => Error::Database(error),
        }
    }
}

fn missing(table: &LockTable) -> String {
    format!(
        "The lock table {table} is not there, by the search path of this user. Run `stationmaster migrate` as a user who \
         may create it, or create it: create table {table} (name varchar(64) primary key, lock_until timestamp not null, \
         locked_at timestamp not null, locked_by varchar(255) not null)."
    )
}

fn not_allowed(table: &LockTable) -> String {
    format!(
        "This user may not use the lock table {table}: as its owner, grant select, insert, update on {table} to this user \
         (and usage on its schema)."
    )
}

fn unfit(table: &LockTable, columns: &[String], keyed: bool) -> Option<String> {
    let kind = |name: &str| {
        let found = columns
            .iter()
            .find_map(|column| column.strip_prefix(name)?.strip_prefix(' '));
        found.unwrap_or("missing")
    };
    for name in ["lock_until", "locked_at"] {
        let kind = kind(name);
        if kind != "timestamp without time zone" {
            return Some(format!(
                "The column {name} of the lock table {table} must be timestamp without time zone, as ShedLock has it; it is {kind}."
            ));
        }
    }
    for name in ["name", "locked_by"] {
        let kind = kind(name);
        if !["character varying", "text", "character"].contains(&kind) {
            return Some(format!(
                "The column {name} of the lock table {table} must be varchar, as ShedLock has it; it is {kind}."
            ));
        }
    }
    (!keyed).then(|| format!("The column name of the lock table {table} must be its primary key."))
}
