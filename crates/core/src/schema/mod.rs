//! The tables, and what stands on them. `migrations/` holds what has data, by versions that are applied once;
//! `schema/` holds what has none, in parts that are applied whenever they have changed.
//!
//! Invariant: a database that [`Database::check_schema`] accepts has every version and every part of this program, and no
//! other. Whatever else is found is told in words that say what to do; nobody reads an error of the library.

pub mod describe;
mod parts;
pub mod plan;

use std::collections::HashMap;

use sqlx::migrate::{Migrate as _, MigrateError, Migration, Migrator};
use sqlx::{Connection as _, PgConnection, PgExecutor};

use crate::db::{Database, Error, statement, within};
use parts::{PARTS, Part};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// The newest version of the tables that this program knows.
#[must_use]
pub fn newest() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or_default()
}

/// What a database has of this program's schema.
#[derive(Debug, Default, sqlx::FromRow)]
struct Applied {
    versions: Vec<i64>,
    version_checksums: Vec<Vec<u8>>,
    parts: Vec<String>,
    part_checksums: Vec<Vec<u8>>,
    /// The newest version of the program that has applied a part.
    program: Vec<i32>,
    public: bool,
}

impl Database {
    /// Applies every version and every part that has not been applied, and answers which parts those were. Safe to call from
    /// many servers at once.
    pub async fn migrate(&self) -> Result<Vec<&'static str>, Error> {
        self.migrate_by(&MIGRATIONS).await
    }

    /// The same with other versions than this program's own: those, and some that follow on them.
    pub async fn migrate_by(&self, migrations: &Migrator) -> Result<Vec<&'static str>, Error> {
        self.check_server().await?;
        let mut connection = PgConnection::connect_with(&self.options()).await?;
        // The same lock as the library's, which a session may take twice: it spans versions and parts.
        connection.lock().await.map_err(plainly)?;
        let applied = Applied::read(&mut connection).await?;
        match applied.check() {
            Err(error @ Error::NewerParts(_)) => return Err(error),
            Err(error @ Error::Schema { found, needed }) if found > needed => return Err(error),
            _ => {}
        }
        sqlx::raw_sql(statement!("schema/make_schemas"))
            .execute(&mut connection)
            .await?;
        // The bookkeeping of migrations lives in our own schema, not in whatever the search path says.
        sqlx::query("set search_path to stationmaster_internal")
            .execute(&mut connection)
            .await?;
        let missing: Vec<&Migration> = migrations
            .iter()
            .filter(|migration| !applied.versions.contains(&migration.version))
            .collect();
        for stretch in missing.chunk_by(|one, next| one.no_tx == next.no_tx) {
            apply_stretch(&mut connection, migrations, stretch).await?;
        }
        sqlx::query(parts::LOCK_TIMEOUT).execute(&mut connection).await?;
        let stale = applied.stale_parts();
        parts::apply(&mut connection, &stale).await?;
        make_role(&mut connection).await?;
        connection.close().await?;
        Ok(stale.iter().map(|part| part.name).collect())
    }

    /// Makes the role that requests run as where it is missing, on tables that are as they should be: a database that was restored elsewhere has
    /// everything but that.
    pub async fn mend_role(&self) -> Result<(), Error> {
        let mut connection = PgConnection::connect_with(&self.options()).await?;
        make_role(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Says whether the tables, and what stands on them, are those that this program needs.
    pub async fn check_schema(&self) -> Result<(), Error> {
        let mut session = self.own().session().await?;
        Applied::read(&mut session).await?.check()
    }
}

async fn make_role(connection: &mut PgConnection) -> Result<(), Error> {
    let made = sqlx::raw_sql(statement!("schema/make_role")).execute(connection);
    within(made).await.map(drop)
}

/// Applies versions that follow on each other and are of one kind: each in a transaction, or each a statement of its own outside of one.
async fn apply_stretch(
    connection: &mut PgConnection,
    migrations: &Migrator,
    stretch: &[&Migration],
) -> Result<(), Error> {
    let Some(last) = stretch.last() else { return Ok(()) };
    let mut tries = 0;
    loop {
        match try_stretch(connection, migrations, last).await {
            Ok(()) => return Ok(()),
            Err(error) => {
                tries += 1;
                parts::wait_if_busy(error, tries).await?;
            }
        }
    }
}

async fn try_stretch(
    connection: &mut PgConnection,
    migrations: &Migrator,
    last: &Migration,
) -> Result<(), Error> {
    // Everybody who comes later waits behind whoever waits for a table, so nobody waits for it for long.
    sqlx::query(parts::LOCK_TIMEOUT).execute(&mut *connection).await?;
    if last.no_tx {
        sqlx::raw_sql(statement!("schema/drop_broken_indexes"))
            .execute(&mut *connection)
            .await?;
        // What is made outside of a transaction (a concurrent index, batches that commit) waits for others and holds nobody up. To
        // break it off would only throw away what it has done.
        sqlx::query(parts::NO_LOCK_TIMEOUT)
            .execute(&mut *connection)
            .await?;
    }
    migrations
        .run_direct(Some(last.version), connection, false)
        .await
        .map_err(plainly)
}

/// Says whether a program that runs can go on with what is there. A newer program may have moved the tables on meanwhile: that is
/// for whoever upgrades to weigh, and no reason to send all older servers' requests away at once.
pub(crate) async fn check_still_usable(connection: &mut PgConnection) -> Result<(), Error> {
    match Applied::read(connection).await?.check() {
        Err(Error::Schema { found, needed }) if found > needed => Ok(()),
        Err(Error::Parts(_) | Error::NewerParts(_)) => Ok(()),
        outcome => outcome,
    }
}

impl Applied {
    /// Reads the books, and refuses a database whose books are none of this program's.
    async fn read(connection: &mut PgConnection) -> Result<Self, Error> {
        let read = within(sqlx::query_as(statement!("schema/applied")).fetch_one(&mut *connection)).await;
        let applied: Self = match read {
            Ok(applied) => applied,
            // Undefined table, or undefined schema: there are no books.
            Err(error) if matches!(error.code().as_deref(), Some("42P01" | "3F000")) => {
                refuse_remains(connection).await?;
                return Ok(Self::default());
            }
            Err(error) => return Err(error),
        };
        if !applied.public && !applied.versions.is_empty() {
            return Err(Error::Torn {
                there: "stationmaster_internal",
                missing: "stationmaster",
            });
        }
        let known: HashMap<i64, &[u8]> = MIGRATIONS
            .iter()
            .map(|migration| (migration.version, &*migration.checksum))
            .collect();
        let differs = |(version, checksum): (&i64, &Vec<u8>)| {
            known
                .get(version)
                .is_some_and(|known| *known != checksum.as_slice())
        };
        if applied
            .versions
            .iter()
            .zip(&applied.version_checksums)
            .any(differs)
        {
            return Err(Error::BeforeRelease);
        }
        Ok(applied)
    }

    fn check(&self) -> Result<(), Error> {
        let needed = MIGRATIONS.iter().map(|migration| migration.version).max();
        let (found, needed) = (
            self.versions.last().copied().unwrap_or_default(),
            needed.unwrap_or_default(),
        );
        if found != needed {
            return Err(Error::Schema { found, needed });
        }
        let stale = self.stale_parts();
        if stale.is_empty() {
            return Ok(());
        }
        // Put back by an older program, they would change under the servers of the newer one.
        if self.program > parts::program() {
            let numbers: Vec<String> = self.program.iter().map(ToString::to_string).collect();
            return Err(Error::NewerParts(numbers.join(".")));
        }
        Err(Error::Parts(stale.iter().map(|part| part.name).collect()))
    }

    fn stale_parts(&self) -> Vec<&'static Part> {
        let on_record: HashMap<&str, &[u8]> = self
            .parts
            .iter()
            .map(String::as_str)
            .zip(self.part_checksums.iter().map(Vec::as_slice))
            .collect();
        let stale = |part: &&Part| on_record.get(part.name) != Some(&part.checksum().as_slice());
        PARTS.iter().filter(stale).collect()
    }
}

/// Without books there must be no tables either.
async fn refuse_remains(connection: impl PgExecutor<'_>) -> Result<(), Error> {
    let remains = sqlx::query_as(statement!("schema/remains")).fetch_one(connection);
    let (before_release, public): (bool, bool) = within(remains).await?;
    if before_release {
        return Err(Error::BeforeRelease);
    }
    if public {
        return Err(Error::Torn {
            there: "stationmaster",
            missing: "stationmaster_internal",
        });
    }
    Ok(())
}

fn plainly(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(source) => Error::Sql(source),
        MigrateError::ExecuteMigration(source, version) => Error::Migration {
            step: format!("migration {version}"),
            source,
        },
        other => Error::Unusable(format!("the migrations could not be applied: {other}")),
    }
}
