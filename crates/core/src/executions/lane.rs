//! The executions lane as the engine room sees it.

use std::time::Duration;

use super::ExecutionsContext;
use super::claim::{Claim, Claimer, Work};
use super::settle::{SAY_EACH, Settlement, Verdict, settle};
use super::start::start;
use crate::db;
use crate::engine::Reach;
use crate::lane::{Claimed, Lane};
use crate::observe::trace;

/// See [`Lane`].
pub(crate) struct ExecutionsLane {
    context: ExecutionsContext,
    claimer: Claimer,
}

impl ExecutionsLane {
    pub(crate) fn new(context: ExecutionsContext) -> Self {
        Self {
            claimer: Claimer::new(context.clone()),
            context,
        }
    }
}

impl Lane for ExecutionsLane {
    type Claim = Claim;
    type Settlement = Settlement;

    fn name(&self) -> &'static str {
        "executions"
    }

    fn batch(&self) -> usize {
        let settings = &self.context.settings;
        match self.context.engine.reach() {
            Reach::Local => settings.batch_size,
            // What waits here for its turn at a distant engine could be started by another server instead.
            Reach::Shared => settings.batch_size.min(settings.start_concurrency),
        }
    }

    fn linger(&self) -> Duration {
        match self.context.engine.reach() {
            Reach::Local => Duration::from_millis(1),
            // Its starts come in one by one; a commit for each would cost more than it is worth.
            Reach::Shared => Duration::from_millis(20),
        }
    }

    fn is_instant(&self) -> bool {
        self.context.engine.reach() == Reach::Local
    }

    fn span(&self) -> tracing::Span {
        tracing::debug_span!("flow:queue_processing")
    }

    async fn claim(&self, room: usize) -> Result<Claimed<Claim>, db::Error> {
        // Whoever runs us is in the span of the round.
        self.claimer.claim(room, tracing::Span::current()).await
    }

    async fn stalled(&self) {
        let (attention, database) = (&self.context.attention, &self.context.database);
        attention.look_away(database, Some(self.context.floor())).await;
    }

    #[tracing::instrument(name = "step:process_item", level = "debug", skip_all, fields(item = %claim.item_id, execution = %claim.execution_id))]
    async fn deliver(&self, claim: Claim) -> Settlement {
        if let Work::Ready(request) = &claim.work {
            trace::link(request.traceparent.as_deref());
            let (item, execution) = (claim.item_id, claim.execution_id);
            let (workspace, workflow) = (claim.workspace_id, request.definition_id);
            if claim.batch.items <= SAY_EACH {
                tracing::info!(%item, %execution, %workspace, %workflow, "Dispatching queue item");
            } else {
                tracing::debug!(%item, %execution, %workspace, %workflow, "Dispatching queue item");
            }
        }
        start(&self.context, claim).await
    }

    fn release(&self, claim: Claim) -> Settlement {
        Settlement {
            claim,
            verdict: Verdict::Released {
                message: "the server is shutting down".to_owned(),
            },
        }
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Vec<Settlement> {
        settle(&self.context, settlements).await
    }
}
