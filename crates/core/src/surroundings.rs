//! What a server lends to each of its lanes. Knows no lane.

use std::sync::Arc;

use crate::db::Database;
use crate::engine::Contact;
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
