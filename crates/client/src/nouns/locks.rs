//! Named locks. That somebody else has a lock is no error: it is one of two answers.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;

use crate::Client;
use crate::error::{Error, Result};
use crate::wire::{
    Acquired, ExtendLock, Lock, LockExtended, LockQuery, LockRequest, Locks, Taken, UnlockAnswer,
};

/// What came of asking for a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locked {
    /// It is ours.
    Acquired(Acquired),
    /// Somebody else has it: skip, or ask again later.
    Taken(Taken),
}

/// What came of extending a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extended {
    /// It holds until then.
    Until(Timestamp),
    /// It had run out, or somebody else has it: it is not ours any more.
    Lost,
}

/// What came of giving a lock back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlocked {
    /// Anybody may take it now.
    Free,
    /// It was held for less than it must be; it is free at this time.
    FreeAt(Timestamp),
    /// It was not ours any more, and nothing has changed.
    NotHeld,
}

impl Client {
    /// The locks there are, those that are held first.
    pub async fn locks(&self) -> Result<Vec<Lock>> {
        let locks: Locks = self.get(&["locks"]).send().await?;
        Ok(locks.items)
    }

    /// One lock.
    pub async fn lock(&self, name: &str) -> Result<Lock> {
        self.get(&["locks", name]).send().await
    }

    /// Takes a lock when nobody has it; never waits for it.
    pub async fn acquire_lock(&self, name: &str, request: &LockRequest) -> Result<Locked> {
        match self.ask(&["locks", name], request).await {
            Ok(acquired) => Ok(Locked::Acquired(acquired)),
            Err(Error::Conflict(problem)) if problem.name() == "lock-taken" => {
                let nobody = Taken {
                    by: None,
                    until: None,
                };
                Ok(Locked::Taken(problem.taken.unwrap_or(nobody)))
            }
            Err(error) => Err(error),
        }
    }

    /// Holds a lock for `at_most` from now on, when it is still held under this token.
    pub async fn extend_lock(&self, name: &str, token: i64, at_most: Duration) -> Result<Extended> {
        let request = ExtendLock {
            token,
            at_most: at_most.as_secs_f64(),
        };
        let call = self.post(&["locks", name, "extend"]);
        match call.json(&request).send::<LockExtended>().await {
            Ok(extended) => Ok(Extended::Until(extended.until)),
            Err(Error::Conflict(problem)) if problem.name() == "lock-lost" => Ok(Extended::Lost),
            Err(error) => Err(error),
        }
    }

    /// Gives a lock back that is held under this token.
    pub async fn unlock(&self, name: &str, token: i64) -> Result<Unlocked> {
        let query = LockQuery {
            token: Some(token),
            holder: None,
        };
        match self.end_lock(name, &query).await {
            // A lock that is not even there is not held.
            Ok(UnlockAnswer { released: false, .. }) | Err(Error::NotFound(_)) => Ok(Unlocked::NotHeld),
            Ok(UnlockAnswer {
                free_at: Some(at), ..
            }) => Ok(Unlocked::FreeAt(at)),
            Ok(UnlockAnswer { .. }) => Ok(Unlocked::Free),
            Err(error) => Err(error),
        }
    }

    /// Frees a lock by hand, provided that it is still held by the one who was seen. Another holder is a conflict.
    pub async fn release_lock(&self, name: &str, seen: &str) -> Result<UnlockAnswer> {
        let query = LockQuery {
            token: None,
            holder: Some(seen.to_owned()),
        };
        self.end_lock(name, &query).await
    }

    async fn end_lock(&self, name: &str, query: &LockQuery) -> Result<UnlockAnswer> {
        self.call(Method::DELETE, &["locks", name])
            .query(query)
            .send()
            .await
    }
}
