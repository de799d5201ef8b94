//! The engine room: claims, delivers in parallel, settles in batches. The same for every lane.
//!
//! ```text
//!            bell, poll            permits                 linger
//! candidates ----------> claim() ----------> deliver() x n --------> settle() --> rows
//!                          ^                                            |
//!                          +------------- room in the window -----------+
//! ```
//!
//! The window bounds what is claimed and not yet settled: a batch more than the lane says, so that the next batch is
//! claimed while the last is being settled. Shutdown: no more claims; what has not been sent is released; what is under way is
//! finished and settled, within the deadline. Whatever is left then is covered by the leases.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use crate::lane::Lane;
use crate::retry::Backoff;
use crate::task::{Bell, Next, Tasks};

/// However lucky the draw, a settlement that found its rows in other hands waits this long.
const BREATH: Duration = Duration::from_millis(1);
/// A window that stays full for this long is a stall.
const STALL: Duration = Duration::from_millis(100);
/// The most that one settlement writes.
const SETTLE_BATCH: usize = 1000;
pub(crate) const SETTLE_AGAIN: Backoff = Backoff {
    base: Duration::from_millis(4),
    cap: Duration::from_secs(2),
};

struct Flow<L: Lane> {
    lane: Arc<L>,
    bell: Bell,
    room: Bell,
    permits: Arc<Semaphore>,
    /// Claimed and not yet settled.
    in_flight: AtomicUsize,
    /// Claimed and not yet delivered.
    in_delivery: AtomicUsize,
    delivered: Bell,
    stop: CancellationToken,
}

/// Runs a lane among these tasks. `parallel` bounds the deliveries under way at once.
pub(crate) fn run<L: Lane>(tasks: &mut Tasks, lane: Arc<L>, bell: Bell, parallel: usize) {
    let (outbox, inbox) = mpsc::unbounded_channel();
    let flow = Arc::new(Flow {
        lane,
        bell: bell.clone(),
        room: Bell::default(),
        permits: Arc::new(Semaphore::new(parallel)),
        in_flight: AtomicUsize::new(0),
        in_delivery: AtomicUsize::new(0),
        delivered: Bell::default(),
        stop: tasks.stopped().clone(),
    });
    let settler = Arc::clone(&flow);
    tasks
        .tracker()
        .spawn(async move { settler.settle_all(inbox).await });
    let claims = Claims {
        flow,
        tracker: tasks.tracker().clone(),
        outbox,
    };
    tasks.spawn(bell, claims);
}

struct Claims<L: Lane> {
    flow: Arc<Flow<L>>,
    tracker: TaskTracker,
    /// The settler ends when nobody is left who could send: this pass, and every delivery that it started.
    outbox: mpsc::UnboundedSender<L::Settlement>,
}

impl<L: Lane> crate::task::Pass for Claims<L> {
    fn name(&self) -> &'static str {
        self.flow.lane.name()
    }

    async fn run_once(&mut self) -> Result<Next, crate::db::Error> {
        let flow = &self.flow;
        let (batch, window) = (flow.lane.batch(), flow.lane.window());
        let full = || flow.in_flight.load(Ordering::Acquire) > window;
        let mut told = false;
        while full() {
            tokio::select! {
                () = flow.room.rung() => {}
                () = flow.stop.cancelled() => return Ok(Next::Now),
                () = tokio::time::sleep(STALL), if !told => {
                    flow.lane.stalled().await;
                    told = true;
                }
            }
        }
        let span = flow.lane.span();
        let claimed = flow.lane.claim(batch).instrument(span.clone()).await?;
        flow.in_flight.fetch_add(claimed.claims.len(), Ordering::AcqRel);
        flow.in_delivery.fetch_add(claimed.claims.len(), Ordering::AcqRel);
        let is_instant = flow.lane.is_instant();
        for claim in claimed.claims {
            let (flow, outbox) = (Arc::clone(flow), self.outbox.clone());
            let delivery = async move { flow.deliver(claim, outbox).await }.instrument(span.clone());
            if !is_instant {
                self.tracker.spawn(delivery);
                continue;
            }
            let mut delivery = Box::pin(delivery);
            if futures::poll!(delivery.as_mut()).is_pending() {
                self.tracker.spawn(delivery);
            }
        }
        Ok(claimed.next)
    }
}

impl<L: Lane> Flow<L> {
    async fn deliver(&self, claim: L::Claim, outbox: mpsc::UnboundedSender<L::Settlement>) {
        // Tried first, because waiting, even where there is no need to, is counted against the task.
        let permit = match self.permits.try_acquire() {
            Ok(permit) => Ok(permit),
            Err(_) => self.permits.acquire().await,
        };
        let delivery = async {
            if self.stop.is_cancelled() {
                self.lane.release(claim)
            } else {
                self.lane.deliver(claim).await
            }
        };
        let delivered = AssertUnwindSafe(delivery).catch_unwind().await;
        drop(permit);
        match delivered {
            // The settler ends only after every delivery, so there is always somebody to receive this.
            Ok(settlement) => drop(outbox.send(settlement)),
            Err(panic) => {
                let panic = crate::task::panic_message(&*panic);
                tracing::error!(
                    panic,
                    "A delivery panicked; its claim will expire and be recovered"
                );
                self.in_flight.fetch_sub(1, Ordering::AcqRel);
                self.room.ring();
            }
        }
        self.in_delivery.fetch_sub(1, Ordering::AcqRel);
        self.delivered.ring();
    }

    async fn settle_all(&self, mut inbox: mpsc::UnboundedReceiver<L::Settlement>) {
        let mut failures = 0;
        let mut batch = Vec::new();
        loop {
            if batch.is_empty() && inbox.recv_many(&mut batch, SETTLE_BATCH).await == 0 {
                return;
            }
            self.linger(&mut inbox, &mut batch).await;
            let taken = batch.len();
            let attempt = AssertUnwindSafe(self.lane.settle(std::mem::take(&mut batch)))
                .catch_unwind()
                .await;
            batch = attempt.unwrap_or_else(|panic| {
                let panic = crate::task::panic_message(&*panic);
                tracing::error!(
                    panic,
                    "A settlement panicked; its claims will expire and be recovered"
                );
                Vec::new()
            });
            self.in_flight.fetch_sub(taken - batch.len(), Ordering::AcqRel);
            self.room.ring();
            if batch.len() < taken {
                failures = 0;
                self.bell.ring();
            } else {
                failures += 1;
                tokio::time::sleep(SETTLE_AGAIN.wait(failures).max(BREATH)).await;
            }
        }
    }

    /// Waits a moment for those that are nearly there: one write for many is what makes this fast.
    async fn linger(
        &self,
        inbox: &mut mpsc::UnboundedReceiver<L::Settlement>,
        batch: &mut Vec<L::Settlement>,
    ) {
        let until = tokio::time::Instant::now() + self.lane.linger();
        while batch.len() < SETTLE_BATCH {
            while let Ok(settlement) = inbox.try_recv() {
                batch.push(settlement);
            }
            if self.in_delivery.load(Ordering::Acquire) == 0 {
                // Whoever left delivery last had sent before.
                while let Ok(settlement) = inbox.try_recv() {
                    batch.push(settlement);
                }
                return;
            }
            tokio::select! {
                () = self.delivered.rung() => {}
                () = tokio::time::sleep_until(until) => return,
            }
        }
    }
}
