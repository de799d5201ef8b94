//! Many at once: an unprotected counter comes out exact, and tokens grow in the order of the acquisitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use stationmaster_core::db::Database;
use stationmaster_core::locks::{LockTable, Locked, Locks, Terms, Unlocked};

use crate::support::{Bench, MINUTE, named};

const THREADS: usize = 8;
const ROUNDS: u64 = 100;

/// Counts like somebody who reads, thinks and writes: exact only when nobody else does so meanwhile.
#[derive(Default)]
struct Careless {
    count: AtomicU64,
    last_token: AtomicI64,
}

impl Careless {
    async fn add_one(&self, token: i64) {
        let read = self.count.load(Ordering::Relaxed);
        let before = self.last_token.load(Ordering::Relaxed);
        tokio::task::yield_now().await;
        assert!(token > before, "token {token} after {before}");
        self.last_token.store(token, Ordering::Relaxed);
        self.count.store(read + 1, Ordering::Relaxed);
    }
}

async fn rounds(locks: Locks, name: &'static str, counter: Arc<Careless>) {
    let (name, terms) = (named(name), Terms::new(MINUTE, Duration::ZERO).unwrap());
    let mut done = 0;
    while done < ROUNDS {
        let Locked::Acquired(lock) = locks.lock(&name, terms, "tester").await.unwrap() else {
            tokio::time::sleep(Duration::from_millis(rand::random_range(1..8))).await;
            continue;
        };
        counter.add_one(lock.token.0).await;
        assert_ne!(locks.unlock(&name, lock.token).await.unwrap(), Unlocked::NotHeld);
        done += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_threads_on_two_locks_count_exactly() {
    let bench = Bench::new().await;
    let database = Database::new(&bench.testbed.url, 16).unwrap();
    let locks = Locks::new(database, LockTable::default(), Arc::clone(&bench.metrics));
    let counters: [Arc<Careless>; 2] = Default::default();
    let mut threads = tokio::task::JoinSet::new();
    for _ in 0..THREADS {
        for (name, counter) in ["left", "right"].into_iter().zip(&counters) {
            threads.spawn(rounds(locks.clone(), name, Arc::clone(counter)));
        }
    }
    while let Some(thread) = threads.join_next().await {
        thread.unwrap();
    }
    let all = THREADS as u64 * ROUNDS;
    for counter in &counters {
        assert_eq!(counter.count.load(Ordering::Relaxed), all);
        assert_eq!(
            u64::try_from(counter.last_token.load(Ordering::Relaxed)).unwrap(),
            all
        );
    }
    assert_eq!(bench.metric("stationmaster_lock_acquisitions_total"), 2 * all);
    assert!(
        bench.metric("stationmaster_lock_acquisitions_skipped_total") > 0,
        "they met"
    );
    assert_eq!(bench.metric("shedlock_acquisition_failures"), 0);
}
