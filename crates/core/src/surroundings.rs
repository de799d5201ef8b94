//! What a server lends to each of its lanes. Knows no lane.

use std::sync::Arc;
use std::time::Duration;

use crate::db::{self, Database};
use crate::engine::Contact;
use crate::engine::embedded::EmbeddedEngine;
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::presence::Presence;
use crate::task::chain;

/// Between two tries to reach the database during the start.
const PAUSE: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) database: Database,
    pub(crate) presence: Presence,
    /// The engine, and whether it answers.
    pub(crate) contact: Contact,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) bells: Bells,
}

impl Surroundings {
    /// Of a server of which nothing runs, for measuring one step of a lane by itself.
    pub(crate) fn alone(database: Database) -> Result<Self, reqwest::Error> {
        let presence = Presence::new("alone");
        let engine = Arc::new(EmbeddedEngine::new(database.clone(), presence.clone())?);
        let (metrics, bells) = (Arc::new(Metrics::new()), Bells::default());
        Ok(Self {
            contact: Contact::new(engine, Arc::clone(&metrics), bells.clone()),
            database,
            presence,
            metrics,
            bells,
        })
    }
}

/// A database that goes away while a server starts is waited for, as one that goes away later is.
pub(crate) async fn insist<T, F>(what: impl Fn() -> F) -> Result<T, db::Error>
where
    F: Future<Output = Result<T, db::Error>>,
{
    let mut said = false;
    loop {
        match what().await {
            Err(error) if error.is_away() => {
                if !said {
                    tracing::warn!(
                        error = chain(&error),
                        "The database went away during the start; waiting for it"
                    );
                    said = true;
                }
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}
