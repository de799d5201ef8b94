//! The engine room's contract with a lane: `Candidate -> Claim -> Delivery -> Settlement`.
//!
//! A lane knows what its rows mean; the pipeline knows how work flows. Each stage consumes the type of the one before,
//! so a claim is delivered once and settled once. The engine room knows neither SQL nor the outside.

use std::future::Future;
use std::time::Duration;

use crate::db;
use crate::task::Next;

/// A kind of work that passes through the engine room.
pub(crate) trait Lane: Send + Sync + 'static {
    /// A row that this server has leased.
    type Claim: Send + 'static;
    /// A claim and what came of it.
    type Settlement: Send + 'static;

    /// What it is called in logs.
    fn name(&self) -> &'static str;

    /// The span of one round: a claim and the deliveries of what it brought.
    fn span(&self) -> tracing::Span {
        tracing::Span::none()
    }

    /// How many to take in one claim.
    fn batch(&self) -> usize;

    /// How many may be claimed and not yet settled before the next claim waits.
    fn window(&self) -> usize {
        self.batch()
    }

    /// Candidates become claims, in one short transaction: at most `room` of them.
    fn claim(&self, room: usize) -> impl Future<Output = Result<Claimed<Self::Claim>, db::Error>> + Send;

    /// Nothing more can be claimed for a while, because what was claimed does not come back: others should look instead.
    fn stalled(&self) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Are deliveries mostly over as soon as they begin? Then only those that are not get a task of their own.
    fn is_instant(&self) -> bool {
        false
    }

    /// A claim goes out: outside any transaction, bounded in time. Never fails: whatever happens is a settlement.
    fn deliver(&self, claim: Self::Claim) -> impl Future<Output = Self::Settlement> + Send;

    /// How long a settlement may wait for others, while some are under way, to be written with them.
    fn linger(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// What was claimed and will not be sent.
    fn release(&self, claim: Self::Claim) -> Self::Settlement;

    /// Writes down what happened, fenced by the claims' tokens. Answers what has to be tried again.
    fn settle(
        &self,
        settlements: Vec<Self::Settlement>,
    ) -> impl Future<Output = Vec<Self::Settlement>> + Send;
}

/// What a claim brought.
pub(crate) struct Claimed<C> {
    pub(crate) claims: Vec<C>,
    /// When to look again.
    pub(crate) next: Next,
}

impl<C> Claimed<C> {
    /// There was nothing; look again after this time, or when the bell rings.
    pub(crate) fn nothing(wait: Duration) -> Self {
        Self {
            claims: Vec::new(),
            next: Next::After(wait),
        }
    }
}
