//! Whether this server's engine answers: one breaker, told by everybody who speaks to the engine, and the one prober that asks an
//! engine which was away whether it is back.
//!
//! Whoever opens or closes the breaker says so, rings the claim loop, and lets the heartbeat tell the other servers.

use std::sync::Arc;
use std::time::Duration;

use super::breaker::{Breaker, Change};
use super::{Engine, EngineUnavailable};
use crate::db;
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::task::{Next, Pass};

/// How often the prober looks at a breaker that is closed.
const LOOK: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Clone)]
pub(crate) struct Contact {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) breaker: Arc<Breaker>,
    metrics: Arc<Metrics>,
    bells: Bells,
}

impl Contact {
    pub(crate) fn new(engine: Arc<dyn Engine>, metrics: Arc<Metrics>, bells: Bells) -> Self {
        Self {
            engine,
            breaker: Arc::default(),
            metrics,
            bells,
        }
    }

    /// The engine answered, whatever it said.
    pub(crate) fn answered(&self) {
        if self.breaker.succeeded() == Change::Closed {
            self.metrics.engine_breaker(false);
            tracing::info!(engine = self.engine.name(), "The engine answers; claims go on");
            self.bells.queue.ring();
            self.bells.heartbeat.ring();
        }
    }

    /// The engine did not answer.
    pub(crate) fn away(&self, reason: &str) {
        if self.breaker.failed(reason) == Change::Opened {
            self.bells.heartbeat.ring();
            self.tell_away(reason);
        }
    }

    /// Takes note of an answer, or of none.
    pub(crate) fn heard<T>(&self, answer: &Result<T, EngineUnavailable>) {
        match answer {
            Ok(_) => self.answered(),
            Err(error) => self.away(&error.0),
        }
    }

    fn tell_away(&self, reason: &str) {
        self.metrics.engine_breaker(true);
        tracing::error!(
            engine = self.engine.name(),
            error = reason,
            "The engine is away; claims are held back"
        );
    }
}

/// Asks an engine that was away whether it is back.
pub(crate) struct Prober {
    contact: Contact,
    asked: bool,
}

impl Prober {
    pub(crate) fn new(contact: Contact) -> Self {
        Self {
            contact,
            asked: false,
        }
    }
}

impl Pass for Prober {
    fn name(&self) -> &'static str {
        "prober"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let contact = &self.contact;
        if contact.breaker.is_closed() {
            return Ok(Next::After(LOOK));
        }
        let is_first = !std::mem::replace(&mut self.asked, true);
        match contact.engine.check().await {
            Ok(()) => {
                contact.answered();
                Ok(Next::After(LOOK))
            }
            Err(error) => {
                let is_news = is_first || contact.breaker.is_closed();
                let wait = contact.breaker.probe_failed(&error.0);
                if is_news {
                    contact.tell_away(&error.0);
                }
                Ok(Next::After(wait))
            }
        }
    }
}
