//! Connections that are lent: bounded in number, exchanged whole when the database was silent, and looked at when they come back from a call that
//! was left before its answer came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgPool, Postgres};

/// How long a connection that was left in the middle of a call may take to show that it can be used again: it must not hold its
/// place in the pool for longer.
const RETURN_TIMEOUT: Duration = Duration::from_secs(2);
/// For so long after a call was left, any connection that comes back may be the one that it was made on.
const SUSPECT: Duration = Duration::from_secs(5);
/// How long a connection may lie unused. Ways between networks forget one that nothing passes on after some minutes, and tell nobody.
const UNUSED: Duration = Duration::from_mins(2);

/// When a call of this process was last left before its answer came.
static LEFT_AT: Mutex<Option<Instant>> = Mutex::new(None);

/// Notes that a call is left, unless it is told otherwise.
pub(crate) struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        *LEFT_AT.lock() = Some(Instant::now());
    }
}

/// Connections, which can all be exchanged for new ones. The library asks every connection that is given back for a sign of life, and waits
/// for it as long as it takes: one that falls silent at that moment keeps its place for ever. So when the database was silent the
/// places are new ones too; and those of brief calls also when nobody got one in time.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    now: Arc<RwLock<PgPool>>,
    brief: bool,
}

impl Pool {
    pub(crate) fn new(options: &PgConnectOptions, max_connections: u32, wait: Duration) -> Self {
        Self::made(options, max_connections, wait, false)
    }

    /// For calls that take a moment: where nobody gets a connection within `wait`, the places are taken to be lost.
    pub(crate) fn of_brief_calls(options: &PgConnectOptions, max_connections: u32, wait: Duration) -> Self {
        Self::made(options, max_connections, wait, true)
    }

    fn made(options: &PgConnectOptions, max_connections: u32, wait: Duration, brief: bool) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(wait)
            .idle_timeout(UNUSED)
            .test_before_acquire(false)
            .after_release(|connection, _| {
                let is_suspect = LEFT_AT.lock().is_some_and(|left| left.elapsed() < SUSPECT);
                Box::pin(async move {
                    if is_suspect {
                        let answer = tokio::time::timeout(RETURN_TIMEOUT, connection.ping()).await;
                        answer.unwrap_or_else(|_| Err(given_up("it does not answer")))?;
                    }
                    Ok(true)
                })
            });
        Self {
            now: Arc::new(RwLock::new(pool.connect_lazy_with(options.clone()))),
            brief,
        }
    }

    /// A connection, when one is free.
    pub(crate) async fn acquire(&self) -> Result<PoolConnection<Postgres>, sqlx::Error> {
        let acquired = self.get().acquire().await;
        if self.brief && matches!(acquired, Err(sqlx::Error::PoolTimedOut)) {
            self.renew();
        }
        acquired
    }

    /// Is it the same one?
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.now, &other.now)
    }

    /// As it is now.
    pub(crate) fn get(&self) -> PgPool {
        self.now.read().clone()
    }

    /// Nothing from before is used again, and nobody waits for its place.
    pub(crate) fn renew(&self) {
        let mut place = self.now.write();
        let options = PgConnectOptions::clone(&place.connect_options());
        let fresh = place.options().clone().connect_lazy_with(options);
        let old = std::mem::replace(&mut *place, fresh);
        tokio::spawn(async move { tokio::time::timeout(RETURN_TIMEOUT, old.close()).await });
    }
}

fn given_up(why: &'static str) -> sqlx::Error {
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, why))
}
