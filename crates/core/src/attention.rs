//! Attention: whether those who bring work need to ring.
//!
//! After work there is often more. So a lane that was busy looks again every few milliseconds for a while, and says so in the
//! database, now and then; until that has worn off nobody rings, and a ring is most of what bringing work costs. Whoever said it
//! keeps looking for longer than it holds, so nothing that came without a ring waits for the next poll. A word that could not be
//! said, or taken back, costs a ring or a poll interval and nothing else: errors are told and forgotten.
//!
//! Knows nothing of what the work is.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::db::{Database, Write as _, statement};
use crate::task::chain;

/// For how long, and how closely.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// How long it holds once it is said.
    pub(crate) holds: Duration,
    /// How soon the next look comes meanwhile.
    pub(crate) look_again: Duration,
}

/// The attention of one lane, or of one dispatcher.
#[derive(Debug)]
pub(crate) struct Attention {
    /// `executions`, `alarms`, or the id of a dispatcher.
    lane: String,
    /// The word that is sent when others should look.
    ring: &'static str,
    terms: Terms,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// When there was something to do last.
    worked_at: Option<Instant>,
    /// When it was said last.
    said_at: Option<Instant>,
}

fn is_within(at: Option<Instant>, time: Duration) -> bool {
    at.is_some_and(|at| at.elapsed() < time)
}

impl Attention {
    pub(crate) fn new(lane: &str, ring: &'static str, terms: Terms) -> Self {
        Self {
            lane: lane.to_owned(),
            ring,
            terms,
            memory: Mutex::default(),
        }
    }

    /// There was something to do.
    pub(crate) fn worked(&self) {
        self.memory.lock().worked_at = Some(Instant::now());
    }

    /// Is it to be looked again soon? For longer than what was said holds.
    pub(crate) fn is_awake(&self) -> bool {
        is_within(self.memory.lock().worked_at, self.terms.holds.mul_f64(1.3))
    }

    /// How long to sleep when there was nothing to do: until the next look, or until something is due.
    pub(crate) fn sleep(&self, poll: Duration, next_due: Option<Instant>) -> Duration {
        let poll = if self.is_awake() {
            self.terms.look_again
        } else {
            poll
        };
        let due = next_due.map(|due| due.saturating_duration_since(Instant::now()));
        // A moment past the due time, so that the database's clock has surely reached it.
        due.map_or(poll, |due| (due + Duration::from_millis(1)).min(poll))
    }

    /// Says, while there is work and at most now and then, that nobody needs to ring. `virtual_time` is how far that has come, in
    /// a lane that has it.
    pub(crate) async fn attend(&self, database: &Database, virtual_time: Option<f64>) {
        {
            let mut memory = self.memory.lock();
            let busy = is_within(memory.worked_at, self.terms.look_again * 2);
            if !busy || is_within(memory.said_at, self.terms.holds.mul_f64(0.4)) {
                return;
            }
            memory.said_at = Some(Instant::now());
        }
        let attend = sqlx::query(statement!("attention/attend"))
            .bind(&self.lane)
            .bind(self.terms.holds.as_secs_f64())
            .bind(virtual_time);
        if let Err(error) = attend.run(database).await {
            let error = chain(&error);
            tracing::debug!(lane = self.lane, error, "Could not say that nobody needs to ring");
        }
    }

    /// Takes the word back, if it holds: others ring again, and look once for what came without a ring.
    pub(crate) async fn look_away(&self, database: &Database, virtual_time: Option<f64>) {
        let said_at = self.memory.lock().said_at.take();
        if is_within(said_at, self.terms.holds) {
            self.leave(database, virtual_time).await;
        }
    }

    /// Takes the word back, whoever said it: this server looks no more.
    pub(crate) async fn leave(&self, database: &Database, virtual_time: Option<f64>) {
        let look_away = sqlx::query(statement!("attention/look_away"))
            .bind(&self.lane)
            .bind(self.ring)
            .bind(virtual_time);
        if let Err(error) = look_away.run(database).await {
            let error = chain(&error);
            tracing::warn!(lane = self.lane, error, "Could not tell the others to look");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        holds: Duration::from_mins(1),
        look_again: Duration::from_millis(15),
    };
    const POLL: Duration = Duration::from_secs(5);

    #[test]
    fn a_lane_without_work_sleeps_for_the_poll_interval_and_a_busy_one_looks_again_soon() {
        let attention = Attention::new("executions", "queue", TERMS);
        assert_eq!(attention.sleep(POLL, None), POLL);
        attention.worked();
        assert_eq!(attention.sleep(POLL, None), TERMS.look_again);
    }

    #[test]
    fn nobody_sleeps_past_what_is_due_or_wakes_before_it() {
        let attention = Attention::new("alarms", "alarms", TERMS);
        let due = Instant::now() + Duration::from_secs(2);
        let sleep = attention.sleep(POLL, Some(due));
        assert!(sleep <= Duration::from_millis(2001), "{sleep:?}");
        assert!(Instant::now() + sleep > due);
        let long_ago = Instant::now();
        assert_eq!(attention.sleep(POLL, Some(long_ago)), Duration::from_millis(1));
    }
}
