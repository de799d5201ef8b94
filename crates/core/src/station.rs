//! A server's background work, put together: starts the tasks of the lanes and ends them in order (I8).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::capacity::LowWater;
use crate::db::{self, Database, statement, within};
use crate::dispatchers::{self, Dispatchers, Surroundings, supervisor};
use crate::engine::breaker::Breaker;
use crate::engine::{Engine, Reach};
use crate::executions::{
    Cancels, ExecutionsLane, Housekeeping, InFlight, LocalCloses, Prober, Reconcile, Recover, Renew,
    Settings, Shared, SharedCloses, Turns,
};
use crate::id::{ExecutionId, Token};
use crate::listen::{self, Bells};
use crate::observe::Metrics;
use crate::presence::{Heartbeat, Presence};
use crate::task::{Bell, Pulse, chain, spawn};
use crate::{alarms, engine, pipeline};

/// What a station is made of.
pub struct Parts {
    /// The database, migrated.
    pub database: Database,
    /// Who this server is.
    pub presence: Presence,
    /// Where executions run.
    pub engine: EngineChoice,
    /// How the executions lane behaves; `None` switches it off.
    pub executions: Option<Settings>,
    /// How the alarms lane behaves; `None` switches it off.
    pub alarms: Option<alarms::Setup>,
    /// The lane of dispatchers and signals; `None` switches it off.
    pub dispatchers: Option<dispatchers::Parts>,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
}

/// The engine of a server.
pub enum EngineChoice {
    /// The embedded one.
    Embedded(Arc<engine::embedded::EmbeddedEngine>),
    /// A service of its own.
    Outside(Arc<dyn Engine>),
}

impl EngineChoice {
    fn engine(&self) -> Arc<dyn Engine> {
        match self {
            Self::Embedded(engine) => Arc::clone(engine) as Arc<dyn Engine>,
            Self::Outside(engine) => Arc::clone(engine),
        }
    }
}

/// A running server's background work.
pub struct Station {
    shared: Shared,
    engine: EngineChoice,
    /// Stops the heartbeat and the passes that keep order; last.
    stop: CancellationToken,
    tracker: TaskTracker,
    flow: TaskTracker,
    with_alarms: bool,
    pulses: Vec<Pulse>,
    dispatchers: Option<Dispatchers>,
}

/// What readiness is made of.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// Parts that are not ready, in words; empty: ready.
    pub problems: Vec<String>,
}

/// A task that has been silent for longer than this is not making progress.
const SILENCE: Duration = Duration::from_secs(30);

impl Station {
    /// Starts everything. Returns once the first heartbeat has been written, so that the server may act.
    pub async fn start(parts: Parts) -> Result<Self, db::Error> {
        let Parts {
            database,
            presence,
            engine,
            executions,
            alarms,
            dispatchers,
            metrics,
        } = parts;
        let breaker = Arc::new(Breaker::default());
        let shared = Shared {
            engine: engine.engine(),
            database,
            presence,
            breaker,
            metrics,
            settings: Arc::new(executions.clone().unwrap_or_default()),
            bells: Bells::default(),
            in_flight: InFlight::default(),
            low_water: Arc::new(Mutex::new(LowWater::new())),
            gate: Arc::default(),
            few: Arc::default(),
            stop: CancellationToken::new(),
        };
        if executions.is_none() {
            shared.presence.stop_claiming();
        }
        shared
            .presence
            .beat(&shared.database, shared.engine.name(), false)
            .await?;
        let mut station = Self {
            engine,
            stop: CancellationToken::new(),
            tracker: TaskTracker::new(),
            flow: TaskTracker::new(),
            with_alarms: false,
            pulses: Vec::new(),
            dispatchers: None,
            shared,
        };
        station.spawn_keepers();
        if executions.is_some() || dispatchers.is_some() {
            station.spawn_prober();
        }
        if executions.is_some() {
            station.spawn_executions();
        }
        if let Some(setup) = alarms {
            station.spawn_alarms(setup);
        }
        if let Some(parts) = dispatchers {
            station.spawn_dispatchers(parts).await?;
        }
        Ok(station)
    }

    fn spawn_keepers(&mut self) {
        let shared = &self.shared;
        let heartbeat = Heartbeat {
            presence: shared.presence.clone(),
            database: shared.database.clone(),
            engine: shared.engine.name(),
            breaker: Arc::clone(&shared.breaker),
        };
        self.pulses.push(spawn(
            &self.tracker,
            &self.stop,
            shared.bells.heartbeat.clone(),
            heartbeat,
        ));
        // The engine is somebody that this server needs, whichever lanes it runs.
        let prober = Prober {
            shared: shared.clone(),
            asked: false,
        };
        self.pulses
            .push(spawn(&self.tracker, &self.stop, Bell::default(), prober));
        let listener = listen::run(shared.database.clone(), shared.bells.clone(), self.stop.clone());
        self.tracker.spawn(listener);
    }

    fn spawn_prober(&mut self) {
        let prober = Prober {
            shared: self.shared.clone(),
            asked: false,
        };
        self.pulses
            .push(spawn(&self.tracker, &self.stop, Bell::default(), prober));
    }

    async fn spawn_dispatchers(&mut self, parts: dispatchers::Parts) -> Result<(), db::Error> {
        let shared = &self.shared;
        let around = Surroundings {
            database: &shared.database,
            presence: &shared.presence,
            breaker: &shared.breaker,
            metrics: &shared.metrics,
            signals: shared.bells.signals.clone(),
            tracker: &self.tracker,
            intake: &shared.stop,
        };
        let lane = Dispatchers::start(parts, around).await?;
        self.pulses.extend(lane.pulses.iter().cloned());
        self.dispatchers = Some(lane);
        Ok(())
    }

    fn spawn_executions(&mut self) {
        let shared = &self.shared;
        let (tracker, stop) = (&self.tracker, &self.stop);
        let bell = Bell::default;
        self.pulses.push(spawn(
            tracker,
            stop,
            bell(),
            Renew {
                shared: shared.clone(),
            },
        ));
        // These take on work, so they end with the intake.
        let (flow, intake) = (&self.flow, &shared.stop);
        self.pulses.push(match &shared.settings.exclusive {
            None => {
                let lane = Arc::new(ExecutionsLane::new(shared.clone()));
                let parallel = shared.settings.start_concurrency;
                pipeline::run(flow, intake, lane, shared.bells.queue.clone(), parallel)
            }
            // A fixed delay: nothing rings this bell.
            Some(exclusive) => spawn(flow, intake, bell(), Turns::new(shared.clone(), exclusive)),
        });
        self.pulses
            .push(spawn(flow, intake, bell(), Recover::new(shared.clone())));
        self.pulses.push(spawn(
            flow,
            intake,
            shared.bells.cancel.clone(),
            Cancels {
                shared: shared.clone(),
            },
        ));
        self.pulses
            .push(spawn(flow, intake, bell(), Housekeeping::new(shared.clone())));
        match shared.engine.reach() {
            Reach::Local => {
                let closes = LocalCloses {
                    shared: shared.clone(),
                    unwritten: Vec::new(),
                    failures: 0,
                };
                self.pulses.push(spawn(flow, intake, bell(), closes));
            }
            Reach::Shared => {
                let closes = SharedCloses {
                    shared: shared.clone(),
                    since: None,
                };
                self.pulses.push(spawn(flow, intake, bell(), closes));
                self.pulses
                    .push(spawn(flow, intake, bell(), Reconcile::new(shared.clone())));
            }
        }
    }

    fn spawn_alarms(&mut self, setup: alarms::Setup) {
        let parallel = setup.parallel();
        let shared = alarms::Shared::new(
            self.shared.database.clone(),
            self.shared.presence.clone(),
            Arc::clone(&self.shared.metrics),
            setup,
            self.shared.bells.clone(),
        );
        let (flow, intake) = (&self.flow, &self.shared.stop);
        let bells = &self.shared.bells;
        let lane = Arc::new(alarms::AlarmsLane::new(shared.clone()));
        self.pulses
            .push(pipeline::run(flow, intake, lane, bells.alarms.clone(), parallel));
        let planner = alarms::Planner::new(shared.clone());
        self.pulses
            .push(spawn(flow, intake, bells.planner.clone(), planner));
        let recover = alarms::Recover {
            shared: shared.clone(),
        };
        self.pulses.push(spawn(flow, intake, Bell::default(), recover));
        self.pulses.push(spawn(
            flow,
            intake,
            Bell::default(),
            alarms::Housekeeping { shared },
        ));
        self.with_alarms = true;
    }

    /// Work was enqueued by this very process: no need to wait for a notification.
    pub fn ring(&self) {
        self.shared.bells.queue.ring();
    }

    /// Rings when tokens have changed.
    pub fn access_bell(&self) -> Bell {
        self.shared.bells.access.clone()
    }

    /// Signals were sent by this very process: no need to wait for a notification.
    pub fn ring_for_signals(&self) {
        self.shared.bells.signals.ring();
    }

    /// Compares dispatchers, heartbeats and the engine's runs now; `None` when this server has no such lane.
    pub async fn reconcile_dispatchers(
        &self,
        options: supervisor::Options,
        actor: &str,
    ) -> Option<Result<supervisor::Report, db::Error>> {
        let lane = self.dispatchers.as_ref()?;
        Some(lane.reconcile(options, actor).await)
    }

    /// The engine of the dispatchers, for status queries; `None` when this server has no such lane.
    pub fn dispatcher_engine(&self) -> Option<&Arc<dyn dispatchers::contract::DispatcherEngine>> {
        self.dispatchers.as_ref().map(Dispatchers::engine)
    }

    /// Who this server is.
    pub fn presence(&self) -> &Presence {
        &self.shared.presence
    }

    /// Is everything there that this server needs?
    pub async fn readiness(&self) -> Readiness {
        let mut problems = Vec::new();
        if let Err(error) = self.shared.database.check_schema().await {
            problems.push(chain(&error));
        }
        if self.shared.presence.holder().is_none() {
            problems.push("this server's lease has run out".to_owned());
        }
        if let Some(reason) = self.shared.breaker.reason() {
            problems.push(format!(
                "the engine {} is away: {reason}",
                self.shared.engine.name()
            ));
        }
        problems.extend(self.dispatchers.iter().flat_map(Dispatchers::problems));
        let silent = self
            .pulses
            .iter()
            .filter(|pulse| pulse.silence() > SILENCE && waits_for_nothing(pulse));
        problems.extend(silent.map(|pulse| {
            format!(
                "the task {} has not finished a round for {} s",
                pulse.name,
                pulse.silence().as_secs()
            )
        }));
        Readiness { problems }
    }

    /// Stops in order: no more claims, what is under way is finished or given back, the server leaves. What is not done
    /// by `deadline` is covered by its leases.
    pub async fn shut_down(&self, deadline: Duration) {
        let presence = self.shared.presence.clone();
        presence.stop_claiming();
        self.shared.stop.cancel();
        self.flow.close();
        let began = tokio::time::Instant::now();
        if let Some(lane) = &self.dispatchers {
            // First of all, so that a standby goes on while this server finishes what is in its hands.
            let _ = tokio::time::timeout(deadline.mul_f64(0.3), lane.leave()).await;
        }
        let drained = tokio::time::timeout(deadline.mul_f64(0.8), self.flow.wait())
            .await
            .is_ok();
        if !drained {
            tracing::warn!("Not everything under way could be finished in time; its leases cover the rest");
        }
        let left = deadline.saturating_sub(began.elapsed());
        if tokio::time::timeout(left, self.leave()).await.is_err() {
            tracing::warn!("Could not leave in time; the others will notice");
        }
        self.stop.cancel();
        self.tracker.close();
        let left = deadline
            .saturating_sub(began.elapsed())
            .min(Duration::from_secs(1));
        let _ = tokio::time::timeout(left, self.tracker.wait()).await;
    }

    async fn leave(&self) {
        if let EngineChoice::Embedded(engine) = &self.engine {
            engine.abandon_all();
        }
        if let Err(error) = self.hand_over().await {
            tracing::warn!(
                error = chain(&error),
                "Could not give back what is in hand; recovery will"
            );
        }
        let inattention = sqlx::query(statement!("attention/look_away"))
            .bind("executions")
            .bind("queue")
            .bind(self.shared.floor());
        if let Err(error) = within(inattention.execute(self.shared.database.pool())).await {
            tracing::warn!(error = chain(&error), "Could not tell the others to look");
        }
        let inattention = sqlx::query(statement!("attention/look_away"))
            .bind("alarms")
            .bind("alarms")
            .bind(None::<f64>);
        if self.with_alarms
            && let Err(error) = within(inattention.execute(self.shared.database.pool())).await
        {
            tracing::warn!(
                error = chain(&error),
                "Could not tell the others to look at the alarms"
            );
        }
        if let Err(error) = self.shared.presence.leave(&self.shared.database).await {
            tracing::warn!(error = chain(&error), "Could not sign off");
        }
    }

    /// Runs of the embedded engine go back to the queue; another server, or the next start of this one, goes on with them.
    async fn hand_over(&self) -> Result<(), db::Error> {
        if self.shared.engine.reach() != Reach::Local {
            return Ok(());
        }
        let query = sqlx::query_as(statement!("executions/held_by")).bind(self.shared.presence.id());
        let held: Vec<(ExecutionId, Token, String)> =
            within(query.fetch_all(self.shared.database.pool())).await?;
        if held.is_empty() {
            return Ok(());
        }
        let handed = crate::executions::hand_over(&self.shared, &held).await?;
        tracing::info!(executions = handed, "Gave running executions back to the queue");
        Ok(())
    }
}

/// The watcher of a local engine's closes sleeps until there is one; its silence means nothing.
fn waits_for_nothing(pulse: &Pulse) -> bool {
    pulse.name != "closes"
}
