//! Whether this server's engine answers: one breaker, told by everybody who speaks to the engine, and the one prober that asks an
//! engine which was away whether it is back, and one that nobody had to ask for a while whether it is still there.
//!
//! Whoever opens or closes the breaker says so, rings the claim loop, and lets the heartbeat tell the other servers. It stays open
//! until the engine is known to be the one on record, so nothing is claimed for another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use super::breaker::{Breaker, Change};
use super::{Engine, EngineUnavailable, OtherEngine, Reach, record};
use crate::db::{self, Database};
use crate::id::EngineId;
use crate::listen::Bells;
use crate::observe::Metrics;
use crate::task::{Next, Pass};

/// How often the prober looks at a breaker that is closed.
const LOOK: Duration = Duration::from_millis(200);
/// How long nobody may have heard from an engine that others share: without work nobody asks it, and a server would call itself ready.
const QUIET: Duration = Duration::from_secs(10);
/// How soon one is asked again that did not answer then.
const AGAIN: Duration = Duration::from_secs(1);
/// Which engine it is, before that is known.
const UNKNOWN: i32 = 0;

/// See the module.
#[derive(Clone)]
pub(crate) struct Contact {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) breaker: Arc<Breaker>,
    /// Which of the engines on record.
    known: Arc<AtomicI32>,
    metrics: Arc<Metrics>,
    bells: Bells,
}

/// What came of meeting an engine.
pub(crate) enum Recognised {
    /// It is the one on record.
    Ours,
    /// It is another one.
    Other(OtherEngine),
    /// It does not answer.
    Away(String),
}

impl Contact {
    pub(crate) fn new(engine: Arc<dyn Engine>, metrics: Arc<Metrics>, bells: Bells) -> Self {
        // What lives inside this server can be no other.
        let known = match engine.reach() {
            Reach::Local => record::INSIDE.0,
            Reach::Shared => UNKNOWN,
        };
        if known == UNKNOWN {
            engine.bind_to(None);
        }
        Self {
            engine,
            breaker: Arc::default(),
            known: Arc::new(AtomicI32::new(known)),
            metrics,
            bells,
        }
    }

    /// Which of the engines on record this server's is; `None`: that is not known, and nothing may be judged by what it says.
    pub(crate) fn engine_id(&self) -> Option<EngineId> {
        let known = self.known.load(Ordering::Acquire);
        (known != UNKNOWN).then_some(EngineId(known))
    }

    /// Asks the engine who it is and compares that with the record.
    pub(crate) async fn recognise(&self, database: &Database, by: &str) -> Result<Recognised, db::Error> {
        if self.engine_id().is_some() {
            return Ok(Recognised::Ours);
        }
        let identity = match self.engine.identity().await {
            Ok(identity) => identity,
            Err(error) => return Ok(Recognised::Away(error.reason().to_owned())),
        };
        Ok(
            match record::recognise(database, self.engine.name(), &identity, by).await? {
                Ok(id) => {
                    tracing::info!(
                        engine = self.engine.name(),
                        place = identity.place,
                        "This is the engine on record"
                    );
                    self.engine.bind_to(Some(&identity));
                    self.known.store(id.0, Ordering::Release);
                    Recognised::Ours
                }
                Err(other) => Recognised::Other(other),
            },
        )
    }

    /// Another engine has been put on record in the place of this server's: nothing more is done with it.
    pub(crate) fn superseded(&self) {
        if self.engine.reach() == Reach::Local {
            return;
        }
        self.known.store(UNKNOWN, Ordering::Release);
        self.engine.bind_to(None);
        let reason = "another engine has been put on record in its place";
        self.breaker.probe_failed(reason);
        self.bells.heartbeat.ring();
        self.tell_away(reason);
    }

    /// The engine answered, whatever it said.
    pub(crate) fn answered(&self) {
        if self.engine_id().is_some() && self.breaker.succeeded() == Change::Closed {
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
            Err(EngineUnavailable::Away(reason)) => self.away(reason),
            // It is there; whoever asked asks less often.
            Err(EngineUnavailable::Throttled(_)) => {}
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

/// Asks an engine that was away whether it is back, and a quiet one whether it is there.
pub(crate) struct Prober {
    contact: Contact,
    database: Database,
    /// Whose prober this is.
    name: String,
    asked: bool,
}

impl Prober {
    pub(crate) fn new(contact: Contact, database: Database, name: &str) -> Self {
        Self {
            contact,
            database,
            name: name.to_owned(),
            asked: false,
        }
    }

    /// Is it there, and is it the one on record?
    async fn ask(&self) -> Result<Result<(), String>, db::Error> {
        Ok(match self.contact.recognise(&self.database, &self.name).await? {
            Recognised::Ours => {
                let checked = self.contact.engine.check().await;
                checked.map_err(|error| error.reason().to_owned())
            }
            Recognised::Other(other) => Err(other.to_string()),
            Recognised::Away(reason) => Err(reason),
        })
    }
}

impl Pass for Prober {
    fn name(&self) -> &'static str {
        "prober"
    }

    async fn run_once(&mut self) -> Result<Next, db::Error> {
        let contact = &self.contact;
        if contact.breaker.is_closed() {
            let is_shared = contact.engine.reach() == Reach::Shared;
            if !is_shared || !contact.breaker.is_quiet_for(QUIET) {
                return Ok(Next::After(LOOK));
            }
            let answer = contact.engine.check().await;
            contact.heard(&answer);
            return Ok(Next::After(if answer.is_ok() { LOOK } else { AGAIN }));
        }
        let is_first = !std::mem::replace(&mut self.asked, true);
        match self.ask().await? {
            Ok(()) => {
                contact.answered();
                Ok(Next::After(LOOK))
            }
            Err(error) => {
                let is_news = is_first || contact.breaker.is_closed();
                let wait = contact.breaker.probe_failed(&error);
                if is_news {
                    contact.tell_away(&error);
                }
                Ok(Next::After(wait))
            }
        }
    }
}
