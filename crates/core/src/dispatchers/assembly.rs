//! The dispatchers of this server, put together: what their tasks share, which of them run, and how it ends in order (I8).

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use parking_lot::Mutex;

use super::desk::ServerDesk;
use super::heartbeats::postgres::PostgresHeartbeats;
use super::heartbeats::redis::RedisHeartbeats;
use super::heartbeats::{Beats, Health, Heartbeats};
use super::herald::Herald;
use super::looks::Looks;
use super::ownership::{Held, Keep, Ownership};
use super::runs::Runs;
use super::supervisor::{self, Office, Supervise};
use super::{DispatcherId, Settings};
use crate::db::{self, Database, Read as _, Write as _, statement};
use crate::engine::dispatchers::{DispatcherEngine, Run};
use crate::engine::{Contact, Reach};
use crate::observe::{Metrics, trace};
use crate::presence::Presence;
use crate::signals;
use crate::surroundings::{Surroundings, insist};
use crate::task::{Bell, Pulse, Rest, Tasks, chain};

/// What the lane is made of.
pub struct Parts {
    /// How it behaves.
    pub settings: Settings,
    /// Where runs are.
    pub engine: Arc<dyn DispatcherEngine>,
    /// Where heartbeats are kept.
    pub heartbeats: HeartbeatChoice,
    /// Who else is told of takeovers, evictions and terminations.
    pub webhook: Option<Webhook>,
}

/// Where heartbeats are kept.
pub enum HeartbeatChoice {
    /// In the database.
    Postgres,
    /// In Redis.
    Redis(Arc<RedisHeartbeats>),
}

impl HeartbeatChoice {
    /// The store itself.
    #[must_use]
    pub fn store(&self, database: &Database) -> Arc<dyn Heartbeats> {
        match self {
            Self::Postgres => Arc::new(PostgresHeartbeats {
                database: database.clone(),
            }),
            Self::Redis(store) => Arc::clone(store) as Arc<dyn Heartbeats>,
        }
    }
}

/// Where events are posted.
#[derive(Clone)]
pub struct Webhook {
    /// The address.
    pub url: String,
    /// The key that signs; `None`: unsigned.
    pub secret: Option<crate::wake::signature::Secret>,
}

/// The bells of the lane.
#[derive(Debug, Clone, Default)]
pub(super) struct Bells {
    pub(super) runs: Bell,
    pub(super) beat: Bell,
    pub(super) keep: Bell,
}

/// What the tasks of this lane share.
#[derive(Clone)]
pub(super) struct DispatchersContext {
    pub(super) database: Database,
    pub(super) presence: Presence,
    pub(super) contact: Contact,
    pub(super) metrics: Arc<Metrics>,
    pub(super) settings: Arc<Settings>,
    pub(super) engine: Arc<dyn DispatcherEngine>,
    pub(super) heartbeats: Arc<dyn Heartbeats>,
    pub(super) health: Health,
    pub(super) ownership: Ownership,
    pub(super) bells: Bells,
    /// Dispatchers that have not been told yet that this server stands by.
    pub(super) newcomers: Arc<Mutex<Vec<DispatcherId>>>,
}

/// The running lane.
pub(crate) struct Dispatchers {
    context: DispatchersContext,
    office: Office,
    /// What takes, keeps and looks after the dispatchers of this server.
    owner: Tasks,
    /// What looks after those of others as well.
    watch: Tasks,
}

/// The longest that leaving one dispatcher may take, and each step of it that others have to answer.
const LEAVE: Duration = Duration::from_secs(5);
const MOMENT: Duration = Duration::from_secs(1);
const PARALLEL: usize = 16;

impl Dispatchers {
    pub(crate) async fn start(parts: Parts, around: &Surroundings) -> Result<Self, db::Error> {
        let Parts {
            settings,
            engine,
            heartbeats,
            webhook,
        } = parts;
        let database = around.database.clone();
        let settings = Arc::new(settings);
        // Announcements and runs are looked after by the same pass, so a signal rings it directly; and that which takes what nobody owns.
        let bells = Bells {
            runs: around.bells.signals.clone(),
            keep: around.bells.dispatchers.clone(),
            ..Bells::default()
        };
        let context = DispatchersContext {
            heartbeats: heartbeats.store(&database),
            presence: around.presence.clone(),
            contact: around.contact.clone(),
            metrics: Arc::clone(&around.metrics),
            settings: Arc::clone(&settings),
            engine: Arc::clone(&engine),
            health: Health::default(),
            ownership: Ownership::default(),
            bells,
            newcomers: Arc::default(),
            database,
        };
        let office = Office {
            database: context.database.clone(),
            engine,
            heartbeats: Arc::clone(&context.heartbeats),
            health: context.health.clone(),
            settings,
            metrics: Arc::clone(&context.metrics),
        };
        let mut lane = Self {
            context,
            office,
            owner: Tasks::default(),
            watch: Tasks::default(),
        };
        lane.spawn_watch(webhook);
        if lane.context.settings.enabled {
            insist(|| lane.ensure()).await?;
            lane.spawn_owner();
        }
        Ok(lane)
    }

    pub(crate) fn pulses(&self) -> impl Iterator<Item = &Pulse> {
        self.owner.pulses().iter().chain(self.watch.pulses())
    }

    /// Makes the dispatchers that the settings name.
    async fn ensure(&self) -> Result<(), db::Error> {
        let (projects, queues): (Vec<String>, Vec<String>) =
            self.context.settings.projects.iter().cloned().unzip();
        let query = sqlx::query(statement!("dispatchers/ensure"))
            .bind(projects)
            .bind(queues);
        query.run(&self.context.database).await?;
        Ok(())
    }

    /// Tasks that look after what others own as well; they run on every server.
    fn spawn_watch(&mut self, webhook: Option<Webhook>) {
        let (context, watch) = (&self.context, &mut self.watch);
        watch.spawn_unrung(Supervise::new(self.office.clone(), context.presence.clone()));
        watch.spawn_unrung(signals::Housekeeping {
            database: context.database.clone(),
            presence: context.presence.clone(),
            retention: context.settings.retention,
            rest: Rest::default(),
        });
        if let Some(webhook) = webhook {
            match Herald::new(context.database.clone(), context.presence.clone(), webhook) {
                Ok(herald) => watch.spawn_unrung(herald),
                Err(error) => tracing::error!(%error, "The webhook of dispatchers cannot be used"),
            }
        }
    }

    fn spawn_owner(&mut self) {
        let context = &self.context;
        let desk = ServerDesk {
            database: context.database.clone(),
            ownership: context.ownership.clone(),
            settings: Arc::clone(&context.settings),
            metrics: Arc::clone(&context.metrics),
            looks: Looks::default(),
            spared: Mutex::default(),
        };
        context.engine.open(Arc::new(desk));
        let (bells, share) = (context.bells.clone(), || context.clone());
        self.owner.spawn(
            bells.keep,
            Keep {
                context: share(),
                renewed_at: None,
                gave_up: false,
            },
        );
        self.owner.spawn(bells.runs, Runs::new(share()));
        self.owner.spawn(bells.beat, Beats::new(share()));
    }

    /// What is not as it should be, in words.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = self.context.health.problem().into_iter().collect();
        let without_run = self.context.ownership.held().into_iter().filter_map(|held| {
            let problem = held.problem?;
            Some(format!(
                "the dispatcher {} has no run: {problem}",
                held.tenure.dispatcher_id
            ))
        });
        problems.extend(without_run.take(3));
        problems
    }

    /// Reconciles by hand.
    pub(crate) async fn reconcile(
        &self,
        options: supervisor::Options,
        asked: supervisor::Asked<'_>,
    ) -> Result<supervisor::Report, db::Error> {
        supervisor::reconcile(&self.office, options, asked).await
    }

    /// The engine, for status queries.
    pub(crate) fn engine(&self) -> &Arc<dyn DispatcherEngine> {
        &self.context.engine
    }

    /// Leaves in order: takes nothing more, ends its own runs and no others, hands over, and stands by nothing any more.
    pub(crate) async fn leave(&self) {
        self.watch.stop();
        self.owner.stop();
        if !self.context.settings.enabled {
            return;
        }
        // Nothing may be taken after the hand-over has begun.
        let _ = tokio::time::timeout(MOMENT, self.owner.ended()).await;
        hand_over_all(&self.context, "its server was shut down").await;
        let _ = tokio::time::timeout(LEAVE, self.context.engine.close()).await;
    }

    /// Returns when the last task has ended, after the lane has left.
    pub(crate) async fn ended(&self) {
        self.watch.ended().await;
    }
}

/// Hands over every dispatcher of this server, and stands by none any more.
pub(super) async fn hand_over_all(context: &DispatchersContext, why: &str) {
    stream::iter(context.ownership.held())
        .for_each_concurrent(PARALLEL, |held| async move {
            if tokio::time::timeout(LEAVE, hand_over(context, &held, why)).await.is_err() {
                tracing::warn!(dispatcher = %held.tenure.dispatcher_id, "Could not hand over a dispatcher in time; its lease covers it");
            }
        })
        .await;
    if let Err(error) = deregister(context).await {
        tracing::warn!(error = chain(&error), "Could not sign off from the dispatchers");
    }
}

/// Gives one dispatcher to whoever takes it next: ends its run, removes its heartbeat, hands over its row.
#[tracing::instrument(name = "flow:hand_over_dispatcher", level = "debug", skip_all, fields(dispatcher = %held.tenure.dispatcher_id))]
async fn hand_over(context: &DispatchersContext, held: &Held, why: &str) {
    let tenure = &held.tenure;
    if let Some(run_id) = held.run.clone() {
        let run = Run {
            dispatcher_id: tenure.dispatcher_id.clone(),
            run_id,
        };
        let end = context.engine.end(&run, why);
        if !matches!(tokio::time::timeout(MOMENT * 2, end).await, Ok(Ok(()))) {
            tracing::warn!(dispatcher = %tenure.dispatcher_id, "Could not end a dispatcher's run; the next owner will");
        }
    }
    let remove = context
        .heartbeats
        .remove(&tenure.dispatcher_id, tenure.epoch, tenure.owner);
    if !matches!(tokio::time::timeout(MOMENT, remove).await, Ok(Ok(_))) {
        tracing::warn!(dispatcher = %tenure.dispatcher_id, "Could not remove a heartbeat; the supervisor will");
    }
    let query = sqlx::query_scalar::<_, i64>(statement!("dispatchers/hand_over"))
        .bind(&tenure.dispatcher_id)
        .bind(tenure.epoch)
        .bind(tenure.owner)
        .bind(trace::own());
    match query.maybe(&context.database).await {
        Ok(Some(_)) => tracing::info!(dispatcher = %tenure.dispatcher_id, "Handed a dispatcher over"),
        Ok(None) => {}
        Err(error) => tracing::warn!(
            error = chain(&error),
            "Could not hand a dispatcher over; its lease covers it"
        ),
    }
    context.ownership.forget(tenure);
}

/// Stands by no dispatcher any more.
async fn deregister(context: &DispatchersContext) -> Result<(), db::Error> {
    let server = context.presence.id();
    let query = sqlx::query_scalar(statement!("dispatchers/deregister")).bind(server);
    let stood_by: Vec<DispatcherId> = query.all(&context.database).await?;
    if context.engine.reach() == Reach::Local {
        return Ok(());
    }
    stream::iter(stood_by)
        .for_each_concurrent(PARALLEL, |dispatcher| async move {
            let told = tokio::time::timeout(LEAVE, context.engine.leave(&dispatcher, server)).await;
            // A run that was not told finds out at its next check.
            if !matches!(told, Ok(Ok(()))) {
                tracing::debug!(%dispatcher, "Could not tell a dispatcher that this server leaves");
            }
        })
        .await;
    Ok(())
}
