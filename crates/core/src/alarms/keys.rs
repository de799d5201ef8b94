//! The secrets by which wakes are signed: one for the router and one for every target, so that what is signed for one of them
//! says nothing to another. They are derived from the signing secret of the servers, which itself signs nothing, and stored nowhere.
//! The database knows only which generation of secret somebody has: the first, unless it was rotated.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;

use super::Settings;
use crate::columns::{At, MaybeAt};
use crate::db::{self, Database, Read as _, statement};
use crate::wake::signature::Secret;
use crate::wake::targets::Recipient;

/// A rotation reaches every server within this time.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Recipients remembered.
const MOST: usize = 10_000;
/// What everybody has from the start.
const FIRST: i32 = 1;

/// The secrets of recipients, and when they were read.
type Known = HashMap<Recipient, (Instant, Arc<[Secret]>)>;

/// Knows the secrets of recipients.
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

    /// The secrets to sign with for a recipient, newest first; none when wakes are not signed.
    pub(crate) async fn secrets_of(
        &self,
        database: &Database,
        recipient: &Recipient,
    ) -> Result<Arc<[Secret]>, db::Error> {
        if self.masters.is_empty() {
            return Ok(Arc::default());
        }
        if let Some((at, secrets)) = self.known.lock().get(recipient)
            && at.elapsed() < REMEMBERED
        {
            return Ok(Arc::clone(secrets));
        }
        let (generation, previous) = generation_of(database, recipient).await?;
        let generations = [Some(generation), previous.then_some(generation - 1)];
        let derived = generations.iter().flatten().flat_map(|generation| {
            self.masters
                .iter()
                .map(|master| master.derive(recipient.as_str(), *generation))
        });
        let secrets: Arc<[Secret]> = derived.collect();
        let mut known = self.known.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(recipient.clone(), (Instant::now(), Arc::clone(&secrets)));
        Ok(secrets)
    }
}

/// Which generation a recipient has, and whether the one before counts as well.
async fn generation_of(database: &Database, recipient: &Recipient) -> Result<(i32, bool), db::Error> {
    let query = sqlx::query_as(statement!("alarms/keys")).bind(recipient.as_str());
    let rotated: Option<(i32, Option<bool>)> = query.maybe(database).await?;
    Ok(rotated.map_or((FIRST, false), |(generation, previous)| {
        (generation, previous == Some(true))
    }))
}

/// The secret of a recipient, as it is given to it.
pub struct Shown {
    /// The router, or scheme, host and port of a target.
    pub target: String,
    /// Counted from 1.
    pub generation: i32,
    /// The secret.
    pub secret: Secret,
}

/// The present secret of a recipient.
pub async fn show(database: &Database, master: &Secret, recipient: &Recipient) -> Result<Shown, db::Error> {
    let (generation, _) = generation_of(database, recipient).await?;
    Ok(shown(master, recipient, generation))
}

/// The first secret of a recipient, for whoever has no database to ask for its generation.
#[must_use]
pub fn first(master: &Secret, recipient: &Recipient) -> Secret {
    master.derive(recipient.as_str(), FIRST)
}

/// Gives a recipient its next secret. The one before signs beside it for as long as `overlap`.
pub async fn rotate(
    database: &Database,
    master: &Secret,
    recipient: &Recipient,
    overlap: Duration,
) -> Result<Shown, db::Error> {
    let query = sqlx::query_scalar(statement!("alarms/key_rotate"))
        .bind(recipient.as_str())
        .bind(overlap.as_secs_f64())
        .bind(FIRST + 1);
    let generation: i32 = query.one(database).await?;
    Ok(shown(master, recipient, generation))
}

fn shown(master: &Secret, recipient: &Recipient, generation: i32) -> Shown {
    Shown {
        target: recipient.as_str().to_owned(),
        generation,
        secret: master.derive(recipient.as_str(), generation),
    }
}

/// A recipient whose secret was rotated.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
pub struct Key {
    /// The router, or scheme, host and port of a target.
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

/// The recipients whose secrets were rotated; all others have their first.
pub async fn list(database: &Database) -> Result<Vec<Key>, db::Error> {
    sqlx::query_as(statement!("alarms/key_list")).all(database).await
}
