//! Locks in a database of their own, and short ways to ask for them.

use std::sync::Arc;
use std::time::Duration;

use stationmaster_core::locks::{Acquired, LockName, LockTable, Locked, Locks, Taken, Terms};
use stationmaster_core::observe::Metrics;

use crate::common::Testbed;

pub(crate) const MINUTE: Duration = Duration::from_mins(1);

pub(crate) struct Bench {
    pub(crate) testbed: Testbed,
    pub(crate) locks: Locks,
    pub(crate) metrics: Arc<Metrics>,
}

/// A row of the shared table as it stands there.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) lock_until: String,
    pub(crate) locked_at: String,
    pub(crate) locked_by: String,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let testbed = Testbed::new().await;
        let metrics = Arc::new(Metrics::new());
        let locks = Locks::new(
            testbed.database.clone(),
            LockTable::default(),
            Arc::clone(&metrics),
        );
        Self {
            testbed,
            locks,
            metrics,
        }
    }

    pub(crate) async fn try_lock(&self, name: &str, at_most: Duration, at_least: Duration) -> Locked {
        let terms = Terms::new(at_most, at_least).unwrap();
        self.locks.lock(&named(name), terms, "tester").await.unwrap()
    }

    /// A lock that must be there to be had.
    pub(crate) async fn lock(&self, name: &str, at_most: Duration, at_least: Duration) -> Acquired {
        match self.try_lock(name, at_most, at_least).await {
            Locked::Acquired(lock) => lock,
            Locked::Taken(taken) => panic!("{name} should be free: {taken:?}"),
        }
    }

    /// A lock that must not be had.
    pub(crate) async fn refused(&self, name: &str) -> Taken {
        match self.try_lock(name, MINUTE, Duration::ZERO).await {
            Locked::Taken(taken) => taken,
            Locked::Acquired(lock) => panic!("{name} should be taken: {lock:?}"),
        }
    }

    /// The rows as text, so that every digit counts.
    pub(crate) async fn rows(&self) -> Vec<Row> {
        let query = "select name, lock_until::text, locked_at::text, locked_by from shedlock order by name";
        sqlx::query_as(query)
            .fetch_all(self.testbed.pool())
            .await
            .unwrap()
    }

    /// The only row.
    pub(crate) async fn row(&self) -> Row {
        let [row] = self.rows().await.try_into().expect("one row");
        row
    }

    /// Moves every lock back in time, as if it had been taken earlier.
    pub(crate) async fn let_pass(&self, time: Duration) {
        let change = "update shedlock set lock_until = lock_until - make_interval(secs => $1),
                                          locked_at = locked_at - make_interval(secs => $1)";
        sqlx::query(change)
            .bind(time.as_secs_f64())
            .execute(self.testbed.pool())
            .await
            .unwrap();
    }

    /// Seconds from now until a lock ends.
    pub(crate) async fn seconds_left(&self, name: &str) -> f64 {
        let query = "select extract(epoch from lock_until - timezone('utc', clock_timestamp()))::float8 from shedlock where name = $1";
        sqlx::query_scalar(query)
            .bind(name)
            .fetch_one(self.testbed.pool())
            .await
            .unwrap()
    }

    /// The whole part of a metric.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.metrics.render();
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value
            .and_then(|value| value.split('.').next()?.parse().ok())
            .unwrap_or_default()
    }
}

pub(crate) fn named(name: &str) -> LockName {
    name.parse().unwrap()
}
