//! The alarms lane, put together: which of its tasks run, and how it ends in order (I8).

use std::sync::Arc;

use super::housekeeping::Housekeeping;
use super::lane::AlarmsLane;
use super::planner::Planner;
use super::recover::Recover;
use super::{AlarmsContext, Setup};
use crate::pipeline;
use crate::surroundings::Surroundings;
use crate::task::{Pulse, Rest, Tasks};

/// The running lane.
pub(crate) struct Alarms {
    context: AlarmsContext,
    flow: Tasks,
}

impl Alarms {
    pub(crate) fn start(setup: Setup, around: &Surroundings) -> Self {
        let parallel = setup.parallel();
        let context = AlarmsContext::new(setup, around);
        let share = || context.clone();
        let mut flow = Tasks::default();
        let lane = Arc::new(AlarmsLane::new(share()));
        pipeline::run(&mut flow, lane, context.bells.alarms.clone(), parallel);
        flow.spawn(context.bells.planner.clone(), Planner::new(share()));
        flow.spawn(context.bells.alarm_recovery.clone(), Recover::new(share()));
        flow.spawn_unrung(Housekeeping {
            context: share(),
            rest: Rest::default(),
        });
        Self { context, flow }
    }

    pub(crate) fn pulses(&self) -> impl Iterator<Item = &Pulse> {
        self.flow.pulses().iter()
    }

    /// Takes on nothing more.
    pub(crate) fn stop(&self) {
        self.flow.stop();
    }

    /// Returns when what is under way is finished or given back.
    pub(crate) async fn drained(&self) {
        self.flow.ended().await;
    }

    /// Tells the others to look.
    pub(crate) async fn leave(&self) {
        self.context.attention.leave(&self.context.database, None).await;
    }
}
