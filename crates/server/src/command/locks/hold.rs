//! A lock that is held while a command runs, had from the database or through a server, and kept alive either way.
//!
//! Lost means the same in both: an extension was refused, or none succeeded in time, by our own monotonic clock and counted from
//! before the last one that succeeded was sent. So a loss is told before somebody else can have the lock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use stationmaster_client::wire::{Acquired, LockRequest, Taken};
use stationmaster_client::{Client, Extended, Locked, Unlocked};
use stationmaster_core::locks::{self as core_locks, Answer, Kept, LockName, Locks, Terms};
use stationmaster_core::task::chain;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::super::Context;
use super::super::backend::Backend;

/// Extended three times as often as needed, so that two failures in a row lose nothing.
const PARTS: u32 = 3;
/// After an error it is tried again this soon.
const AGAIN: Duration = Duration::from_secs(1);

/// Who is asked for locks.
pub(super) enum Desk {
    Database(Locks),
    Api(Client),
}

/// What came of asking.
pub(super) enum Asked {
    Held(Hold),
    Taken(Taken),
}

/// What giving back found.
pub(super) enum Returned {
    /// It was ours to the end.
    Freed,
    /// It was not ours any more.
    Lost,
}

/// A lock that is held, and extended until it is given back or lost.
pub(super) enum Hold {
    Database(Box<Kept>),
    Api(Box<Remote>),
}

impl Desk {
    pub(super) async fn open(context: &Context) -> Result<Self> {
        Ok(match context.backend().await? {
            Backend::Database(direct) => Self::Database(direct.locks),
            Backend::Api(client) => Self::Api(*client),
        })
    }

    pub(super) async fn ask(&self, name: &LockName, terms: Terms, owner: &str) -> Result<Asked> {
        match self {
            Self::Database(locks) => Ok(match locks.lock(name, terms, owner).await? {
                Answer::Acquired(lock) => Asked::Held(Hold::Database(Box::new(locks.keep(lock)))),
                Answer::Taken(taken) => Asked::Taken(Taken {
                    by: taken.by,
                    until: taken.until,
                }),
            }),
            Self::Api(client) => {
                let request = LockRequest {
                    at_most: terms.at_most().as_secs_f64(),
                    at_least: terms.at_least().as_secs_f64(),
                    owner: Some(owner.to_owned()),
                };
                let asked_at = Instant::now();
                Ok(match client.acquire_lock(name.as_str(), &request).await? {
                    Locked::Acquired(lock) => {
                        let remote = Remote::start(client.clone(), lock, terms.at_most(), asked_at);
                        Asked::Held(Hold::Api(Box::new(remote)))
                    }
                    Locked::Taken(taken) => Asked::Taken(taken),
                })
            }
        }
    }
}

impl Hold {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Database(kept) => kept.lock().name.as_str(),
            Self::Api(remote) => &remote.lock.name,
        }
    }

    pub(super) fn token(&self) -> i64 {
        match self {
            Self::Database(kept) => kept.lock().token.0,
            Self::Api(remote) => remote.lock.token,
        }
    }

    pub(super) fn holder(&self) -> &str {
        match self {
            Self::Database(kept) => &kept.lock().holder,
            Self::Api(remote) => &remote.lock.holder,
        }
    }

    /// Waits until the lock is lost, and says why.
    pub(super) async fn lost(&self) -> String {
        match self {
            Self::Database(kept) => kept.lost().await,
            Self::Api(remote) => {
                remote.lost.cancelled().await;
                let why = remote.why.lock().unwrap_or_else(PoisonError::into_inner);
                why.clone()
            }
        }
    }

    /// Is it still ours, as far as our own clock can tell?
    pub(super) fn is_held(&self) -> bool {
        match self {
            Self::Database(kept) => kept.is_held(),
            Self::Api(remote) => {
                let ends_at = *remote.ends_at.lock().unwrap_or_else(PoisonError::into_inner);
                !remote.lost.is_cancelled() && Instant::now() < ends_at
            }
        }
    }

    /// One that was lost is left to whoever has it now.
    pub(super) async fn give_back(self) -> Result<Returned> {
        let not_held = match self {
            Self::Database(kept) => kept.unlock().await? == core_locks::Unlocked::NotHeld,
            Self::Api(remote) => {
                remote.task.abort();
                let Remote { client, lock, .. } = *remote;
                client.unlock(&lock.name, lock.token).await? == Unlocked::NotHeld
            }
        };
        Ok(if not_held { Returned::Lost } else { Returned::Freed })
    }
}

/// A lock of a server.
pub(super) struct Remote {
    client: Client,
    lock: Acquired,
    lost: CancellationToken,
    why: Arc<Mutex<String>>,
    /// By our own clock.
    ends_at: Arc<Mutex<Instant>>,
    task: JoinHandle<()>,
}

impl Remote {
    fn start(client: Client, lock: Acquired, at_most: Duration, asked_at: Instant) -> Self {
        let (lost, why) = (CancellationToken::new(), Arc::<Mutex<String>>::default());
        let ends_at = Arc::new(Mutex::new(asked_at + at_most));
        let task = tokio::spawn({
            let (client, lock) = (client.clone(), lock.clone());
            let (lost, why, ends_at) = (lost.clone(), Arc::clone(&why), Arc::clone(&ends_at));
            async move {
                let reason = keep(&client, &lock, at_most, &ends_at).await;
                *why.lock().unwrap_or_else(PoisonError::into_inner) = reason;
                lost.cancel();
            }
        });
        Self {
            client,
            lock,
            lost,
            why,
            ends_at,
            task,
        }
    }
}

/// Extends the lock until it is lost; answers why.
async fn keep(client: &Client, lock: &Acquired, at_most: Duration, until: &Mutex<Instant>) -> String {
    let mut next = *until.lock().unwrap_or_else(PoisonError::into_inner) - at_most + at_most / PARTS;
    let mut trouble = None;
    loop {
        let ends_at = *until.lock().unwrap_or_else(PoisonError::into_inner);
        sleep_until(next.min(ends_at)).await;
        let asked_at = Instant::now();
        let extension = client.extend_lock(&lock.name, lock.token, at_most);
        match timeout_at(ends_at, extension).await {
            Ok(Ok(Extended::Until(_))) => {
                trouble = None;
                *until.lock().unwrap_or_else(PoisonError::into_inner) = asked_at + at_most;
                next = asked_at + at_most / PARTS;
            }
            Ok(Ok(Extended::Lost)) => {
                return "it had run out, was released by hand, or somebody else has it".to_owned();
            }
            Ok(Err(error)) => {
                trouble = Some(chain(&error));
                next = asked_at + AGAIN;
            }
            Err(_) => {
                let reason = trouble.unwrap_or_else(|| "the server did not answer".to_owned());
                return format!("it could not be extended in time: {reason}");
            }
        }
    }
}
