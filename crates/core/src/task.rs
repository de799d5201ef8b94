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
use crate::pooler::BEHIND_A_POOLER;
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

    /// What it means when no round is finished for long.
    fn silence(&self) -> Silence {
        Silence::IsTrouble
    }

    /// Does one round.
    fn run_once(&mut self) -> impl Future<Output = Result<Next, db::Error>> + Send;
}

/// How long a pass rests that has not always something to do: the longer, the longer there was nothing.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    idle_rounds: u32,
}

impl Rest {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(30);

    /// The rest after a round in which there was something to do, or was not.
    pub(crate) fn after(&mut self, something: bool) -> Duration {
        self.idle_rounds = if something { 0 } else { self.idle_rounds + 1 };
        let doubled = 2_u32.saturating_pow(self.idle_rounds.saturating_sub(1));
        Self::SHORTEST.saturating_mul(doubled).min(Self::LONGEST)
    }
}

/// What it means when a pass does not finish a round for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It makes no progress.
    IsTrouble,
    /// It waits, within its round, for something that need never come.
    MeansNothing,
}

/// A task that has been silent for longer than this makes no progress.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// Whether a task makes progress, for readiness.
#[derive(Debug, Clone)]
pub struct Pulse {
    /// The task.
    pub name: &'static str,
    silence: Silence,
    born: Instant,
    last: Arc<AtomicU64>,
    /// When the first of a row of failures was, one more than the milliseconds since birth; 0 while there is none.
    failing: Arc<AtomicU64>,
}

impl Pulse {
    fn new(pass: &impl Pass) -> Self {
        Self {
            name: pass.name(),
            silence: pass.silence(),
            born: Instant::now(),
            last: Arc::default(),
            failing: Arc::default(),
        }
    }

    /// A round has failed.
    fn fail(&self) {
        let now = millis(self.born.elapsed()).saturating_add(1);
        let _ = self
            .failing
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A round is over, and the next is not due before this time has passed.
    fn beat(&self, wait: Duration) {
        let due = self.born.elapsed().saturating_add(wait);
        self.last.store(millis(due), Ordering::Relaxed);
        self.failing.store(0, Ordering::Relaxed);
    }

    /// For how long a round has been due, or under way, or failing, without one finished without an error; `None` while that
    /// means nothing.
    #[must_use]
    pub fn stalled(&self) -> Option<Duration> {
        let since = match (self.silence, self.failing.load(Ordering::Relaxed)) {
            (Silence::IsTrouble, _) => self.last.load(Ordering::Relaxed),
            (Silence::MeansNothing, 0) => return None,
            (Silence::MeansNothing, failing) => failing - 1,
        };
        let stalled_for = self.born.elapsed().saturating_sub(Duration::from_millis(since));
        (stalled_for > LONGEST_SILENCE).then_some(stalled_for)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

const AFTER_ERROR: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(5),
};

/// Runs a pass in the background until `stop`.
pub fn spawn<P: Pass>(tracker: &TaskTracker, stop: &CancellationToken, bell: Bell, mut pass: P) -> Pulse {
    let pulse = Pulse::new(&pass);
    let (beat, stop) = (pulse.clone(), stop.clone());
    tracker.spawn(async move {
        let mut failures = 0;
        let mut news = News::default();
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
                    beat.fail();
                    news.tell(pass.name(), failures, problem);
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

/// A failure is news when it is the first of a row, when it is another one than before, and once a minute; the rest would only
/// fill the log.
#[derive(Default)]
struct News {
    told: Option<(String, Instant)>,
}

impl News {
    const AGAIN_AFTER: Duration = Duration::from_mins(1);

    fn tell(&mut self, task: &'static str, failures: u32, problem: String) {
        let is_old = |(told, at): &(String, Instant)| *told == problem && at.elapsed() < Self::AGAIN_AFTER;
        if failures > 1 && self.told.as_ref().is_some_and(is_old) {
            tracing::debug!(task, error = %problem, failures, "Still failing");
            return;
        }
        tracing::error!(task, error = %problem, failures, "A background task failed; it goes on");
        self.told = Some((problem, Instant::now()));
    }
}

/// Background tasks that end together.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    pulses: Vec<Pulse>,
}

impl Tasks {
    /// Runs a pass until these tasks are stopped.
    pub(crate) fn spawn(&mut self, bell: Bell, pass: impl Pass) {
        let pulse = spawn(&self.tracker, &self.stop, bell, pass);
        self.pulses.push(pulse);
    }

    /// Runs a pass that nothing wakes before its time.
    pub(crate) fn spawn_unrung(&mut self, pass: impl Pass) {
        self.spawn(Bell::default(), pass);
    }

    /// Where work that belongs to these tasks is counted among them.
    pub(crate) fn tracker(&self) -> &TaskTracker {
        &self.tracker
    }

    /// Cancelled when no further round begins.
    pub(crate) fn stopped(&self) -> &CancellationToken {
        &self.stop
    }

    /// Lets no further round begin.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
    }

    /// Returns when the last of them has ended.
    pub(crate) async fn ended(&self) {
        self.tracker.wait().await;
    }

    /// How they are.
    pub(crate) fn pulses(&self) -> &[Pulse] {
        &self.pulses
    }
}

async fn round<P: Pass>(pass: &mut P) -> Result<Next, String> {
    match AssertUnwindSafe(pass.run_once()).catch_unwind().await {
        Ok(Ok(next)) => Ok(next),
        Ok(Err(error)) if error.is_of_a_pooler() => Err(format!("{}. {BEHIND_A_POOLER}", chain(&error))),
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
#[must_use]
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Idle(Silence);

    impl Pass for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn silence(&self) -> Silence {
            self.0
        }

        async fn run_once(&mut self) -> Result<Next, db::Error> {
            Ok(Next::Now)
        }
    }

    /// The pulse of a task that has not finished a round since it was started, a minute ago.
    fn silent(silence: Silence) -> Pulse {
        Pulse {
            born: Instant::now().checked_sub(Duration::from_mins(1)).unwrap(),
            ..Pulse::new(&Idle(silence))
        }
    }

    #[test]
    fn a_long_silence_is_a_stall_unless_the_pass_says_that_it_means_nothing() {
        let pulse = silent(Silence::IsTrouble);
        assert!(pulse.stalled().is_some_and(|time| time >= Duration::from_mins(1)));
        pulse.beat(Duration::ZERO);
        assert_eq!(pulse.stalled(), None);
        assert_eq!(silent(Silence::MeansNothing).stalled(), None);
    }

    #[test]
    fn a_pass_whose_silence_means_nothing_stalls_when_it_fails_for_long() {
        let pulse = silent(Silence::MeansNothing);
        pulse.fail();
        assert_eq!(pulse.stalled(), None, "it has only begun to fail");
        pulse.failing.store(1, Ordering::Relaxed);
        pulse.fail();
        assert!(pulse.stalled().is_some_and(|time| time >= Duration::from_mins(1)));
        pulse.beat(Duration::ZERO);
        assert_eq!(pulse.stalled(), None);
    }

    #[test]
    fn the_longer_there_was_nothing_to_do_the_longer_is_the_rest() {
        let mut rest = Rest::default();
        let mut after = |something| rest.after(something).as_secs();
        assert_eq!(
            [after(true), after(false), after(false), after(false)],
            [1, 1, 2, 4]
        );
        assert_eq!([after(false), after(false), after(false)], [8, 16, 30]);
        assert_eq!([after(true), after(false), after(false)], [1, 1, 2]);
    }

    #[test]
    fn a_round_that_is_not_due_yet_is_not_missed() {
        let pulse = silent(Silence::IsTrouble);
        pulse.beat(Duration::from_hours(1));
        assert_eq!(pulse.stalled(), None);
    }
}
