//! When a call is repeated, and how long we wait before. Pure but for the dice.

use std::time::Duration;

/// How often a call that may safely be repeated is repeated: reading, writing what a repeat would only write again, and
/// whatever the server carries out once for its `Idempotency-Key`. Waits grow and are spread by chance, so that many clients
/// do not come back at once; what the server asks for (`Retry-After`) is kept to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Tries at most, the first among them.
    pub tries: u32,
    /// The first wait, at most; it doubles with every try.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
    /// No try begins later than this after the first.
    pub deadline: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            tries: 5,
            base: Duration::from_millis(200),
            cap: Duration::from_secs(5),
            deadline: Duration::from_mins(1),
        }
    }
}

impl Retries {
    /// Never.
    #[must_use]
    pub fn none() -> Self {
        Self {
            tries: 1,
            ..Self::default()
        }
    }

    /// How long to wait after so many tries, `spent` after the first; `None`: it is enough.
    pub(crate) fn wait(
        &self,
        tried: u32,
        spent: Duration,
        asked: Option<Duration>,
        dice: f64,
    ) -> Option<Duration> {
        if tried >= self.tries {
            return None;
        }
        let wait = self.backoff(tried, dice).max(asked.unwrap_or_default());
        (spent + wait <= self.deadline).then_some(wait)
    }

    /// The wait after so many tries, spread by chance between nothing and all of it.
    pub(crate) fn backoff(&self, tried: u32, dice: f64) -> Duration {
        let doublings = tried.saturating_sub(1).min(16);
        let whole = self.base.saturating_mul(1 << doublings).min(self.cap);
        whole.mul_f64(dice.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_their_cap() {
        let retries = Retries::default();
        let waits: Vec<u128> = (1..=8)
            .map(|tried| retries.backoff(tried, 1.0).as_millis())
            .collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(retries.backoff(u32::MAX, 0.5), Duration::from_millis(2500));
        assert_eq!(retries.backoff(3, 0.0), Duration::ZERO);
    }

    #[test]
    fn what_the_server_asks_for_is_kept_to() {
        let retries = Retries::default();
        assert_eq!(
            retries.wait(1, Duration::ZERO, Some(SECOND * 7), 1.0),
            Some(SECOND * 7)
        );
        assert_eq!(
            retries.wait(1, Duration::ZERO, Some(SECOND * 61), 1.0),
            None,
            "too late"
        );
    }

    #[test]
    fn tries_and_time_have_an_end() {
        let retries = Retries::default();
        assert!(retries.wait(4, SECOND, None, 1.0).is_some());
        assert_eq!(retries.wait(5, SECOND, None, 1.0), None);
        assert_eq!(retries.wait(1, SECOND * 60, None, 1.0), None);
        assert_eq!(Retries::none().wait(1, Duration::ZERO, None, 0.0), None);
    }
}
