//! When to try again. Pure.

use std::time::Duration;

use rand::RngExt as _;

/// Doubling waits up to a cap, with full jitter: the wait is drawn evenly between nothing and the step, so that many
/// who failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first step.
    pub base: Duration,
    /// No step is longer.
    pub cap: Duration,
}

impl Backoff {
    /// The longest wait after the `failures`-th failure in a row (counted from 1).
    #[must_use]
    pub fn step(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(32);
        self.base
            .saturating_mul(2_u32.saturating_pow(doublings.min(31)))
            .min(self.cap)
    }

    /// A wait after the `failures`-th failure in a row (counted from 1).
    #[must_use]
    pub fn wait(&self, failures: u32) -> Duration {
        self.step(failures).mul_f64(rand::rng().random_range(0.0..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double_up_to_the_cap() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_mins(1),
        };
        let steps: Vec<u64> = (1..=8).map(|failures| backoff.step(failures).as_secs()).collect();
        assert_eq!(steps, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.step(u32::MAX), backoff.cap);
    }

    #[test]
    fn a_wait_is_never_longer_than_its_step() {
        let backoff = Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_mins(1),
        };
        assert!((0..1000).all(|_| backoff.wait(3) <= Duration::from_secs(4)));
    }
}
