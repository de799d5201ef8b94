//! `stationmaster migrate`: brings the tables up to date, or only looks.

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use stationmaster_core::db::{Database, Error};
use stationmaster_core::schema::plan::{Lock, Plan};

use super::Context;
use crate::failure::{Kind, Refusal};

/// What to do with the tables.
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Only look: exit code 1 when the tables are not those of this version
    #[arg(long)]
    check: bool,
    /// Only tell what would be applied, which tables it would lock, and how large they are
    #[arg(long, conflicts_with = "check")]
    plan: bool,
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
    /// The functions, views, policies and grants that were applied again; absent when none were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<&'static str>,
    /// What is wrong with the lock table; absent when it is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_table: Option<String>,
}

/// How the database differs from what this program needs.
enum Difference {
    /// The versions of the tables.
    Tables { found: i64, needed: i64 },
    /// The tables are right; what stands on them is not.
    Parts(Vec<&'static str>),
}

impl Difference {
    async fn of(database: &Database) -> Result<Option<Self>> {
        match database.check_schema().await {
            Ok(()) => Ok(None),
            Err(Error::Schema { found, needed }) => Ok(Some(Self::Tables { found, needed })),
            Err(Error::Parts(parts)) => Ok(Some(Self::Parts(parts))),
            Err(error) => Err(error.into()),
        }
    }

    fn refusal(&self) -> Refusal {
        let (message, advice) = match self {
            Self::Tables { found, needed } => (
                format!("the tables are at version {found}, this program needs version {needed}"),
                if found < needed {
                    "Run: stationmaster migrate"
                } else {
                    "Use a newer version of this program"
                },
            ),
            Self::Parts(parts) => (
                format!(
                    "functions and views are those of another version: {}",
                    parts.join(", ")
                ),
                "Run: stationmaster migrate",
            ),
        };
        Refusal::new(Kind::Failed, message, advice)
    }

    /// What was done about it.
    fn mended(&self) -> String {
        match self {
            Self::Tables { found: 0, needed } => format!("Made the tables; they are at version {needed}."),
            Self::Tables { found, needed } => {
                format!("Brought the tables from version {found} to version {needed}.")
            }
            Self::Parts(parts) => format!("Brought functions and views up to date: {}.", parts.join(", ")),
        }
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

/// A plan for people.
fn in_words(plan: &Plan) -> String {
    let mut lines = Vec::new();
    for step in &plan.migrations {
        lines.push(format!("Migration {}: {}", step.version, step.description));
        for touched in &step.tables {
            let (table, rows) = (&touched.table, touched.rows);
            let lock = match touched.lock {
                Lock::None => "goes on in use",
                Lock::Writes => "cannot be written",
                Lock::Everything => "cannot be used",
            };
            let time = match touched.seconds {
                0 => "a moment".to_owned(),
                seconds => format!("about {seconds} s"),
            };
            lines.push(format!("  {table}, about {rows} rows: {lock} for {time}"));
        }
        if step.tables.is_empty() {
            lines.push("  locks nothing that is there now".to_owned());
        }
    }
    if !plan.parts.is_empty() {
        lines.push(format!(
            "Functions, views and rights, for a moment each: {}",
            plan.parts.join(", ")
        ));
    }
    if lines.is_empty() {
        lines.push("The tables are up to date.".to_owned());
    }
    lines.join("\n")
}

pub(crate) async fn run(args: &MigrateArgs, context: &Context) -> Result<()> {
    let database = context.any_database().await?;
    if args.plan {
        return context.print(&database.plan().await?, in_words);
    }
    let difference = Difference::of(&database).await?;
    if let (true, Some(difference)) = (args.check, &difference) {
        return Err(difference.refusal().into());
    }
    let parts = if difference.is_some() {
        let parts = database.migrate().await?;
        database.check_schema().await?;
        parts
    } else {
        if !args.check {
            database.mend_role().await?;
        }
        Vec::new()
    };
    let lock_table = lock_table(args, &database, context).await?;
    if let Some(problem) = &lock_table {
        context.hint(problem);
    }
    let versions = match difference {
        Some(Difference::Tables { found, needed }) => Some((found, needed)),
        _ => None,
    };
    let migrated = Migrated {
        changed: difference.is_some(),
        from: versions.map(|(found, _)| found),
        to: versions.map(|(_, needed)| needed),
        parts,
        lock_table,
    };
    context.print(&migrated, |_| {
        difference.map_or_else(
            || "The tables are up to date.".to_owned(),
            |difference| difference.mended(),
        )
    })
}
