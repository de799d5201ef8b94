//! The alarms lane as the engine room sees it.

use super::AlarmsContext;
use super::claim::{Claim, Claimer};
use super::deliver::deliver;
use super::settle::{Fate, Settlement, Verdict, settle};
use crate::db;
use crate::lane::{Claimed, Lane};
use crate::observe::trace;

/// How many times the usual batch a claim takes when the last one was full.
pub(super) const BACKLOG: usize = 4;

/// See [`Lane`].
pub(crate) struct AlarmsLane {
    context: AlarmsContext,
    claimer: Claimer,
}

impl AlarmsLane {
    pub(crate) fn new(context: AlarmsContext) -> Self {
        Self {
            claimer: Claimer::new(context.clone()),
            context,
        }
    }
}

impl Lane for AlarmsLane {
    type Claim = Claim;
    type Settlement = Settlement;

    fn name(&self) -> &'static str {
        "alarms"
    }

    /// Under a backlog a claim takes more: what it costs grows less than what it brings.
    fn batch(&self) -> usize {
        let usual = self.context.settings.batch_size;
        if self.claimer.has_backlog() {
            usual * BACKLOG
        } else {
            usual
        }
    }

    /// Slow targets hold on to what they were sent; that must not keep the others from being claimed.
    fn window(&self) -> usize {
        self.context.settings.concurrency
    }

    fn span(&self) -> tracing::Span {
        tracing::debug_span!("flow:alarm_dispatch")
    }

    async fn claim(&self, room: usize) -> Result<Claimed<Claim>, db::Error> {
        // Whoever runs us is in the span of the round.
        self.claimer.claim(room, &tracing::Span::current()).await
    }

    #[tracing::instrument(name = "step:fire_alarm", level = "debug", skip_all, fields(alarm = %claim.alarm_id))]
    async fn deliver(&self, claim: Claim) -> Settlement {
        trace::link(claim.content.traceparent.as_deref());
        deliver(&self.context, claim).await
    }

    fn release(&self, claim: Claim) -> Settlement {
        Settlement {
            claim,
            verdict: Verdict::of(Fate::Released),
        }
    }

    async fn settle(&self, settlements: Vec<Settlement>) -> Vec<Settlement> {
        settle(&self.context, settlements).await
    }
}
