//! Keep-alive: holds for as long as somebody works, and a loss is told at once.

use std::time::Duration;

use stationmaster_core::locks::Unlocked;

use crate::common::eventually;
use crate::support::{Bench, MINUTE};

const SHORT: Duration = Duration::from_secs(3);

/// The lock is kept until this much time has passed by the database's clock.
async fn held_for(bench: &Bench, seconds: f64) {
    let query = format!(
        "select count(*) from shedlock where timezone('utc', clock_timestamp()) - locked_at > make_interval(secs => {seconds})"
    );
    eventually("time goes by", async || bench.testbed.number(&query).await == 1).await;
}

#[tokio::test]
async fn a_lock_that_is_kept_outlives_its_at_most_and_ends_with_its_unlock() {
    let bench = Bench::new().await;
    let at_most = 2 * SHORT;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", at_most, Duration::ZERO).await);
    held_for(&bench, at_most.as_secs_f64() + 1.0).await;
    assert!(lock.is_held());
    bench.refused("nightly").await;
    assert_eq!(lock.unlock().await.unwrap(), Unlocked::Free);
    bench.lock("nightly", MINUTE, Duration::ZERO).await;
}

#[tokio::test]
async fn a_lock_that_is_no_longer_kept_runs_out() {
    let bench = Bench::new().await;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", SHORT, Duration::ZERO).await);
    drop(lock);
    let free = async || bench.seconds_left("nightly").await <= 0.0;
    eventually("the lock runs out", free).await;
    bench.lock("nightly", MINUTE, Duration::ZERO).await;
}

#[tokio::test]
async fn a_lock_that_somebody_else_has_is_told_lost_and_is_left_to_them() {
    let bench = Bench::new().await;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", SHORT, Duration::ZERO).await);
    bench
        .testbed
        .run("update shedlock set locked_by = 'java-host', lock_until = timezone('utc', now()) + interval '1 minute'")
        .await;
    let reason = lock.lost().await;
    assert!(reason.contains("somebody else"), "{reason}");
    assert!(!lock.is_held());
    assert_eq!(bench.metric("stationmaster_locks_lost_total"), 1);
    let before = bench.rows().await;
    assert_eq!(lock.unlock().await.unwrap(), Unlocked::NotHeld);
    assert_eq!(bench.rows().await, before);
}

#[tokio::test]
async fn a_lock_that_is_released_by_hand_is_told_lost() {
    let bench = Bench::new().await;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", SHORT, Duration::ZERO).await);
    let holder = lock.lock().holder.clone();
    bench.locks.release("nightly", &holder, "operator").await.unwrap();
    lock.lost().await;
    assert!(!lock.is_held());
}

/// Nobody answers: the holder does not wait for an answer longer than its lock holds.
#[tokio::test]
async fn a_lock_that_cannot_be_extended_is_told_lost_when_its_time_is_over() {
    let bench = Bench::new().await;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", SHORT, Duration::ZERO).await);
    let mut silence = bench.testbed.connection().await;
    sqlx::raw_sql("begin; lock table shedlock in access exclusive mode")
        .execute(&mut silence)
        .await
        .unwrap();
    let reason = lock.lost().await;
    assert!(reason.contains("in time"), "{reason}");
    assert!(!lock.is_held());
    sqlx::raw_sql("rollback").execute(&mut silence).await.unwrap();
    let free = async || bench.seconds_left("nightly").await <= 0.0;
    eventually("nobody has extended it since", free).await;
}

/// Errors are no loss as long as there is time left.
#[tokio::test]
async fn a_short_trouble_loses_nothing() {
    let bench = Bench::new().await;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", MINUTE, Duration::ZERO).await);
    bench
        .testbed
        .run("alter table shedlock rename to elsewhere")
        .await;
    let refused = bench
        .locks
        .extend(&lock.lock().name, lock.lock().token, MINUTE)
        .await;
    assert!(refused.is_err());
    bench
        .testbed
        .run("alter table elsewhere rename to shedlock")
        .await;
    assert!(lock.is_held());
    assert_eq!(lock.unlock().await.unwrap(), Unlocked::Free);
}

/// As after SIGSTOP: nothing of us ran, so nobody could be told; but whoever asks is told the truth.
#[tokio::test(flavor = "current_thread")]
async fn a_process_that_was_stopped_past_its_lock_knows_it_before_anything_else_runs() {
    let bench = Bench::new().await;
    let lock = bench
        .locks
        .keep(bench.lock("nightly", SHORT, Duration::ZERO).await);
    assert!(lock.is_held());
    std::thread::sleep(SHORT);
    assert!(!lock.is_held());
    lock.lost().await;
}
