//! `stationmaster migrate`: brings the tables up to date, or only looks.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_core::db::{Database, Error};

use super::Context;
use crate::failure::{Kind, Refusal};

/// What to do with the tables.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Only look: exit code 1 when the tables are not those of this version
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct Migrated {
    /// Were there migrations to apply?
    changed: bool,
    /// The version before; absent when nothing had to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<i64>,
    /// The version now; absent when nothing had to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<i64>,
    /// What is wrong with the lock table; absent when it is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_table: Option<String>,
}

/// The versions of the tables and of the program, when they differ.
async fn difference(database: &Database) -> Result<Option<(i64, i64)>> {
    match database.check_schema().await {
        Ok(()) => Ok(None),
        Err(Error::Schema { found, needed }) => Ok(Some((found, needed))),
        Err(error) => Err(error.into()),
    }
}

/// The lock table lies outside our schema, and may be somebody else's to make.
async fn lock_table(args: &MigrateArgs, database: &Database, context: &Context) -> Result<Option<String>> {
    let locks = context.locks(database)?;
    Ok(if args.check {
        locks.problem().await?
    } else {
        locks.prepare().await?
    })
}

pub(crate) async fn run(args: &MigrateArgs, context: &Context) -> Result<()> {
    let database = context.any_database().await?;
    let difference = difference(&database).await?;
    if let (true, Some((found, needed))) = (args.check, difference) {
        let message = format!("the tables are at version {found}, this program needs version {needed}");
        let advice = if found < needed {
            "Run: stationmaster migrate"
        } else {
            "Use a newer version of this program"
        };
        return Err(Refusal::new(Kind::Failed, message, advice).into());
    }
    if difference.is_some() {
        database.migrate().await?;
        database.check_schema().await?;
    }
    let lock_table = lock_table(args, &database, context).await?;
    if let Some(problem) = &lock_table {
        context.format.hint(problem);
    }
    let migrated = Migrated {
        changed: difference.is_some(),
        from: difference.map(|(found, _)| found),
        to: difference.map(|(_, needed)| needed),
        lock_table,
    };
    context.format.print(&migrated, |_| match difference {
        None => "The tables are up to date.".to_owned(),
        Some((0, needed)) => format!("Made the tables; they are at version {needed}."),
        Some((found, needed)) => format!("Brought the tables from version {found} to version {needed}."),
    })
}
