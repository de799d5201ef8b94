//! The fencing token: grows with every acquisition of a name, whatever happened in between.

use std::time::Duration;

use crate::support::{Bench, MINUTE};

#[tokio::test]
async fn tokens_grow_with_every_acquisition_and_each_name_has_its_own() {
    let bench = Bench::new().await;
    let mut last = 0;
    for _ in 0..5 {
        let lock = bench.lock("nightly", MINUTE, Duration::ZERO).await;
        assert!(lock.token.0 > last, "{lock:?}");
        last = lock.token.0;
        bench.refused("nightly").await;
        bench.locks.unlock(&lock.name, lock.token).await.unwrap();
    }
    assert_eq!(last, 5, "a refusal takes no token");
    assert_eq!(bench.lock("another", MINUTE, Duration::ZERO).await.token.0, 1);
}

#[tokio::test]
async fn a_token_grows_also_when_somebody_without_tokens_held_the_lock_in_between() {
    let bench = Bench::new().await;
    let first = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    bench.locks.unlock(&first.name, first.token).await.unwrap();
    bench
        .testbed
        .run(
            "update shedlock set locked_by = 'java-host', locked_at = timezone('utc', now()),
              lock_until = timezone('utc', now()) + interval '1 minute'",
        )
        .await;
    let seen = bench.locks.find("nightly").await.unwrap().unwrap();
    assert_eq!((seen.held, seen.token), (true, None), "its holder has no token");
    bench.let_pass(MINUTE).await;
    let second = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    assert!(second.token > first.token);
    let seen = bench.locks.find("nightly").await.unwrap().unwrap();
    assert_eq!(seen.token, Some(second.token.0));
}

/// Somebody who cleans the shared table up must not turn the tokens back.
#[tokio::test]
async fn a_token_grows_also_when_the_row_was_deleted_by_hand() {
    let bench = Bench::new().await;
    let first = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    bench.testbed.run("delete from shedlock").await;
    let second = bench.lock("nightly", MINUTE, Duration::ZERO).await;
    assert!(second.token > first.token);
}
