//! What a server lends to each of its lanes. Knows no lane.

use std::sync::Arc;

use crate::db::Database;
use crate::engine::Contact;
use crate::engine::embedded::EmbeddedEngine;
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::presence::Presence;

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
