//! One contract for every background task: a pass that is run again and again.
//!
//! A pass does one round of work and says when it wants the next. This module alone loops, waits, catches panics and
//! backs off; a test calls `run_once` by hand.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::db;
use crate::retry::Backoff;

/// When a pass wants to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once: there is more to do.
    Now,
    /// After this time, or when the bell rings.
    After(Duration),
}

/// Wakes a task before its time. Rings while nobody waits are remembered as one.
#[derive(Debug, Clone, Default)]
pub struct Bell(Arc<Notify>);

impl Bell {
    /// Wakes the task, or lets its next wait return at once.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Waits for a ring.
    pub async fn rung(&self) {
        self.0.notified().await;
    }
}

/// One round of a background task.
pub trait Pass: Send + 'static {
    /// What it is called in logs.
    fn name(&self) -> &'static str;

    /// Does one round.
    fn run_once(&mut self) -> impl Future<Output = Result<Next, db::Error>> + Send;
}

/// Whether a task makes progress, for readiness.
#[derive(Debug, Clone)]
pub struct Pulse {
    /// The task.
    pub name: &'static str,
    born: Instant,
    last: Arc<AtomicU64>,
}

impl Pulse {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            born: Instant::now(),
            last: Arc::default(),
        }
    }

    /// A round is over, and the next is not due before this time has passed.
    fn beat(&self, wait: Duration) {
        let due = self.born.elapsed().saturating_add(wait);
        let millis = u64::try_from(due.as_millis()).unwrap_or(u64::MAX);
        self.last.store(millis, Ordering::Relaxed);
    }

    /// For how long a round has been due, or under way, without one finished without an error.
    #[must_use]
    pub fn silence(&self) -> Duration {
        self.born
            .elapsed()
            .saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

const AFTER_ERROR: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(5),
};

/// Runs a pass in the background until `stop`.
pub fn spawn<P: Pass>(tracker: &TaskTracker, stop: &CancellationToken, bell: Bell, mut pass: P) -> Pulse {
    let pulse = Pulse::new(pass.name());
    let (beat, stop) = (pulse.clone(), stop.clone());
    tracker.spawn(async move {
        let mut failures = 0;
        while !stop.is_cancelled() {
            let wait = match round(&mut pass).await {
                Ok(next) => {
                    failures = 0;
                    match next {
                        Next::Now => {
                            beat.beat(Duration::ZERO);
                            tokio::task::yield_now().await;
                            continue;
                        }
                        Next::After(wait) => {
                            beat.beat(wait);
                            wait
                        }
                    }
                }
                Err(problem) => {
                    failures += 1;
                    // The first failure of a row is news; the rest would only fill the log.
                    if failures == 1 {
                        tracing::error!(task = pass.name(), error = %problem, "A background task failed; it goes on");
                    } else {
                        tracing::debug!(task = pass.name(), error = %problem, failures, "Still failing");
                    }
                    AFTER_ERROR.wait(failures).max(AFTER_ERROR.base)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = bell.rung() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    });
    pulse
}

async fn round<P: Pass>(pass: &mut P) -> Result<Next, String> {
    match AssertUnwindSafe(pass.run_once()).catch_unwind().await {
        Ok(Ok(next)) => Ok(next),
        Ok(Err(error)) => Err(chain(&error)),
        Err(panic) => Err(format!("panic: {}", panic_message(&*panic))),
    }
}

/// An error with all its causes.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let line = error.to_string();
        // Transparent wrappers repeat what they wrap.
        if !text.contains(&line) {
            text.push_str(": ");
            text.push_str(&line);
        }
        cause = error.source();
    }
    text
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
