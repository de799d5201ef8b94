//! Statements that had to wait for the row: what decides is the moment at which they get it, not the one at which they
//! were sent.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};
use stationmaster_core::locks::{Extended, Locked, Terms, Unlocked};

use crate::common::eventually;
use crate::support::{Bench, MINUTE, named};

/// Holds the row of a lock until it is told what to do with it.
struct Blocker(PgConnection);

impl Blocker {
    async fn on(bench: &Bench) -> Self {
        let mut connection = bench.testbed.connection().await;
        sqlx::raw_sql("begin; select from shedlock for update")
            .execute(&mut connection)
            .await
            .unwrap();
        Self(connection)
    }

    /// Changes the row once somebody waits for it, and lets go.
    async fn let_go(mut self, bench: &Bench, change: &'static str) {
        let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        eventually("somebody waits for the row", async || {
            bench.testbed.number(waiting).await == 1
        })
        .await;
        sqlx::raw_sql(change).execute(&mut self.0).await.unwrap();
        sqlx::raw_sql("commit").execute(&mut self.0).await.unwrap();
        self.0.close().await.unwrap();
    }
}

const FREE_IT: &str = "update shedlock set lock_until = timezone('utc', clock_timestamp())";
const TAKE_IT: &str =
    "update shedlock set locked_by = 'java-host', locked_at = timezone('utc', clock_timestamp()),
                       lock_until = timezone('utc', clock_timestamp()) + interval '1 minute'";

/// By the time of the statement's start it would be refused, although it is free.
#[tokio::test]
async fn a_lock_that_became_free_while_we_waited_is_ours_for_the_full_time() {
    let bench = Bench::new().await;
    bench.lock("nightly", MINUTE, Duration::ZERO).await;
    let blocker = Blocker::on(&bench).await;
    let terms = Terms::new(MINUTE, Duration::ZERO).unwrap();
    let name = named("nightly");
    let (answer, ()) = tokio::join!(
        bench.locks.lock(&name, terms, "tester"),
        blocker.let_go(&bench, FREE_IT)
    );
    let Locked::Acquired(lock) = answer.unwrap() else {
        panic!("it became free before we looked");
    };
    let full = "select count(*) from shedlock where lock_until - locked_at > interval '59.9 s'";
    assert_eq!(bench.testbed.number(full).await, 1);
    assert_eq!(bench.row().await.locked_by, lock.holder);
}

#[tokio::test]
async fn a_lock_that_was_taken_while_we_waited_is_not_ours() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    let blocker = Blocker::on(&bench).await;
    let terms = Terms::new(MINUTE, Duration::ZERO).unwrap();
    let (answer, ()) = tokio::join!(
        bench.locks.lock(&lock.name, terms, "tester"),
        blocker.let_go(&bench, TAKE_IT)
    );
    assert!(matches!(answer.unwrap(), Locked::Taken(_)));
    assert_eq!(bench.row().await.locked_by, "java-host");
}

#[tokio::test]
async fn a_lock_that_was_taken_while_we_waited_is_neither_extended_nor_unlocked() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    let blocker = Blocker::on(&bench).await;
    let (extended, ()) = tokio::join!(
        bench.locks.extend(&lock.name, lock.token, MINUTE),
        blocker.let_go(&bench, TAKE_IT)
    );
    assert_eq!(extended.unwrap(), Extended::Lost);

    bench.let_pass(MINUTE).await;
    let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    let blocker = Blocker::on(&bench).await;
    let (unlocked, ()) = tokio::join!(
        bench.locks.unlock(&lock.name, lock.token),
        blocker.let_go(&bench, TAKE_IT)
    );
    assert_eq!(unlocked.unwrap(), Unlocked::NotHeld);
    let row = bench.row().await;
    assert_eq!(row.locked_by, "java-host");
    assert!(
        bench.seconds_left("nightly").await > 0.0,
        "it was not freed: {row:?}"
    );
}

/// Somebody else who waited the other way round: ShedLock's time is that of its transaction's start.
#[tokio::test]
async fn a_java_application_that_waited_for_our_unlock_does_not_take_what_it_could_not_see_free() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    let mut java = bench.testbed.connection().await;
    let began: String = {
        sqlx::raw_sql("begin").execute(&mut java).await.unwrap();
        let query = "select timezone('utc', CURRENT_TIMESTAMP)::text";
        sqlx::query_scalar(query).fetch_one(&mut java).await.unwrap()
    };
    bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    let take =
        "update shedlock set locked_by = 'java-host' where lock_until <= timezone('utc', CURRENT_TIMESTAMP)";
    let taken = sqlx::raw_sql(take)
        .execute(&mut java)
        .await
        .unwrap()
        .rows_affected();
    assert_eq!(taken, 0, "by its clock, {began}, the lock is still held");
    sqlx::raw_sql("commit").execute(&mut java).await.unwrap();
    let taken = sqlx::raw_sql(take)
        .execute(&mut java)
        .await
        .unwrap()
        .rows_affected();
    assert_eq!(taken, 1, "whoever asks after the unlock gets it");
}
