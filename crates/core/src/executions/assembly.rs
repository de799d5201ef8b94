//! The executions lane, put together: which of its tasks run, and how it ends in order (I8).

use std::sync::Arc;

use super::cancel::Cancels;
use super::close::{LocalCloses, SharedCloses};
use super::exclusive::Turns;
use super::housekeeping::Housekeeping;
use super::lane::ExecutionsLane;
use super::reconcile::Reconcile;
use super::recover::{Recover, Renew};
use super::settle::{Release, give_back};
use super::workers::Workers;
use super::{ExecutionsContext, Settings, WaitsFor};
use crate::db::{self, Read as _, statement};
use crate::engine::{self, Reach};
use crate::id::{ExecutionId, Token};
use crate::pipeline;
use crate::surroundings::Surroundings;
use crate::task::{Pulse, Tasks, chain};

/// A second: a server that leaves has the time.
const TRIES: u32 = 100;

/// The running lane.
pub(crate) struct Executions {
    context: ExecutionsContext,
    /// What takes on work.
    flow: Tasks,
    /// What keeps the leases of work under way; outlives the flow.
    renewal: Tasks,
}

impl Executions {
    pub(crate) fn start(settings: Settings, around: &Surroundings) -> Self {
        let (mut flow, mut renewal) = (Tasks::default(), Tasks::default());
        let context = ExecutionsContext::new(settings, around, flow.stopped().clone());
        let share = || context.clone();
        renewal.spawn_unrung(Renew { context: share() });
        match &context.settings.exclusive {
            None => {
                let lane = Arc::new(ExecutionsLane::new(share()));
                let parallel = context.settings.start_concurrency;
                pipeline::run(&mut flow, lane, context.bells.queue.clone(), parallel);
            }
            // A fixed delay: nothing wakes it.
            Some(exclusive) => flow.spawn_unrung(Turns::new(share(), exclusive)),
        }
        match &context.settings.exclusive {
            None => flow.spawn(context.bells.recovery.clone(), Recover::new(share())),
            // It has its own times.
            Some(_) => flow.spawn_unrung(Recover::new(share())),
        }
        flow.spawn(context.bells.cancel.clone(), Cancels::new(share()));
        flow.spawn_unrung(Housekeeping::new(share()));
        match context.engine.reach() {
            Reach::Local => flow.spawn_unrung(LocalCloses::new(share())),
            Reach::Shared => {
                flow.spawn(context.bells.closes.clone(), SharedCloses::new(share()));
                flow.spawn_unrung(Reconcile::new(share()));
                flow.spawn_unrung(Workers::new(share()));
            }
        }
        Self {
            context,
            flow,
            renewal,
        }
    }

    pub(crate) fn pulses(&self) -> impl Iterator<Item = &Pulse> {
        self.flow.pulses().iter().chain(self.renewal.pulses())
    }

    /// Takes on nothing more.
    pub(crate) fn stop(&self) {
        self.flow.stop();
    }

    /// Returns when what is under way is finished or given back.
    pub(crate) async fn drained(&self) {
        self.flow.ended().await;
    }

    /// Gives back what is left in hand, and tells the others to look.
    pub(crate) async fn leave(&self) {
        self.renewal.stop();
        self.context.engine.abandon_runs();
        if let Err(error) = self.hand_over().await {
            tracing::warn!(
                error = chain(&error),
                "Could not give back what is in hand; recovery will"
            );
        }
        let (attention, database) = (&self.context.attention, &self.context.database);
        attention.leave(database, Some(self.context.floor())).await;
    }

    /// Returns when the last task has ended, after the lane has left.
    pub(crate) async fn ended(&self) {
        self.renewal.ended().await;
    }

    /// Runs that live in this server go back to the queue; another server, or the next start of this one, goes on with them.
    async fn hand_over(&self) -> Result<(), db::Error> {
        let context = &self.context;
        if context.engine.reach() != Reach::Local {
            return Ok(());
        }
        let query = sqlx::query_as(statement!("executions/held_by"))
            .bind(context.presence.id())
            .bind(engine::LOCAL);
        let held: Vec<(ExecutionId, Token)> = query.all(&context.database).await?;
        if held.is_empty() {
            return Ok(());
        }
        let release = || Release::at_once(WaitsFor::HandedOver, "the server was shut down");
        let releases = held.into_iter().map(|(id, token)| (id, token, release()));
        let handed = give_back(context, context.presence.id(), releases.collect(), TRIES).await?;
        tracing::info!(executions = handed, "Gave running executions back to the queue");
        Ok(())
    }
}
