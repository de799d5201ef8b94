//! A Java application on the same table, told in the statements that ShedLock's JDBC provider sends with database time.

use std::time::Duration;

use stationmaster_core::locks::{Extended, Unlocked};

use crate::support::{Bench, MINUTE};

/// Lock for the first time: an insert that becomes an update.
const INSERT: &str = "INSERT INTO shedlock(name, lock_until, locked_at, locked_by)
    VALUES($1, timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2), timezone('utc', CURRENT_TIMESTAMP), $3)
    ON CONFLICT (name) DO UPDATE SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2),
    locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $3
    WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)";
/// Lock when the client remembers that there is a row.
const UPDATE: &str =
    "UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2),
    locked_at = timezone('utc', CURRENT_TIMESTAMP), locked_by = $3
    WHERE shedlock.name = $1 AND shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)";
const EXTEND: &str =
    "UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2)
    WHERE name = $1 AND locked_by = $3 AND lock_until > timezone('utc', CURRENT_TIMESTAMP)";
const UNLOCK: &str = "UPDATE shedlock SET lock_until =
    CASE WHEN locked_at + make_interval(secs => $2) > timezone('utc', CURRENT_TIMESTAMP)
    THEN locked_at + make_interval(secs => $2) ELSE timezone('utc', CURRENT_TIMESTAMP) END
    WHERE name = $1 AND locked_by = $3";

/// Sends one of them; did it change the row?
async fn java(bench: &Bench, statement: &'static str, seconds: f64) -> bool {
    let query = sqlx::query(statement)
        .bind("nightly")
        .bind(seconds)
        .bind("java-host");
    query.execute(bench.testbed.pool()).await.unwrap().rows_affected() == 1
}

#[tokio::test]
async fn what_java_holds_we_do_not_get_until_it_is_given_back() {
    let bench = Bench::new().await;
    assert!(java(&bench, INSERT, 60.0).await);
    assert_eq!(bench.refused("nightly").await.by.as_deref(), Some("java-host"));
    assert!(java(&bench, EXTEND, 120.0).await);
    bench.refused("nightly").await;
    assert!(java(&bench, UNLOCK, 0.0).await);
    bench.lock("nightly", MINUTE, Duration::ZERO).await;
}

#[tokio::test]
async fn what_we_hold_java_does_not_get_until_it_is_given_back() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    assert!(!java(&bench, INSERT, 60.0).await && !java(&bench, UPDATE, 60.0).await);
    assert!(!java(&bench, EXTEND, 60.0).await && !java(&bench, UNLOCK, 0.0).await);
    assert_eq!(bench.row().await.locked_by, lock.holder);
    assert_eq!(
        bench.locks.unlock(&lock.name, lock.token).await.unwrap(),
        Unlocked::Free
    );
    assert!(
        java(&bench, UPDATE, 60.0).await,
        "the row is there, as Java remembers it"
    );
}

#[tokio::test]
async fn at_least_holds_in_both_directions() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::from_secs(30)).await;
    bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    assert!(!java(&bench, UPDATE, 60.0).await);
    bench.let_pass(Duration::from_secs(30)).await;
    assert!(java(&bench, UPDATE, 60.0).await);
    assert!(java(&bench, UNLOCK, 30.0).await);
    bench.refused("nightly").await;
    bench.let_pass(Duration::from_secs(30)).await;
    bench.lock("nightly", MINUTE, Duration::ZERO).await;
}

#[tokio::test]
async fn what_ran_out_is_taken_over_in_both_directions_and_the_former_holder_is_powerless() {
    let bench = Bench::new().await;
    let ours = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    bench.let_pass(MINUTE).await;
    assert!(java(&bench, UPDATE, 60.0).await);
    let before = bench.rows().await;
    assert_eq!(
        bench.locks.extend(&ours.name, ours.token, MINUTE).await.unwrap(),
        Extended::Lost
    );
    assert_eq!(
        bench.locks.unlock(&ours.name, ours.token).await.unwrap(),
        Unlocked::NotHeld
    );
    assert_eq!(bench.rows().await, before);
    bench.let_pass(MINUTE).await;
    let again = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    assert!(!java(&bench, UNLOCK, 0.0).await && !java(&bench, EXTEND, 60.0).await);
    assert_eq!(bench.row().await.locked_by, again.holder);
    assert!(again.token > ours.token, "Java held it in between");
}

/// An application without database time, or with another zone, writes times of its own.
#[tokio::test]
async fn a_lock_from_the_future_or_for_ever_is_held_and_can_be_listed() {
    let bench = Bench::new().await;
    bench
        .testbed
        .run("insert into shedlock values ('odd', 'infinity', timezone('utc', now()) + interval '9 hours', 'java-host'),
                                                 ('old', '9999-12-31 23:59:59', '-infinity', 'java-host')")
        .await;
    let taken = bench.refused("odd").await;
    assert_eq!((taken.by.as_deref(), taken.until), (Some("java-host"), None));
    assert_eq!(bench.refused("old").await.until, None);
    let listed = bench.locks.list().await.unwrap();
    assert!(
        listed
            .iter()
            .all(|lock| lock.held && lock.until.is_none() && lock.token.is_none())
    );
}
