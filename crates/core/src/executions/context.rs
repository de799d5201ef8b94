//! What the tasks of the executions lane share, and the claims in this server's hands.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::Settings;
use crate::attention::Attention;
use crate::capacity::LowWater;
use crate::db::Database;
use crate::engine::{Contact, Engine};
use crate::id::{ExecutionId, Token};
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::presence::Presence;
use crate::surroundings::Surroundings;

/// See the module.
#[derive(Clone)]
pub(crate) struct ExecutionsContext {
    pub(crate) database: Database,
    pub(crate) presence: Presence,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) contact: Contact,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) bells: Bells,
    pub(crate) in_flight: InFlight,
    pub(crate) low_water: Arc<Mutex<LowWater>>,
    /// Whose turn it is with the capacity rows: held by a claim while it has workspaces locked, and by a settlement that found
    /// them so.
    pub(crate) capacity_turn: Arc<tokio::sync::Mutex<()>>,
    /// The last claim saw only a few workspaces: claims and settlements would meet at them all the time, and whoever was
    /// served last would always be the one found locked. So they take turns.
    pub(crate) few_workspaces: Arc<AtomicBool>,
    /// Whether enqueuers need to ring.
    pub(crate) attention: Arc<Attention>,
    /// Cancelled when nothing more is taken on.
    pub(crate) stop: CancellationToken,
}

impl ExecutionsContext {
    pub(super) fn new(settings: Settings, around: &Surroundings, stop: CancellationToken) -> Self {
        Self {
            database: around.database.clone(),
            presence: around.presence.clone(),
            engine: Arc::clone(&around.contact.engine),
            contact: around.contact.clone(),
            metrics: Arc::clone(&around.metrics),
            settings: Arc::new(settings),
            bells: around.bells.clone(),
            in_flight: InFlight::default(),
            low_water: Arc::new(Mutex::new(LowWater::new())),
            capacity_turn: Arc::default(),
            few_workspaces: Arc::default(),
            attention: Arc::new(Attention::new("executions", "queue", super::claim::ATTENTION)),
            stop,
        }
    }

    /// The virtual time below which no workspace enters.
    pub(crate) fn floor(&self) -> f64 {
        self.low_water.lock().floor()
    }

    /// Who acts, in words for histories: this server.
    pub(crate) fn actor(&self) -> String {
        self.presence.id().to_string()
    }
}

/// The claims in this server's hands, for the renewer.
#[derive(Debug, Clone, Default)]
pub(crate) struct InFlight(Arc<Mutex<HashMap<ExecutionId, (Token, Instant)>>>);

impl InFlight {
    /// A claim is in our hands for as long as the answer lives: whatever becomes of it, a claim that nobody works on is
    /// not renewed, and its lease brings it back.
    pub(crate) fn take(&self, execution: ExecutionId, token: Token) -> Hold {
        self.0.lock().insert(execution, (token, Instant::now()));
        Hold {
            in_flight: self.clone(),
            execution,
            token,
        }
    }

    /// Claims that have been held for longer than `age`.
    pub(crate) fn older_than(&self, age: Duration) -> (Vec<ExecutionId>, Vec<Token>) {
        let map = self.0.lock();
        map.iter()
            .filter(|(_, (_, since))| since.elapsed() >= age)
            .map(|(id, (token, _))| (*id, *token))
            .unzip()
    }
}

/// A claim in our hands; dropping it lets go.
#[derive(Debug)]
pub(crate) struct Hold {
    in_flight: InFlight,
    execution: ExecutionId,
    token: Token,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut map = self.in_flight.0.lock();
        // By now the execution may be in our hands again, under a later claim.
        if map
            .get(&self.execution)
            .is_some_and(|(token, _)| *token == self.token)
        {
            map.remove(&self.execution);
        }
    }
}
