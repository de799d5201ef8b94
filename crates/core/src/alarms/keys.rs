//! The secrets by which wakes are signed. The database knows which generation of secret a target has; the secrets themselves
//! are derived from the signing secret of the servers and stored nowhere. A target without one of its own is signed for
//! by the signing secret itself, which it then shares with the others.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use url::Url;

use super::Settings;
use crate::columns::{At, MaybeAt};
use crate::db::{self, Database, Read as _, statement};
use crate::wake::signature::Secret;
use crate::wake::targets::target_of;

/// A rotation reaches every server within this time.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Targets remembered.
const MOST: usize = 10_000;

/// The secrets of targets, and when they were read.
type Known = HashMap<String, (Instant, Arc<[Secret]>)>;

/// Knows the secrets of targets.
pub(crate) struct Keyring {
    /// The signing secret, and the one before.
    masters: Vec<Secret>,
    known: Mutex<Known>,
}

impl Keyring {
    pub(crate) fn new(settings: &Settings) -> Self {
        let masters = settings.signing_secret.iter().chain(&settings.previous_secret);
        Self {
            masters: masters.cloned().collect(),
            known: Mutex::default(),
        }
    }

    /// The secrets to sign with for a target, newest first; none when wakes are not signed.
    pub(crate) async fn secrets_of(
        &self,
        database: &Database,
        target: &str,
    ) -> Result<Arc<[Secret]>, db::Error> {
        if self.masters.is_empty() {
            return Ok(Arc::default());
        }
        if let Some((at, secrets)) = self.known.lock().get(target)
            && at.elapsed() < REMEMBERED
        {
            return Ok(Arc::clone(secrets));
        }
        let query = sqlx::query_as(statement!("alarms/keys")).bind(target);
        let own: Option<(i32, Option<bool>)> = query.maybe(database).await?;
        let secrets: Arc<[Secret]> = match own {
            None => self.masters.clone().into(),
            Some((generation, previous)) => {
                let generations = [
                    Some(generation),
                    (previous == Some(true)).then_some(generation - 1),
                ];
                let derived = generations.iter().flatten().flat_map(|generation| {
                    self.masters
                        .iter()
                        .map(|master| master.derive(target, *generation))
                });
                derived.collect()
            }
        };
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(target.to_owned(), (Instant::now(), Arc::clone(&secrets)));
        Ok(secrets)
    }
}

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has one.
    #[error("the target {0} has a secret of its own already")]
    Exists(String),
    /// It has none.
    #[error("the target {0} has no secret of its own")]
    NotFound(String),
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] db::Error),
}

/// A secret that was just made: shown now, and never again.
pub struct Made {
    /// Scheme, host and port.
    pub target: String,
    /// Counted from 1.
    pub generation: i32,
    /// The secret.
    pub secret: Secret,
}

/// Gives a target a secret of its own.
pub async fn create(database: &Database, master: &Secret, url: &Url) -> Result<Made, Error> {
    let target = target_of(url);
    let query = sqlx::query_scalar(statement!("alarms/key_create")).bind(&target);
    let generation: Option<i32> = query.maybe(database).await?;
    let Some(generation) = generation else {
        return Err(Error::Exists(target));
    };
    Ok(made(master, target, generation))
}

/// Gives a target its next secret. The one before signs beside it for as long as `overlap`.
pub async fn rotate(
    database: &Database,
    master: &Secret,
    url: &Url,
    overlap: Duration,
) -> Result<Made, Error> {
    let target = target_of(url);
    let query = sqlx::query_scalar(statement!("alarms/key_rotate"))
        .bind(&target)
        .bind(overlap.as_secs_f64());
    let generation: Option<i32> = query.maybe(database).await?;
    let Some(generation) = generation else {
        return Err(Error::NotFound(target));
    };
    Ok(made(master, target, generation))
}

fn made(master: &Secret, target: String, generation: i32) -> Made {
    let secret = master.derive(&target, generation);
    Made {
        target,
        generation,
        secret,
    }
}

/// A target that has a secret of its own.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Key {
    /// Scheme, host and port.
    pub target: String,
    /// Counted from 1.
    pub generation: i32,
    /// When the present one was made.
    #[sqlx(try_from = "At")]
    pub rotated_at: Timestamp,
    /// Until when the one before counts as well.
    #[sqlx(try_from = "MaybeAt")]
    pub previous_until: Option<Timestamp>,
}

/// The targets that have a secret of their own.
pub async fn list(database: &Database) -> Result<Vec<Key>, db::Error> {
    sqlx::query_as(statement!("alarms/key_list")).all(database).await
}
