//! A server's background work, put together: the keepers first, then the lanes, and an end in order (I8).
//!
//! Keepers are what every server has, whichever lanes it runs: its heartbeat, its ear for notifications, the one prober of its
//! engine, and its readiness to count the minutes and to carry out operations. What a lane consists of, what it gives back and how, only the lane knows.

use std::sync::Arc;
use std::time::Duration;

use crate::alarms::{self, Alarms};
use crate::db::{self, Database};
use crate::dispatchers::{self, Dispatchers, supervisor};
use crate::engine::dispatchers::DispatcherEngine;
use crate::engine::{Contact, Engine, Obstacle, OtherEngine, Prober, Recognised};
use crate::executions::{self, Executions};
use crate::gauges::Gauges;
use crate::history::Historian;
use crate::id::ExecutionId;
use crate::listen::{self, Bells};
use crate::observe::Metrics;
use crate::obstacles::Obstacles;
use crate::operations::Operator;
use crate::pooler_watch::PoolerWatch;
use crate::presence::{Heartbeat, Presence};
use crate::surroundings::{Surroundings, insist};
use crate::task::{Bell, Pulse, Tasks, chain};
use crate::watch::{self, Outlook, Watch};

/// What a station is made of.
pub struct Parts {
    /// The database, migrated.
    pub database: Database,
    /// Who this server is.
    pub presence: Presence,
    /// Where executions run.
    pub engine: Arc<dyn Engine>,
    /// How the executions lane behaves; `None` switches it off.
    pub executions: Option<executions::Settings>,
    /// How the alarms lane behaves; `None` switches it off.
    pub alarms: Option<alarms::Setup>,
    /// The lane of dispatchers and signals; `None` switches it off.
    pub dispatchers: Option<dispatchers::Parts>,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
}

/// A running server's background work.
pub struct Station {
    around: Surroundings,
    /// End last.
    keepers: Tasks,
    executions: Option<Executions>,
    alarms: Option<Alarms>,
    dispatchers: Option<Dispatchers>,
    gauges: Gauges,
    outlook: Outlook,
    obstacles: Obstacles,
}

/// How long a server that starts waits for its engine to say who it is.
const MEETING: Duration = Duration::from_secs(3);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database.
    #[error(transparent)]
    Database(#[from] db::Error),
    /// The engine is another one than what is on record.
    #[error(transparent)]
    OtherEngine(#[from] OtherEngine),
}

/// Is the engine the one on record? One that does not answer now is asked again by the prober.
async fn meet_engine(around: &Surroundings) -> Result<(), StartError> {
    let meet = || around.contact.recognise(&around.database, around.presence.name());
    if let Ok(met) = tokio::time::timeout(MEETING, insist(meet)).await
        && let Recognised::Other(other) = met?
    {
        insist(|| around.presence.leave(&around.database)).await?;
        return Err(other.into());
    }
    Ok(())
}

/// What readiness is made of.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// Parts that are not ready, in words; empty: ready.
    pub problems: Vec<String>,
}

impl Station {
    /// Starts everything. Returns once the first heartbeat has been written, so that the server may act. Refused when the engine
    /// is not the one on record; an engine that does not answer is compared when it does, before anything is done with it.
    pub async fn start(parts: Parts) -> Result<Self, StartError> {
        let bells = Bells::default();
        let around = Surroundings {
            contact: Contact::new(parts.engine, Arc::clone(&parts.metrics), bells.clone()),
            database: parts.database,
            presence: parts.presence,
            metrics: parts.metrics,
            bells,
        };
        if parts.executions.is_none() {
            around.presence.stop_claiming();
        }
        insist(|| watch::follow_timeline(&around.database)).await?;
        let name = around.contact.engine.name();
        insist(|| around.presence.beat(&around.database, name, false)).await?;
        // Registered first: whoever changes engines sees this server, or this server sees the change.
        meet_engine(&around).await?;
        let outlook = Outlook::new();
        let keepers = keepers(&around, outlook.clone());
        let executions = parts
            .executions
            .map(|settings| Executions::start(settings, &around));
        let alarms = parts.alarms.map(|setup| Alarms::start(setup, &around));
        let dispatchers = match parts.dispatchers {
            Some(parts) => Some(Dispatchers::start(parts, &around).await?),
            None => None,
        };
        Ok(Self {
            around,
            keepers,
            executions,
            alarms,
            dispatchers,
            gauges: Gauges::default(),
            outlook,
            obstacles: Obstacles::default(),
        })
    }

    /// Work was enqueued by this very process: no need to wait for a notification.
    pub fn ring(&self) {
        self.around.bells.queue.ring();
    }

    /// Rings when tokens have changed.
    pub fn access_bell(&self) -> Bell {
        self.around.bells.access.clone()
    }

    /// Signals were sent by this very process: no need to wait for a notification.
    pub fn ring_for_signals(&self) {
        self.around.bells.signals.ring();
    }

    /// Compares dispatchers, heartbeats and the engine's runs now; `None` when this server has no such lane.
    pub async fn reconcile_dispatchers(
        &self,
        options: supervisor::Options,
        asked: supervisor::Asked<'_>,
    ) -> Option<Result<supervisor::Report, db::Error>> {
        let lane = self.dispatchers.as_ref()?;
        Some(lane.reconcile(options, asked).await)
    }

    /// The engine of the dispatchers, for status queries; `None` when this server has no such lane.
    pub fn dispatcher_engine(&self) -> Option<&Arc<dyn DispatcherEngine>> {
        self.dispatchers.as_ref().map(Dispatchers::engine)
    }

    /// What keeps a run from going on, when the engine knows and says so soon.
    pub async fn obstacle(&self, execution: ExecutionId) -> Option<Obstacle> {
        self.obstacles.of(execution, &self.around.contact).await
    }

    /// Who this server is.
    pub fn presence(&self) -> &Presence {
        &self.around.presence
    }

    /// The background tasks of this server, and how they are.
    pub fn pulses(&self) -> impl Iterator<Item = &Pulse> {
        let executions = self.executions.iter().flat_map(Executions::pulses);
        let alarms = self.alarms.iter().flat_map(Alarms::pulses);
        let dispatchers = self.dispatchers.iter().flat_map(Dispatchers::pulses);
        let keepers = self.keepers.pulses().iter();
        keepers.chain(executions).chain(alarms).chain(dispatchers)
    }

    /// Is everything there that this server needs?
    ///
    /// It is told from what the tasks have seen: however often it is asked for, and whatever the database does, it is answered at once.
    pub fn readiness(&self) -> Readiness {
        let contact = &self.around.contact;
        let mut problems = Vec::new();
        problems.extend(self.outlook.problem());
        problems.extend(db::no_room());
        if self.around.presence.holder().is_none() {
            if problems.is_empty() && self.around.database.is_pooled() {
                // The watch goes past the pooler, and has nothing to complain of.
                problems.push("the database answers by database_direct_url; by database_url, through the pooler, this server's heartbeat does not come through".to_owned());
            }
            problems.push("this server's lease has run out".to_owned());
        }
        if let Some(reason) = contact.breaker.reason() {
            problems.push(format!("the engine {} is away: {reason}", contact.engine.name()));
        }
        problems.extend(self.dispatchers.iter().flat_map(Dispatchers::problems));
        problems.extend(self.pulses().filter_map(|pulse| {
            let seconds = pulse.stalled()?.as_secs();
            let name = pulse.name;
            Some(format!(
                "the task {name} has not finished a round for {seconds} s"
            ))
        }));
        Readiness { problems }
    }

    /// Sets the gauges that tell how the database stands, before somebody reads the metrics.
    pub async fn measure(&self) {
        let around = &self.around;
        self.gauges.measure(&around.database, &around.metrics).await;
        let ready = self.readiness().problems.is_empty();
        around.metrics.standing.ready(ready);
    }

    /// Stops in order: no more claims, what is under way is finished or given back, the server leaves. What is not done
    /// by `deadline` is covered by its leases.
    pub async fn shut_down(&self, deadline: Duration) {
        self.around.presence.stop_claiming();
        self.executions.iter().for_each(Executions::stop);
        self.alarms.iter().for_each(Alarms::stop);
        let began = tokio::time::Instant::now();
        if let Some(lane) = &self.dispatchers {
            // First of all, so that a standby goes on while this server finishes what is in its hands.
            let _ = tokio::time::timeout(deadline.mul_f64(0.3), lane.leave()).await;
        }
        let drained = tokio::time::timeout(deadline.mul_f64(0.8), self.drained()).await;
        if drained.is_err() {
            tracing::warn!("Not everything under way could be finished in time; its leases cover the rest");
        }
        let left = deadline.saturating_sub(began.elapsed());
        if tokio::time::timeout(left, self.leave()).await.is_err() {
            tracing::warn!("Could not leave in time; the others will notice");
        }
        self.keepers.stop();
        let left = deadline
            .saturating_sub(began.elapsed())
            .min(Duration::from_secs(1));
        let _ = tokio::time::timeout(left, self.ended()).await;
    }

    async fn drained(&self) {
        if let Some(lane) = &self.executions {
            lane.drained().await;
        }
        if let Some(lane) = &self.alarms {
            lane.drained().await;
        }
    }

    async fn ended(&self) {
        self.keepers.ended().await;
        if let Some(lane) = &self.executions {
            lane.ended().await;
        }
        if let Some(lane) = &self.dispatchers {
            lane.ended().await;
        }
    }

    async fn leave(&self) {
        if let Some(lane) = &self.executions {
            lane.leave().await;
        }
        if let Some(lane) = &self.alarms {
            lane.leave().await;
        }
        if let Err(error) = self.around.presence.leave(&self.around.database).await {
            tracing::warn!(error = chain(&error), "Could not sign off");
        }
    }
}

/// What a server needs, whichever lanes it runs.
fn keepers(around: &Surroundings, outlook: Outlook) -> Tasks {
    let mut tasks = Tasks::default();
    let heartbeat = Heartbeat {
        presence: around.presence.clone(),
        bells: around.bells.clone(),
        database: around.database.clone(),
        engine: around.contact.engine.name(),
        breaker: Arc::clone(&around.contact.breaker),
    };
    tasks.spawn(around.bells.heartbeat.clone(), heartbeat);
    tasks.spawn_unrung(Watch::new(around.database.clone(), around.bells.clone(), outlook));
    if around.database.is_pooled() {
        tasks.spawn_unrung(PoolerWatch::new(around.database.clone(), around.bells.clone()));
    }
    tasks.spawn_unrung(Prober::new(
        around.contact.clone(),
        around.database.clone(),
        around.presence.name(),
    ));
    tasks.spawn_unrung(Historian::new(around.database.clone(), around.presence.clone()));
    tasks.spawn(around.bells.operations.clone(), Operator::new(around));
    let stop = tasks.stopped().clone();
    let listener = listen::run(around.database.clone(), around.bells.clone(), stop);
    tasks.tracker().spawn(listener);
    tasks
}
