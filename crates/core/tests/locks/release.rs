//! A person frees a lock: with the holder that was seen, and on record.

use std::time::Duration;

use stationmaster_core::locks::{Extended, Released};

use crate::support::{Bench, MINUTE};

#[tokio::test]
async fn a_lock_is_freed_its_holder_learns_of_it_and_the_audit_says_who_did_it() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, MINUTE).await;
    let released = bench
        .locks
        .release("nightly", &lock.holder, "cli:ann")
        .await
        .unwrap();
    assert_eq!(released, Released::Free, "also before at least is over");
    assert_eq!(
        bench.locks.extend(&lock.name, lock.token, MINUTE).await.unwrap(),
        Extended::Lost
    );
    let query = "select actor, action, subject, detail->>'locked_by' from stationmaster.audit";
    let audit: Vec<(String, String, String, String)> = sqlx::query_as(query)
        .fetch_all(bench.testbed.pool())
        .await
        .unwrap();
    let line = (
        "cli:ann".to_owned(),
        "lock.release".to_owned(),
        "nightly".to_owned(),
        lock.holder.clone(),
    );
    assert_eq!(audit, [line]);
    assert_eq!(bench.rows().await.len(), 1, "the row stays");
    let next = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    assert!(next.token > lock.token);
}

#[tokio::test]
async fn a_lock_that_changed_hands_since_it_was_seen_is_left_alone() {
    let bench = Bench::new().await;
    let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    let before = bench.rows().await;
    assert_eq!(
        bench
            .locks
            .release("nightly", "java-host", "cli:ann")
            .await
            .unwrap(),
        Released::HeldByAnother(lock.holder.clone())
    );
    assert_eq!(
        bench.locks.release("unknown", "x", "cli:ann").await.unwrap(),
        Released::Unknown
    );
    assert_eq!(bench.rows().await, before);
    bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    assert_eq!(
        bench
            .locks
            .release("nightly", &lock.holder, "cli:ann")
            .await
            .unwrap(),
        Released::WasFree
    );
    assert_eq!(bench.testbed.count("audit").await, 0);
}

#[tokio::test]
async fn held_locks_are_listed_first() {
    let bench = Bench::new().await;
    let gone = bench.lock("a", MINUTE, Duration::ZERO).await;
    bench.locks.unlock(&gone.name, gone.token).await.unwrap();
    let held = bench.lock("b", MINUTE, Duration::ZERO).await;
    let listed = bench.locks.list().await.unwrap();
    let seen: Vec<_> = listed
        .iter()
        .map(|lock| (lock.name.as_str(), lock.held, lock.token))
        .collect();
    assert_eq!(
        seen,
        [("b", true, Some(held.token.0)), ("a", false, Some(gone.token.0))]
    );
    assert_eq!((&listed[0].by, listed[0].until), (&held.holder, Some(held.until)));
    assert!(bench.locks.find("a\0").await.unwrap().is_none());
}
