//! Capacity rows in other hands: they are free again in milliseconds, so whoever meets one tries again for a while.

use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(10);

/// How often somebody still tries.
pub(super) struct Tries(u32);

impl Tries {
    /// At most so many in all.
    pub(super) fn new(most: u32) -> Self {
        Self(most)
    }

    /// After a try that met a row in other hands: waits a moment. `false`: that was the last.
    pub(super) async fn again(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        if self.0 > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        self.0 > 0
    }
}
