//! What the database has beside its data: functions, triggers, views, policies, grants and comments, in files that say the
//! whole of it. A part whose text differs from the one on record is applied again, whole; what has not changed is not
//! touched, so that a release disturbs running servers no more than it must.
//!
//! A file replaces what it made before; what it makes no more, it has to drop by name.

use std::time::Duration;

use sha2::{Digest as _, Sha256};
use sqlx::{Connection as _, PgConnection};

use crate::db::{Error, statement};
use crate::retry::Backoff;

/// One file of `schema/`.
#[derive(Debug)]
pub(super) struct Part {
    /// Where it lies, without the ending.
    pub(super) name: &'static str,
    text: &'static str,
}

macro_rules! parts {
    ($($name:literal),+ $(,)?) => {
        [$(Part {
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/", $name, ".sql")),
        }),+]
    };
}

/// In the order in which they are applied: a view comes after what it asks, a grant after what it is about.
pub(super) static PARTS: [Part; 33] = parts![
    "servers/ring",
    "catalogue/names",
    "catalogue/functions",
    "executions/functions",
    "executions/views",
    "executions/calls",
    "alarms/functions",
    "alarms/views",
    "alarms/calls",
    "signals/functions",
    "signals/views",
    "signals/calls",
    "failures/functions",
    "failures/views",
    "operations/functions",
    "operations/views",
    "locks/functions",
    "access/audit",
    "access/wall",
    "servers/events",
    "access/closed",
    "access/grants",
    "catalogue/comments",
    "executions/comments",
    "alarms/comments",
    "signals/comments",
    "failures/comments",
    "operations/comments",
    "locks/comments",
    "access/comments",
    "servers/names",
    "servers/timeline",
    "servers/comments",
];

/// A step waits no longer than this for a table that somebody uses, because everybody who comes later waits behind it. For the
/// whole session of whoever migrates.
pub(super) const LOCK_TIMEOUT: &str = "set lock_timeout = '2s'";
pub(super) const NO_LOCK_TIMEOUT: &str = "set lock_timeout = 0";
/// How often a busy database is tried.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(5),
};

impl Part {
    pub(super) fn checksum(&self) -> [u8; 32] {
        Sha256::digest(self.text).into()
    }
}

/// The version of this program, as the books have it.
pub(super) fn program() -> Vec<i32> {
    env!("CARGO_PKG_VERSION")
        .split('.')
        .map(|number| {
            let digits = number.split(|c: char| !c.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).unwrap_or_default()
        })
        .take(3)
        .collect()
}

/// Applies the parts in one transaction: all of them hold, or none.
pub(super) async fn apply(connection: &mut PgConnection, parts: &[&Part]) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        tries += 1;
        match apply_once(connection, parts).await {
            Ok(()) => return Ok(()),
            Err(error) => wait_if_busy(error, tries).await?,
        }
    }
}

/// Waits before the next try when the tables are in use; any other error stays one, and so does this one after many tries.
pub(super) async fn wait_if_busy(error: Error, tries: u32) -> Result<(), Error> {
    if !is_busy(&error) || tries >= TRIES {
        return Err(error);
    }
    tracing::info!(tries, "The tables are in use; the schema is applied in a moment");
    tokio::time::sleep(BETWEEN_TRIES.wait(tries)).await;
    Ok(())
}

async fn apply_once(connection: &mut PgConnection, parts: &[&Part]) -> Result<(), Error> {
    let mut transaction = connection.begin().await?;
    for part in parts {
        let applied = sqlx::raw_sql(part.text).execute(&mut *transaction).await;
        applied.map_err(|source| Error::Migration {
            step: format!("schema/{}", part.name),
            source,
        })?;
        sqlx::query(statement!("schema/note_part"))
            .bind(part.name)
            .bind(part.checksum())
            .bind(program())
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// Somebody held a table for too long, or a deadlock was resolved at our cost.
fn is_busy(error: &Error) -> bool {
    matches!(error.code().as_deref(), Some("55P03" | "40P01"))
}
