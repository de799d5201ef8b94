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
    shared: AlarmsContext,
    flow: Tasks,
}

impl Alarms {
    pub(crate) fn start(setup: Setup, around: &Surroundings) -> Self {
        let parallel = setup.parallel();
        let shared = AlarmsContext::new(setup, around);
        let share = || shared.clone();
        let mut flow = Tasks::default();
        let lane = Arc::new(AlarmsLane::new(share()));
        pipeline::run(&mut flow, lane, shared.bells.alarms.clone(), parallel);
        flow.spawn(shared.bells.planner.clone(), Planner::new(share()));
        flow.spawn(shared.bells.alarm_recovery.clone(), Recover { shared: share() });
        flow.spawn_unrung(Housekeeping {
            shared: share(),
            rest: Rest::default(),
        });
        Self { shared, flow }
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
        self.shared.attention.leave(&self.shared.database, None).await;
    }
}
