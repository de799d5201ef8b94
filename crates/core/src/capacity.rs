//! Shares of a batch between workspaces, and the position from which to look for them. Pure.
//!
//! Fairness is virtual time: each admitted item moves its workspace's clock by 1/weight, and the lowest clock is served
//! first. Within one claim the batch is shared out by weight, so that one claim is fair by itself.

use std::time::{Duration, Instant};

/// What one workspace brings to the sharing: the order is that of virtual time, lowest first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Slots that are free.
    pub free: u32,
    /// The plan's weight, positive.
    pub weight: f64,
}

/// Shares `batch` between workspaces: never more than is free, one each first as far as it goes, the rest by weight.
#[must_use]
pub fn share(batch: u32, demands: &[Demand]) -> Vec<u32> {
    let mut shares = vec![0_u32; demands.len()];
    let mut left = batch;
    for (share, demand) in shares.iter_mut().zip(demands) {
        if left == 0 {
            return shares;
        }
        if demand.free > 0 {
            *share = 1;
            left -= 1;
        }
    }
    // Each round gives what is left by weight; whoever is full drops out and the next round shares its part again.
    while left > 0 {
        let hungry = |index: usize, shares: &[u32]| shares[index] < demands[index].free;
        let weights: f64 = (0..demands.len())
            .filter(|&index| hungry(index, &shares))
            .map(|index| demands[index].weight)
            .sum();
        if weights <= 0.0 {
            break;
        }
        let round = left;
        for index in 0..demands.len() {
            if left == 0 || !hungry(index, &shares) {
                continue;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a part of a u32"
            )]
            let part = (f64::from(round) * demands[index].weight / weights).ceil() as u32;
            let given = part.min(demands[index].free - shares[index]).min(left);
            shares[index] += given;
            left -= given;
        }
    }
    shares
}

/// A remembered position in an ordered index, before which there is nothing alive to find.
///
/// When something keeps vacuum from its work, dead entries pile up before the position, and a look from the very
/// beginning has to walk over them. So looks start at the position, and a full look is taken only as often as costs a
/// tenth of the time: with a healthy index that is nearly always.
#[derive(Debug)]
pub(crate) struct LowWater {
    position: f64,
    full_look_at: Instant,
}

impl LowWater {
    pub(crate) fn new() -> Self {
        Self {
            position: 0.0,
            full_look_at: Instant::now(),
        }
    }

    /// Where to start looking now.
    pub(crate) fn from(&self) -> f64 {
        if self.is_full_look_due() {
            f64::NEG_INFINITY
        } else {
            self.position
        }
    }

    /// The position itself: whoever enters anew enters here, not before.
    pub(crate) fn floor(&self) -> f64 {
        self.position
    }

    fn is_full_look_due(&self) -> bool {
        Instant::now() >= self.full_look_at
    }

    /// A look that started `from` took this long; the first thing it found lies at `first`.
    pub(crate) fn looked(&mut self, from: f64, took: Duration, first: Option<f64>) {
        if let Some(first) = first {
            self.position = first;
        }
        if from == f64::NEG_INFINITY {
            self.full_look_at = Instant::now() + (took * 10).min(Duration::from_secs(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(of: &[(u32, f64)]) -> Vec<Demand> {
        of.iter().map(|&(free, weight)| Demand { free, weight }).collect()
    }

    #[test]
    fn nobody_gets_more_than_is_free_and_nothing_is_left_that_somebody_could_use() {
        assert_eq!(share(100, &demands(&[(3, 1.0), (5, 1.0)])), [3, 5]);
        assert_eq!(share(10, &demands(&[(3, 1.0), (500, 1.0)])), [3, 7]);
    }

    #[test]
    fn the_batch_is_shared_by_weight() {
        assert_eq!(
            share(70, &demands(&[(500, 1.0), (500, 2.0), (500, 4.0)])),
            [11, 21, 38]
        );
    }

    #[test]
    fn when_there_are_more_workspaces_than_items_the_first_get_one_each() {
        assert_eq!(share(2, &demands(&[(5, 1.0), (5, 9.0), (5, 1.0)])), [1, 1, 0]);
    }

    #[test]
    fn a_full_workspace_gets_nothing() {
        assert_eq!(share(10, &demands(&[(0, 1.0), (2, 1.0)])), [0, 2]);
        assert_eq!(share(10, &[]), Vec::<u32>::new());
    }

    #[test]
    fn shares_never_exceed_the_batch_whatever_the_weights() {
        for batch in 0..50 {
            for seed in 1..50_u32 {
                let demands: Vec<Demand> = (0..seed % 13)
                    .map(|index| Demand {
                        free: (index * seed) % 7,
                        weight: f64::from((index * 31 + seed) % 19) + 0.01,
                    })
                    .collect();
                let shares = share(batch, &demands);
                let free: u32 = demands.iter().map(|demand| demand.free).sum();
                assert_eq!(
                    shares.iter().sum::<u32>(),
                    batch.min(free),
                    "batch {batch}, seed {seed}"
                );
                assert!(
                    shares
                        .iter()
                        .zip(&demands)
                        .all(|(share, demand)| *share <= demand.free)
                );
            }
        }
    }

    #[test]
    fn an_expensive_full_look_is_taken_seldom_and_a_cheap_one_at_once() {
        let mut cheap = LowWater::new();
        cheap.looked(f64::NEG_INFINITY, Duration::ZERO, Some(7.0));
        assert_eq!(cheap.from(), f64::NEG_INFINITY);
        let mut expensive = LowWater::new();
        expensive.looked(f64::NEG_INFINITY, Duration::from_secs(1), Some(7.0));
        assert_eq!(expensive.from(), 7.0);
    }
}
