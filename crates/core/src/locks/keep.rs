//! Keep-alive: a lock that is extended for as long as somebody works under it, and whose loss is told at once.
//!
//! Lost means: an extension was refused, or none succeeded in time. The time is kept on our own monotonic clock, counted
//! from *before* the last extension that succeeded was sent; so whoever asks [`Kept::is_held`] is told the truth also right
//! after the process was stopped for a while, and never later than somebody else may take the lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Acquired, Error, Extended, Locks, Unlocked};
use crate::task::chain;

/// Extended three times as often as needed, so that two failures in a row lose nothing.
const PARTS: u32 = 3;
/// After an error it is tried again after this part of the time, and at least this soon.
const AGAIN_PARTS: u32 = 20;
const AGAIN_AT_LATEST: Duration = Duration::from_secs(1);

/// A lock that is kept alive. Dropped without [`Kept::unlock`], it runs out.
pub struct Kept {
    locks: Locks,
    lock: Acquired,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    lost: CancellationToken,
    held: Mutex<Held>,
}

struct Held {
    /// By our own clock.
    until: Instant,
    why_lost: String,
}

impl Kept {
    pub(super) fn start(locks: Locks, lock: Acquired) -> Self {
        let held = Held {
            until: lock.asked_at + lock.terms.at_most(),
            why_lost: String::new(),
        };
        let state = Arc::new(State {
            lost: CancellationToken::new(),
            held: Mutex::new(held),
        });
        let task = tokio::spawn(keep(locks.clone(), lock.clone(), Arc::clone(&state)));
        Self {
            locks,
            lock,
            state,
            task,
        }
    }

    /// The lock.
    #[must_use]
    pub fn lock(&self) -> &Acquired {
        &self.lock
    }

    /// Is it still ours, as far as anybody can know? To be asked before every step that the lock is for.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.state.lost.is_cancelled() && Instant::now() < self.state.held.lock().until
    }

    /// Waits until the lock is lost, and says why.
    pub async fn lost(&self) -> String {
        self.state.lost.cancelled().await;
        self.state.held.lock().why_lost.clone()
    }

    /// Gives the lock back. A lock that was lost is left to whoever has it now.
    pub async fn unlock(self) -> Result<Unlocked, Error> {
        self.task.abort();
        self.locks.unlock(&self.lock.name, self.lock.token).await
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(locks: Locks, lock: Acquired, state: Arc<State>) {
    let at_most = lock.terms.at_most();
    let mut next = lock.asked_at + at_most / PARTS;
    let mut trouble = None;
    let why = loop {
        let deadline = state.held.lock().until;
        sleep_until(next.min(deadline).into()).await;
        let asked_at = Instant::now();
        let extension = locks.extend(&lock.name, lock.token, at_most);
        match timeout_at(deadline.into(), extension).await {
            Ok(Ok(Extended::Until(until))) => {
                trouble = None;
                state.held.lock().until = asked_at + at_most;
                next = asked_at + at_most / PARTS;
                tracing::debug!(lock = %lock.name, token = lock.token.0, %until, "Lock extended");
            }
            Ok(Ok(Extended::Lost)) => {
                break "it had run out, was released by hand, or somebody else has it".to_owned();
            }
            Ok(Err(error)) => {
                let words = chain(&error);
                if trouble.is_none() {
                    tracing::warn!(lock = %lock.name, token = lock.token.0, error = words, "Could not extend a lock; trying again");
                }
                trouble = Some(words);
                next = asked_at + (at_most / AGAIN_PARTS).min(AGAIN_AT_LATEST);
            }
            Err(_) => {
                let reason = trouble.unwrap_or_else(|| "the database did not answer".to_owned());
                break format!("it could not be extended in time: {reason}");
            }
        }
    };
    tracing::warn!(lock = %lock.name, holder = lock.holder, token = lock.token.0, reason = why, "Lock lost");
    locks.metrics.lock_lost(lock.asked_at.elapsed());
    state.held.lock().why_lost = why;
    state.lost.cancel();
}
