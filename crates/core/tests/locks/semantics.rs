//! What lock, extend and unlock do to the shared row, step by step.

use std::time::Duration;

use stationmaster_core::locks::{Error, Extended, Terms, Unlocked};

use crate::support::{Bench, MINUTE, named};

const HOUR: Duration = Duration::from_hours(1);
const NONE: Duration = Duration::ZERO;

#[tokio::test]
async fn a_first_lock_is_acquired_and_its_row_is_as_shedlock_leaves_it() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", HOUR, NONE).await;
    let row = bench.row().await;
    assert_eq!((row.name.as_str(), &row.locked_by), ("nightly", &lock.holder));
    assert!(lock.holder.starts_with("tester#"), "{}", lock.holder);
    let as_agreed = "select count(*) from shedlock
                     where lock_until - locked_at between interval '3599.9 s' and interval '3600.1 s'
                       and locked_at between timezone('utc', now()) - interval '1 minute' and timezone('utc', clock_timestamp())";
    assert_eq!(bench.testbed.number(as_agreed).await, 1, "{row:?}");
}

#[tokio::test]
async fn a_second_lock_is_refused_and_told_who_has_it_and_changes_nothing() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", HOUR, NONE).await;
    let before = bench.rows().await;
    let taken = bench.refused("nightly").await;
    assert_eq!((taken.by, taken.until), (Some(lock.holder), Some(lock.until)));
    assert_eq!(bench.rows().await, before);
    bench.lock("another", HOUR, NONE).await;
}

#[tokio::test]
async fn a_lock_that_was_unlocked_can_be_taken_again_and_its_row_has_survived() {
    let bench = Bench::new().await;
    let first = bench.lock("nightly", HOUR, NONE).await;
    assert_eq!(
        bench.locks.unlock(&first.name, first.token).await.unwrap(),
        Unlocked::Free
    );
    let free = bench.row().await;
    assert_eq!(
        free.locked_by, first.holder,
        "the row stays, with its last holder"
    );
    let second = bench.lock("nightly", HOUR, NONE).await;
    assert_ne!(second.holder, first.holder);
    assert_eq!(bench.row().await.locked_by, second.holder);
}

#[tokio::test]
async fn a_lock_stays_held_for_at_least_as_long_as_was_agreed() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", HOUR, Duration::from_mins(30)).await;
    let unlocked = bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    assert!(matches!(unlocked, Unlocked::FreeAt(_)), "{unlocked:?}");
    let exactly = "select count(*) from shedlock where lock_until = locked_at + interval '30 minutes'";
    assert_eq!(bench.testbed.number(exactly).await, 1);
    bench.refused("nightly").await;
    bench.let_pass(Duration::from_mins(29)).await;
    bench.refused("nightly").await;
    bench.let_pass(Duration::from_mins(1)).await;
    bench.lock("nightly", HOUR, NONE).await;
}

#[tokio::test]
async fn an_unlock_after_at_least_frees_at_once() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", HOUR, MINUTE).await;
    bench.let_pass(MINUTE).await;
    assert_eq!(
        bench.locks.unlock(&lock.name, lock.token).await.unwrap(),
        Unlocked::Free
    );
    bench.lock("nightly", HOUR, NONE).await;
}

#[tokio::test]
async fn a_lock_that_ran_out_is_taken_by_another() {
    let bench = Bench::new().await;
    let lost = bench.lock("nightly", MINUTE, NONE).await;
    bench.let_pass(Duration::from_secs(50)).await;
    bench.refused("nightly").await;
    bench.let_pass(Duration::from_secs(10)).await;
    let lock = bench.lock("nightly", MINUTE, NONE).await;
    assert_ne!(lock.holder, lost.holder);
}

#[tokio::test]
async fn an_extension_counts_from_now_and_leaves_the_beginning() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, NONE).await;
    bench.let_pass(Duration::from_secs(30)).await;
    let before = bench.row().await;
    let extended = bench.locks.extend(&lock.name, lock.token, HOUR).await.unwrap();
    assert!(
        matches!(extended, Extended::Until(until) if until > lock.until),
        "{extended:?}"
    );
    let left = bench.seconds_left("nightly").await;
    assert!((3500.0..=3600.0).contains(&left), "{left}");
    let after = bench.row().await;
    assert_eq!(
        (after.locked_at, after.locked_by),
        (before.locked_at, before.locked_by)
    );
    // It may also be made shorter.
    bench.locks.extend(&lock.name, lock.token, MINUTE).await.unwrap();
    assert!(bench.seconds_left("nightly").await <= 60.0);
}

#[tokio::test]
async fn a_lock_that_ran_out_is_not_extended_even_when_nobody_took_it() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, NONE).await;
    bench.let_pass(MINUTE).await;
    let before = bench.rows().await;
    assert_eq!(
        bench.locks.extend(&lock.name, lock.token, HOUR).await.unwrap(),
        Extended::Lost
    );
    assert_eq!(bench.rows().await, before);
}

#[tokio::test]
async fn an_unlock_after_expiry_changes_nothing() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::from_secs(30)).await;
    bench.let_pass(MINUTE).await;
    let before = bench.rows().await;
    assert_eq!(
        bench.locks.unlock(&lock.name, lock.token).await.unwrap(),
        Unlocked::NotHeld
    );
    assert_eq!(bench.rows().await, before);
}

/// Same host, same process, same owner: still two acquisitions.
#[tokio::test]
async fn a_former_holder_neither_frees_nor_extends_the_acquisition_of_another() {
    let bench = Bench::new().await;
    let former = bench.lock("nightly", MINUTE, NONE).await;
    bench.let_pass(MINUTE).await;
    let lock = bench.lock("nightly", HOUR, NONE).await;
    let before = bench.rows().await;
    assert_eq!(
        bench.locks.unlock(&former.name, former.token).await.unwrap(),
        Unlocked::NotHeld
    );
    assert_eq!(
        bench
            .locks
            .extend(&former.name, former.token, HOUR)
            .await
            .unwrap(),
        Extended::Lost
    );
    assert_eq!(bench.rows().await, before);
    assert_eq!(
        bench.locks.unlock(&lock.name, lock.token).await.unwrap(),
        Unlocked::Free
    );
    assert_eq!(
        bench.locks.unlock(&lock.name, lock.token).await.unwrap(),
        Unlocked::NotHeld,
        "unlocked once"
    );
}

#[tokio::test]
async fn no_step_ever_deletes_a_row() {
    let bench = Bench::new().await;
    bench
        .testbed
        .run("create function refuse() returns trigger language plpgsql as $$ begin raise 'a row is deleted'; end $$;
              create trigger refuse before delete on shedlock for each row execute function refuse()")
        .await;
    for round in 0..3 {
        let lock = bench.lock("nightly", MINUTE, NONE).await;
        bench.refused("nightly").await;
        bench.locks.extend(&lock.name, lock.token, HOUR).await.unwrap();
        bench.locks.unlock(&lock.name, lock.token).await.unwrap();
        bench
            .locks
            .release("nightly", &lock.holder, "operator")
            .await
            .unwrap();
        assert_eq!(bench.rows().await.len(), 1, "round {round}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused_before_anything_is_asked() {
    let bench = Bench::new().await;
    let lock = named("nightly");
    assert!(Terms::new(MINUTE, HOUR).is_err(), "at least is more than at most");
    assert!(Terms::new(NONE, NONE).is_err());
    for owner in ["a\0b", "a\nb"] {
        let answer = bench
            .locks
            .lock(&lock, Terms::new(MINUTE, NONE).unwrap(), owner)
            .await;
        assert!(matches!(answer, Err(Error::Invalid(_))), "{answer:?}");
    }
    let extended = bench
        .locks
        .extend(&lock, stationmaster_core::id::Token(1), NONE)
        .await;
    assert!(matches!(extended, Err(Error::Invalid(_))), "{extended:?}");
    assert_eq!(bench.rows().await, []);
}

#[tokio::test]
async fn odd_names_are_names_like_others() {
    let bench = Bench::new().await;
    for name in [
        "'; drop table shedlock; --",
        "größe",
        "a b",
        "%",
        "\u{1f682}",
        &"x".repeat(64),
    ] {
        let lock = bench.lock(name, MINUTE, NONE).await;
        assert_eq!(bench.refused(name).await.by, Some(lock.holder.clone()));
        assert_eq!(
            bench.locks.unlock(&lock.name, lock.token).await.unwrap(),
            Unlocked::Free
        );
    }
    assert_eq!(bench.rows().await.len(), 6);
}

#[tokio::test]
async fn attempts_successes_skips_and_errors_are_counted_apart() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, NONE).await;
    bench.refused("nightly").await;
    bench.refused("nightly").await;
    bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    bench.testbed.run("drop table shedlock").await;
    let broken = bench
        .locks
        .lock(&lock.name, Terms::new(MINUTE, NONE).unwrap(), "tester")
        .await;
    assert!(broken.is_err());
    for (metric, value) in [
        ("stationmaster_lock_acquisition_attempts_total", 4),
        ("stationmaster_lock_acquisitions_total", 1),
        ("stationmaster_lock_acquisitions_skipped_total", 2),
        ("shedlock_acquisition_failures", 1),
        ("stationmaster_lock_hold_seconds_count", 1),
        ("stationmaster_locks_lost_total", 0),
    ] {
        assert_eq!(bench.metric(metric), value, "{metric}");
    }
}

/// The columns hold UTC, whatever time zone the session has.
#[tokio::test]
async fn the_time_zone_of_a_session_changes_nothing() {
    let bench = Bench::new().await;
    let zoned = |zone: &str| format!("{}?options=-c%20TimeZone%3D{zone}", bench.testbed.url);
    let tokyo = locks_at(&zoned("Asia/Tokyo"));
    let denver = locks_at(&zoned("America/Denver"));
    let terms = Terms::new(MINUTE, NONE).unwrap();
    let stationmaster_core::locks::Locked::Acquired(lock) =
        tokyo.lock(&named("nightly"), terms, "tokyo").await.unwrap()
    else {
        panic!("it is free");
    };
    let left = bench.seconds_left("nightly").await;
    assert!((1.0..=60.0).contains(&left), "{left}");
    let seen = denver.list().await.unwrap();
    assert_eq!((seen[0].held, seen[0].until), (true, Some(lock.until)));
    assert_eq!(
        denver.unlock(&lock.name, lock.token).await.unwrap(),
        Unlocked::Free
    );
}

fn locks_at(url: &str) -> stationmaster_core::locks::Locks {
    let database = stationmaster_core::db::Database::new(url, 2).unwrap();
    stationmaster_core::locks::Locks::new(
        database,
        stationmaster_core::locks::LockTable::default(),
        std::sync::Arc::default(),
    )
}
