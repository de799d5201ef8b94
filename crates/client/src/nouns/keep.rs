//! A lock that is kept: extended for as long as somebody works under it, and its loss told at once.
//!
//! Lost means: an extension was refused, or none succeeded in time, by our own monotonic clock and counted from before the
//! last one that succeeded was sent. So a loss is told before somebody else can have the lock.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::locks::{Extended, Locked, Unlocked};
use crate::Client;
use crate::error::Result;
use crate::wire::{Acquired, LockRequest, Taken};

/// Extended three times as often as needed, so that two failures in a row lose nothing.
const PARTS: u32 = 3;
/// After an error it is tried again after this part of the time, and at least this soon.
const AGAIN_PARTS: u32 = 20;
const AGAIN_AT_LATEST: Duration = Duration::from_secs(1);

/// What came of asking for a lock to keep.
pub enum Asked {
    /// It is ours, and extended until it is given back or lost.
    Held(Box<KeptLock>),
    /// Somebody else has it: skip, or ask again later.
    Taken(Taken),
}

/// A lock that is extended until it is given back or lost. Dropped without [`KeptLock::give_back`], it runs out.
pub struct KeptLock {
    client: Client,
    lock: Acquired,
    state: watch::Receiver<State>,
    task: JoinHandle<()>,
}

/// Where it stands.
#[derive(Debug, Clone)]
enum State {
    /// Until then, by our own clock.
    Held(Instant),
    /// And why.
    Lost(String),
}

impl Client {
    /// Takes a lock when nobody has it, and keeps it.
    pub async fn keep_lock(&self, name: &str, request: &LockRequest) -> Result<Asked> {
        let asked_at = Instant::now();
        let lock = match self.acquire_lock(name, request).await? {
            Locked::Acquired(lock) => lock,
            Locked::Taken(taken) => return Ok(Asked::Taken(taken)),
        };
        // The server has taken it, so it is a time.
        let at_most = Duration::try_from_secs_f64(request.at_most).unwrap_or_default();
        let (sender, state) = watch::channel(State::Held(asked_at + at_most));
        let (client, kept) = (self.clone(), lock.clone());
        let task = tokio::spawn(async move {
            let why = keep(&client, &kept, at_most, asked_at, &sender).await;
            sender.send_replace(State::Lost(why));
        });
        let client = self.clone();
        let kept = KeptLock {
            client,
            lock,
            state,
            task,
        };
        Ok(Asked::Held(Box::new(kept)))
    }
}

impl KeptLock {
    /// The lock: its name, and the token to say with every write.
    #[must_use]
    pub fn lock(&self) -> &Acquired {
        &self.lock
    }

    /// Is it still ours, as far as anybody can know? To be asked before every step that the lock is for.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(&*self.state.borrow(), State::Held(until) if Instant::now() < *until)
    }

    /// Waits until the lock is lost, and says why.
    pub async fn lost(&self) -> String {
        let mut state = self.state.clone();
        let lost = state.wait_for(|state| matches!(state, State::Lost(_))).await;
        match lost.as_deref() {
            Ok(State::Lost(why)) => why.clone(),
            // Only the end of the runtime ends the task without a word.
            _ => "nobody keeps it any more".to_owned(),
        }
    }

    /// Gives the lock back, and tells whether it was ours to the end. A lock that was lost is left to whoever has it now.
    pub async fn give_back(self) -> Result<Unlocked> {
        self.task.abort();
        self.client.unlock(&self.lock.name, self.lock.token).await
    }
}

impl Drop for KeptLock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Extends the lock until it is lost; answers why.
async fn keep(
    client: &Client,
    lock: &Acquired,
    at_most: Duration,
    asked_at: Instant,
    state: &watch::Sender<State>,
) -> String {
    let (mut until, mut next) = (asked_at + at_most, asked_at + at_most / PARTS);
    let mut trouble = None;
    loop {
        sleep_until(next.min(until)).await;
        let asked_at = Instant::now();
        if asked_at >= until {
            let reason = trouble.unwrap_or_else(|| "nobody answered".to_owned());
            return format!("it could not be extended in time: {reason}");
        }
        let extension = client.extend_lock(&lock.name, lock.token, at_most);
        match timeout_at(until, extension).await {
            Ok(Ok(Extended::Until(_))) => {
                trouble = None;
                until = asked_at + at_most;
                next = asked_at + at_most / PARTS;
                state.send_replace(State::Held(until));
            }
            Ok(Ok(Extended::Lost)) => {
                return "it had run out, was released by hand, or somebody else has it".to_owned();
            }
            Ok(Err(error)) => {
                trouble = Some(error.to_string());
                next = asked_at + (at_most / AGAIN_PARTS).min(AGAIN_AT_LATEST);
            }
            // Its time is over, which is seen above.
            Err(_) => {}
        }
    }
}
