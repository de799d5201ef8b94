//! The circuit breaker before an engine: while the engine is away nothing is claimed, so nothing is spent on it.
//!
//! Closed: everything goes. Open: nothing goes; one prober asks the engine, with backoff, for ever. The first answer
//! closes it again. It starts open: an engine that cannot be reached, or whose settings are wrong, spends nothing.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::retry::Backoff;

/// Failures in a row, without one success between them, that open the breaker.
const FAILURES_TO_OPEN: u32 = 3;

const PROBES: Backoff = Backoff {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(2),
};

#[derive(Debug, Default)]
struct State {
    failures: u32,
    probes: u32,
    open: bool,
    reason: String,
    answered_at: Option<Instant>,
}

/// See the module.
#[derive(Debug)]
pub struct Breaker {
    state: Mutex<State>,
}

impl Default for Breaker {
    fn default() -> Self {
        let state = State {
            open: true,
            reason: "it has not been asked yet".to_owned(),
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

/// What a report changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// It opened just now.
    Opened,
    /// It closed just now.
    Closed,
}

impl Breaker {
    /// May something be sent?
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.state.lock().open
    }

    /// What the engine said when it was last heard to be away.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        let state = self.state.lock();
        state.open.then(|| state.reason.clone())
    }

    /// Has the engine answered nobody for this long?
    #[must_use]
    pub fn is_quiet_for(&self, long: Duration) -> bool {
        let answered_at = self.state.lock().answered_at;
        answered_at.is_none_or(|at| at.elapsed() >= long)
    }

    /// The engine answered, whatever it said.
    pub fn succeeded(&self) -> Change {
        let mut state = self.state.lock();
        let was_open = state.open;
        *state = State {
            answered_at: Some(Instant::now()),
            ..State::default()
        };
        if was_open { Change::Closed } else { Change::None }
    }

    /// The engine did not answer, or was too busy to.
    pub fn failed(&self, reason: &str) -> Change {
        let mut state = self.state.lock();
        state.failures += 1;
        reason.clone_into(&mut state.reason);
        if !state.open && state.failures >= FAILURES_TO_OPEN {
            state.open = true;
            return Change::Opened;
        }
        Change::None
    }

    /// A probe failed: how long to wait before the next. Opens the breaker if it was closed.
    pub fn probe_failed(&self, reason: &str) -> Duration {
        let mut state = self.state.lock();
        state.open = true;
        reason.clone_into(&mut state.reason);
        state.probes += 1;
        PROBES.wait(state.probes).max(PROBES.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_open_it_and_one_answer_closes_it() {
        let breaker = Breaker::default();
        assert!(!breaker.is_closed(), "it starts open");
        assert_eq!(breaker.succeeded(), Change::Closed);
        assert_eq!(breaker.failed("away"), Change::None);
        assert_eq!(breaker.failed("away"), Change::None);
        assert_eq!(breaker.failed("away"), Change::Opened);
        assert!(!breaker.is_closed());
        assert_eq!(breaker.reason().as_deref(), Some("away"));
        assert_eq!(breaker.succeeded(), Change::Closed);
        assert!(breaker.is_closed());
    }

    #[test]
    fn an_answer_between_failures_keeps_it_closed() {
        let breaker = Breaker::default();
        for _ in 0..10 {
            breaker.failed("busy");
            breaker.failed("busy");
            breaker.succeeded();
        }
        assert!(breaker.is_closed());
    }

    #[test]
    fn it_is_quiet_until_it_answers() {
        let breaker = Breaker::default();
        assert!(breaker.is_quiet_for(Duration::from_mins(1)));
        breaker.succeeded();
        breaker.failed("away");
        assert!(!breaker.is_quiet_for(Duration::from_mins(1)));
        assert!(breaker.is_quiet_for(Duration::ZERO));
    }

    #[test]
    fn probes_back_off_but_never_beyond_two_seconds() {
        let breaker = Breaker::default();
        let waits: Vec<Duration> = (0..50).map(|_| breaker.probe_failed("away")).collect();
        assert!(
            waits
                .iter()
                .all(|wait| *wait >= PROBES.base && *wait <= PROBES.cap)
        );
    }
}
