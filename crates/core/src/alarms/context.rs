//! What the tasks of the alarms lane share.

use std::sync::Arc;

use parking_lot::Mutex;
use url::Url;

use super::{Settings, Setup, keys};
use crate::attention::Attention;
use crate::capacity::LowWater;
use crate::db::Database;
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::presence::Presence;
use crate::surroundings::Surroundings;
use crate::wake::Client;
use crate::wake::targets::Targets;

/// See the module.
#[derive(Clone)]
pub(crate) struct AlarmsContext {
    pub(crate) database: Database,
    pub(crate) presence: Presence,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) bells: Bells,
    pub(crate) client: Client,
    pub(crate) targets: Targets,
    pub(crate) router: Option<Url>,
    pub(crate) keyring: Arc<keys::Keyring>,
    /// From where to look for what is due, and for what is open: behind the rows that earlier claims left dead.
    pub(crate) due_from: Arc<Mutex<LowWater>>,
    pub(crate) ready_from: Arc<Mutex<LowWater>>,
    /// Whether those who set alarms need to ring.
    pub(crate) attention: Arc<Attention>,
}

impl AlarmsContext {
    pub(super) fn new(setup: Setup, around: &Surroundings) -> Self {
        let Setup { settings, client } = setup;
        Self {
            database: around.database.clone(),
            presence: around.presence.clone(),
            metrics: Arc::clone(&around.metrics),
            bells: around.bells.clone(),
            client,
            targets: Targets::new(settings.per_target),
            router: settings.router_target(),
            keyring: Arc::new(keys::Keyring::new(&settings)),
            due_from: Arc::new(Mutex::new(LowWater::new())),
            ready_from: Arc::new(Mutex::new(LowWater::new())),
            attention: Arc::new(Attention::new("alarms", "alarms", super::claim::ATTENTION)),
            settings: Arc::new(settings),
        }
    }
}
