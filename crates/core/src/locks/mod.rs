//! Named locks in a table that ShedLock applications share: lock, extend, unlock, by the database's clock.
//!
//! A lock is a lease like every other here: holder, token, expiry. The shared table has the holder and the expiry, exactly
//! as ShedLock's JDBC provider with database time leaves and reads them; the token, which only grows, lies beside it. Rows
//! are never deleted: Java clients remember that a row exists.
//!
//! Whoever holds a lock must know that it can be lost: a lease cannot promise one actor. So nothing that must be correct
//! may rest on a lock alone; it rests on the token, which later writes name (I1). A lock without it is for economy.
//!
//! Reading order: `table` (the name of the table), `terms` (what is asked for), this module, `keep` (keep-alive), `condition`
//! (what is said of a table that cannot be used). It knows nothing of what the locks are for.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use sqlx::AssertSqlSafe;
pub use stationmaster_wire::{Lock, Taken};

use crate::db::{self, Database, Read as _, statement};
use crate::id::Token;
use crate::observe::Metrics;

mod condition;
mod keep;
mod table;
mod terms;

pub use keep::Kept;
pub use table::LockTable;
pub use terms::{LONGEST_NAME, LockName, Terms};

/// Rows that one list shows.
const LIST: i64 = 1_000;
/// Names whose odd clock was mentioned.
const MENTIONED: usize = 1_000;

/// Why nothing can be said about a lock.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The lock table is missing, or cannot be used; the words say what to do.
    #[error("{0}")]
    Table(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

impl From<Error> for db::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Database(error) => error,
            Error::Invalid(words) | Error::Table(words) => Self::Unusable(words),
        }
    }
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Locked {
    /// It is ours.
    Acquired(Acquired),
    /// Somebody else has it. That is no error: skip, or ask again later.
    Taken(Taken),
}

/// A lock that is held.
#[derive(Debug, Clone, Serialize)]
pub struct Acquired {
    /// The lock.
    pub name: LockName,
    /// The fence: grows with every acquisition, and every write that the lock protects should name it.
    pub token: Token,
    /// What stands in `locked_by`: the owner, and an id of this acquisition alone.
    pub holder: String,
    /// When it ends unless it is extended, by the database's clock.
    pub until: Timestamp,
    #[serde(skip)]
    terms: Terms,
    /// When it was asked for, by our own clock: it holds for as long as agreed from then on, and never shorter.
    #[serde(skip)]
    asked_at: Instant,
}

/// What came of extending a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// It holds until then.
    Until(Timestamp),
    /// It had run out, or somebody else has it: it is not ours any more.
    Lost,
}

/// What came of unlocking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlocked {
    /// Anybody may take it now.
    Free,
    /// It was held for less than it must be; it is free at this time.
    FreeAt(Timestamp),
    /// It was not ours any more, and nothing has changed.
    NotHeld,
}

/// What came of releasing a lock on behalf of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    /// It is free.
    Free,
    /// Nobody held it.
    WasFree,
    /// Somebody else holds it than the one who was seen; nothing has changed.
    HeldByAnother(String),
    /// There is no lock of that name.
    Unknown,
}

/// The statements, with the table in its place.
struct Statements {
    lock: String,
    extend: String,
    unlock: String,
    list: String,
    release: String,
}

/// The locks of one table.
#[derive(Clone)]
pub struct Locks {
    database: Database,
    table: LockTable,
    metrics: Arc<Metrics>,
    statements: Arc<Statements>,
    mentioned: Arc<Mutex<HashSet<LockName>>>,
}

/// Token, holder, until, and whether the holder's clock is odd.
type Asked = (Option<Token>, String, Option<jiff_sqlx::Timestamp>, bool);

impl Locks {
    /// The locks of this table. Nothing is asked of the database yet.
    #[must_use]
    pub fn new(database: Database, table: LockTable, metrics: Arc<Metrics>) -> Self {
        let statements = Statements {
            lock: table.statement(statement!("locks/lock")),
            extend: table.statement(statement!("locks/extend")),
            unlock: table.statement(statement!("locks/unlock")),
            list: table.statement(statement!("locks/list")),
            release: table.statement(statement!("locks/release")),
        };
        Self {
            database,
            table,
            metrics,
            statements: Arc::new(statements),
            mentioned: Arc::default(),
        }
    }

    /// Takes the lock when nobody has it; never waits for it. `owner` is for people: who asks, in a few words.
    pub async fn lock(&self, name: &LockName, terms: Terms, owner: &str) -> Result<Locked, Error> {
        let holder = terms::holder(owner)?;
        self.metrics.lock_asked();
        let answer = self.ask(name, terms, holder).await;
        match &answer {
            Ok(Locked::Acquired(lock)) => {
                self.metrics.lock_acquired();
                tracing::debug!(lock = %name, holder = lock.holder, token = lock.token.0, until = %lock.until, "Lock acquired");
            }
            Ok(Locked::Taken(taken)) => {
                self.metrics.lock_skipped();
                tracing::debug!(lock = %name, by = taken.by, "Lock is taken");
            }
            Err(_) => self.metrics.lock_failed(),
        }
        answer
    }

    async fn ask(&self, name: &LockName, terms: Terms, holder: String) -> Result<Locked, Error> {
        let asked_at = Instant::now();
        let query = sqlx::query_as::<_, Asked>(AssertSqlSafe(self.statements.lock.as_str()))
            .bind(name.as_str())
            .bind(&holder)
            .bind(terms.at_most().as_secs_f64())
            .bind(terms.at_least().as_secs_f64());
        let row = self.told(query.maybe(&self.database)).await?;
        let Some((token, by, until, from_the_future)) = row else {
            return Ok(Locked::Taken(Taken {
                by: None,
                until: None,
            }));
        };
        let until = until.map(jiff_sqlx::Timestamp::to_jiff);
        if let (Some(token), Some(until)) = (token, until) {
            return Ok(Locked::Acquired(Acquired {
                name: name.clone(),
                token,
                holder: by,
                until,
                terms,
                asked_at,
            }));
        }
        if from_the_future {
            self.mention_odd_clock(name, &by);
        }
        Ok(Locked::Taken(Taken { by: Some(by), until }))
    }

    /// A lock that is said to have been taken in the future was written by somebody with another clock or time zone.
    fn mention_odd_clock(&self, name: &LockName, by: &str) {
        let mut mentioned = self.mentioned.lock();
        if mentioned.len() < MENTIONED && mentioned.insert(name.clone()) {
            tracing::warn!(
                lock = %name, by,
                "This lock says that it was taken in the future: its holder does not use the database's time in UTC \
                 (ShedLock: usingDbTime), or the clock of the database was set back"
            );
        }
    }

    /// Holds the lock for `at_most` from now on, when it is still held under this token.
    pub async fn extend(&self, name: &LockName, token: Token, at_most: Duration) -> Result<Extended, Error> {
        Terms::new(at_most, Duration::ZERO)?;
        let query =
            sqlx::query_scalar::<_, jiff_sqlx::Timestamp>(AssertSqlSafe(self.statements.extend.as_str()))
                .bind(name.as_str())
                .bind(token)
                .bind(at_most.as_secs_f64());
        let until = self.told(query.maybe(&self.database)).await?;
        Ok(until.map_or(Extended::Lost, |until| Extended::Until(until.to_jiff())))
    }

    /// Ends the lock when it is still held under this token; it stays held until it has been held for at least as long
    /// as was agreed. A lock that ran out, or that somebody has taken since, is not touched.
    pub async fn unlock(&self, name: &LockName, token: Token) -> Result<Unlocked, Error> {
        let query = sqlx::query_as::<_, (jiff_sqlx::Timestamp, bool, f64)>(AssertSqlSafe(
            self.statements.unlock.as_str(),
        ))
        .bind(name.as_str())
        .bind(token);
        let row = self.told(query.maybe(&self.database)).await?;
        let Some((until, kept, held_for)) = row else {
            return Ok(Unlocked::NotHeld);
        };
        self.metrics.lock_held(held_for);
        tracing::debug!(lock = %name, token = token.0, held_for, "Lock given back");
        Ok(if kept {
            Unlocked::FreeAt(until.to_jiff())
        } else {
            Unlocked::Free
        })
    }

    /// Keeps a lock alive until it is unlocked or lost.
    #[must_use]
    pub fn keep(&self, lock: Acquired) -> Kept {
        Kept::start(self.clone(), lock)
    }

    /// The locks there are, those that are held first.
    pub async fn list(&self) -> Result<Vec<Lock>, Error> {
        self.rows(None).await
    }

    /// One lock.
    pub async fn find(&self, name: &str) -> Result<Option<Lock>, Error> {
        Ok(self.rows(Some(name)).await?.pop())
    }

    async fn rows(&self, name: Option<&str>) -> Result<Vec<Lock>, Error> {
        let query = sqlx::query_as(AssertSqlSafe(self.statements.list.as_str()))
            .bind(name.map(without_nul))
            .bind(LIST);
        self.told(query.all(&self.database)).await
    }

    /// Frees a lock on behalf of a person, whoever holds it, provided that it is still `seen`; in the audit as `actor`.
    /// A holder that is alive learns of it when it extends; until then it may believe that the lock is its own.
    pub async fn release(&self, name: &str, seen: &str, actor: &str) -> Result<Released, Error> {
        let query =
            sqlx::query_as::<_, (String, bool, bool)>(AssertSqlSafe(self.statements.release.as_str()))
                .bind(without_nul(name))
                .bind(seen)
                .bind(actor);
        let row = self.told(query.maybe(&self.database)).await?;
        Ok(match row {
            None => Released::Unknown,
            Some((by, _, true)) => {
                tracing::warn!(lock = name, by, actor, "Lock released by hand");
                Released::Free
            }
            Some((_, false, false)) => Released::WasFree,
            Some((by, true, false)) => Released::HeldByAnother(by),
        })
    }
}

/// PostgreSQL knows no such character; so nothing is called like that.
fn without_nul(name: &str) -> String {
    name.replace('\0', "\u{fffd}")
}
